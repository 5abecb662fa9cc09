//! `nandscape serve`: a stack with bytes behind a front end, until a signal comes. What the front ends have in common is in `serving`.

use crate::args::ServeVerb;
use crate::console::{Console, Failure};

/// Serves until told to stop.
pub fn run(verb: &ServeVerb, _console: Console) -> Result<(), Failure> {
    match *verb {}
}
