//! Arguments of `report`.

use super::OutputArgs;
use clap::{Args, ValueHint};

/// Arguments of `report`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Documents have no series over time: --series, --interval and --detail belong to the run, and the \
                        HTML report has tables and bars. Every key is explained in docs/formats/result.md. \
                        Exit status 1 also if one of the runs had failed."
)]
pub struct ReportArgs {
    /// Result documents, as --json and --write json=FILE of replay and compare write them (.gz, .zst, .xz
    /// transparently), or folders of one sweep; '-' for standard input.
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<String>,
    #[command(flatten)]
    pub output: OutputArgs,
}
