//! A medium that fails as flash does, by seed or by script, and the same way every time.
//!
//! An operation's number is that of the programs and erases since the medium was wrapped, the first being 0:
//! a script, a power cut and a repeated run count alike. Reads have the number of the next program or erase.
//!
//! What each fault leaves behind:
//!
//! * a failed program: the page counts as programmed and cannot be read; its block takes no program and no
//!   erase any more;
//! * a failed erase: no page of the block can be read; the block takes no program and no erase any more;
//! * an unreadable page: its data gives [`FlashError::Uncorrectable`] until the block is erased, its OOB
//!   (which real drives protect with a stronger code) can be read;
//! * rot: a stored bit of the data is flipped, for the checksum to find;
//! * a stuck die: its programs and erases fail and leave everything as it was, nothing on it can be read;
//! * a slow die: every operation takes so many times as long;
//! * a power cut: the operation is lost or half done, and none is done after it.

mod plan;
mod script;

pub use plan::{Fault, FaultPlan, FaultPlanError, PowerCut, Scripted};
pub use script::{FaultScriptError, parse_script};

use crate::{Breakable, Medium, MediumState};
use nandscape_core::rng::{Xoshiro256PlusPlus, below, seeded, unit};
use nandscape_core::{
    BlockId, BlockState, Capabilities, FlashError, FlashResult, InjectedFault, MediumTally, Oob, OpCounts,
    OutOfBand, Ppn, state,
};
use std::marker::PhantomData;

/// A medium with faults.
#[derive(Clone, Debug)]
pub struct Faults<M, O = Oob> {
    medium: M,
    oob: PhantomData<fn() -> O>,
    plan: FaultPlan,
    rng: Xoshiro256PlusPlus,
    /// Number of the next program or erase.
    next: u64,
    /// Lines of the script that have happened.
    happened: usize,
    /// Programs and erases that are to fail, by the script.
    owed_programs: u32,
    owed_erases: u32,
    /// Blocks that take nothing any more.
    failed: Vec<bool>,
    /// Pages whose data cannot be read, a bit each.
    unreadable: Vec<u64>,
    stuck: Vec<bool>,
    slow: Vec<u32>,
    /// The operation at which the power was cut.
    off: Option<u64>,
    counts: FaultCounts,
    /// Failed operations that the medium below does not count.
    uncounted: OpCounts,
}

/// Faults that happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts {
    /// Programs that failed.
    pub programs: u64,
    /// Erases that failed.
    pub erases: u64,
    /// Pages that became unreadable.
    pub unreadable: u64,
    /// Bits that were flipped.
    pub rotten: u64,
}

state!(impl [M: Breakable<O>, O: OutOfBand] Faults<M, O> {
    saved: medium, rng, next, happened, owed_programs, owed_erases, off, counts, uncounted;
    tables: failed, unreadable, stuck, slow;
    fixed: oob, plan;
});
state!(impl [] FaultCounts { saved: programs, erases, unreadable, rotten; });

impl<M: Breakable<O>, O: OutOfBand> Faults<M, O> {
    /// Wraps a medium. Refuses a plan that names a die, a page or a bit that the medium does not have.
    pub fn new(medium: M, mut plan: FaultPlan) -> Result<Self, FaultPlanError> {
        let geometry = *medium.geometry();
        plan.check(&geometry, O::BYTES)?;
        plan.script.sort_by_key(|line| line.at);
        let units = geometry.units() as usize;
        Ok(Self {
            rng: seeded(plan.seed),
            next: 0,
            happened: 0,
            owed_programs: 0,
            owed_erases: 0,
            failed: vec![false; geometry.blocks() as usize],
            unreadable: vec![0; (geometry.pages() as usize).div_ceil(64)],
            stuck: vec![false; units],
            slow: vec![1; units],
            off: None,
            counts: FaultCounts::default(),
            uncounted: OpCounts::default(),
            medium,
            oob: PhantomData,
            plan,
        })
    }

    /// The medium below.
    pub const fn medium(&self) -> &M {
        &self.medium
    }

    /// What happened so far.
    pub const fn counts(&self) -> FaultCounts {
        self.counts
    }

    /// Programs and erases so far, those that failed included.
    pub const fn operations(&self) -> u64 {
        self.next
    }

    /// Whether a die does nothing any more.
    pub fn has_stuck_die(&self) -> bool {
        self.stuck.contains(&true)
    }

    /// Whether a fault other than rot keeps the data of a page from being read: it became unreadable, or its
    /// die is stuck.
    pub fn is_withheld(&self, page: Ppn) -> bool {
        self.is_unreadable(page) || self.stuck[self.unit_of(page)]
    }

    fn chance(&mut self, rate: f64) -> bool {
        rate > 0.0 && unit(&mut self.rng) < rate
    }

    fn unit_of(&self, page: Ppn) -> usize {
        let geometry = self.medium.geometry();
        (geometry.block_of(page).0 / geometry.blocks_per_unit()) as usize
    }

    /// The lines of the script whose time has come.
    fn follow_script(&mut self) {
        while let Some(line) = self.plan.script.get(self.happened).filter(|line| line.at <= self.next) {
            let fault = line.fault;
            self.happened += 1;
            match fault {
                Fault::Program => self.owed_programs += 1,
                Fault::Erase => self.owed_erases += 1,
                Fault::Unreadable { page } => self.spoil(page),
                Fault::Rot { page, bit } => self.rot_bit(page, bit),
                Fault::Stuck { die } => self.stuck[die.index()] = true,
                Fault::Slow { die, factor } => self.slow[die.index()] = factor,
            }
        }
    }

    fn spoil(&mut self, page: Ppn) {
        if self.medium.is_programmed(page) {
            self.unreadable[page.index() / 64] |= 1 << (page.0 % 64);
            self.counts.unreadable += 1;
        }
    }

    fn rot_bit(&mut self, page: Ppn, bit: u64) {
        self.counts.rotten += u64::from(self.medium.rot(page, bit));
    }

    fn is_unreadable(&self, page: Ppn) -> bool {
        self.unreadable.get(page.index() / 64).is_some_and(|word| word >> (page.0 % 64) & 1 == 1)
    }

    fn forgive_block(&mut self, block: BlockId) {
        let geometry = *self.medium.geometry();
        let first = geometry.page(block, 0).0;
        for page in first..first + geometry.pages_per_block {
            self.unreadable[page as usize / 64] &= !(1 << (page % 64));
        }
    }

    fn is_powered(&self) -> FlashResult<()> {
        self.off.map_or(Ok(()), |operation| Err(InjectedFault::PowerLost { operation }.into()))
    }

    /// Begins a program or erase; `tear` does half of it.
    fn begin(&mut self, tear: impl FnOnce(&mut M)) -> FlashResult<()> {
        self.is_powered()?;
        self.follow_script();
        let number = self.next;
        self.next += 1;
        let Some(cut) = self.plan.power_cut.filter(|cut| cut.at <= number) else { return Ok(()) };
        if cut.is_torn {
            tear(&mut self.medium);
        }
        self.off = Some(number);
        if let Some(act) = self.plan.on_power_cut {
            act(number);
        }
        self.is_powered()
    }

    /// After a program or erase: bits flip somewhere.
    fn age(&mut self) {
        if self.chance(self.plan.rot) {
            let geometry = *self.medium.geometry();
            let page = Ppn(below(&mut self.rng, u64::from(geometry.pages())) as u32);
            let bit = below(&mut self.rng, 8 * u64::from(geometry.page_bytes));
            self.rot_bit(page, bit);
        }
    }

    /// Whether the data of a page can be had.
    fn check_read(&mut self, page: Ppn, wants_data: bool) -> FlashResult<()> {
        self.is_powered()?;
        self.follow_script();
        if page.0 >= self.medium.geometry().pages() {
            return Ok(());
        }
        let is_stuck = self.stuck[self.unit_of(page)];
        if is_stuck || (wants_data && self.is_unreadable(page)) {
            // The rules of the medium come first: an erased page stays an erased page.
            self.medium.read(page, None)?;
            return Err(FlashError::Uncorrectable { page });
        }
        Ok(())
    }
}

impl<M: Breakable<O>, O: OutOfBand> BlockState for Faults<M, O> {
    nandscape_core::delegate_blocks!(self, self.medium);
}

impl<M: Breakable<O>, O: OutOfBand> MediumState for Faults<M, O> {
    fn capabilities(&self) -> Capabilities {
        self.medium.capabilities()
    }

    fn sync(&mut self) -> FlashResult<()> {
        self.is_powered()?;
        self.medium.sync()
    }

    fn slow_factor(&self, page: Ppn) -> u32 {
        self.slow[self.unit_of(page)]
    }

    fn tally(&self) -> MediumTally<'_> {
        let mut tally = self.medium.tally();
        tally.totals.add(self.uncounted);
        tally
    }

    fn reset_tally(&mut self) {
        self.uncounted = OpCounts::default();
        self.medium.reset_tally();
    }
}

impl<M: Breakable<O>, O: OutOfBand> Medium<O> for Faults<M, O> {
    fn read(&mut self, page: Ppn, data: Option<&mut [u8]>) -> FlashResult<O> {
        // Where no bytes are kept, a read without a buffer is one of the data all the same.
        let wants_data = data.is_some() || !self.medium.capabilities().stores_data;
        self.check_read(page, wants_data)?;
        self.medium.read(page, data)
    }

    fn read_part(&mut self, page: Ppn, start: u32, data: &mut [u8]) -> FlashResult<O> {
        self.check_read(page, true)?;
        self.medium.read_part(page, start, data)
    }

    fn prepare_read(&self, page: Ppn) {
        self.medium.prepare_read(page);
    }

    fn program(&mut self, page: Ppn, oob: O, data: Option<&[u8]>) -> FlashResult<()> {
        let block = self.medium.geometry().block_of(page);
        if block.0 >= self.medium.geometry().blocks() || self.medium.is_bad(block) {
            return self.medium.program(page, oob, data);
        }
        self.begin(|medium| {
            // What the rules refuse is refused when the power is on, too.
            let _ = medium.tear_program(page);
        })?;
        if self.stuck[self.unit_of(page)] {
            self.counts.programs += 1;
            self.uncounted.programs += 1;
            return Err(FlashError::ProgramFailed { page });
        }
        let is_owed = self.owed_programs > 0;
        if self.failed[block.index()] || is_owed || self.chance(self.plan.program) {
            let before = self.medium.tally().totals.programs;
            self.medium.tear_program(page)?;
            self.uncounted.programs += before + 1 - self.medium.tally().totals.programs;
            self.owed_programs -= u32::from(is_owed);
            self.failed[block.index()] = true;
            self.counts.programs += 1;
            return Err(FlashError::ProgramFailed { page });
        }
        self.medium.program(page, oob, data)?;
        if self.chance(self.plan.unreadable) {
            self.spoil(page);
        }
        self.age();
        Ok(())
    }

    fn erase(&mut self, block: BlockId) -> FlashResult<()> {
        if block.0 >= self.medium.geometry().blocks() || self.medium.is_bad(block) {
            return self.medium.erase(block);
        }
        self.begin(|medium| medium.tear_erase(block))?;
        let first = self.medium.geometry().page(block, 0);
        if self.stuck[self.unit_of(first)] {
            self.counts.erases += 1;
            self.uncounted.erases += 1;
            return Err(FlashError::EraseFailed { block });
        }
        let is_owed = self.owed_erases > 0;
        if self.failed[block.index()] || is_owed || self.chance(self.plan.erase) {
            let before = self.medium.tally().totals.erases;
            self.medium.tear_erase(block);
            self.uncounted.erases += before + 1 - self.medium.tally().totals.erases;
            self.owed_erases -= u32::from(is_owed);
            self.failed[block.index()] = true;
            self.counts.erases += 1;
            return Err(FlashError::EraseFailed { block });
        }
        self.medium.erase(block)?;
        self.forgive_block(block);
        self.age();
        Ok(())
    }

    fn mark_bad(&mut self, block: BlockId) {
        if self.off.is_none() {
            self.medium.mark_bad(block);
        }
    }
}

#[cfg(test)]
mod tests;
