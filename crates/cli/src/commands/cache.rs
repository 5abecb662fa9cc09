//! `nandscape cache`: one file per verb.

mod advise;
mod simulate;
mod unit;

use crate::args::CacheVerb;
use crate::console::{Console, Failure};

/// Runs one of the cache verbs.
pub fn run(verb: &CacheVerb, console: Console) -> Result<(), Failure> {
    match verb {
        CacheVerb::Advise(args) => advise::run(args, console),
        CacheVerb::Simulate(args) => simulate::run(args, console),
    }
}
