//! What a client can choose.

use crate::limits::MAX_REQUEST_BYTES;
use crate::wire::flag;
use nandscape_core::NamespaceInfo;

/// A namespace as clients see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Name that clients ask for.
    pub name: String,
    /// A line for people.
    pub description: String,
    /// Index of the namespace in the engine.
    pub namespace: u32,
    /// Size in bytes.
    pub size: u64,
    /// Length of requests that the device does without reading around them.
    pub preferred_block: u32,
    /// Writes are refused.
    pub is_read_only: bool,
}

impl Export {
    /// A namespace of the engine under its own name.
    pub fn new(namespace: u32, info: &NamespaceInfo) -> Self {
        let page = info.page_bytes.next_power_of_two();
        Self {
            name: info.name.clone(),
            description: format!("emulated flash, pages of {} bytes, NVM set {}", info.page_bytes, info.set),
            namespace,
            size: info.capacity_bytes,
            preferred_block: page.clamp(4096, MAX_REQUEST_BYTES),
            is_read_only: false,
        }
    }

    /// The transmission flags, of which one depends on structured replies.
    pub(crate) const fn flags(&self, is_structured: bool) -> u16 {
        let common = flag::HAS_FLAGS | flag::SEND_FLUSH | flag::SEND_CACHE | flag::CAN_MULTI_CONN;
        let chunks = if is_structured { flag::SEND_DF } else { 0 };
        let writes = if self.is_read_only {
            flag::READ_ONLY
        } else {
            flag::SEND_FUA | flag::SEND_TRIM | flag::SEND_WRITE_ZEROES | flag::SEND_FAST_ZERO
        };
        common | chunks | writes
    }
}
