//! Slots and blocks that a step is under way to, and when whatever comes to them may go on.

use super::Timeline;
use super::moment::{Gather, Moment, Place};
use nandscape_policies::BlockKey;
use nandscape_policies::hash::KeyMap;

const PURGE_LEAST: usize = 64;

/// What has to wait, and for what.
#[derive(Default)]
pub struct Holds {
    pub moments: KeyMap,
    purge_at: usize,
}

impl Timeline {
    /// Until this moment, whatever comes to a place waits.
    pub fn hold(&mut self, place: Place, until: Moment) {
        if self.is_past(until) {
            return;
        }
        if self.holds.moments.len() >= self.holds.purge_at.max(PURGE_LEAST) {
            self.purge();
        }
        let until = match self.holds.moments.get(&place.0) {
            Some(before) => self.join(Moment(*before), until),
            None => until,
        };
        self.holds.moments.insert(place.0, until.0);
    }

    #[cold]
    fn purge(&mut self) {
        let mut holds = std::mem::take(&mut self.holds.moments);
        holds.retain(|_, moment| !self.is_past(Moment(*moment)));
        self.holds.purge_at = 2 * holds.len();
        self.holds.moments = holds;
    }

    /// When a place is free.
    #[inline]
    pub fn free_at(&mut self, place: Place) -> Moment {
        if self.holds.moments.is_empty() { Moment::PAST } else { self.hold_of(place) }
    }

    /// Whether something has to wait for a place.
    pub fn is_held(&mut self, place: Place) -> bool {
        self.hold_of(place) != Moment::PAST
    }

    fn hold_of(&mut self, place: Place) -> Moment {
        let Some(moment) = self.holds.moments.get(&place.0).copied().map(Moment) else { return Moment::PAST };
        if self.is_past(moment) {
            self.holds.moments.remove(&place.0);
            return Moment::PAST;
        }
        moment
    }

    /// When the blocks from `first` until before `end` of a volume are free.
    pub fn blocks_free_at(&mut self, volume: u16, first: u64, end: u64) -> Moment {
        if self.holds.moments.is_empty() {
            return Moment::PAST;
        }
        let mut all = Gather::default();
        if end - first <= self.holds.moments.len() as u64 {
            for block in first..end {
                let moment = self.hold_of(Place::block(BlockKey::new(volume, block)));
                self.gather(&mut all, moment);
            }
        } else {
            let keys = BlockKey::new(volume, first).0..=BlockKey::new(volume, end - 1).0;
            let holds = std::mem::take(&mut self.holds.moments);
            for (_, moment) in holds.iter().filter(|(key, _)| keys.contains(key)) {
                self.gather(&mut all, Moment(*moment));
            }
            self.holds.moments = holds;
        }
        self.close(&mut all)
    }

    /// Whether anything has to wait.
    #[inline]
    pub fn has_holds(&self) -> bool {
        !self.holds.moments.is_empty()
    }
}
