//! Some dies of a device, or some blocks of each, as a device of its own.

use super::processor::Processor;
use nandscape_core::{
    Barrier, BlockId, BlockState, Capabilities, Cause, CauseTable, Clocked, Divider, FlashDevice, FlashError,
    FlashResult, FlashState, Geometry, Issue, IssueControl, JournalRefusal, MediumTally, Oob, OpCounts, Ppn,
    ReadResult, Sender, SimTime, SlcBlocks, Token, UnitId, Way, state, state_of_inner,
};
use std::sync::{Arc, Mutex, MutexGuard};

/// A device that several parts share. One thread works on all of them, so the lock is never waited for; it is
/// there because a stack may move between threads. It costs some 60 to 110 ns a request (bench `sets`).
pub type Shared<D> = Arc<Mutex<D>>;

/// Makes a device one that can be shared.
pub fn share<D>(device: D) -> Shared<D> {
    Arc::new(Mutex::new(device))
}

/// Cause and predecessor of what a host asks of a layer over a [`Part`], whose commands have no room for
/// them.
#[derive(Clone, Debug)]
pub struct Order(Arc<Mutex<(Cause, Token)>>);

impl Default for Order {
    fn default() -> Self {
        Self(Arc::new(Mutex::new((Cause::Host, Token::NONE))))
    }
}

state_of_inner!(impl [] Order: |this| this.0);

impl Order {
    fn get(&self) -> (Cause, Token) {
        *self.0.lock().expect(UNBROKEN)
    }
}

impl IssueControl for Order {
    /// From now on operations for the host have this cause, and none starts before `after` completes.
    fn issue(&mut self, cause: Cause, after: Token) {
        *self.0.lock().expect(UNBROKEN) = (cause, after);
    }
}

const UNBROKEN: &str = "nobody panicked while holding it";

/// Dies of a shared device, numbered anew in the order of their list (the device of an NVM set), or some
/// blocks of each plane. Tokens, clock, buses and events are the whole device's, so that parts meet on
/// channels; counters are the part's.
///
/// A list that is a grid (the same dies of each of some channels) keeps that shape; else a die is a channel.
#[derive(Debug)]
pub struct Part<D: ?Sized> {
    geometry: Geometry,
    capabilities: Capabilities,
    /// Of a run of blocks that are neighbours in the whole device too: those of a die or of a plane.
    pages_per_run: Divider,
    blocks_per_run: Divider,
    /// What to add to a page of each run to get the page of the whole device, modulo 2^32.
    page_shifts: Box<[u32]>,
    block_shifts: Box<[u32]>,
    causes: CauseTable,
    totals: OpCounts,
    /// The translation layer above runs on the host.
    is_host_side: bool,
    order: Option<Order>,
    processor: Processor,
    shared: Shared<D>,
}

// Order and device are shared, and saved by their owner.
state!(impl [D: FlashDevice + ?Sized] Part<D> {
    saved: causes, totals, processor;
    fixed: geometry, capabilities, pages_per_run, blocks_per_run, page_shifts, block_shifts, is_host_side, order,
        shared;
});

impl<D: FlashDevice + ?Sized> Part<D> {
    /// The dies `units`. Panics on none or one of another device, which [`super::SetLayout`] rules out.
    pub fn new(shared: Shared<D>, units: &[UnitId]) -> Self {
        let whole = *lock(&shared).geometry();
        assert!(!units.is_empty() && units.iter().all(|unit| unit.0 < whole.units()), "{units:?}");
        let channels = channels_of_grid(&whole, units).unwrap_or(units.len() as u32);
        let geometry = Geometry { channels, dies_per_channel: units.len() as u32 / channels, ..whole };
        let blocks = whole.blocks_per_unit();
        Self::of_runs(shared, geometry, blocks, units.iter().map(|unit| unit.0 * blocks))
    }

    /// `count` blocks of each plane, from `first` on. Panics where a plane has not so many.
    pub fn of_blocks(shared: Shared<D>, first: u32, count: u32) -> Self {
        let whole = *lock(&shared).geometry();
        assert!(count > 0 && first + count <= whole.blocks_per_plane, "{count} blocks from {first} on");
        let geometry = Geometry { blocks_per_plane: count, ..whole };
        let firsts = (0..whole.planes()).map(|plane| plane * whole.blocks_per_plane + first);
        Self::of_runs(shared, geometry, count, firsts)
    }

    /// Runs of so many blocks, which begin at `firsts` in the whole device.
    fn of_runs(
        shared: Shared<D>,
        geometry: Geometry,
        blocks: u32,
        firsts: impl Iterator<Item = u32>,
    ) -> Self {
        let capabilities = lock(&shared).capabilities();
        let pages = geometry.pages_per_block;
        let block_shifts: Box<[u32]> =
            (0..).zip(firsts).map(|(run, first): (u32, u32)| first.wrapping_sub(run * blocks)).collect();
        Self {
            geometry,
            capabilities,
            pages_per_run: Divider::new(blocks * pages),
            blocks_per_run: Divider::new(blocks),
            page_shifts: block_shifts.iter().map(|shift| shift.wrapping_mul(pages)).collect(),
            block_shifts,
            causes: CauseTable::default(),
            totals: OpCounts::default(),
            is_host_side: false,
            order: None,
            processor: Processor::default(),
            shared,
        }
    }

    /// The same dies as an open-channel device: the layer above runs on the host, and its own work crosses
    /// the host link like any other request. The part's own counters still tell causes apart.
    #[must_use]
    pub fn host_side(self) -> Self {
        Self { is_host_side: true, ..self }
    }

    /// The same, with cause and order of what the host asks of the layer above.
    #[must_use]
    pub fn ordered(self, order: &Order) -> Self {
        Self { order: Some(order.clone()), ..self }
    }

    /// The same, with the layer above on this processor.
    #[must_use]
    pub fn run_by(self, processor: &Processor) -> Self {
        Self { processor: processor.clone(), ..self }
    }

    /// Counts what others did instead of what was done through this part, for reports of several together.
    pub(crate) fn show(&mut self, causes: [&CauseTable; 2]) {
        self.causes = *causes[0];
        self.causes.add(causes[1]);
        self.totals = self.causes.total();
    }

    /// What the device is asked for, and the cause that the part counts.
    #[inline]
    fn issue(&self, issue: Issue) -> (Issue, Cause) {
        let issue = Issue { at: self.processor.run(issue.at, issue.cause == Cause::Host), ..issue };
        if self.is_host_side {
            return (Issue { cause: Cause::Host, sender: Sender::Host, ..issue }, issue.cause);
        }
        let Some(order) = &self.order else { return (issue, issue.cause) };
        let (cause, before) = order.get();
        let cause = if issue.cause == Cause::Host { cause } else { issue.cause };
        if before == Token::NONE {
            return (Issue { cause, ..issue }, cause);
        }
        let after = self.device().join(issue.after, before);
        let sender = if issue.sender == Sender::Host { Sender::HostLater } else { issue.sender };
        (Issue { cause, after, sender, ..issue }, cause)
    }

    #[inline]
    fn device(&self) -> MutexGuard<'_, D> {
        lock(&self.shared)
    }

    #[inline]
    fn page(&self, page: Ppn) -> FlashResult<Ppn> {
        let shift = self.page_shifts.get(self.pages_per_run.quotient(page.0) as usize);
        let place = shift.map(|shift| Ppn(page.0.wrapping_add(*shift)));
        place.ok_or_else(|| outside(page.0, self.geometry.pages()))
    }

    #[inline]
    fn block(&self, block: BlockId) -> FlashResult<BlockId> {
        let shift = self.block_shifts.get(self.blocks_per_run.quotient(block.0) as usize);
        let place = shift.map(|shift| BlockId(block.0.wrapping_add(*shift)));
        place.ok_or_else(|| outside(block.0, self.geometry.blocks()))
    }
}

fn lock<D: ?Sized>(shared: &Shared<D>) -> MutexGuard<'_, D> {
    shared.lock().expect(UNBROKEN)
}

fn outside(address: u32, limit: u32) -> FlashError {
    FlashError::OutOfRange { address: u64::from(address), limit: u64::from(limit) }
}

/// The channels of a list of dies that takes as many dies from each of them, in the order of the device.
fn channels_of_grid(whole: &Geometry, units: &[UnitId]) -> Option<u32> {
    let channels = units.iter().take_while(|unit| whole.lun_of(**unit) == whole.lun_of(units[0])).count();
    let is_grid = units.len().is_multiple_of(channels)
        && units.iter().enumerate().all(|(i, unit)| {
            whole.channel_of(*unit) == whole.channel_of(units[i % channels])
                && whole.lun_of(*unit) == whole.lun_of(units[i - i % channels])
        });
    is_grid.then_some(channels as u32)
}

/// The same failure, told in the addresses of the part.
fn local(error: FlashError, page: Ppn, block: BlockId) -> FlashError {
    match error {
        FlashError::Uncorrectable { .. } => FlashError::Uncorrectable { page },
        FlashError::Damaged { .. } => FlashError::Damaged { page },
        FlashError::ProgramFailed { .. } => FlashError::ProgramFailed { page },
        FlashError::EraseFailed { .. } => FlashError::EraseFailed { block },
        FlashError::WornOut { endurance, .. } => FlashError::WornOut { block, endurance },
        FlashError::BadBlock { .. } => FlashError::BadBlock { block },
        FlashError::NotErased { .. } => FlashError::NotErased { page },
        FlashError::OutOfOrder { expected, .. } => FlashError::OutOfOrder { page, expected },
        FlashError::Erased { .. } => FlashError::Erased { page },
        FlashError::Journal(JournalRefusal::HoldsData { pages, .. }) => {
            JournalRefusal::HoldsData { block, pages }.into()
        }
        other => other,
    }
}

impl<D: FlashDevice + ?Sized> BlockState for Part<D> {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn is_programmed(&self, page: Ppn) -> bool {
        self.page(page).is_ok_and(|page| self.device().is_programmed(page))
    }

    fn write_pointer(&self, block: BlockId) -> u32 {
        self.block(block).map_or(0, |block| self.device().write_pointer(block))
    }

    fn erase_count(&self, block: BlockId) -> u32 {
        self.block(block).map_or(0, |block| self.device().erase_count(block))
    }

    fn is_bad(&self, block: BlockId) -> bool {
        self.block(block).map_or(true, |block| self.device().is_bad(block))
    }
}

impl<D: FlashDevice + ?Sized> FlashState for Part<D> {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn join(&mut self, a: Token, b: Token) -> Token {
        self.device().join(a, b)
    }

    fn pass(&mut self, way: Way, bytes: u32, at: SimTime, after: Token) -> Token {
        self.device().pass(way, bytes, at, after)
    }

    /// For the whole device: every set has the same keys, and the mode of a block follows from its number in
    /// its plane.
    fn use_slc(&mut self, blocks: SlcBlocks) -> bool {
        self.device().use_slc(blocks)
    }

    /// Waits for the whole device: a volatile buffer is one for all sets.
    fn barrier(&mut self, reach: Barrier, at: SimTime) -> FlashResult<Token> {
        self.device().barrier(reach, at)
    }

    fn counters(&self) -> &CauseTable {
        &self.causes
    }

    /// Operations the shared device accepted from this part, which keeps no programs per page.
    fn tally(&self) -> MediumTally<'_> {
        MediumTally { totals: self.totals, health: self.device().tally().health, program_counts: None }
    }

    /// The part's counters only: those of the whole device are reset by whoever owns it.
    fn reset_counters(&mut self) {
        self.causes = CauseTable::default();
        self.totals = OpCounts::default();
    }

    /// Forgets queued time of the whole device, since there is one clock.
    fn reset_time(&mut self, at: SimTime) {
        self.processor.reset(at);
        self.device().reset_time(at);
    }
}

impl<D: FlashDevice + ?Sized> FlashDevice for Part<D> {
    fn read(&mut self, page: Ppn, transfer: u32, data: Option<&mut [u8]>, issue: Issue) -> ReadResult {
        let place = self.page(page)?;
        let (ordered, cause) = self.issue(issue);
        let read = self.device().read(place, transfer, data, ordered);
        let read = read.map_err(|error| local(error, page, self.geometry.block_of(page)))?;
        self.causes.row(cause).reads += 1;
        self.totals.reads += 1;
        Ok(read)
    }

    fn read_part(&mut self, page: Ppn, start: u32, data: &mut [u8], issue: Issue) -> ReadResult {
        let place = self.page(page)?;
        let (ordered, cause) = self.issue(issue);
        let read = self.device().read_part(place, start, data, ordered);
        let read = read.map_err(|error| local(error, page, self.geometry.block_of(page)))?;
        self.causes.row(cause).reads += 1;
        self.totals.reads += 1;
        Ok(read)
    }

    fn prepare_read(&self, page: Ppn) {
        if let Ok(page) = self.page(page) {
            self.device().prepare_read(page);
        }
    }

    fn program(
        &mut self,
        page: Ppn,
        oob: Oob,
        transfer: u32,
        data: Option<&[u8]>,
        issue: Issue,
    ) -> FlashResult<Token> {
        let place = self.page(page)?;
        let (ordered, cause) = self.issue(issue);
        let done = self.device().program(place, oob, transfer, data, ordered);
        let done = done.map_err(|error| local(error, page, self.geometry.block_of(page)))?;
        self.causes.row(cause).programs += 1;
        self.totals.programs += 1;
        Ok(done)
    }

    fn erase(&mut self, block: BlockId, issue: Issue) -> FlashResult<Token> {
        let place = self.block(block)?;
        let (ordered, cause) = self.issue(issue);
        let done = self.device().erase(place, ordered);
        let done = done.map_err(|error| local(error, self.geometry.page(block, 0), block))?;
        self.causes.row(cause).erases += 1;
        self.totals.erases += 1;
        Ok(done)
    }

    fn read_unmapped(&mut self, page: Ppn, transfer: u32, issue: Issue) -> FlashResult<Token> {
        let place = self.page(page)?;
        let (ordered, cause) = self.issue(issue);
        let done = self.device().read_unmapped(place, transfer, ordered)?;
        self.causes.row(cause).reads += 1;
        self.totals.reads += 1;
        Ok(done)
    }

    fn mark_bad(&mut self, block: BlockId) {
        if let Ok(place) = self.block(block) {
            self.device().mark_bad(place);
        }
    }
}

impl<D: FlashDevice + ?Sized> Clocked for Part<D> {
    // Completions may belong to other parts.
    nandscape_core::delegate_clock!(self, self.device());
}
