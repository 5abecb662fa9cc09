//! Completions and man pages, both from the one command-line definition.

use crate::args::Cli;
use crate::console::{Console, Failure};
use clap::CommandFactory;
use std::path::Path;

/// Prints a completion script.
pub fn completions(shell: clap_complete::Shell, console: Console) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "nandscape", &mut script);
    console.result(&String::from_utf8_lossy(&script))
}

/// Writes `nandscape.1` and one page per verb into `out`.
pub fn pages(out: &Path, console: Console) -> Result<(), Failure> {
    let failed = |e: std::io::Error| Failure::run(format!("{}: {e}", out.display()));
    std::fs::create_dir_all(out).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), out).map_err(failed)?;
    console.note(&format!("man pages: {}", out.display()));
    Ok(())
}
