//! The best of a few drawn at random, and its case of one.

use super::{VictimEntry, VictimFacts, VictimPolicy, VictimSetup};
use nandscape_core::rng::{Xoshiro256PlusPlus, below, seeded};
use nandscape_core::{Info, keys, state};

keys! { PARAMS:
    pub D: u32 = int(1, 1 << 16) or "10", "blocks drawn, of which the one with the fewest valid pages goes";
    pub SEED: u64 = int(0, u64::MAX) or "1", "seed of the victim draws";
}

/// Registry entry.
pub const ENTRY: VictimEntry = VictimEntry {
    info: Info {
        name: "d-choices",
        summary: "the block with the fewest valid pages among d drawn at random",
        source: "Van Houdt, SIGMETRICS 2013",
        params: PARAMS,
    },
    build: |setup| Box::new(DChoices::new(setup, setup.params.get(D))),
};

/// Draws with replacement, as in the mean-field model; of equals the first drawn goes.
#[derive(Debug)]
pub struct DChoices {
    draws: u32,
    rng: Xoshiro256PlusPlus,
    candidates: Vec<u32>,
    /// Place of each block in `candidates`; `ABSENT` elsewhere.
    places: Vec<u32>,
}

const ABSENT: u32 = u32::MAX;

state!(impl [] DChoices { saved: rng, candidates; tables: places; fixed: draws; });

impl DChoices {
    /// A policy that draws `draws` candidates each time.
    pub fn new(setup: &VictimSetup<'_>, draws: u32) -> Self {
        // Domains draw from sequences of their own: an odd multiplier keeps the seeds apart.
        let seed = setup.params.get(SEED) ^ u64::from(setup.domain).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Self {
            draws,
            rng: seeded(seed),
            candidates: Vec::with_capacity(setup.blocks as usize),
            places: vec![ABSENT; setup.blocks as usize],
        }
    }
}

impl VictimPolicy for DChoices {
    fn sealed(&mut self, block: u32, _: u32, _: u64) {
        self.places[block as usize] = self.candidates.len() as u32;
        self.candidates.push(block);
    }

    fn invalidated(&mut self, _: u32, _: u32, _: u64) {}

    fn removed(&mut self, block: u32) {
        let place = std::mem::replace(&mut self.places[block as usize], ABSENT);
        self.candidates.swap_remove(place as usize);
        if let Some(moved) = self.candidates.get(place as usize) {
            self.places[*moved as usize] = place;
        }
    }

    fn pick(&mut self, facts: &VictimFacts<'_>) -> Option<u32> {
        if self.candidates.is_empty() {
            return None;
        }
        (0..self.draws)
            .map(|_| self.candidates[below(&mut self.rng, self.candidates.len() as u64) as usize])
            .min_by_key(|block| facts.blocks[*block as usize].valid)
    }
}
