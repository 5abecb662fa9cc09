//! What a host sees over a translation layer. Today: plain block commands ([`BlockNamespace`]).

mod block;

pub use block::BlockNamespace;
