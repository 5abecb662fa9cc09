//! `nandscape cache`: one file per verb.

mod advise;
mod create;
pub mod files;
mod list;
pub mod ram;
mod running;
mod simulate;
mod unit;

use crate::args::CacheVerb;
use crate::console::{Console, Result};

pub fn run(verb: &CacheVerb, console: Console) -> Result<()> {
    match verb {
        CacheVerb::Advise(args) => advise::run(args, console),
        CacheVerb::Simulate(args) => simulate::run(args, console),
        CacheVerb::Create(args) => create::run(args, console),
        CacheVerb::Attach(args) => files::attach(args, console),
        CacheVerb::Detach(args) => files::detach(args, console),
        CacheVerb::List(args) => list::run(args, |_| true, console),
        CacheVerb::Ram(verb) => ram::run(verb, console),
        CacheVerb::Status(args) => files::status(args, false, console),
        CacheVerb::Table(args) => files::status(args, true, console),
        CacheVerb::Clean(args) => files::clean(args, console),
        CacheVerb::Set(args) => files::set(args, console),
        CacheVerb::Fail(args) => files::fail(args, console),
        CacheVerb::Replace(args) => files::replace(args, console),
        CacheVerb::Resize(args) => files::resize(args, console),
        CacheVerb::Salvage(args) => files::salvage(args, console),
    }
}
