//! What tests of this crate share.

use nandscape_cache::compose::{Design, Typed};
use nandscape_core::command::Payload;
use nandscape_core::{BlockCommand, Extent, Hint, Op, SimTime};
use nandscape_volumes::Serving;

/// A design from keys and values; a key with an empty value is left out.
pub fn design(keys: &[(&str, &str)]) -> Design {
    let keys = keys.iter().filter(|(_, value)| !value.is_empty());
    let typed: Typed = keys.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Design::parse("cache.", &typed).unwrap()
}

/// Does something to a block of so many bytes of the first namespace.
pub fn submit(
    serving: &mut Serving,
    bytes: u64,
    op: Op,
    block: u64,
    payload: Payload<'_>,
) -> Result<(), String> {
    let extent = if op == Op::Flush { Extent::new(0, 0) } else { Extent::new(block * bytes, bytes) };
    let command = BlockCommand::new(op, extent, Hint::default());
    let done = serving.subsystem.submit(0, command.into(), payload, SimTime::ZERO);
    done.map(drop).map_err(|error| error.to_string())
}
