//! The one place that prints: results to stdout, messages and progress to stderr.
//!
//! A server prints from threads of their own ([`log`]), so that nothing waits for whoever reads it.

mod log;
mod progress;
mod screen;

pub use progress::Bar;
pub use screen::Screen;

use indicatif::ProgressBar;
use log::Log;
use nandscape_cache::manage::ManageError;
use nandscape_core::TraceError;
use nandscape_stack::{ConfigError, RunError, StorageError};
use nandscape_volumes::CacheFileError;
use std::fmt;
use std::io::{IsTerminal, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub enum Failure {
    /// Bad usage: exit status 2.
    Usage(String),
    /// It failed: exit status 1.
    Run(String),
    /// It failed and has been reported in the result: exit status 1.
    Reported,
    /// Ctrl-C ended it, and what that means for the result, if there is one: exit status 130.
    Interrupted(String),
    /// A condition of --fail-if holds, which has been said: exit status 3.
    Condition,
    /// Nobody reads our output any more: not our failure.
    BrokenPipe,
}

/// What a command gives, or how it failed.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    pub fn usage(error: impl fmt::Display) -> Self {
        Self::Usage(error.to_string())
    }

    pub fn run(error: impl fmt::Display) -> Self {
        Self::Run(error.to_string())
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        match error {
            ConfigError::Io { .. } | ConfigError::Start { .. } => Self::run(error),
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
            CacheFileError::Param(_) | CacheFileError::Usage(_) => Self::usage(error),
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
            RunError::Interrupted => Self::Interrupted(String::new()),
            RunError::StdinTwice | RunError::Jobs(_) => Self::usage(error),
            error => Self::run(error),
        }
    }
}

/// Set by Ctrl-C; runs look at it and stop with a partial result.
pub static STOP: AtomicBool = AtomicBool::new(false);

/// Makes Ctrl-C stop runs with a partial result; a second one ends the program at once.
pub fn stop_on_ctrl_c() -> Result<()> {
    ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::Relaxed) {
            if std::io::stderr().is_terminal() {
                // Over what is left of a progress bar.
                let _ = write!(std::io::stderr(), "\r\u{1b}[2K");
            }
            std::process::exit(130);
        }
    })
    .map_err(|e| Failure::run(format!("cannot install the Ctrl-C handler: {e}")))
}

/// How long the end of a server waits for the reader of its last messages.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The exit code of a server that panicked, as Rust has it.
const PANICKED: i32 = 101;

/// Where a server prints to: stderr and stdout, each from a thread of its own.
#[derive(Debug)]
struct Server {
    messages: Arc<Log>,
    results: Arc<Log>,
}

/// Set when this process has become a server.
static SERVER: OnceLock<Server> = OnceLock::new();

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

    pub fn result(self, text: &str) -> Result<()> {
        let mut stdout = std::io::stdout().lock();
        let newline = if text.ends_with('\n') { "" } else { "\n" };
        write!(stdout, "{text}{newline}").and_then(|()| stdout.flush()).map_err(|e| match e.kind() {
            std::io::ErrorKind::BrokenPipe => Failure::BrokenPipe,
            _ => Failure::run(format!("stdout: {e}")),
        })
    }

    /// Columns of the terminal that results go to; `None` if they go elsewhere.
    pub fn width(self) -> Option<usize> {
        std::io::stdout().is_terminal().then(|| Screen::of_stdout().width)
    }

    pub fn json(self, value: &impl serde::Serialize) -> Result<()> {
        self.result(&serde_json::to_string_pretty(value).expect("plain data"))
    }

    /// From now on this process is a server: nothing that it prints is waited for. A panic is a message, too,
    /// and the end: nobody goes on with what a thread left half done. What was acknowledged is kept, as if
    /// the process had been killed.
    pub fn serve(self) -> Result<()> {
        let failed = |error: std::io::Error| Failure::run(format!("cannot print: {error}"));
        let file = |fd: BorrowedFd<'_>| fd.try_clone_to_owned().map(std::fs::File::from);
        // A stream that is closed takes nothing, which is no reason not to serve.
        let open = |fd: BorrowedFd<'_>| -> Box<dyn Write + Send> {
            file(fd).map_or_else(|_| Box::new(std::io::sink()) as _, |file| Box::new(file) as _)
        };
        let messages = Log::start(open(std::io::stderr().as_fd()), |_| ()).map_err(failed)?;
        let unread = move |error: &std::io::Error| self.note(&format!("stdout: {error}; serving goes on"));
        let results = Log::start(open(std::io::stdout().as_fd()), unread).map_err(failed)?;
        let server = SERVER.get_or_init(|| Server { messages, results });
        std::panic::set_hook(Box::new(|panic| {
            let thread = std::thread::current();
            let name = thread.name().unwrap_or("unnamed");
            server.messages.push(log::message(&format!("thread '{name}' {panic}")));
            server.messages.drain(LAST_WORDS);
            std::process::exit(PANICKED);
        }));
        Ok(())
    }

    /// A result of a server, such as where its clients find it. Earlier messages come first, if somebody
    /// reads them: who waits for the result has what the start warned of.
    pub fn announce(self, text: &str) {
        let newline = if text.ends_with('\n') { "" } else { "\n" };
        if let Some(server) = SERVER.get() {
            server.messages.drain(LAST_WORDS);
            server.results.push(format!("{text}{newline}"));
        }
    }

    pub fn note(self, text: &str) {
        match SERVER.get() {
            _ if self.quiet => {}
            Some(server) => server.messages.push(log::message(text)),
            None => _ = writeln!(std::io::stderr(), "nandscape: {text}"),
        }
    }

    /// A message of a server of which there may be many: of each kind some are printed, and the others
    /// counted.
    pub fn note_of(self, kind: &'static str, text: &dyn fmt::Display) {
        if let Some(server) = SERVER.get().filter(|_| !self.quiet) {
            server.messages.push_of(kind, Instant::now(), || log::message(&format!("{kind}: {text}")));
        }
    }

    pub fn error(self, text: &str) {
        // The lines are ours; what is in them may come from a file.
        let lines: Vec<String> = text.lines().map(log::printable).collect();
        let message = format!("nandscape: error: {}\n", lines.join("\n"));
        match SERVER.get() {
            Some(server) => server.messages.push(message),
            None => _ = write!(std::io::stderr(), "{message}"),
        }
    }

    /// Waits until a server has printed everything, if somebody reads it.
    pub fn finish(self) {
        if let Some(server) = SERVER.get() {
            server.messages.drain(LAST_WORDS);
            server.results.drain(LAST_WORDS);
        }
    }

    /// A progress bar; hidden unless stderr is a terminal.
    pub fn progress(self, label: &str) -> Bar {
        let bar = if self.quiet || !std::io::stderr().is_terminal() {
            ProgressBar::hidden()
        } else {
            ProgressBar::new_spinner()
        };
        bar.set_prefix(label.to_owned());
        Bar::new(bar)
    }
}
