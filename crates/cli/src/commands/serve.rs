//! `nandscape serve`: a stack with bytes behind a front end, until a signal comes. What the front ends have
//! in common is in `session`.

mod fuse;
mod nbd;
mod session;

use crate::console::{Console, Failure, Result};
use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};
use nandscape_core::Info;

#[derive(Debug)]
pub struct FrontEnd {
    /// The name that is typed after `serve`, and what the help says of it.
    pub info: Info,
    arguments: fn(Command) -> Command,
    run: fn(&ArgMatches, Console) -> Result<()>,
}

pub static FRONT_ENDS: &[FrontEnd] = &[fuse::ENTRY, nbd::ENTRY];

/// A front end with what was typed for it.
#[derive(Clone, Debug)]
pub struct ServeVerb {
    front_end: &'static FrontEnd,
    typed: ArgMatches,
}

impl FromArgMatches for ServeVerb {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let found = matches.subcommand().and_then(|(name, typed)| {
            let front_end = FRONT_ENDS.iter().find(|entry| entry.info.name == name)?;
            Some(Self { front_end, typed: typed.clone() })
        });
        found.ok_or_else(|| clap::Error::new(ErrorKind::MissingSubcommand))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for ServeVerb {
    fn augment_subcommands(serve: Command) -> Command {
        serve.subcommands(FRONT_ENDS.iter().map(|FrontEnd { info, arguments, .. }| {
            arguments(Command::new(info.name)).about(info.summary).long_about(None)
        }))
    }

    fn augment_subcommands_for_update(serve: Command) -> Command {
        Self::augment_subcommands(serve)
    }

    fn has_subcommand(name: &str) -> bool {
        FRONT_ENDS.iter().any(|entry| entry.info.name == name)
    }
}

pub fn run(verb: &ServeVerb, console: Console) -> Result<()> {
    console.serve()?;
    (verb.front_end.run)(&verb.typed, console)
}

fn typed<A: Args>(typed: &ArgMatches) -> Result<A> {
    A::from_arg_matches(typed).map_err(|error| Failure::usage(error.to_string()))
}
