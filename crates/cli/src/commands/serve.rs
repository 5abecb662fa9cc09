//! `nandscape serve`: a stack with bytes behind a front end, until a signal comes.

use crate::args::{ServeArgs, ServeVerb};
use crate::console::{Console, Failure};
use nandscape_engine::{Clock, Engine};
use nandscape_stack::Typed;

/// Serves until told to stop.
pub fn run(verb: &ServeVerb, _console: Console) -> Result<(), Failure> {
    match *verb {}
}

/// The engine that the arguments describe.
#[expect(dead_code, reason = "used by the front ends")]
fn engine(args: &ServeArgs) -> Result<Engine, Failure> {
    let mut typed = Typed::new();
    if let Some(device) = &args.device {
        super::merge_device(&mut typed, device)?;
    }
    if let Some(path) = &args.config {
        typed.merge_file(path)?;
    }
    if let Some(ftl) = &args.ftl {
        typed.set_ftl(ftl)?;
    }
    if let Some(scale) = &args.scale {
        typed.set("device.scale", scale)?;
    }
    for pair in &args.sets {
        typed.set_pair(pair)?;
    }
    let subsystem = nandscape_stack::build_storing(&typed.check()?)?;
    Ok(Engine::new(subsystem, if args.pace { Clock::paced() } else { Clock::free() }))
}
