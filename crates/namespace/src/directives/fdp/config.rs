//! Configurations of flexible data placement, and the log page that lists them.

use super::pid::PidFormat;

/// Most placement handles of a namespace.
pub const HANDLES_MAX: usize = 128;

/// What garbage collection may do with the data of a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Isolation {
    /// It may be mixed with that of other initially isolated handles of the group when it is moved.
    Initially = 1,
    /// It stays apart when it is moved.
    Persistently = 2,
}

/// One configuration that an endurance group can be set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FdpConfiguration {
    /// How placement identifiers are divided.
    pub format: PidFormat,
    /// Reclaim groups.
    pub groups: u16,
    /// Isolation of each of the NRUH reclaim unit handles, 1 to 128 (log 23h names a handle by one byte).
    pub handles: Vec<Isolation>,
    /// Placement handles that a namespace can have, from 1.
    pub placement_handles: u16,
    /// Namespaces that can be created in the group.
    pub namespaces: u32,
    /// Nominal bytes of a reclaim unit.
    pub unit_bytes: u64,
    /// The device has a volatile write cache.
    pub volatile_cache: bool,
}

impl FdpConfiguration {
    /// What is wrong with a configuration, if something is.
    pub fn problem(&self) -> Option<&'static str> {
        if self.groups == 0 || u32::from(self.groups) > self.format.groups() {
            return Some("reclaim groups: expected from 1 to what RGIF bits can name");
        }
        if self.handles.is_empty() || self.handles.len() > HANDLES_MAX {
            return Some("reclaim unit handles: expected from 1 to 128");
        }
        let handles = usize::from(self.placement_handles);
        if handles == 0 || handles > HANDLES_MAX || handles as u32 > self.format.handles() {
            return Some(
                "placement handles: expected from 1 to 128, and to what the bits below RGIF can name",
            );
        }
        if self.unit_bytes == 0 {
            return Some("reclaim units: expected a size");
        }
        None
    }

    /// Log of a translation layer that a handle writes to in a group.
    #[inline]
    pub fn log(&self, group: u16, handle: u16) -> u16 {
        group * self.handles.len() as u16 + handle
    }

    /// Logs of all groups and handles.
    pub const fn logs(&self) -> usize {
        self.groups as usize * self.handles.len()
    }

    /// The group and handle of a log.
    pub const fn of_log(&self, log: u16) -> (u16, u16) {
        (log / self.handles.len() as u16, log % self.handles.len() as u16)
    }

    /// The descriptor of log page 20h.
    fn encode(&self) -> Vec<u8> {
        let bytes = (64 + 4 * self.handles.len()).next_multiple_of(8);
        let mut out = vec![0; bytes];
        out[0..2].copy_from_slice(&(bytes as u16).to_le_bytes());
        out[2] = self.format.rgif() | u8::from(self.volatile_cache) << 4 | 1 << 7;
        out[4..8].copy_from_slice(&u32::from(self.groups).to_le_bytes());
        out[8..10].copy_from_slice(&(self.handles.len() as u16).to_le_bytes());
        out[10..12].copy_from_slice(&(self.placement_handles - 1).to_le_bytes());
        out[12..16].copy_from_slice(&self.namespaces.to_le_bytes());
        out[16..24].copy_from_slice(&self.unit_bytes.to_le_bytes());
        // Bytes 27:24, the time limit of a reclaim unit, are 0: there is none.
        for (at, isolation) in self.handles.iter().enumerate() {
            out[64 + 4 * at] = *isolation as u8;
        }
        out
    }
}

/// Log page 20h: every configuration.
pub fn encode_configurations(configurations: &[FdpConfiguration]) -> Vec<u8> {
    let mut out = vec![0; 16];
    for configuration in configurations {
        out.extend_from_slice(&configuration.encode());
    }
    let bytes = out.len() as u32;
    out[0..2].copy_from_slice(&(configurations.len() as u16 - 1).to_le_bytes());
    out[4..8].copy_from_slice(&bytes.to_le_bytes());
    out
}
