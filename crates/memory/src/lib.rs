//! How bytes lie in memory and how they move: slabs of huge pages ([`Arena`]), loads ahead of time
//! ([`prefetch`]), copies past the caches ([`Arena::write`]).
//!
//! For speed alone: whoever uses it does the same without.

mod arena;
mod streamed;

pub use arena::{Arena, Chunk};
pub use streamed::{Batch, prefetch, prefetch_bytes};
