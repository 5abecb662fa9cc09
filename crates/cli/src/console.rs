//! The one place that prints: results to stdout, messages and progress to stderr.

use indicatif::{ProgressBar, ProgressStyle};
use nandscape_cache::manage::ManageError;
use nandscape_core::TraceError;
use nandscape_sim::Progress;
use nandscape_stack::caches::CacheFileError;
use nandscape_stack::{ConfigError, RunError, StorageError};
use std::fmt;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Why a command ends without success.
#[derive(Debug)]
pub enum Failure {
    /// Bad usage: exit status 2.
    Usage(String),
    /// It failed: exit status 1.
    Run(String),
    /// It failed and has been reported in the result: exit status 1.
    Reported,
    /// Nobody reads our output any more: not our failure.
    BrokenPipe,
}

impl Failure {
    /// Bad usage.
    pub fn usage(error: impl fmt::Display) -> Self {
        Self::Usage(error.to_string())
    }

    /// A failed run.
    pub fn run(error: impl fmt::Display) -> Self {
        Self::Run(error.to_string())
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        match error {
            ConfigError::Io { .. } => Self::run(error),
            _ => Self::usage(error),
        }
    }
}

impl From<StorageError> for Failure {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Config(error) => error.into(),
            StorageError::Contradiction { .. } => Self::usage(error),
            error => Self::run(error),
        }
    }
}

impl From<CacheFileError> for Failure {
    fn from(error: CacheFileError) -> Self {
        match error {
            CacheFileError::Param(_)
            | CacheFileError::UnknownVolume { .. }
            | CacheFileError::Name { .. }
            | CacheFileError::KeepsNothing { .. }
            | CacheFileError::Volatile { .. }
            | CacheFileError::Fixed { .. } => Self::usage(error),
            CacheFileError::IsDisk { .. }
            | CacheFileError::Manage {
                source: ManageError::Exists { .. } | ManageError::NotBlank { .. } | ManageError::Taken { .. },
                ..
            } => Self::run(format!("{error}; --force goes ahead all the same")),
            CacheFileError::Manage {
                source: ManageError::Changed { .. } | ManageError::GivenUp { .. },
                ..
            } => Self::run(format!(
                "{error}; 'nandscape cache salvage' lists them, and writes them to a file or onto the disk"
            )),
            CacheFileError::Manage { source: ManageError::Unrecorded(_), .. } => Self::run(format!(
                "{error}; 'nandscape cache salvage --to FILE' does that, and 'nandscape cache detach --discard' takes the volume off"
            )),
            error => Self::run(error),
        }
    }
}

impl From<TraceError> for Failure {
    fn from(error: TraceError) -> Self {
        match error {
            TraceError::Spec { .. } => Self::usage(error),
            _ => Self::run(error),
        }
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Config(error) => error.into(),
            RunError::Trace(error) => error.into(),
            RunError::StdinTwice | RunError::Jobs(_) => Self::usage(error),
            error => Self::run(error),
        }
    }
}

/// Set by Ctrl-C; runs look at it and stop with a partial result.
pub static STOP: AtomicBool = AtomicBool::new(false);

/// Makes Ctrl-C stop runs with a partial result; a second one ends the program at once.
pub fn stop_on_ctrl_c() -> Result<(), Failure> {
    ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    })
    .map_err(|e| Failure::run(format!("cannot install the Ctrl-C handler: {e}")))
}

/// Where messages go.
#[derive(Clone, Copy, Debug)]
pub struct Console {
    quiet: bool,
}

#[expect(
    clippy::unused_self,
    reason = "results and errors are printed whatever the console, but only through one"
)]
impl Console {
    /// A console; `quiet` leaves only errors.
    pub const fn new(quiet: bool) -> Self {
        Self { quiet }
    }

    /// A result.
    pub fn result(self, text: &str) -> Result<(), Failure> {
        let mut stdout = std::io::stdout().lock();
        let newline = if text.ends_with('\n') { "" } else { "\n" };
        write!(stdout, "{text}{newline}").and_then(|()| stdout.flush()).map_err(|e| match e.kind() {
            std::io::ErrorKind::BrokenPipe => Failure::BrokenPipe,
            _ => Failure::run(format!("stdout: {e}")),
        })
    }

    /// A message beside the result.
    pub fn note(self, text: &str) {
        if !self.quiet {
            // A server goes on when nobody reads its messages any more.
            let _ = writeln!(std::io::stderr(), "nandscape: {text}");
        }
    }

    /// An error.
    pub fn error(self, text: &str) {
        let _ = writeln!(std::io::stderr(), "nandscape: error: {text}");
    }

    /// A progress bar; hidden unless stderr is a terminal.
    pub fn progress(self, label: &str) -> Bar {
        let bar = if self.quiet || !std::io::stderr().is_terminal() {
            ProgressBar::hidden()
        } else {
            ProgressBar::new_spinner()
        };
        bar.set_prefix(label.to_owned());
        Bar { bar }
    }
}

/// Progress of one or several runs.
#[derive(Debug)]
pub struct Bar {
    bar: ProgressBar,
}

impl Bar {
    /// Shows how far a run is.
    pub fn show(&self, progress: Progress) {
        let style = match (progress.preconditioning, progress.expected) {
            (true, _) => "{prefix} preconditioning {pos} writes [{elapsed}]",
            (false, Some(_)) => "{prefix} {wide_bar} {pos}/{len} requests [{elapsed}, {eta} left]",
            (false, None) => "{prefix} {spinner} {pos} requests [{elapsed}]",
        };
        if let Some(expected) = progress.expected {
            self.bar.set_length(expected);
        }
        self.bar.set_style(ProgressStyle::with_template(style).expect("the templates are valid"));
        self.bar.set_position(progress.requests);
    }

    /// Shows how many pages of all are done.
    pub fn show_pages(&self, done: u64, all: u64) {
        let style = "{prefix} {wide_bar} {pos}/{len} pages [{elapsed}, {eta} left]";
        self.bar.set_length(all);
        self.bar.set_style(ProgressStyle::with_template(style).expect("the template is valid"));
        self.bar.set_position(done);
    }

    /// Shows how many bytes of all are done.
    pub fn show_bytes(&self, done: u64, all: u64) {
        let style = "{prefix} {wide_bar} {bytes}/{total_bytes} [{elapsed}, {eta} left]";
        self.bar.set_length(all);
        self.bar.set_style(ProgressStyle::with_template(style).expect("the template is valid"));
        self.bar.set_position(done);
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
