//! Who chooses the stream of a write.
//!
//! A policy sees facts about a write (time, place, hint, file, writer, kind of block) and answers with a
//! stream id: 1 to [`PolicySetup::streams`], or 0 for none. It is told of trims, and neither moves, drops nor
//! reorders anything. One that needs the future says so in its entry and sees the whole workload first.
//!
//! A new policy is one file and one line in [`POLICIES`].

mod autostream_mq;
mod autostream_sfr;
mod death_time;
mod exclusive;
mod explicit;
mod names;
mod none;
mod oracle;
mod shared;
mod split_pools;
mod write_hint;

pub use explicit::BY;
pub use names::{Rules, class_of};

use nandscape_core::{Info, IoRecord, MetadataClass, Origin, ParamError, Params, SimTime, registry};

/// What a policy is told about a write.
#[derive(Clone, Copy, Debug)]
pub struct WriteFacts<'a> {
    /// Arrival.
    pub at: SimTime,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    /// A lifetime hint ([`crate::WriteHint`]), or a stream id for the policy `explicit`. 0 is nothing.
    pub hint: u16,
    /// Who issued it.
    pub origin: Origin<'a>,
}

/// What a policy must know when it is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicySetup {
    /// Streams it may use, from 1; 0 where the device has none.
    pub streams: u16,
    /// What is added to the number of a stream to get its id: 1 where the lowest id means the same to the
    /// device as none.
    pub id_offset: u16,
    /// Logical bytes of the device.
    pub capacity_bytes: u64,
    /// Bytes of a device page.
    pub page_bytes: u64,
}

impl PolicySetup {
    /// The id of a stream; 0 of none.
    pub const fn id(&self, stream: u16) -> u16 {
        if stream > 0 { stream.saturating_add(self.id_offset) } else { 0 }
    }
}

/// Chooses streams.
pub trait StreamPolicy: Send {
    /// The stream of a write: 1 to the number of streams, or 0 for none.
    fn assign(&mut self, write: &WriteFacts<'_>) -> u16;

    /// Bytes were trimmed, or zeroed without being written: what they held is dead.
    fn trimmed(&mut self, offset: u64, len: u64) {
        let _ = (offset, len);
    }

    /// The workload to come, record by record, for policies whose entry says [`PolicyEntry::needs_future`].
    fn foresee(&mut self, record: &IoRecord) {
        let _ = record;
    }

    /// The whole workload has been shown.
    fn foreseen(&mut self) {}

    /// What a user should know after the run: counts of what could not be done as asked.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// Bytes of state that grow with the workload or the device.
    fn memory_bytes(&self) -> u64 {
        0
    }
}

/// One policy.
#[derive(Clone, Copy, Debug)]
pub struct PolicyEntry {
    /// Name, summary, source, parameters.
    pub info: Info,
    /// Whether the workload must be shown before.
    pub needs_future: bool,
    /// Builds it.
    pub build: fn(&Params, &PolicySetup) -> Built,
}

/// A policy, or the parameter that is wrong.
pub type Built = Result<Box<dyn StreamPolicy>, ParamError>;

/// Every policy.
pub static POLICIES: &[PolicyEntry] = &[
    none::ENTRY,
    explicit::ENTRY,
    write_hint::ENTRY,
    exclusive::ENTRY,
    shared::ENTRY,
    split_pools::ENTRY,
    names::ENTRY,
    autostream_mq::ENTRY,
    autostream_sfr::ENTRY,
    death_time::ENTRY,
    oracle::ENTRY,
];

/// A policy by name.
pub fn find(name: &str) -> Result<&'static PolicyEntry, ParamError> {
    registry::find("host.policy", name, POLICIES, |entry| &entry.info)
}

/// The lifetime that the prototype of [streams-article 2.4] gives a class of metadata, as a Linux hint
/// number: journal short, inode table medium, bitmaps and descriptors long, directories extreme.
pub(crate) const fn prototype_hint(class: MetadataClass) -> u16 {
    match class {
        MetadataClass::Journal => 2,
        MetadataClass::Inode => 3,
        MetadataClass::Misc => 4,
        MetadataClass::Directory => 5,
    }
}

/// `floor(log_base(count))` by counting divisions, so that powers of the base are exact. 0 for a count of 0.
pub(crate) fn log_floor(mut count: u64, base: u64) -> u16 {
    let mut log = 0;
    while count >= base {
        count /= base;
        log += 1;
    }
    log
}

#[cfg(test)]
mod tests;
