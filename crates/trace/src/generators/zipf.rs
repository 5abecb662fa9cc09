//! Popularity by Zipf's law: the place of rank k is asked for with a probability proportional to k^-theta.
//!
//! The sampler is [`nandscape_core::sample::Zipf`].

use super::Generator;
use super::common::{ALIGN, BS, COUNT, GAP, OFFSET, Pattern, READ, SEED, SIZE, SPAN, TRIM, synthetic};
use nandscape_core::rng::Xoshiro256PlusPlus;
use nandscape_core::sample::{Scatter, Zipf as Law};
use nandscape_core::{Info, keys};

keys! { PARAMS:
    THETA: f64 = float(0.01, 10.0) or "0.99", "skew";
    SCRAMBLED: bool = flag() or "true",
        "scatter the popular places over the span instead of putting them first";
    SPAN; BS; COUNT; SIZE; READ; TRIM; ALIGN; OFFSET; GAP; SEED;
}

pub const ENTRY: Generator = Generator {
    info: Info {
        name: "zipf",
        summary: "place of rank k with probability proportional to k^-theta",
        source: "Hörmann and Derflinger 1996 (sampler); theta 0.99 as in YCSB",
        params: PARAMS,
    },
    build: |params, context| {
        let pattern = |area: &super::common::Area| {
            let sampler = Law::new(area.slots, params.get(THETA));
            Ok(Zipf { sampler, scatter: params.get(SCRAMBLED).then(|| Scatter::new(area.slots)) })
        };
        Ok(Box::new(synthetic("zipf", params, context, pattern)?))
    },
};

struct Zipf {
    sampler: Law,
    scatter: Option<Scatter>,
}

impl Pattern for Zipf {
    #[inline]
    fn slot(&mut self, rng: &mut Xoshiro256PlusPlus) -> (u64, u16) {
        let rank = self.sampler.draw(rng);
        (self.scatter.as_ref().map_or(rank, |scatter| scatter.place(rank)), 0)
    }
}
