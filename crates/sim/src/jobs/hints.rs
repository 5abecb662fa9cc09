//! Which stream, handle or lifetime class the writes of a job carry.

use nandscape_core::rng::{Rng, below};
use nandscape_jobs::Job;
use nandscape_jobs::job::{DataPlacement, PlacementSelect};

#[derive(Clone, Debug)]
pub(crate) struct Hints {
    /// Of every write, where there are no ids.
    fixed: u16,
    ids: Vec<u16>,
    select: PlacementSelect,
    /// Ids count from 0.
    are_handles: bool,
    next: usize,
}

impl Hints {
    pub fn new(job: &Job) -> Self {
        let has_ids = job.placement != DataPlacement::None;
        Self {
            fixed: job.stream.unwrap_or(job.write_hint),
            ids: if has_ids { job.placement_ids.clone() } else { Vec::new() },
            select: job.placement_select,
            are_handles: job.placement == DataPlacement::Fdp,
            next: 0,
        }
    }

    /// Of the next write.
    #[inline]
    pub fn next(&mut self, rng: &mut impl Rng) -> u16 {
        if self.ids.is_empty() {
            return self.fixed;
        }
        let id = match self.select {
            PlacementSelect::RoundRobin => {
                let id = self.ids[self.next];
                self.next = (self.next + 1) % self.ids.len();
                id
            }
            PlacementSelect::Random => self.ids[below(rng, self.ids.len() as u64) as usize],
        };
        // Stream ids count from 1. An entry of the list of placement identifiers counts from 0, where hint 0
        // is no directive.
        if self.are_handles { id.saturating_add(1) } else { id }
    }
}
