//! The `nandscape` command: parses, calls the stack, prints. Everything else is in libraries.
//!
//! Exit status: 0 done, 1 failed, 2 bad usage, 3 a condition of `--fail-if` holds, 130 interrupted.
//! Results go to stdout, messages and progress to stderr.

mod args;
mod commands;
mod console;
mod examples;
mod verbs;

use args::{CacheVerb, RamVerb};
use clap::FromArgMatches;
use console::{Console, Failure, Result};
use std::process::ExitCode;
use std::sync::Arc;
use verbs::{Cli, Verb};

fn main() -> ExitCode {
    // clap itself exits with 2 on bad usage and 0 on --help and --version.
    let matches = examples::command().get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let console = Console::new(cli.quiet);
    // A write beyond the limit of file sizes is then an error (EFBIG) instead of the end of the process.
    let signal = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
    if let Err(error) = signal {
        console.note(&format!("a write beyond the limit of file sizes will end the process: {error}"));
    }
    let outcome = meant(cli.verb).and_then(|verb| run(verb, console));
    let code = match outcome {
        Ok(()) | Err(Failure::BrokenPipe) => ExitCode::SUCCESS,
        Err(Failure::Usage(message)) => {
            console.error(&message);
            ExitCode::from(2)
        }
        Err(Failure::Run(message)) => {
            console.error(&message);
            ExitCode::from(1)
        }
        Err(Failure::Interrupted(result)) => {
            let colon = if result.is_empty() { "" } else { ": " };
            console.error(&format!("interrupted{colon}{result}"));
            ExitCode::from(130)
        }
        Err(Failure::Reported) => ExitCode::from(1),
        Err(Failure::Condition) => ExitCode::from(3),
    };
    console.finish();
    code
}

/// The command that a command stands for.
fn meant(verb: Verb) -> Result<Verb> {
    let Verb::Cache(CacheVerb::Ram(RamVerb::Create { size, options })) = &verb else { return Ok(verb) };
    let matches = examples::command().get_matches_from(commands::cache::ram::served(size, options)?);
    Ok(Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit()).verb)
}

fn run(verb: Verb, console: Console) -> Result<()> {
    match verb {
        Verb::Replay(args) => commands::replay::run(&args, console),
        Verb::Compare(args) => commands::compare::run(&args, console),
        Verb::Sweep(args) => commands::sweep::run(&args, console),
        Verb::Report(args) => commands::report::run(&args, console),
        Verb::Neighbours(args) => commands::neighbours::run(&args, console),
        Verb::Reproduce(args) => commands::reproduce::run(&args, console),
        Verb::Image(verb) => commands::image::run(&verb, console),
        Verb::Serve(verb) => commands::serve::run(&verb, console),
        Verb::Stat(args) => commands::stat::run(&args, console),
        Verb::Control(args) => commands::control::run(&args, console),
        Verb::Zone(args) => commands::zone::run(&args, console),
        Verb::Object(verb) => commands::object::run(&verb, console),
        Verb::Trace(verb) => commands::trace::run(verb, console),
        Verb::Cache(verb) => commands::cache::run(&verb, console),
        Verb::Fs(verb) => commands::fs::run(&verb, console),
        Verb::List(args) => commands::list::run(&args, console),
        Verb::Completions { shell } => commands::manual::completions(shell, examples::command(), console),
        Verb::Man { out } => commands::manual::pages(&out, examples::command(), console),
    }
}
