//! Completions and man pages, both from the one command-line definition.

use crate::console::{Console, Failure, Result};
use clap::Command;
use std::path::Path;

pub fn completions(shell: clap_complete::Shell, mut cli: Command, console: Console) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut cli, "nandscape", &mut script);
    console.result(&String::from_utf8_lossy(&script))
}

/// Writes `nandscape.1` and one page per verb into `out`.
pub fn pages(out: &Path, cli: Command, console: Console) -> Result<()> {
    let failed = |e: std::io::Error| Failure::run(format!("{}: {e}", out.display()));
    std::fs::create_dir_all(out).map_err(failed)?;
    clap_mangen::generate_to(cli, out).map_err(failed)?;
    console.note(&format!("man pages: {}", out.display()));
    Ok(())
}
