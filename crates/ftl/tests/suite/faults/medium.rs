//! A medium with faults that the test can look at while a layer owns it, and that notes whose data each fault
//! hit.

use nandscape_core::{BlockId, BlockState, Capabilities, FlashError, Geometry, Lpn, MediumTally, Oob, Ppn};
use nandscape_media::faults::{FaultCounts, FaultPlan, Faults};
use nandscape_media::{Medium, MediumState, Nand};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The medium, for a device to own; a clone is the same medium.
#[derive(Clone)]
pub struct Held {
    geometry: Geometry,
    capabilities: Capabilities,
    state: Arc<Mutex<State>>,
}

pub struct State {
    medium: Faults<Nand>,
    /// Logical page of each page that was programmed well.
    owners: Vec<Option<Lpn>>,
    seen: FaultCounts,
    has_stuck: bool,
    /// Programmed pages whose data cannot be had, of those that were whole once.
    bad: BTreeSet<Ppn>,
    /// Logical pages whose data was hit, oldest first.
    hits: Vec<Lpn>,
    /// Logical pages whose data came back, since the same bit was flipped twice.
    healed: Vec<Lpn>,
    /// Reads that a checksum must have refused.
    refused: u64,
    /// Reads that gave an error although nothing is wrong with the page.
    groundless: Vec<Ppn>,
    /// What the medium does wrong, so that a test can show that it would be noticed.
    sabotage: Sabotage,
}

/// What a medium does wrong on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    Nothing,
    /// Rotten data is handed out as good.
    HandOutRot,
    /// Now and then a good page gives an error.
    BlameGood,
}

impl Held {
    pub fn new(nand: Nand, plan: FaultPlan) -> Self {
        let (geometry, capabilities) = (*nand.geometry(), nand.capabilities());
        let state = State {
            medium: Faults::new(nand, plan).expect("a plan for this device"),
            owners: vec![None; geometry.pages() as usize],
            seen: FaultCounts::default(),
            has_stuck: false,
            bad: BTreeSet::new(),
            hits: Vec::new(),
            healed: Vec::new(),
            refused: 0,
            groundless: Vec::new(),
            sabotage: Sabotage::Nothing,
        };
        Self { geometry, capabilities, state: Arc::new(Mutex::new(state)) }
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        // A layer that panicked fails the test by itself.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Logical pages that were hit, and such that came back, since the last call.
    pub fn take_events(&mut self) -> (Vec<Lpn>, Vec<Lpn>) {
        (std::mem::take(&mut self.hits), std::mem::take(&mut self.healed))
    }

    /// Whether the data at a place cannot be had.
    pub fn is_bad(&self, page: Ppn) -> bool {
        self.bad.contains(&page)
    }

    pub const fn sabotage(&mut self, sabotage: Sabotage) {
        self.sabotage = sabotage;
    }

    pub const fn refused(&self) -> u64 {
        self.refused
    }

    pub fn groundless(&self) -> &[Ppn] {
        &self.groundless
    }

    pub const fn counts(&self) -> FaultCounts {
        self.medium.counts()
    }

    /// Whether every page of the journal can be had.
    pub fn is_journal_whole(&self) -> bool {
        self.bad.iter().all(|page| self.owner(*page) != Some(Lpn::META))
    }

    /// The owner of a page that was programmed well, whatever is wrong with it now.
    fn owner(&self, page: Ppn) -> Option<Lpn> {
        self.owners[page.index()]
    }

    fn note(&mut self) {
        let now = self.medium.counts();
        let is_new = (now.rotten, now.unreadable) != (self.seen.rotten, self.seen.unreadable);
        if is_new || self.has_stuck != self.medium.has_stuck_die() {
            self.look();
        }
    }

    /// Looks at every page, aside, so that nothing is counted.
    fn look(&mut self) {
        self.seen = self.medium.counts();
        self.has_stuck = self.medium.has_stuck_die();
        let mut aside = self.medium.clone();
        let geometry = *aside.geometry();
        let mut data = vec![0; geometry.page_bytes as usize];
        for page in (0..geometry.pages()).map(Ppn) {
            let Some(lpn) = self.owner(page) else { continue };
            let is_bad = aside.read(page, Some(&mut data)).is_err();
            if is_bad && self.bad.insert(page) {
                self.hits.push(lpn);
            } else if !is_bad && self.bad.remove(&page) {
                self.healed.push(lpn);
            }
        }
    }

    /// Whether a refused erase has cost a block what it held: pages with which nothing was wrong are gone.
    fn has_lost_all(&self, geometry: &Geometry, block: BlockId) -> bool {
        let mut medium = self.medium.medium().clone();
        let pages = (0..geometry.pages_per_block).map(|index| geometry.page(block, index));
        pages
            .filter(|page| self.owner(*page).is_some() && !self.bad.contains(page))
            .any(|page| medium.read(page, None).is_err())
    }

    fn forget(&mut self, geometry: &Geometry, block: BlockId) {
        self.bad.retain(|page| geometry.block_of(*page) != block);
        let first = geometry.page(block, 0).index();
        self.owners[first..first + geometry.pages_per_block as usize].fill(None);
    }

    /// What a read gave, judged.
    fn judge(&mut self, page: Ppn, result: Result<Oob, FlashError>) -> Result<Oob, FlashError> {
        self.note();
        match (self.sabotage, &result) {
            (Sabotage::HandOutRot, Err(FlashError::Uncorrectable { .. } | FlashError::Damaged { .. })) => {
                return self.medium.read(page, None);
            }
            (Sabotage::BlameGood, Ok(_)) if page.0 % 16 == 7 => {
                return Err(FlashError::Uncorrectable { page });
            }
            _ => {}
        }
        if matches!(result, Err(FlashError::Uncorrectable { .. } | FlashError::Damaged { .. }))
            && self.owner(page).is_some()
        {
            if !self.bad.contains(&page) {
                self.groundless.push(page);
            }
            self.refused += u64::from(!self.medium.is_withheld(page));
        }
        result
    }
}

impl BlockState for Held {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn is_programmed(&self, page: Ppn) -> bool {
        self.state().medium.is_programmed(page)
    }

    fn write_pointer(&self, block: BlockId) -> u32 {
        self.state().medium.write_pointer(block)
    }

    fn erase_count(&self, block: BlockId) -> u32 {
        self.state().medium.erase_count(block)
    }

    fn is_bad(&self, block: BlockId) -> bool {
        self.state().medium.is_bad(block)
    }
}

nandscape_core::no_state!(impl [] Held: "a medium of a test");

impl MediumState for Held {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn slow_factor(&self, page: Ppn) -> u32 {
        self.state().medium.slow_factor(page)
    }

    fn tally(&self) -> MediumTally<'_> {
        let state = self.state();
        let MediumTally { totals, health, .. } = state.medium.tally();
        MediumTally { totals, health, program_counts: None }
    }

    fn reset_tally(&mut self) {
        self.state().medium.reset_tally();
    }
}

impl Medium for Held {
    fn read(&mut self, page: Ppn, data: Option<&mut [u8]>) -> Result<Oob, FlashError> {
        let mut state = self.state();
        let result = state.medium.read(page, data);
        state.judge(page, result)
    }

    fn read_part(&mut self, page: Ppn, start: u32, data: &mut [u8]) -> Result<Oob, FlashError> {
        let mut state = self.state();
        let result = state.medium.read_part(page, start, data);
        state.judge(page, result)
    }

    fn program(&mut self, page: Ppn, oob: Oob, data: Option<&[u8]>) -> Result<(), FlashError> {
        let mut state = self.state();
        let result = state.medium.program(page, oob, data);
        if result.is_ok() {
            state.owners[page.index()] = Some(oob.lpn);
        }
        state.note();
        result
    }

    fn erase(&mut self, block: BlockId) -> Result<(), FlashError> {
        let mut state = self.state();
        let result = state.medium.erase(block);
        if result.is_ok() || state.has_lost_all(&self.geometry, block) {
            state.forget(&self.geometry, block);
        }
        state.note();
        result
    }

    fn mark_bad(&mut self, block: BlockId) {
        let mut state = self.state();
        state.medium.mark_bad(block);
        state.forget(&self.geometry, block);
    }
}
