//! Whether everything that a stack has mapped can be read.

use nandscape_core::command::Payload;
use nandscape_core::{BlockCommand, Extent, Hint, NamespaceResult, Op, Subsystem};
use serde::Serialize;

/// Bytes that are read at a time.
const CHUNK_BYTES: u64 = 256 << 10;

/// Lost pages that are listed one by one; further ones are counted.
const MOST_LISTED: usize = 10_000;

/// A page that is mapped and cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LostPage {
    /// Name of the namespace.
    pub namespace: String,
    /// Its first byte in the namespace.
    pub offset: u64,
    /// What a read of it says.
    pub error: String,
}

/// Reads all that is mapped. Gives how many pages cannot be read, and the first ten thousand of them.
pub fn lost_pages(subsystem: &mut dyn Subsystem) -> (u64, Vec<LostPage>) {
    let (mut count, mut listed) = (0, Vec::new());
    let mut data = vec![0; CHUNK_BYTES as usize];
    for (number, info) in (0..).zip(subsystem.namespaces().to_vec()) {
        let page = u64::from(info.page_bytes);
        let chunk = (CHUNK_BYTES / page).max(1) * page;
        data.resize(data.len().max(chunk as usize), 0);
        let mut offset = 0;
        while offset < info.capacity_bytes {
            let run = subsystem.allocation(number, Extent::new(offset, info.capacity_bytes - offset));
            let end = offset + run.bytes.max(1);
            while run.is_mapped && offset < end {
                let len = chunk.min(end - offset);
                if read(subsystem, number, offset, &mut data[..len as usize]).is_err() {
                    for offset in (offset..offset + len).step_by(info.page_bytes as usize) {
                        let data = &mut data[..page.min(end - offset) as usize];
                        let Err(error) = read(subsystem, number, offset, data) else { continue };
                        count += 1;
                        if listed.len() < MOST_LISTED {
                            let (namespace, error) = (info.name.clone(), error.to_string());
                            listed.push(LostPage { namespace, offset, error });
                        }
                    }
                }
                offset += len;
            }
            offset = end;
        }
    }
    (count, listed)
}

fn read(subsystem: &mut dyn Subsystem, namespace: u32, offset: u64, data: &mut [u8]) -> NamespaceResult<()> {
    let extent = Extent::new(offset, data.len() as u64);
    let command = BlockCommand::new(Op::Read, extent, Hint::default());
    let outcome = subsystem.submit(namespace, command.into(), Payload::Read(data), subsystem.idle_from());
    let mut completions = Vec::new();
    while let Some(next) = subsystem.next_event() {
        subsystem.advance(next, &mut completions);
    }
    outcome.map(drop)
}
