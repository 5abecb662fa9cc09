//! No streams at all.

use super::{PolicyEntry, StreamPolicy, WriteFacts};
use nandscape_core::Info;

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    info: Info { name: "none", summary: "no write has a stream", source: "baseline", params: &[] },
    needs_future: false,
    build: |_, _| Ok(Box::new(Unstreamed)),
};

#[derive(Debug)]
struct Unstreamed;

impl StreamPolicy for Unstreamed {
    fn assign(&mut self, _: &WriteFacts<'_>) -> u16 {
        0
    }
}
