//! The newest events of the medium.

use nandscape_core::vector::{MediaEvent, MediaFailure, SectorAddress};
use std::collections::VecDeque;

/// Most events that are kept; older ones are dropped.
const MOST: usize = 256;

/// Numbered events of the medium.
#[derive(Clone, Debug, Default)]
pub(super) struct Events {
    events: VecDeque<MediaEvent>,
    last: u64,
}

impl Events {
    pub fn note(&mut self, failure: MediaFailure, address: SectorAddress, sectors: u32) {
        self.last += 1;
        if self.events.len() == MOST {
            self.events.pop_front();
        }
        self.events.push_back(MediaEvent { number: self.last, failure, address, sectors });
    }

    /// The events behind one, at most so many.
    pub fn after(&self, number: u64, room: u32) -> Box<[MediaEvent]> {
        let from = self.events.iter().filter(|event| event.number > number);
        from.take(room as usize).copied().collect()
    }
}
