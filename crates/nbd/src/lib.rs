//! NBD: a codec without sockets, and a server over an [`nandscape_engine::Engine`].
//!
//! * [`negotiation`]: from the first byte to the choice of an export.
//! * [`transmission`]: requests and replies.
//! * [`server`]: sockets, threads, stopping.
//! * [`limits`]: bounds on what clients send.
//!
//! The protocol is fixed newstyle with structured replies and `base:allocation`, as the project of the
//! reference implementation describes it; extended headers are not spoken.

mod errno;
mod export;
pub mod limits;
pub mod negotiation;
pub mod server;
pub mod transmission;
pub mod wire;

pub use export::{Export, Exports};
pub use server::{Server, Stopper};
