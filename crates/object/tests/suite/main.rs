//! The object-based translation layer on flash in memory.

mod crash;
mod random;
mod support;
