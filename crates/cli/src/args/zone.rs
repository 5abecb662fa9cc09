//! Arguments of `zone`.

use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;

/// Arguments of `zone`.
#[derive(Clone, Debug, Args)]
pub struct ZoneArgs {
    /// What to do.
    #[arg(value_enum)]
    pub verb: ZoneVerbArg,
    /// Image file [default: the server at --socket].
    #[arg(value_hint = ValueHint::FilePath, conflicts_with = "socket")]
    pub image: Option<PathBuf>,
    /// Control socket of a server [default: that of the only server that runs].
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub socket: Option<PathBuf>,
    /// The zone, from 0 [default: all, for a report].
    #[arg(long, value_name = "N", conflicts_with = "all")]
    pub zone: Option<u32>,
    /// Every zone in a state that the change is for.
    #[arg(long)]
    pub all: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// What to do with zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ZoneVerbArg {
    /// Print state, write pointer and attributes.
    Report,
    /// Open explicitly.
    Open,
    /// Close.
    Close,
    /// Make full, wherever the write pointer is.
    Finish,
    /// Make empty; what was written is lost.
    Reset,
}
