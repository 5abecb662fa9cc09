//! A flash device whose operations take effect in any order that its contract allows.
//!
//! There is no scheduler below: a token stands for the set of operations that are on the flash once it
//! completes. Any order of real dies and buses is one of those that these sets allow, so what holds for all
//! of them holds under every scheduler.

use super::order::{Change, OpSet, Operation};
use super::recorder::Recorder;
use nandscape_core::{
    Barrier, BlockId, BlockState, Capabilities, CauseTable, Clocked, Completion, FlashDevice, FlashError,
    FlashResult, FlashState, Geometry, Issue, MediumTally, Oob, OutOfBand, PageRead, Ppn, ReadResult,
    SimTime, SlcBlocks, Token, Way, words,
};
use nandscape_media::faults::{FaultCounts, FaultPlan, Faults};
use nandscape_media::{Medium, MediumState, Nand};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

/// What stands between a program and the flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// Nothing: a completed program is on the flash.
    None,
    /// A buffer that loses its programs with the power. Only a completed barrier says that they are on the
    /// flash.
    Volatile,
    /// A buffer that lives on: whatever was submitted reaches the flash.
    Protected,
}

words!(pub Buffer: None = "none", Volatile = "volatile", Protected = "protected");

impl fmt::Display for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The device, for a layer to own. Its state stays reachable by a [`Handle`].
#[derive(Debug)]
pub struct CrashDevice<O: OutOfBand = Oob> {
    geometry: Geometry,
    capabilities: Capabilities,
    causes: CauseTable,
    slc: Option<SlcBlocks>,
    core: Arc<Mutex<Core<O>>>,
}

/// The state of a device that a layer owns.
#[derive(Debug)]
pub struct Handle<O: OutOfBand = Oob>(Arc<Mutex<Core<O>>>);

impl<O: OutOfBand> Clone for Handle<O> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

#[derive(Debug)]
struct Core<O: OutOfBand> {
    medium: Faults<Nand<O>, O>,
    buffer: Buffer,
    /// End of the last operation; operations take a nanosecond, so that idle time has an end.
    free: u64,
    recorder: Option<Recorder<O>>,
    /// Reads of places that hold nothing, which the medium does not see.
    unmapped_reads: u64,
}

impl<O: OutOfBand> CrashDevice<O> {
    /// A device with this state, and the handle to it. A recording one notes each operation with what it
    /// stands on; that it can do of failed programs and erases, but not of pages that become unreadable.
    pub fn new(mut nand: Nand<O>, buffer: Buffer, plan: &FaultPlan, records: bool) -> (Self, Handle<O>) {
        nand.reset_tally();
        let (geometry, lasting_programs) = (*nand.geometry(), buffer != Buffer::Volatile);
        let capabilities = Capabilities { lasting_programs, ..nand.capabilities() };
        let recorder = records.then(|| Recorder::new(geometry.blocks() as usize));
        let medium = Faults::new(nand, plan.clone()).expect("a plan for this device");
        let core = Arc::new(Mutex::new(Core { medium, buffer, free: 0, recorder, unmapped_reads: 0 }));
        let device = Self {
            geometry,
            capabilities,
            causes: CauseTable::default(),
            slc: None,
            core: Arc::clone(&core),
        };
        (device, Handle(core))
    }

    fn core(&self) -> MutexGuard<'_, Core<O>> {
        lock(&self.core)
    }
}

fn lock<O: OutOfBand>(core: &Mutex<Core<O>>) -> MutexGuard<'_, Core<O>> {
    // A layer that panicked is a failure that is reported as such.
    core.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl<O: OutOfBand> Handle<O> {
    /// What the flash holds when all that was submitted is done.
    pub fn nand(&self) -> Nand<O> {
        lock(&self.0).medium.medium().clone()
    }

    /// What went wrong so far.
    pub fn faults(&self) -> FaultCounts {
        lock(&self.0).medium.counts()
    }

    /// Whether the data of a page can be read.
    pub fn is_readable(&self, page: Ppn) -> bool {
        let core = lock(&self.0);
        let mut data = vec![0; core.medium.geometry().page_bytes as usize];
        // Looked at from outside, on a copy: the layer's counters must not notice.
        core.medium.clone().read(page, Some(&mut data)).is_ok()
    }

    /// Operations recorded so far.
    pub fn recorded(&self) -> usize {
        lock(&self.0).recorder.as_ref().map_or(0, |recorder| recorder.operations.len())
    }

    /// Ends the recording.
    pub fn take_operations(&self) -> Vec<Operation<O>> {
        lock(&self.0).recorder.take().map(|recorder| recorder.operations).unwrap_or_default()
    }

    /// What is on the flash for sure for somebody who saw the token complete.
    pub fn set_of(&self, token: Token) -> OpSet {
        lock(&self.0).recorder.as_ref().map_or_else(OpSet::default, |recorder| recorder.set(token).clone())
    }
}

impl<O: OutOfBand> Core<O> {
    /// When an operation that is submitted now ends.
    fn run(&mut self, issue: Issue) -> u64 {
        let after = self.recorder.as_ref().map_or(issue.after.0, |recorder| recorder.time(issue.after));
        self.free = self.free.max(issue.at.0).max(after) + 1;
        self.free
    }

    /// The token of an operation that ends at `end`; a recording one stands for what `set` says.
    fn token(&mut self, end: u64, set: impl FnOnce(&mut Recorder<O>) -> OpSet) -> Token {
        let Some(recorder) = &mut self.recorder else { return Token(end) };
        let set = set(recorder);
        recorder.token(set, end)
    }

    /// An operation was done, failed, and left something.
    fn failed(&mut self, issue: Issue, block: BlockId, change: Change<O>) {
        self.run(issue);
        if let Some(recorder) = &mut self.recorder {
            let after = recorder.set(issue.after).clone();
            recorder.push(change, block, &after);
        }
    }
}

impl<O: OutOfBand> BlockState for CrashDevice<O> {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn is_programmed(&self, page: Ppn) -> bool {
        self.core().medium.is_programmed(page)
    }

    fn write_pointer(&self, block: BlockId) -> u32 {
        self.core().medium.write_pointer(block)
    }

    fn erase_count(&self, block: BlockId) -> u32 {
        self.core().medium.erase_count(block)
    }

    fn is_bad(&self, block: BlockId) -> bool {
        self.core().medium.is_bad(block)
    }
}

nandscape_core::no_state!(impl [O: OutOfBand] CrashDevice<O>: "a device that loses power");

impl<O: OutOfBand> FlashState for CrashDevice<O> {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn join(&mut self, a: Token, b: Token) -> Token {
        match &mut self.core().recorder {
            None => Token(a.0.max(b.0)),
            Some(_) if a == Token::NONE || a == b => b,
            Some(_) if b == Token::NONE => a,
            Some(recorder) => {
                let mut set = recorder.set(a).clone();
                set.unite(recorder.set(b));
                let end = recorder.time(a).max(recorder.time(b));
                recorder.token(set, end)
            }
        }
    }

    fn pass(&mut self, _: Way, _: u32, _: SimTime, after: Token) -> Token {
        after
    }

    fn barrier(&mut self, _: Barrier, _: SimTime) -> FlashResult<Token> {
        let mut core = self.core();
        if core.buffer != Buffer::Volatile {
            return Ok(Token::NONE);
        }
        let free = core.free;
        Ok(core.token(free, |recorder| recorder.programs.clone()))
    }

    fn use_slc(&mut self, blocks: SlcBlocks) -> bool {
        self.slc = Some(blocks);
        true
    }

    fn counters(&self) -> &CauseTable {
        &self.causes
    }

    fn tally(&self) -> MediumTally<'_> {
        let core = self.core();
        let MediumTally { mut totals, health, .. } = core.medium.tally();
        totals.reads += core.unmapped_reads;
        MediumTally { totals, health, program_counts: None }
    }

    fn reset_counters(&mut self) {
        self.causes = CauseTable::default();
        let mut core = self.core();
        core.medium.reset_tally();
        core.unmapped_reads = 0;
    }

    fn reset_time(&mut self, at: SimTime) {
        self.core().free = at.0;
    }
}

impl<O: OutOfBand> FlashDevice<O> for CrashDevice<O> {
    fn read(&mut self, page: Ppn, _: u32, data: Option<&mut [u8]>, issue: Issue) -> ReadResult<O> {
        let mut core = lock(&self.core);
        let read = core.medium.read(page, data);
        if matches!(read, Ok(_) | Err(FlashError::Uncorrectable { .. } | FlashError::Damaged { .. })) {
            self.causes.row(issue.cause).reads += 1;
        }
        let oob = read?;
        let end = core.run(issue);
        let is_buffered = core.buffer == Buffer::Volatile;
        let done = core.token(end, |recorder| {
            let mut set = recorder.set(issue.after).clone();
            let block = self.geometry.block_of(page);
            // A buffer returns data that is not on the flash yet, though not before it has them.
            if is_buffered {
                set.unite(&recorder.taken[block.index()]);
            } else {
                set.unite(&recorder.before(block));
            }
            set
        });
        Ok(PageRead { oob, done })
    }

    fn program(
        &mut self,
        page: Ppn,
        oob: O,
        _: u32,
        data: Option<&[u8]>,
        issue: Issue,
    ) -> FlashResult<Token> {
        if let Some(slc) = self.slc.filter(|slc| slc.lacks(page)) {
            return Err(FlashError::OutOfOrder { page, expected: slc.pages() });
        }
        let mut core = lock(&self.core);
        if let Err(error) = core.medium.program(page, oob, data) {
            if matches!(error, FlashError::ProgramFailed { .. }) {
                self.causes.row(issue.cause).programs += 1;
                core.failed(issue, self.geometry.block_of(page), Change::FailedProgram { page });
            }
            return Err(error);
        }
        self.causes.row(issue.cause).programs += 1;
        let end = core.run(issue);
        let is_buffered = core.buffer == Buffer::Volatile;
        Ok(core.token(end, |recorder| {
            let after = recorder.set(issue.after).clone();
            let change = Change::Program { page, oob, data: data.map(Arc::from) };
            let done = recorder.push(change, self.geometry.block_of(page), &after);
            if is_buffered { after } else { done }
        }))
    }

    fn erase(&mut self, block: BlockId, issue: Issue) -> FlashResult<Token> {
        let mut core = lock(&self.core);
        if let Err(error) = core.medium.erase(block) {
            if matches!(error, FlashError::EraseFailed { .. }) {
                self.causes.row(issue.cause).erases += 1;
                core.failed(issue, block, Change::FailedErase { block });
            }
            return Err(error);
        }
        self.causes.row(issue.cause).erases += 1;
        let end = core.run(issue);
        Ok(core.token(end, |recorder| {
            let after = recorder.set(issue.after).clone();
            recorder.push(Change::Erase { block }, block, &after)
        }))
    }

    fn mark_bad(&mut self, block: BlockId) {
        let mut core = self.core();
        core.medium.mark_bad(block);
        if let Some(recorder) = &mut core.recorder {
            recorder.push(Change::MarkBad { block }, block, &OpSet::default());
        }
    }

    fn read_unmapped(&mut self, _: Ppn, _: u32, issue: Issue) -> FlashResult<Token> {
        let mut core = lock(&self.core);
        core.unmapped_reads += 1;
        self.causes.row(issue.cause).reads += 1;
        let end = core.run(issue);
        Ok(core.token(end, |recorder| recorder.set(issue.after).clone()))
    }
}

impl<O: OutOfBand> Clocked for CrashDevice<O> {
    fn completion(&self, token: Token) -> Option<SimTime> {
        let core = self.core();
        Some(SimTime(core.recorder.as_ref().map_or(token.0, |recorder| recorder.time(token))))
    }

    fn watch(&mut self, _: Token, _: u64) {}

    fn advance(&mut self, _: SimTime, _: &mut Vec<Completion>) {}

    fn next_event(&self) -> Option<SimTime> {
        None
    }

    fn idle_from(&self) -> SimTime {
        SimTime(self.core().free)
    }
}
