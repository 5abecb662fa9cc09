//! What a start from flash found and did.

use serde::{Deserialize, Serialize};

/// What a start began with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecoverySource {
    /// The newest checkpoint.
    #[default]
    Checkpoint,
    /// The one before, since the newest is damaged.
    OlderCheckpoint,
    /// The OOB of every page, since no checkpoint is whole.
    Scan,
}

/// How a device with a journal was opened. Counts are of this start alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveryReport {
    /// The device was shut down cleanly: nothing was written since the checkpoint.
    pub was_clean: bool,
    /// Generation of the checkpoint that was loaded; 0 on a device that never had one.
    pub checkpoint: u64,
    /// Map entries loaded from the checkpoint.
    pub map_entries: u64,
    /// Blocks that changed since the checkpoint, whose OOB was read.
    pub scanned_blocks: u64,
    /// Pages whose OOB was read.
    pub scanned_pages: u64,
    /// Pages whose program or erase was cut short, or that fail their checksum.
    pub torn_pages: u64,
    /// Records of dropped pages that were applied.
    pub drop_records: u64,
    /// Logical pages that hold data now.
    pub live_pages: u64,
    /// Flash pages read of the journal and checkpoint.
    pub metadata_pages: u64,
    /// What the start began with.
    #[serde(default)]
    pub source: RecoverySource,
    /// Why that is not the newest checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damage: Option<String>,
}

impl RecoveryReport {
    /// What was found and done, in one line for people.
    pub fn summary(&self) -> String {
        let n = |count: u64| thousands(count);
        let from = match self.source {
            RecoverySource::Checkpoint if self.checkpoint == 0 => return "a new device".to_owned(),
            RecoverySource::Checkpoint => format!("checkpoint {}", n(self.checkpoint)),
            RecoverySource::OlderCheckpoint => format!("the older checkpoint {}", n(self.checkpoint)),
            RecoverySource::Scan => "no checkpoint, all pages".to_owned(),
        };
        let damage = self.damage.as_ref().map_or_else(String::new, |damage| format!(" ({damage})"));
        format!(
            "{}: {from}{damage}, {} map entries, {} blocks / {} pages scanned, {} torn, {} drop records; {} pages hold data",
            if self.was_clean { "clean" } else { "not shut down" },
            n(self.map_entries),
            n(self.scanned_blocks),
            n(self.scanned_pages),
            n(self.torn_pages),
            n(self.drop_records),
            n(self.live_pages),
        )
    }
}

/// `12,345`
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_told_in_one_line() {
        assert_eq!(RecoveryReport::default().summary(), "a new device");
        let report = RecoveryReport {
            checkpoint: 7,
            map_entries: 1_012_345,
            scanned_blocks: 801,
            scanned_pages: 200_123,
            torn_pages: 3,
            drop_records: 17,
            live_pages: 1_000,
            ..RecoveryReport::default()
        };
        assert_eq!(
            report.summary(),
            "not shut down: checkpoint 7, 1,012,345 map entries, 801 blocks / 200,123 pages scanned, 3 torn, \
             17 drop records; 1,000 pages hold data"
        );
        let report = RecoveryReport {
            source: RecoverySource::OlderCheckpoint,
            damage: Some("page 5 is damaged".to_owned()),
            ..report
        };
        assert!(
            report
                .summary()
                .starts_with("not shut down: the older checkpoint 7 (page 5 is damaged), 1,012,345 map")
        );
        let report = RecoveryReport { source: RecoverySource::Scan, checkpoint: 0, ..report };
        assert!(
            report.summary().starts_with("not shut down: no checkpoint, all pages (page 5 is damaged), ")
        );
    }
}
