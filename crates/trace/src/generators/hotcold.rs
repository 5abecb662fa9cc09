//! Two temperatures: a share `f` of the places takes a share `r` of the requests.

use super::Generator;
use super::common::{
    ALIGN, BS, COUNT, GAP, OFFSET, Pattern, READ, SEED, SIZE, SPAN, TRIM, synthetic, threshold,
};
use nandscape_core::rng::{Rng, Xoshiro256PlusPlus, below};
use nandscape_core::{Info, keys};

keys! { PARAMS:
    F: f64 = share() or "20%", "share of places that are hot";
    R: f64 = share() or "80%", "share of requests that go to hot places";
    HINTS: bool = flag() or "false", "mark requests with a lifetime hint: 1 hot, 2 cold";
    SPAN; BS; COUNT; SIZE; READ; TRIM; ALIGN; OFFSET; GAP; SEED;
}

pub const ENTRY: Generator = Generator {
    info: Info {
        name: "hotcold",
        summary: "a share f of the places takes a share r of the requests, uniformly inside each part",
        source: "the hot/cold model of the LFS and Desnoyers analyses",
        params: PARAMS,
    },
    build: |params, context| {
        let pattern = |area: &super::common::Area| {
            let hot = (area.slots as f64 * params.get(F)).round() as u64;
            if hot == 0 || hot >= area.slots {
                let slots = area.slots;
                let expected = format!("a share that leaves at least one of {slots} places hot and one cold");
                return Err(params.error(F, expected));
            }
            let threshold = threshold(params.get(R));
            Ok(HotCold { hot, slots: area.slots, threshold, hints: params.get(HINTS) })
        };
        Ok(Box::new(synthetic("hotcold", params, context, pattern)?))
    },
};

/// The hot places come first in the span.
struct HotCold {
    hot: u64,
    slots: u64,
    threshold: u128,
    hints: bool,
}

impl Pattern for HotCold {
    #[inline]
    fn slot(&mut self, rng: &mut Xoshiro256PlusPlus) -> (u64, u16) {
        let is_hot = u128::from(rng.next_u64()) < self.threshold;
        if is_hot {
            (below(rng, self.hot), u16::from(self.hints))
        } else {
            (self.hot + below(rng, self.slots - self.hot), 2 * u16::from(self.hints))
        }
    }
}
