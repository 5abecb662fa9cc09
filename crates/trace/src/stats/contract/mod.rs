//! The five rules of the "unwritten contract" of SSDs (He, Kannan, Arpaci-Dusseau and Arpaci-Dusseau,
//! `EuroSys` 2017, section 3), as far as a workload shows by itself how it follows them.
//!
//! The paper measures a workload on simulated drives; the figures here need no drive, so each is defined in
//! the docstring of its field. Time is counted in bytes written (4 KiB pages touched by writes), as wear and
//! garbage collection see it. Appends count as the writes that they lead to on an empty device.
//!
//! Memory: 8 bytes for each touched 4 KiB page, in pieces of 512; 16 for each erase-block-sized range of
//! addresses that is written; and for each erase-block-sized run of writes of which a part is dead, a few
//! words. Clocks have 32 bits: beyond 16 TiB everything counts as at one time.

mod grouping;
mod lifetime;
mod locality;
mod pages;
mod scale;
mod sequentiality;

pub use grouping::DeathTimes;
pub use lifetime::Lifetimes;
pub use locality::{Coverage, Locality};
pub use scale::{LARGE_BYTES, RequestScale, SMALL_BYTES};
pub use sequentiality::AlignedSequentiality;

use super::StatsOptions;
use crate::pages::GRANULE;
use grouping::Grouping;
use lifetime::Lives;
use locality::Uses;
use nandscape_core::{IoRecord, TraceOp};
use pages::Pages;
use scale::Scale;
use sequentiality::WriteRuns;
use serde::Serialize;

/// How a workload follows the five rules.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Contract {
    /// "Issue large requests, or many at once."
    pub request_scale: RequestScale,
    /// "Access with locality", so that a drive with a small mapping cache finds its entries there.
    pub locality: Locality,
    /// "Start at the border of an erase block and write on sequentially", for drives with hybrid mapping.
    pub aligned_sequentiality: AlignedSequentiality,
    /// "Write data together that dies together", so that erase blocks empty themselves.
    pub death_times: DeathTimes,
    /// "Create data with similar lifetimes", so that wear is even without moving cold data.
    pub lifetimes: Lifetimes,
}

/// Gathers what [`Contract`] reports.
#[derive(Default)]
pub(super) struct ContractGather {
    scale: Scale,
    pages: Pages,
    uses: Uses,
    runs: WriteRuns,
    grouping: Grouping,
    lives: Lives,
    /// Pages written so far.
    clock: u64,
}

impl ContractGather {
    pub(super) fn new(options: StatsOptions) -> Self {
        Self {
            runs: WriteRuns::new(options.page_bytes, options.block_bytes),
            grouping: Grouping::new(options.block_bytes),
            lives: Lives::new(options.block_bytes),
            ..Self::default()
        }
    }

    /// Adds a request without operations of zones. Gives, of a write, how many of its pages held live data of
    /// this workload, and whether the first did.
    pub(super) fn add(&mut self, record: &IoRecord) -> Overwritten {
        let IoRecord { offset, len, volume, op, .. } = *record;
        self.scale.add(record);
        let mut over = Overwritten::default();
        match op {
            TraceOp::Read | TraceOp::Write if len > 0 => {
                let is_write = op == TraceOp::Write;
                let (first, last) = (offset / GRANULE, (offset + (len - 1)) / GRANULE);
                let (uses, lives, grouping) = (&mut self.uses, &mut self.lives, &mut self.grouping);
                let clock = &mut self.clock;
                self.pages.visit(volume, first, last, |number, page| {
                    uses.count(page.used());
                    page.set_used(uses.clock());
                    if !is_write {
                        return;
                    }
                    let born = page.born();
                    lives.wrote(volume, number, born.is_some());
                    if let Some(born) = born {
                        lives.died(born, *clock);
                        grouping.died(born, *clock);
                        over.pages += 1;
                        over.first |= number == first;
                    }
                    page.set_born(Some(*clock));
                    *clock += 1;
                });
                if is_write {
                    self.runs.add(volume, offset, len);
                }
            }
            // A discard leaves alone what it covers only in part.
            TraceOp::Trim | TraceOp::WriteZeroes => self.discard(volume, offset, len),
            _ => {}
        }
        over
    }

    /// Whole pages of a range lose their data.
    pub(super) fn discard(&mut self, volume: u32, offset: u64, len: u64) {
        let (first, end) = (offset.div_ceil(GRANULE), offset.saturating_add(len) / GRANULE);
        let (lives, grouping, clock) = (&mut self.lives, &mut self.grouping, self.clock);
        self.pages.visit_known(volume, first, end, |page| {
            if let Some(born) = page.born() {
                lives.died(born, clock);
                grouping.died(born, clock);
                page.set_born(None);
            }
        });
    }

    pub(super) fn finish(self, has_real_times: bool) -> Contract {
        let (touched, last_uses) = (self.pages.touched(), self.pages.last_uses());
        Contract {
            request_scale: self.scale.finish(has_real_times),
            locality: self.uses.finish(touched, last_uses),
            aligned_sequentiality: self.runs.finish(),
            death_times: self.grouping.finish(self.clock),
            lifetimes: self.lives.finish(self.clock),
        }
    }
}

/// Pages of a write that held live data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Overwritten {
    pub(super) pages: u64,
    /// Its first page did.
    pub(super) first: bool,
}
