//! Popularity by Zipf's law: the place of rank k is asked for with a probability proportional to k^-theta.
//!
//! The sampler is [`nandscape_core::sample::Zipf`].

use super::Generator;
use super::common::{ALIGN, BS, COUNT, GAP, OFFSET, Pattern, READ, SEED, SIZE, SPAN, TRIM, synthetic};
use nandscape_core::rng::Xoshiro256PlusPlus;
use nandscape_core::sample::{Scatter, Zipf as Law};
use nandscape_core::{Info, Param};

const THETA: Param = Param::float("theta", 0.01, 10.0, "0.99").means("skew");
const SCRAMBLED: Param = Param::flag("scrambled", "true")
    .means("scatter the popular places over the span instead of putting them first");

/// Registry entry.
pub const ENTRY: Generator = Generator {
    info: Info {
        name: "zipf",
        summary: "place of rank k with probability proportional to k^-theta",
        source: "Hörmann and Derflinger 1996 (sampler); theta 0.99 as in YCSB",
        params: &[THETA, SCRAMBLED, SPAN, BS, COUNT, SIZE, READ, TRIM, ALIGN, OFFSET, GAP, SEED],
    },
    build: |params, context| {
        let pattern = |area: &super::common::Area| {
            let sampler = Law::new(area.slots, params.float("theta"));
            Ok(Zipf { sampler, scatter: params.flag("scrambled").then(|| Scatter::new(area.slots)) })
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
