//! `nandscape stat`: what a running server counts and measures.

mod cached;
mod text;
mod watch;

use super::control::connect;
use crate::args::StatArgs;
use crate::console::{Console, Failure};

/// Prints it once, or a line for each interval.
pub fn run(args: &StatArgs, console: Console) -> Result<(), Failure> {
    let mut client = connect(args.socket.as_deref(), console)?;
    if let Some(seconds) = args.watch {
        return watch::run(&mut client, seconds, args.json, console);
    }
    let (document, stat) = client.stat()?;
    console.result(&if args.json { format!("{document:#}") } else { text::table(&stat) })
}
