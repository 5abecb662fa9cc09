//! The flash device contract: what an FTL programs against, in replay and in service alike.
//!
//! State changes when an operation is submitted; when it runs in virtual time is the scheduler's business. An
//! FTL expresses order only through [`Issue::after`] and [`FlashState::join`], so it cannot tell a scheduler
//! that fixes the completion at submission (`fifo`) from one that is event-driven (`read-first`).
//!
//! Invariants every device keeps:
//! * a page is programmed at most once between two erases of its block ([`FlashError::NotErased`] otherwise);
//! * pages of a block are programmed in ascending order unless [`Capabilities::out_of_order_program`] is set;
//! * an erase beyond the endurance, or any operation on a bad block, fails and changes nothing;
//! * two operations on the same page or block take effect in the order they were submitted.

use crate::addr::{BlockId, Lpn, Ppn};
use crate::cause::{Cause, CauseTable, MediumTally};
use crate::clock::{Clocked, Token};
use crate::flash_error::FlashError;
use crate::geometry::Geometry;
use crate::recovery::RecoveryReport;
use crate::slc::SlcBlocks;
use crate::state::State;
use crate::time::SimTime;
use std::fmt;

/// When and why an operation is issued.
#[derive(Clone, Copy, Debug)]
pub struct Issue {
    /// The operation does not start before this time. Never earlier than a time already advanced past.
    pub at: SimTime,
    /// The operation does not start before this completes.
    pub after: Token,
    /// What it is counted under.
    pub cause: Cause,
    /// Who asks for it, whatever its cause.
    pub sender: Sender,
    /// Of a program, bytes that the controller has from earlier commands: they move over the bus besides
    /// `transfer`, and do not cross the link to the host. Of an erase, pages that its time depends on, if
    /// these are not all that were programmed. Of a read, bytes in further units of the same flash page that
    /// the next reads ask for with the same issue ([`Capabilities::units_per_page`]).
    pub held: u32,
}

impl Issue {
    /// An operation with no predecessor.
    pub const fn new(at: SimTime, cause: Cause) -> Self {
        let sender = if matches!(cause, Cause::Host) { Sender::Host } else { Sender::Device };
        Self { at, after: Token::NONE, cause, sender, held: 0 }
    }

    /// The same, by a command that host software sends once what it waits for so far is complete.
    #[must_use]
    pub const fn by_host(self) -> Self {
        let waits = self.after.0 != Token::NONE.0;
        Self { sender: if waits { Sender::HostLater } else { Sender::Host }, ..self }
    }

    /// The same, by the device for a reason of its own.
    #[must_use]
    pub const fn by_device(self, cause: Cause) -> Self {
        Self { cause, sender: Sender::Device, ..self }
    }

    /// The same, but not before `after` completes.
    #[must_use]
    pub const fn after(self, after: Token) -> Self {
        Self { after, ..self }
    }
}

/// Who asks for an operation. What a host asks for crosses the link to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The device, for a reason of its own.
    Device,
    /// A host, whose command is there: what the operation waits for happens in the device.
    Host,
    /// Host software, which sends the command once what it waits for is complete.
    HostLater,
}

/// The direction of bytes between host and controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the host: a write that fills no page yet, or a command without data.
    In,
    /// To the host: data that the controller has, or that no flash holds.
    Out,
}

/// What a layer programs beside the data of each page, to find out after a loss of power whose data it is:
/// a value of the layer's own, of at most [`Geometry::oob_bytes`] where a device is made for it. A device
/// keeps it and does not look into it.
///
/// A medium that keeps no data keeps less of it: a part for each page and one for each block, from the first
/// page programmed there. A layer whose OOB follows from its write pointers has an empty part for both.
pub trait OutOfBand: Copy + PartialEq + fmt::Debug + Send + 'static {
    /// What a medium without data keeps of it for each page.
    type Page: Copy + fmt::Debug + Send + State;
    /// What a medium without data keeps of it for each block.
    type Block: Copy + Default + fmt::Debug + Send + State;

    /// Bytes of the value as it is stored.
    const BYTES: usize;

    /// In the place of a page that is not programmed.
    const ERASED: Self::Page;

    /// On a page of which neither data nor OOB can be read any more.
    const TORN: Self;

    /// Whether this stands for a page that is not programmed: [`OutOfBand::ERASED`], where pages can be
    /// programmed in any order and a mark is needed; else never.
    fn is_erased(page: &Self::Page) -> bool;

    /// The parts that a medium without data keeps.
    fn split(&self) -> (Self::Page, Self::Block);

    /// The value again, as far as the parts have it.
    fn joined(page: Self::Page, block: Self::Block) -> Self;

    /// Stores the value in [`OutOfBand::BYTES`] bytes.
    fn encode(&self, bytes: &mut [u8]);

    /// The value of what [`OutOfBand::encode`] stored.
    fn decode(bytes: &[u8]) -> Self;
}

/// The OOB of a layer that maps logical pages, so that the inverse map can be rebuilt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oob {
    /// The logical page whose data this is, or [`Lpn::PADDING`].
    pub lpn: Lpn,
    /// The log that the page belongs to, for the layer to sort its open blocks by after a loss of power; 0
    /// where it has one log. The superblock layers write data superblocks with 0 and log superblocks
    /// with 1.
    pub stream: u16,
    /// Sequence number of the *data*: grows with every host write, and a copy (any [`Cause`] but
    /// [`Cause::Host`]) passes on the number that it read, so that the newest data of a logical page is
    /// known however often it was moved. A device with a journal assigns the numbers of host writes
    /// itself, in steps of 65,536, and adds 1 to that of a copy, so that the copy made last counts as
    /// newest. A timing-only medium keeps one per block (that of its first page), a medium with bytes
    /// one per page.
    pub seq: u64,
}

impl OutOfBand for Oob {
    type Page = Lpn;
    type Block = u64;

    const BYTES: usize = 14;
    const ERASED: Lpn = Lpn::NONE;
    const TORN: Self = Self { lpn: Lpn::PADDING, stream: 0, seq: 0 };

    #[inline]
    fn is_erased(page: &Lpn) -> bool {
        *page == Lpn::NONE
    }

    #[inline]
    fn split(&self) -> (Lpn, u64) {
        (self.lpn, self.seq)
    }

    #[inline]
    fn joined(lpn: Lpn, seq: u64) -> Self {
        Self { lpn, stream: 0, seq }
    }

    /// Little-endian: logical page, stream, sequence number.
    #[inline]
    fn encode(&self, bytes: &mut [u8]) {
        bytes[..4].copy_from_slice(&self.lpn.0.to_le_bytes());
        bytes[4..6].copy_from_slice(&self.stream.to_le_bytes());
        bytes[6..14].copy_from_slice(&self.seq.to_le_bytes());
    }

    fn decode(bytes: &[u8]) -> Self {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        Self {
            lpn: Lpn(word(0)),
            stream: u16::from_le_bytes([bytes[4], bytes[5]]),
            seq: u64::from(word(6)) | u64::from(word(10)) << 32,
        }
    }
}

/// What a page read gives.
#[derive(Clone, Copy, Debug)]
pub struct PageRead<O = Oob> {
    /// The page's OOB. Meaningful whether or not the device stores data.
    pub oob: O,
    /// Completes when the data has left the device.
    pub done: Token,
}

/// Pages that lie in several blocks: some of the first block, as many of the next, and so on.
#[derive(Clone, Copy, Debug)]
pub struct Stripe<'a> {
    /// The blocks, in the order of the pages.
    pub blocks: &'a [BlockId],
    /// The first page in each block.
    pub first: u32,
    /// Pages of each block, from 1.
    pub each: u32,
}

impl Stripe<'_> {
    /// One of the pages, by its number in the stripe.
    #[must_use]
    pub const fn page(&self, number: u32, pages_per_block: u32) -> Ppn {
        let block = self.blocks[(number / self.each) as usize];
        Ppn(block.0 * pages_per_block + self.first + number % self.each)
    }
}

/// What became of the pages of a stripe; nothing so far by default.
#[derive(Clone, Copy, Debug, Default)]
pub struct Striped {
    /// Pages that were programmed.
    pub pages: u32,
    /// Completes when all of these are.
    pub done: Token,
    /// Why the next page was not programmed.
    pub failed: Option<FlashError>,
}

/// Programs a stripe page by page, from the first page that is not among `striped` on.
pub fn program_each<O: OutOfBand, D: FlashDevice<O> + ?Sized>(
    device: &mut D,
    stripe: Stripe<'_>,
    mut striped: Striped,
    oobs: &[O],
    data: Option<&[u8]>,
    issue: Issue,
) -> Striped {
    let Geometry { pages_per_block, page_bytes, .. } = *device.geometry();
    while let Some(oob) = oobs.get(striped.pages as usize) {
        let page = stripe.page(striped.pages, pages_per_block);
        let at = striped.pages as usize * page_bytes as usize;
        let part = data.map(|data| &data[at..at + page_bytes as usize]);
        match device.program(page, *oob, page_bytes, part, issue) {
            Ok(programmed) => striped.done = device.join(striped.done, programmed),
            Err(error) => return Striped { failed: Some(error), ..striped },
        }
        striped.pages += 1;
    }
    striped
}

/// What a device can do beyond the basic contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "abilities that are independent of each other")]
pub struct Capabilities {
    /// Pages of a block may be programmed in any order (superblock strategies of the thesis need it).
    pub out_of_order_program: bool,
    /// The device keeps payload. Where it does not, `data` arguments are ignored and should be `None`.
    pub stores_data: bool,
    /// Reads and programs move only the bytes asked for over the bus instead of the whole page.
    pub partial_transfer: bool,
    /// Pages of a block that one array operation programs together (3 for one-shot TLC), from 1. A layer
    /// that stripes its writes fills such a unit before it goes to the next die; each page is still
    /// programmed by a call of its own.
    pub program_pages: u32,
    /// Pages of a block as a layer sees them that lie in one flash page, from 1. Where there are several, one
    /// array read can serve reads of the same command that follow each other ([`Issue::held`]).
    pub units_per_page: u32,
    /// A program that is complete survives a loss of power without a [`FlashState::barrier`].
    pub lasting_programs: bool,
    /// DRAM of the device itself, in bytes, where what stands over it is software of the host.
    pub dram_below: Option<u64>,
}

impl Default for Capabilities {
    /// The basic contract: nothing beyond it, and a page is a program unit.
    fn default() -> Self {
        Self {
            out_of_order_program: false,
            stores_data: false,
            partial_transfer: false,
            program_pages: 1,
            units_per_page: 1,
            lasting_programs: false,
            dram_below: None,
        }
    }
}

/// What a flash operation gives, or why it failed.
pub type FlashResult<T> = Result<T, FlashError>;

/// What a read of a page gives.
pub type ReadResult<O = Oob> = FlashResult<PageRead<O>>;

/// A flash device of any type, so that what stands over it is compiled once for all of them.
pub type AnyDevice = Box<dyn FlashDevice + Send>;

/// Up to where a [`FlashState::barrier`] reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Barrier {
    /// Only the order matters: nothing that is issued after the token survives a loss of power that one of
    /// the programs answered so far does not. A device kept in a file need not write it through for that.
    Order,
    /// What was answered is safe from a loss of power.
    Durable,
}

/// What is known of the blocks of a medium or a device.
#[auto_impl::auto_impl(Box)]
pub trait BlockState {
    /// The shape.
    fn geometry(&self) -> &Geometry;

    /// Whether the page has been programmed since the last erase.
    fn is_programmed(&self, page: Ppn) -> bool;

    /// One past the highest programmed page of the block, in pages; 0 for an erased block.
    fn write_pointer(&self, block: BlockId) -> u32;

    /// How often the block was erased, since the device was made.
    fn erase_count(&self, block: BlockId) -> u32;

    /// Whether the block is bad.
    fn is_bad(&self, block: BlockId) -> bool;
}

/// The body of an `impl BlockState` that leaves everything to another one:
/// `delegate_blocks!(self, self.inner)`; or only what is listed, as
/// [`delegate_clock!`](crate::delegate_clock).
#[macro_export]
macro_rules! delegate_blocks {
    ($this:ident, $inner:expr) => {
        $crate::delegate_blocks!($this, $inner; geometry, is_programmed, write_pointer, erase_count, is_bad);
    };
    ($this:ident, $inner:expr; $($method:ident),+) => {
        $($crate::delegate_blocks!(@$method $this, $inner);)+
    };
    (@geometry $this:ident, $inner:expr) => {
        #[inline]
        fn geometry(&$this) -> &$crate::Geometry {
            $inner.geometry()
        }
    };
    (@is_programmed $this:ident, $inner:expr) => {
        #[inline]
        fn is_programmed(&$this, page: $crate::Ppn) -> bool {
            $inner.is_programmed(page)
        }
    };
    (@write_pointer $this:ident, $inner:expr) => {
        #[inline]
        fn write_pointer(&$this, block: $crate::BlockId) -> u32 {
            $inner.write_pointer(block)
        }
    };
    (@erase_count $this:ident, $inner:expr) => {
        #[inline]
        fn erase_count(&$this, block: $crate::BlockId) -> u32 {
            $inner.erase_count(block)
        }
    };
    (@is_bad $this:ident, $inner:expr) => {
        #[inline]
        fn is_bad(&$this, block: $crate::BlockId) -> bool {
            $inner.is_bad(block)
        }
    };
}

/// What is listed of an `impl FlashState`, left to another one, as
/// [`delegate_clock!`](crate::delegate_clock).
#[macro_export]
macro_rules! delegate_state {
    ($this:ident, $inner:expr; $($method:ident),+) => {
        $($crate::delegate_state!(@$method $this, $inner);)+
    };
    (@capabilities $this:ident, $inner:expr) => {
        fn capabilities(&$this) -> $crate::Capabilities {
            $inner.capabilities()
        }
    };
    (@join $this:ident, $inner:expr) => {
        #[inline(always)]
        fn join(&mut $this, a: $crate::Token, b: $crate::Token) -> $crate::Token {
            $inner.join(a, b)
        }
    };
    (@pass $this:ident, $inner:expr) => {
        fn pass(
            &mut $this,
            way: $crate::Way,
            bytes: u32,
            at: $crate::SimTime,
            after: $crate::Token,
        ) -> $crate::Token {
            $inner.pass(way, bytes, at, after)
        }
    };
    (@counters $this:ident, $inner:expr) => {
        fn counters(&$this) -> &$crate::CauseTable {
            $inner.counters()
        }
    };
    (@tally $this:ident, $inner:expr) => {
        fn tally(&$this) -> $crate::MediumTally<'_> {
            $inner.tally()
        }
    };
    (@reset_counters $this:ident, $inner:expr) => {
        fn reset_counters(&mut $this) {
            $inner.reset_counters();
        }
    };
}

/// What a journal on the device offers a layer above ([`FlashState::journal`]).
pub trait MapJournal {
    /// Notes that logical pages hold nothing from now on (a trim). Durable with the next
    /// [`FlashState::barrier`]. A layer calls this for every page it unmaps at the host's wish.
    fn drop_pages(&mut self, first: Lpn, count: u32, at: SimTime) -> FlashResult<()>;

    /// Where the newest data of a logical page is, after a start from what the flash holds; `None` where
    /// nothing is. A layer that finds programmed blocks when it is built makes its maps from this.
    fn newest(&self, lpn: Lpn) -> Option<Ppn>;

    /// From now on `page` counts as the place of the newest data of `lpn`. It must hold a copy equal to the
    /// one that [`MapJournal::newest`] gives, with the same [`Oob::seq`] but for the count of copies
    /// in it: after a loss of power both ends of a copy may be there and either may have been taken, and a
    /// layer that wants to erase the one that was has to say that it holds to the other. Refused if there is
    /// no such copy at `page`.
    fn prefer(&mut self, lpn: Lpn, page: Ppn) -> FlashResult<()>;

    /// The layer erases blocks before it has rewritten what they hold, and was told that this is wanted: such
    /// an erase is no longer refused.
    fn allow_loss(&mut self);

    /// Whether the block went bad since the device was made ([`FlashDevice::mark_bad`]). The capacity of a
    /// layer counts such blocks, so that it stays what it was.
    fn is_grown_bad(&self, block: BlockId) -> bool;

    /// What the last start found and did.
    fn recovery(&self) -> &RecoveryReport;

    /// Writes down whatever makes the next start quick; for a clean shutdown. Includes a durable
    /// [`FlashState::barrier`].
    fn checkpoint(&mut self, at: SimTime) -> FlashResult<Token>;
}

/// What a flash device is to everybody, whatever its pages hold: abilities, counters and time.
#[auto_impl::auto_impl(Box)]
pub trait FlashState: Clocked + BlockState + State {
    /// What it can do beyond the basic contract.
    fn capabilities(&self) -> Capabilities;

    /// Completes when both have.
    fn join(&mut self, a: Token, b: Token) -> Token;

    /// Bytes of the host that no flash operation moves cross the link, with the latencies of a command;
    /// nothing but `at` and `after` counts where none is modelled.
    fn pass(&mut self, way: Way, bytes: u32, at: SimTime, after: Token) -> Token;

    /// Completes when every program answered so far, and every drop of pages noted so far
    /// ([`MapJournal::drop_pages`]), is what `reach` asks for. For programs that is at once unless the device
    /// answers them from a volatile buffer.
    fn barrier(&mut self, reach: Barrier, at: SimTime) -> FlashResult<Token>;

    /// From now on these blocks are used with one bit a cell; `false` if the device cannot do that. To be
    /// said before anything is programmed or read.
    fn use_slc(&mut self, blocks: SlcBlocks) -> bool {
        let _ = blocks;
        false
    }

    /// What keeps the map of logical pages over a loss of power, where there is such a thing.
    fn journal(&self) -> Option<&dyn MapJournal> {
        None
    }

    /// The same, to be told something.
    fn journal_mut(&mut self) -> Option<&mut dyn MapJournal> {
        None
    }

    /// Operations by cause since the last reset.
    fn counters(&self) -> &CauseTable;

    /// What the medium counts by itself.
    fn tally(&self) -> MediumTally<'_>;

    /// Starts counting anew (after preconditioning). Wear counts on: see [`BlockState::erase_count`].
    fn reset_counters(&mut self);

    /// Forgets all queued time: every resource is free at `at`. For the border between preconditioning and
    /// the counted part.
    fn reset_time(&mut self, at: SimTime);
}

/// A flash device: state, rules, counters and time. A layer says by `O` what it keeps beside the data of a
/// page.
///
/// `transfer` arguments are bytes moved over the channel bus; they matter to timing only, and a device
/// without [`Capabilities::partial_transfer`] moves the whole page whatever they say.
#[auto_impl::auto_impl(Box)]
pub trait FlashDevice<O: OutOfBand = Oob>: FlashState {
    /// Reads a page. `data`, if given, is one page long and is filled where the device stores data; after an
    /// error it may hold anything.
    fn read(&mut self, page: Ppn, transfer: u32, data: Option<&mut [u8]>, issue: Issue) -> ReadResult<O>;

    /// Reads the bytes of a page from `start` on, as many as `data` is long, all inside the page; they are
    /// what is transferred. A device that stores data touches no more than it must. A decorator passes
    /// this on to the device below.
    fn read_part(&mut self, page: Ppn, start: u32, data: &mut [u8], issue: Issue) -> ReadResult<O> {
        let mut whole = vec![0; self.geometry().page_bytes as usize];
        let read = self.read(page, data.len() as u32, Some(&mut whole), issue)?;
        data.copy_from_slice(&whole[start as usize..][..data.len()]);
        Ok(read)
    }

    /// Says that the bytes of a page will be read soon, so that they can be on their way from memory; for
    /// speed only, and for any page number.
    fn prepare_read(&self, page: Ppn) {
        let _ = page;
    }

    /// Programs a page. `data`, if given, is one page long.
    fn program(
        &mut self,
        page: Ppn,
        oob: O,
        transfer: u32,
        data: Option<&[u8]>,
        issue: Issue,
    ) -> FlashResult<Token>;

    /// Programs whole pages that come from the host, up to the first one that cannot be programmed. `oobs`
    /// has one for each page, and `data`, if given, the pages one behind the other; [`Issue::held`] is 0. The
    /// same as a program of each page in turn, in less time.
    fn program_stripe(
        &mut self,
        stripe: Stripe<'_>,
        oobs: &[O],
        data: Option<&[u8]>,
        issue: Issue,
    ) -> Striped {
        program_each(self, stripe, Striped::default(), oobs, data, issue)
    }

    /// Erases a block.
    fn erase(&mut self, block: BlockId, issue: Issue) -> FlashResult<Token>;

    /// Marks a block bad for ever (a grown defect), after the layer has moved what it held. Nothing may be
    /// asked of it afterwards.
    fn mark_bad(&mut self, block: BlockId);

    /// A read of an erased or unmapped place that costs time but has no state (`ftl.unmapped_read =
    /// "flash"`).
    fn read_unmapped(&mut self, page: Ppn, transfer: u32, issue: Issue) -> FlashResult<Token>;
}
