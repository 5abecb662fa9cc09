//! The Linux driver's mapping of write-lifetime hints to streams (kernels 4.13 to 5.17).
//!
//! Streams are used only if the device shares at least four; then exactly four. A hint less one is the
//! stream; "not set" and "none" have none. An id above the count is warned about and sent unstreamed: with
//! four streams and hints up to 5 that cannot happen, but it can where `least` is set lower.

use super::{PolicyEntry, StreamPolicy, WriteFacts, prototype_hint};
use crate::hints::WriteHint;
use nandscape_core::{Info, keys};

keys! { PARAMS:
    LEAST: u64 = int(1, 4) or "4", "with fewer shared streams than this the driver uses none";
    METADATA: String = choice(&["none", "prototype"]) or "none",
        "hints of file system metadata: none, or those of the prototype (journal short, inodes medium, \
         bitmaps and descriptors long, directories extreme)";
}

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    info: Info {
        name: "write-hint",
        summary: "Linux: hints short, medium, long, extreme become streams 1 to 4",
        source: "[streams-article 2.2], [streams-article 2.7]; Linux 4.13 to 5.17, NVMe driver",
        params: PARAMS,
    },
    needs_future: false,
    build: |params, setup| {
        let enabled = u64::from(setup.streams) >= params.get(LEAST);
        Ok(Box::new(ByHint {
            used: if enabled { setup.streams.min(DRIVER_STREAMS) } else { 0 },
            shared: setup.streams,
            least: params.get(LEAST),
            with_metadata: params.get(METADATA) == "prototype",
            beyond: 0,
        }))
    },
};

const DRIVER_STREAMS: u16 = 4;

#[derive(Debug)]
struct ByHint {
    used: u16,
    shared: u16,
    least: u64,
    with_metadata: bool,
    beyond: u64,
}

impl StreamPolicy for ByHint {
    fn assign(&mut self, write: &WriteFacts<'_>) -> u16 {
        let hint = match write.origin.kind.metadata_class() {
            Some(class) if self.with_metadata => prototype_hint(class),
            _ => write.hint,
        };
        let stream = WriteHint::from_number(u64::from(hint)).map_or(Some(hint), WriteHint::stream);
        let Some(stream) = stream.filter(|_| self.used > 0) else { return 0 };
        if stream > self.used {
            self.beyond += 1;
            return 0;
        }
        stream
    }

    fn warnings(&self) -> Vec<String> {
        if self.used == 0 && self.shared > 0 {
            return vec![format!(
                "streams are off: the device shares {} and the driver wants at least {} (host.least)",
                self.shared, self.least
            )];
        }
        beyond(self.beyond, self.used)
    }
}

/// The warning about ids that the device does not have.
pub(super) fn beyond(writes: u64, streams: u16) -> Vec<String> {
    let warn = || format!("{writes} writes asked for a stream above {streams} and were sent without one");
    (writes > 0).then(warn).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{build, facts};
    use super::*;
    use nandscape_core::{BlockKind, Origin};

    #[test]
    fn four_streams_or_more_map_the_hints_to_one_to_four() {
        for streams in [4, 5, 16, 65535] {
            let mut policy = build("write-hint", &[], streams);
            let ids: Vec<u16> = (0..6).map(|hint| policy.assign(&WriteFacts { hint, ..facts(0) })).collect();
            assert_eq!(ids, [0, 0, 1, 2, 3, 4], "{streams}");
            assert!(policy.warnings().is_empty());
        }
    }

    #[test]
    fn fewer_than_four_streams_turn_the_mapping_off_and_say_so() {
        for streams in 1..4 {
            let mut policy = build("write-hint", &[], streams);
            assert!((0..6).all(|hint| policy.assign(&WriteFacts { hint, ..facts(0) }) == 0));
            assert!(policy.warnings()[0].contains("wants at least 4"), "{:?}", policy.warnings());
        }
        assert!(build("write-hint", &[], 0).warnings().is_empty());
    }

    #[test]
    fn an_id_above_the_count_is_sent_unstreamed_and_counted() {
        let mut policy = build("write-hint", &[("least", "2")], 2);
        let ids: Vec<u16> = (0..6).map(|hint| policy.assign(&WriteFacts { hint, ..facts(0) })).collect();
        assert_eq!(ids, [0, 0, 1, 2, 0, 0]);
        assert_eq!(policy.warnings(), ["2 writes asked for a stream above 2 and were sent without one"]);
        // Not a hint at all.
        let mut policy = build("write-hint", &[], 8);
        assert_eq!(policy.assign(&WriteFacts { hint: 6, ..facts(0) }), 0);
    }

    #[test]
    fn the_prototype_gives_metadata_hints_and_leaves_user_data_alone() {
        let mut policy = build("write-hint", &[("metadata", "prototype")], 8);
        let mut of = |kind, hint| {
            policy.assign(&WriteFacts { hint, origin: Origin { kind, ..Origin::default() }, ..facts(0) })
        };
        let expected = [0, 3, 3, 3, 3, 2, 4, 1];
        assert_eq!(BlockKind::ALL.map(|kind| of(kind, 0)), expected);
        assert_eq!(of(BlockKind::FileData, 5), 4);
    }
}
