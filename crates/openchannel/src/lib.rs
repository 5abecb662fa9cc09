//! A host library for namespaces with vector access (Open-Channel SSD), in the manner of liblightnvm.
//!
//! * [`Host`]: a namespace of a [`nandscape_core::Subsystem`] in virtual time: geometry, chunk reports, and
//!   reads, writes, copies and resets of any number of sectors, in commands of at most 64 addresses.
//! * [`VirtualBlock`]: a chunk from each of some parallel units, read, written, padded and erased by byte
//!   offsets.
//! * [`bench`](mod@bench): the engines of the benchmark FOX, with a latency for each page.
//! * [`lsm`]: a log-structured merge tree whose tables are chunks, and policies for their places.
//!
//! Addresses and their formats are in [`nandscape_core::vector`].

pub mod bench;
mod host;
pub mod lsm;
mod turns;
mod virtual_block;

pub use host::{Host, HostError, HostResult};
pub use virtual_block::VirtualBlock;
