//! What servers run a stack on: batches of commands with real bytes, and the model's clock beside the real one.
//!
//! One thread at a time owns the stack. A front end collects what its client has sent into a batch and brings it to
//! [`Engine::run`]; whoever holds the engine runs its batch to the end, without waking another thread. A front end has one batch under
//! way, of bounded size, so a client that sends faster than the stack runs is held back by its own socket.
//!
//! Below the engine there are no locks and no clocks.

mod clock;
mod request;
mod stop;

pub use clock::Clock;
pub use request::{Data, Request, Served};
pub use stop::Stop;

use nandscape_core::namespace::Payload;
use nandscape_core::{Completion, NamespaceError, NamespaceInfo, SimTime, Subsystem, Token};
use std::sync::{Mutex, MutexGuard};

/// The most requests that a front end should bring at once.
pub const BATCH_REQUESTS: usize = 256;

/// The most payload bytes that a front end should bring at once, unless one request alone is larger.
pub const BATCH_BYTES: usize = 8 << 20;

/// A stack, ready to be served.
pub struct Engine {
    namespaces: Vec<NamespaceInfo>,
    core: Mutex<Core>,
}

/// What one thread at a time owns.
struct Core {
    subsystem: Box<dyn Subsystem + Send>,
    clock: Clock,
    completions: Vec<Completion>,
}

impl Engine {
    /// Serves `subsystem`, its model's time running as `clock` says.
    pub fn new(subsystem: Box<dyn Subsystem + Send>, clock: Clock) -> Self {
        let namespaces = subsystem.namespaces().to_vec();
        Self { namespaces, core: Mutex::new(Core { subsystem, clock, completions: Vec::new() }) }
    }

    /// What there is to serve. A request names its namespace by the index in this list.
    pub fn namespaces(&self) -> &[NamespaceInfo] {
        &self.namespaces
    }

    /// Runs a batch in order, and leaves in each request what became of it. Returns when all of it has run.
    pub fn run(&self, batch: &mut [Request<'_>]) {
        let mut core = self.lock();
        let at = core.clock.issue();
        for request in batch {
            request.outcome = core.execute(request, at);
        }
    }

    /// Does something with the stack between two batches.
    pub fn with<R>(&self, action: impl FnOnce(&mut dyn Subsystem, SimTime) -> R) -> R {
        let mut core = self.lock();
        let at = core.clock.issue();
        action(&mut *core.subsystem, at)
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().expect("no thread panicked while it held the stack")
    }
}

impl Core {
    fn execute(&mut self, request: &mut Request<'_>, at: SimTime) -> Result<Served, NamespaceError> {
        let (namespace, command) = (request.namespace, request.command());
        let mut token = self.subsystem.submit(namespace, command, request.payload.as_payload(), at)?;
        if request.is_fua {
            // Forced unit access: a flush of everything is more than was asked for, and never less.
            token = self.subsystem.submit(namespace, Request::flush(), Payload::None, at)?;
        }
        let done = match self.subsystem.completion(token) {
            Some(done) => done,
            None => self.wait(token),
        };
        let done = done.max(at);
        self.clock.completed(done);
        Ok(Served { issued: at, done })
    }

    /// Runs an event-driven model until a token completes.
    fn wait(&mut self, token: Token) -> SimTime {
        self.subsystem.watch(token, 0);
        loop {
            self.completions.clear();
            let Some(next) = self.subsystem.next_event() else {
                unreachable!("a watched token completes with some event");
            };
            self.subsystem.advance(next, &mut self.completions);
            if let Some(completion) = self.completions.first() {
                return completion.at;
            }
        }
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("namespaces", &self.namespaces).finish_non_exhaustive()
    }
}
