//! Identify data and log page 09h of a device with NVM sets, in the standard's byte layouts (NVMe 2.0).

/// Bits of the Controller Attributes field (Identify Controller, CTRATT).
pub mod controller_attribute {
    /// NVM sets.
    pub const NVM_SETS: u32 = 1 << 2;
    /// Read recovery levels.
    pub const READ_RECOVERY_LEVELS: u32 = 1 << 3;
    /// Endurance groups.
    pub const ENDURANCE_GROUPS: u32 = 1 << 4;
    /// Predictable latency mode.
    pub const PREDICTABLE_LATENCY: u32 = 1 << 5;
}

/// One NVM set attributes entry (Identify, CNS 04h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetAttributes {
    /// NVMSETID, from 1.
    pub set_id: u16,
    /// ENDGID, from 1.
    pub endurance_group_id: u16,
    /// Typical random 4 KiB read alone in a deterministic window, in 100 ns.
    pub read_typical_100ns: u32,
    /// Optimal write size in bytes.
    pub optimal_write_bytes: u32,
    /// Logical capacity.
    pub total_bytes: u128,
    /// Of it, what no namespace has.
    pub unallocated_bytes: u128,
}

impl SetAttributes {
    /// Length of an entry.
    pub const BYTES: usize = 128;

    /// The entry's bytes.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut entry = [0; Self::BYTES];
        entry[..2].copy_from_slice(&self.set_id.to_le_bytes());
        entry[2..4].copy_from_slice(&self.endurance_group_id.to_le_bytes());
        entry[8..12].copy_from_slice(&self.read_typical_100ns.to_le_bytes());
        entry[12..16].copy_from_slice(&self.optimal_write_bytes.to_le_bytes());
        entry[16..32].copy_from_slice(&self.total_bytes.to_le_bytes());
        entry[32..48].copy_from_slice(&self.unallocated_bytes.to_le_bytes());
        entry
    }
}

/// Length of identify data.
pub const IDENTIFY_BYTES: usize = 4096;

/// NVM set list (CNS 04h): the first 31 sets whose identifier is `from` or above.
pub fn encode_set_list(sets: &[SetAttributes], from: u16) -> Vec<u8> {
    let listed: Vec<&SetAttributes> = sets.iter().filter(|set| set.set_id >= from).take(31).collect();
    let mut data = vec![0; IDENTIFY_BYTES];
    data[0] = listed.len() as u8;
    for (entry, set) in data[128..].chunks_exact_mut(SetAttributes::BYTES).zip(listed) {
        entry.copy_from_slice(&set.encode());
    }
    data
}

/// Endurance group list (CNS 19h): the first 2047 identifiers from `from` on, ascending.
pub fn encode_group_list(groups: &[u16], from: u16) -> Vec<u8> {
    let listed: Vec<u16> = groups.iter().copied().filter(|group| *group >= from).take(2047).collect();
    let mut data = vec![0; IDENTIFY_BYTES];
    data[..2].copy_from_slice(&(listed.len() as u16).to_le_bytes());
    for (entry, group) in data[2..].chunks_exact_mut(2).zip(listed) {
        entry.copy_from_slice(&group.to_le_bytes());
    }
    data
}

/// Log page 09h, Endurance Group Information. Bytes here, billions of bytes (rounded up) on the page.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct EnduranceGroupLog {
    /// Blocks that are not bad, in per cent.
    pub spare_percent: u8,
    /// Below it the spare is critical.
    pub spare_threshold_percent: u8,
    /// Mean erases over the endurance, in per cent; 255 for more than that. 0 without an endurance.
    pub used_percent: u8,
    /// Bytes writable over the whole life at the present write amplification; 0 without an endurance.
    pub endurance_bytes: u128,
    pub read_bytes: u128,
    /// Bytes hosts wrote.
    pub written_bytes: u128,
    /// Bytes programmed, whatever the cause.
    pub media_bytes: u128,
    pub read_commands: u128,
    pub write_commands: u128,
    /// Logical capacity of the group's sets.
    pub total_bytes: u128,
    /// Of it, what no namespace has.
    pub unallocated_bytes: u128,
}

impl EnduranceGroupLog {
    /// Length of the page.
    pub const BYTES: usize = 512;

    /// Write amplification of the group in bytes; `None` before the first host write.
    pub fn waf(&self) -> Option<f64> {
        (self.written_bytes > 0).then(|| self.media_bytes as f64 / self.written_bytes as f64)
    }

    /// The page's bytes.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut page = [0; Self::BYTES];
        page[0] = u8::from(self.spare_percent < self.spare_threshold_percent);
        page[3] = self.spare_percent;
        page[4] = self.spare_threshold_percent;
        page[5] = self.used_percent;
        let billions = |bytes: u128| bytes.div_ceil(1_000_000_000);
        for (at, value) in [
            (32, billions(self.endurance_bytes)),
            (48, billions(self.read_bytes)),
            (64, billions(self.written_bytes)),
            (80, billions(self.media_bytes)),
            (96, self.read_commands),
            (112, self.write_commands),
            (160, self.total_bytes),
            (176, self.unallocated_bytes),
        ] {
            page[at..at + 16].copy_from_slice(&value.to_le_bytes());
        }
        page
    }
}

/// Read recovery levels of the sets (feature 12h).
///
/// A level says how long the device may work on a page that does not read at once: 0 every effort, 4 the
/// default, 15 fail fast. This medium has no read errors: the level is only kept and reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadRecovery {
    supported: u16,
    levels: Vec<u8>,
}

nandscape_core::state!(impl [] ReadRecovery { tables: levels; fixed: supported; });

impl ReadRecovery {
    /// Levels that every device has: the default and fast fail.
    pub const MANDATORY: u16 = 1 << 4 | 1 << 15;

    /// The level of each set. Supported are those in use, the mandatory ones, and 0.
    pub fn new(levels: Vec<u8>) -> Self {
        let used = levels.iter().fold(0, |bits, level| bits | 1 << level);
        Self { supported: Self::MANDATORY | 1 | used, levels }
    }

    /// Identify Controller, RRLS.
    pub const fn supported(&self) -> u16 {
        self.supported
    }

    /// Get Features 12h.
    pub fn level(&self, set: u16) -> Option<u8> {
        self.levels.get(usize::from(set)).copied()
    }

    /// Set Features 12h; refuses levels that are not supported and sets that are not there.
    pub fn set_level(&mut self, set: u16, level: u8) -> Result<(), super::PlmError> {
        let invalid = super::PlmError::InvalidField;
        if level > 15 || self.supported & 1 << level == 0 {
            return Err(invalid("the read recovery level is not supported"));
        }
        *self.levels.get_mut(usize::from(set)).ok_or(invalid("no such NVM set"))? = level;
        Ok(())
    }
}
