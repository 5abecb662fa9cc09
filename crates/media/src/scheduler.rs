//! When operations run. A scheduler knows dies and buses, not the state of pages.
#![expect(clippy::inline_always, reason = "measured: the path of every page, a third fewer instructions")]

mod bus;
pub mod fifo;
mod options;
pub mod read_first;
pub mod serial;

pub use options::{BlockTimes, GcOrder, HostLink, Intake, Options, SlcTiming, Suspension, WriteBuffer};

use nandscape_core::{Clocked, Geometry, Info, Ppn, Sender, SimTime, SlcBlocks, State, Token, Way};

/// Latencies of the flash array and speed of a channel bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Array read of a page, in nanoseconds.
    pub read_ns: u64,
    /// Array program of a page, in nanoseconds.
    pub program_ns: u64,
    /// Block erase, in nanoseconds.
    pub erase_ns: u64,
    /// Bytes per second of one channel bus.
    pub channel_bytes_per_s: u64,
    /// Bus time of the command and address cycles that begin every operation, in nanoseconds. 0 leaves them
    /// out: reads and erases then start whatever the bus does. Serial timing includes it in the
    /// latencies and ignores this.
    pub command_ns: u64,
}

impl Timing {
    /// Bus time of a transfer, rounded up to whole nanoseconds.
    pub const fn transfer_ns(&self, bytes: u32) -> u64 {
        (bytes as u64 * 1_000_000_000).div_ceil(self.channel_bytes_per_s)
    }
}

/// What a scheduler must know of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimedOp {
    /// Array read, then `transfer` bytes over the bus.
    Read {
        /// First page of the block.
        page: Ppn,
        /// Bytes moved.
        transfer: u32,
    },
    /// `transfer` bytes from the host, these and `held` over the bus, then array program.
    Program {
        /// First page of the block.
        page: Ppn,
        /// Bytes moved.
        transfer: u32,
        /// Bytes that the controller has already.
        held: u32,
    },
    /// Block erase.
    Erase {
        /// First page of the block.
        page: Ppn,
        /// Pages of the block that were programmed.
        pages: u32,
    },
}

impl TimedOp {
    /// The page (of an erase, the first of its block).
    pub const fn page(self) -> Ppn {
        match self {
            Self::Read { page, .. } | Self::Program { page, .. } | Self::Erase { page, .. } => page,
        }
    }
}

/// Decides when submitted operations run. See [`nandscape_core::FlashDevice`] for the meaning of each method.
///
/// Whatever the order it chooses, operations on the same block take effect in submission order.
pub trait Scheduler: Clocked + State {
    /// A scheduler with everything idle at time 0.
    fn new(geometry: &Geometry, timing: &Timing) -> Self
    where
        Self: Sized;

    /// The same with options, of which a scheduler uses those it can (see each).
    fn with_options(geometry: &Geometry, timing: &Timing, _: &Options) -> Self
    where
        Self: Sized,
    {
        Self::new(geometry, timing)
    }

    /// Queues an operation of the host.
    fn submit(&mut self, op: TimedOp, at: SimTime, after: Token) -> Token;

    /// Queues an operation that host software asked for, or one of the device for itself.
    #[inline(always)]
    fn submit_as(&mut self, op: TimedOp, _sender: Sender, at: SimTime, after: Token) -> Token {
        self.submit(op, at, after)
    }

    /// Queues programs of pages in turn, with `transfer` bytes each; completes when all have.
    #[inline(always)]
    fn submit_programs(
        &mut self,
        pages: impl Iterator<Item = Ppn>,
        transfer: u32,
        sender: Sender,
        at: SimTime,
        after: Token,
    ) -> Token {
        submit_each(self, pages, transfer, sender, at, after)
    }

    /// Bytes of the host cross the link without a flash operation, see [`nandscape_core::FlashState::pass`].
    fn pass(&mut self, way: Way, bytes: u32, at: SimTime, after: Token) -> Token;

    /// Completes when both have.
    fn join(&mut self, a: Token, b: Token) -> Token;

    /// See [`nandscape_core::FlashState::barrier`].
    fn barrier(&mut self, _at: SimTime) -> Token {
        Token::NONE
    }

    /// These blocks have one bit a cell from now on. A scheduler without times for them ([`BlockTimes::slc`])
    /// takes them for blocks like all others.
    fn use_slc(&mut self, _blocks: SlcBlocks) {}

    /// Forgets everything queued; every resource is free at `at`.
    fn reset(&mut self, at: SimTime);
}

/// Queues programs of pages one by one.
#[inline(always)]
fn submit_each<S: Scheduler + ?Sized>(
    scheduler: &mut S,
    pages: impl Iterator<Item = Ppn>,
    transfer: u32,
    sender: Sender,
    at: SimTime,
    after: Token,
) -> Token {
    pages.fold(Token::NONE, |done, page| {
        let op = TimedOp::Program { page, transfer, held: 0 };
        let programmed = scheduler.submit_as(op, sender, at, after);
        scheduler.join(done, programmed)
    })
}

/// Which [`Options`] a scheduler uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Follows {
    /// None.
    Nothing,
    /// The host link and the write buffer.
    Host,
    /// All.
    Everything,
}

/// A registered scheduler.
#[derive(Clone, Copy, Debug)]
pub struct SchedulerEntry {
    /// Name and so on.
    pub info: Info,
    /// Which options it uses.
    pub follows: Follows,
}

/// Something to be done with the type of a scheduler that is chosen by name.
pub trait WithScheduler {
    /// What it gives.
    type Out;

    /// Does it.
    fn with<S: Scheduler + Send + 'static>(self) -> Self::Out;
}

macro_rules! schedulers {
    ($($serial:ident::$one:ident),+; $($module:ident::$scheduler:ident),+ $(,)?) => {
        /// Every scheduler.
        pub static SCHEDULERS: &[SchedulerEntry] = &[$($serial::ENTRY,)+ $($module::ENTRY),+];

        /// Names of those to which dies and buses are resources.
        pub const PARALLEL: &[&str] = &[$($module::ENTRY.info.name),+];

        impl SchedulerEntry {
            /// Does something with its type.
            pub fn with<W: WithScheduler>(&self, what: W) -> W::Out {
                $(if self.info.name == $serial::ENTRY.info.name {
                    return what.with::<$serial::$one>();
                })+
                $(if self.info.name == $module::ENTRY.info.name {
                    return what.with::<$module::$scheduler>();
                })+
                unreachable!("{} is one of them", self.info.name)
            }
        }
    };
}

schedulers! {
    serial::Serial;
    fifo::Fifo,
    read_first::ReadFirst,
}
