//! `nandscape stat`: what a running server counts and measures.

mod cached;
mod text;
mod watch;

use super::control::connect;
use crate::args::StatArgs;
use crate::console::{Console, Failure};
use std::fmt::Write as _;

/// Prints it once, or a line for each interval.
pub fn run(args: &StatArgs, console: Console) -> Result<(), Failure> {
    let mut client = connect(args.socket.as_deref(), console)?;
    if let Some(seconds) = args.watch {
        return watch::run(&mut client, seconds, args.json, console);
    }
    let (document, stat) = client.stat()?;
    console.result(&if args.json { format!("{document:#}") } else { text::table(&stat) })
}

/// Names stand in a column of this width.
fn row(out: &mut String, name: &str, value: &str) {
    writeln!(out, "{name:<22}{value}").expect("a string takes everything");
}
