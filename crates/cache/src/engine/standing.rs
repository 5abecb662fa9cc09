//! How a cache stands and what it has counted, for those who ask.

use super::Cache;
use super::steps::{FAST, Moment, Notice};
use crate::counters::{CacheCounters, Gauges};
use nandscape_core::Token;
use nandscape_policies::admission::Served;
use nandscape_policies::eviction::Eviction;

impl<E: Eviction> Cache<E> {
    /// What was counted since the last reset, of each volume and of the cache.
    pub fn counters(&self) -> CacheCounters {
        let mut counters = self.meter.counters().clone();
        for (volume, own) in (0..).zip(&mut counters.volumes) {
            own.disk_flushes = self.steps.side(volume + 1).flushes;
        }
        let (promotions, demotions) = self.moves();
        let shared = &mut counters.shared;
        shared.fast_flushes = self.steps.side(FAST).flushes;
        (shared.promotions, shared.demotions) = (promotions - self.moved.0, demotions - self.moved.1);
        counters
    }

    /// How the cache stands.
    pub fn gauges(&self) -> Gauges {
        let block = u64::from(self.shape.block_bytes());
        let sub = u64::from(self.shape.sub_bytes());
        let before_data = self.data_at;
        Gauges {
            slots: self.slots.count().into(),
            used: self.used().into(),
            dirty: self.dirty().into(),
            dirty_bytes: (self.slots.dirty_subs() * sub).min(u64::from(self.dirty()) * block),
            queued: self.steps.under_way() as u64,
            favoured: self.policies.iter().map(|policy| u64::from(policy.favoured())).sum(),
            memory_bytes: self.memory().total(),
            metadata_used_bytes: before_data,
            metadata_total_bytes: before_data,
        }
    }

    pub(super) fn moves(&self) -> (u64, u64) {
        let moves = self.policies.iter().map(Eviction::moves);
        moves.fold((0, 0), |sum, moves| (sum.0 + moves.0, sum.1 + moves.1))
    }

    /// Counts from zero.
    pub(super) fn reset_counting(&mut self) {
        self.meter.reset();
        self.moved = self.moves();
    }

    /// Counts real time that a read or write took, over stores that take none in the model (files).
    pub fn count_real_time(&mut self, volume: u16, is_write: bool, ns: u64) {
        let counters = self.meter.of(volume);
        let of_kind = if is_write { &mut counters.write_ns } else { &mut counters.read_ns };
        *of_kind += ns;
    }

    /// Counts the time of the answer to the read or write under way.
    #[inline]
    pub(super) fn time_answer(&mut self, token: Token) {
        let arrival = self.steps.now();
        if let Some(answer) = self.steps.completion(token) {
            self.meter.answered(arrival, answer);
        } else {
            let number = self.meter.answer_later(arrival);
            self.steps.notify(Moment::of(token), Notice::Answer(number));
        }
    }

    /// Takes account of what was waited for and is past.
    #[cold]
    pub(super) fn take_notices(&mut self) {
        while let Some((notice, at)) = self.steps.take_noticed() {
            match notice {
                Notice::Answer(number) => self.meter.late_answer(number, at),
                Notice::Cleaned(blocks) => {
                    if let Some(cleaner) = &mut self.cleaner {
                        cleaner.ended(blocks);
                    }
                }
                Notice::Committed => {
                    self.commits_awaited -= 1;
                    self.must_commit |= self.open_commit.is_some();
                }
                Notice::Served(op, start) => {
                    if let Some(admission) = &mut self.admission {
                        admission.served(&Served { op, took: at.since(start), at });
                    }
                }
            }
        }
    }
}
