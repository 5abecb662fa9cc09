//! `nandscape serve`: a stack with bytes behind a front end, until a signal comes. What the front ends have
//! in common is in `session`.

mod fuse;
mod nbd;
mod session;

use crate::args::ServeVerb;
use crate::console::{Console, Failure};

/// Serves until told to stop.
pub fn run(verb: &ServeVerb, console: Console) -> Result<(), Failure> {
    console.serve()?;
    match verb {
        ServeVerb::Fuse(args) => fuse::run(args, console),
        ServeVerb::Nbd(args) => nbd::run(args, console),
    }
}
