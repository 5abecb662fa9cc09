//! What servers run a stack on: batches of commands with real bytes, and the model's clock beside the real
//! one.
//!
//! One thread at a time owns the stack. A front end collects what its client has sent into a batch and brings
//! it to [`Engine::run`]; whoever holds the engine runs its batch to the end, without waking another thread.
//! A front end has one batch under way, of bounded size, so a client that sends faster than the stack runs is
//! held back by its own socket.
//!
//! Below the engine there are no locks and no clocks. Beside it, and only there:
//! * [`Stat`]: what it counts and measures while it runs ([`Engine::stat`]);
//! * [`Background`]: a thread for what is to happen without a request: idle time, samples, warnings;
//! * [`Engine::start_recording`]: every command in a file that can be replayed;
//! * [`control`]: a socket over which all of this is asked for;
//! * [`connections`]: the clients of a front end;
//! * [`budget`]: memory for long requests, which front ends take their buffers from.
//!
//! A lock is taken only in this order: a queue of answers, totals, stack, lateness.

mod background;
pub mod budget;
mod clock;
pub mod connections;
pub mod control;
mod due;
mod meter;
mod pace;
mod record;
mod request;
mod stack;
mod stat;
mod stop;
mod timeline;
pub mod zones;

pub use background::Background;
pub use clock::{Clock, DEFAULT_DEPTH};
pub use due::{Answer, Due, DueQueue};
pub use pace::LATE;
pub use record::{RecordError, RecordingStat};
pub use request::{Data, Request, Served};
pub use stat::{
    ClockStat, FaultStat, Interval, Latencies, NamespaceStat, PaceStat, QueueStat, ServerStat, ServiceStat,
    Space, Stat,
};
pub use stop::Stop;
pub use timeline::QUIET;

use nandscape_core::{NamespaceInfo, SimTime, Subsystem};
use nandscape_memory::Batch;
use pace::Pace;
use stack::Stack;
use stat::Totals;
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

/// The most requests that a front end should bring at once.
pub const BATCH_REQUESTS: usize = 256;

/// The most payload bytes that a front end should bring at once, unless one request alone is larger.
pub const BATCH_BYTES: usize = 8 << 20;

/// A stack, ready to be served.
pub struct Engine {
    namespaces: Vec<NamespaceInfo>,
    start: Instant,
    clock: Clock,
    totals: Mutex<Totals>,
    stack: Mutex<Stack>,
    pace: Mutex<Pace>,
}

const UNBROKEN: &str = "no thread panicked while it held the stack";

impl Engine {
    /// Serves `subsystem`, its model's time running as `clock` says.
    pub fn new(subsystem: Box<dyn Subsystem + Send>, clock: Clock) -> Self {
        let namespaces = subsystem.namespaces().to_vec();
        let start = Instant::now();
        let stack = Stack::new(subsystem, clock, start);
        Self {
            namespaces,
            start,
            clock,
            totals: Mutex::new(Totals::new(stack.sample(start))),
            stack: Mutex::new(stack),
            pace: Mutex::new(Pace::default()),
        }
    }

    /// What there is to serve. A request names its namespace by the index in this list.
    pub fn namespaces(&self) -> &[NamespaceInfo] {
        &self.namespaces
    }

    /// How the model's time runs.
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    /// Runs a batch in order, and leaves in each request what became of it. Returns when all of it has run.
    #[expect(unsafe_code, reason = "a fence for each page costs a sixth of a write")]
    pub fn run(&self, batch: &mut [Request<'_>]) {
        let arrival = Instant::now();
        let (mut stack, entered) = self.enter(arrival);
        // SAFETY: what is written belongs to the stack, and the lock is held until this is dropped, which is
        // declared after it.
        let _pages = unsafe { Batch::begin() };
        let end = stack.run(batch, arrival, entered);
        if self.clock == Clock::Paced {
            let known = |served: &Served| served.promise.is_none().then(|| self.real(served.done));
            self.lock_pace().ready(batch, known, end);
        }
    }

    /// On a paced clock, when a request that was run should be answered; `None` means now. A front end that
    /// waited for that, best in a [`DueQueue`], calls [`Engine::answered`] afterwards.
    pub fn due(&self, served: &Served) -> Option<Due> {
        (self.clock == Clock::Paced).then(|| Due::new(self.start, served.done, served.promise.as_ref()))
    }

    fn real(&self, at: SimTime) -> Instant {
        self.start + Duration::from_nanos(at.0)
    }

    /// Runs what events the model has up to now, where its time is the real one. When the next one is due, if
    /// something waits for events.
    fn run_events(&self) -> Option<Instant> {
        let Stack { timeline, model, .. } = &mut *self.lock();
        timeline.run_events(Instant::now(), model)
    }

    /// An answer that was not due yet when its batch had run ([`Engine::due`]) has been sent just now. What
    /// that was late is counted.
    pub fn answered(&self, due: Instant) {
        self.lock_pace().sent(due, Instant::now());
    }

    /// Does what the last batch left for later. A front end that has answered it calls this before it waits
    /// for the next one; otherwise the next one does it first.
    #[expect(unsafe_code, reason = "as in `run`")]
    pub fn do_chores(&self) {
        // Whoever has the stack does them.
        let Ok(mut stack) = self.stack.try_lock() else { return };
        // SAFETY: as in `run`.
        let _pages = unsafe { Batch::begin() };
        stack.do_chores();
    }

    /// Does something with the stack between two batches, when nothing is outstanding in the model.
    pub fn with<R>(&self, action: impl FnOnce(&mut dyn Subsystem, SimTime) -> R) -> R {
        let (mut stack, entered) = self.enter(Instant::now());
        stack.between(entered, action)
    }

    /// Looks at the stack between two batches. Changes nothing, in the model's time neither.
    pub fn look<R>(&self, look: impl FnOnce(&dyn Subsystem) -> R) -> R {
        look(&*self.lock().model.subsystem)
    }

    /// Waits for the stack. When it was got, too.
    fn enter(&self, arrival: Instant) -> (MutexGuard<'_, Stack>, Instant) {
        match self.stack.try_lock() {
            Ok(stack) => (stack, arrival),
            Err(TryLockError::WouldBlock) => {
                let stack = self.lock();
                (stack, Instant::now())
            }
            Err(TryLockError::Poisoned(error)) => panic!("{UNBROKEN}: {error}"),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Stack> {
        self.stack.lock().expect(UNBROKEN)
    }

    fn lock_totals(&self) -> MutexGuard<'_, Totals> {
        self.totals.lock().expect(UNBROKEN)
    }

    fn lock_pace(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().expect(UNBROKEN)
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("namespaces", &self.namespaces).finish_non_exhaustive()
    }
}
