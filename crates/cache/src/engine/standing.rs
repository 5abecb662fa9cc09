//! How a cache stands and what it has counted, for those who ask.

use super::Cache;
use super::timeline::{FAST, Moment, Notice};
use crate::counters::{CacheCounters, Gauges};
use nandscape_core::Token;
use nandscape_policies::admission::Served;
use nandscape_policies::eviction::Eviction;

impl<E: Eviction> Cache<E> {
    /// What was counted since the last reset, of each volume and of the cache.
    pub fn counters(&self) -> CacheCounters {
        let mut counters = self.meter.counters.clone();
        for (volume, own) in (0..).zip(&mut counters.volumes) {
            own.disk_flushes = self.timeline.side(volume + 1).flushes;
        }
        let shared = &mut counters.shared;
        shared.fast_flushes = self.timeline.side(FAST).flushes;
        (shared.promotions, shared.demotions) = self.directory.moves_since();
        counters
    }

    /// How the cache stands.
    pub fn gauges(&self) -> Gauges {
        let block = u64::from(self.directory.shape.block_bytes());
        let sub = u64::from(self.directory.shape.sub_bytes());
        let before_data = self.directory.data_at;
        Gauges {
            slots: self.directory.slots.count().into(),
            used: self.used().into(),
            dirty: self.dirty().into(),
            dirty_bytes: (self.directory.slots.dirty_subs * sub).min(u64::from(self.dirty()) * block),
            queued: self.timeline.under_way() as u64,
            favoured: self.directory.favoured(),
            memory_bytes: self.memory().total(),
            metadata_used_bytes: before_data,
            metadata_total_bytes: before_data,
        }
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
        let arrival = self.timeline.now();
        if let Some(answer) = self.timeline.completion(token) {
            self.meter.answered(arrival, answer);
        } else {
            let number = self.meter.answer_later(arrival);
            self.timeline.notify(Moment::of(token), Notice::Answer(number));
        }
    }

    /// Takes account of what was waited for and is past.
    #[cold]
    pub(super) fn take_notices(&mut self) {
        while let Some((notice, at)) = self.timeline.news.take_noticed() {
            match notice {
                Notice::Answer(number) => self.meter.late_answer(number, at),
                Notice::Cleaned(blocks) => self.writeback.ended(blocks),
                Notice::Committed => self.durability.note_end(),
                Notice::Served(op, start) => {
                    if let Some(admission) = &mut self.gate.admission {
                        admission.served(&Served { op, took: at.since(start), at });
                    }
                }
            }
        }
    }
}
