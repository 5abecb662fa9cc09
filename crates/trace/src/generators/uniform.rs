//! Every place equally likely.

use super::Generator;
use super::common::{COMMON, Pattern, synthetic};
use nandscape_core::Info;
use nandscape_core::rng::{Xoshiro256PlusPlus, below};

pub const ENTRY: Generator = Generator {
    info: Info {
        name: "uniform",
        summary: "every place of the span equally likely",
        source: "the usual worst case for garbage collection; closed forms exist",
        params: COMMON,
    },
    build: |params, context| {
        Ok(Box::new(synthetic("uniform", params, context, |area| Ok(Uniform { slots: area.slots }))?))
    },
};

struct Uniform {
    slots: u64,
}

impl Pattern for Uniform {
    #[inline]
    fn slot(&mut self, rng: &mut Xoshiro256PlusPlus) -> (u64, u16) {
        (below(rng, self.slots), 0)
    }
}
