//! What every front end of `serve` has in common: the engine, its start and its end.
//!
//! A front end calls [`Session::start`], begins to serve [`Session::engine`], says where with [`Session::ready`], sleeps in
//! [`Session::wait`], stops serving, and calls [`Session::finish`].

use crate::args::ServeArgs;
use crate::commands::merge_device;
use crate::console::{Console, Failure};
use nandscape_core::NamespaceError;
use nandscape_engine::{Clock, Engine, Stop};
use nandscape_stack::{StackConfig, Storage, Typed};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::Arc;

/// A stack that is being served.
pub struct Session {
    engine: Arc<Engine>,
    stop: Arc<Stop>,
    console: Console,
}

impl Session {
    /// Builds the stack that the arguments describe. From here on SIGINT and SIGTERM ask for the end; a second one ends the process at once, as a
    /// loss of power would.
    pub fn start(args: &ServeArgs, console: Console) -> Result<Self, Failure> {
        let storage = args.image.clone().map_or(Storage::Memory, Storage::Image);
        let config = nandscape_stack::storing::resolve(&typed(args)?, &storage)?;
        let stop = Arc::new(Stop::new());
        stop_on_signals(Arc::clone(&stop))?;
        let begin = std::time::Instant::now();
        let engine = Arc::new(engine(args, &config, &storage)?);
        let seconds = begin.elapsed().as_secs_f64();
        engine.with(|subsystem, _| {
            let sets = subsystem.sets();
            for set in 0..sets {
                let of_set = if sets > 1 { format!("set {set} ") } else { String::new() };
                if let Some(report) = subsystem.device(set).recovery() {
                    console.note(&format!("{of_set}opened in {seconds:.2} s: {}", report.summary()));
                }
                if let Some(why) = subsystem.read_only(set) {
                    console.note(&format!("{of_set}read-only: {why}"));
                }
            }
        });
        Ok(Self { engine, stop, console })
    }

    /// What runs the commands.
    pub const fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// How to end the server from elsewhere, such as a mount that was taken away.
    pub const fn stop(&self) -> &Arc<Stop> {
        &self.stop
    }

    /// Says on stdout where clients find what is served, one place a line.
    pub fn ready(&self, places: &[String]) -> Result<(), Failure> {
        places.iter().try_for_each(|place| self.console.result(place))
    }

    /// Waits until the server is to end.
    pub fn wait(&self) {
        let why = self.stop.wait();
        self.console.note(&format!("{why}: shutting down"));
    }

    /// Leaves the device in a state that opens at once. The front end has answered everything and takes no more.
    pub fn finish(self) -> Result<(), Failure> {
        let shut: Result<_, NamespaceError> = self.engine.with(|subsystem, at| subsystem.shutdown(at));
        shut.map_err(|error| Failure::run(format!("shutdown: {error}")))?;
        Ok(())
    }
}

/// What was typed, merged: device preset, then the file, then flags.
fn typed(args: &ServeArgs) -> Result<Typed, Failure> {
    let mut typed = Typed::new();
    if let Some(device) = &args.device {
        merge_device(&mut typed, device)?;
    }
    if let Some(path) = &args.config {
        typed.merge_file(path)?;
        // --device replaces the device of the file, while the file's other tables override those of the preset.
        if let Some(device) = &args.device {
            let mut again = Typed::new();
            merge_device(&mut again, device)?;
            typed.replace_device(&again);
        }
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
    Ok(typed)
}

/// The engine over the stack.
fn engine(args: &ServeArgs, config: &StackConfig, storage: &Storage) -> Result<Engine, Failure> {
    let subsystem = nandscape_stack::build_stored(config, storage)?.subsystem;
    Ok(Engine::new(subsystem, if args.pace { Clock::paced() } else { Clock::free() }))
}

fn stop_on_signals(stop: Arc<Stop>) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::run(format!("cannot wait for signals: {error}"));
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(failed)?;
    let wait = move || {
        for signal in signals.forever() {
            if stop.is_requested() {
                std::process::exit(128 + signal);
            }
            stop.request(if signal == SIGINT { "interrupted" } else { "terminated" });
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(wait).map_err(failed)?;
    Ok(())
}
