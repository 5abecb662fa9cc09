//! Two temperatures: a share `f` of the places takes a share `r` of the requests.

use super::Generator;
use super::common::{ALIGN, BS, COUNT, GAP, OFFSET, Pattern, READ, SEED, SIZE, SPAN, TRIM, synthetic};
use nandscape_core::rng::{Rng, Xoshiro256PlusPlus, below};
use nandscape_core::{Info, Param, ParamKind};

/// Registry entry.
pub const ENTRY: Generator = Generator {
    info: Info {
        name: "hotcold",
        summary: "a share f of the places takes a share r of the requests, uniformly inside each part",
        source: "the hot/cold model of the LFS and Desnoyers analyses",
        params: &[
            Param {
                name: "f",
                summary: "share of places that are hot",
                kind: ParamKind::Share,
                default: "20%",
            },
            Param {
                name: "r",
                summary: "share of requests that go to hot places",
                kind: ParamKind::Share,
                default: "80%",
            },
            Param {
                name: "hints",
                summary: "mark requests with a lifetime hint: 1 hot, 2 cold",
                kind: ParamKind::Bool,
                default: "false",
            },
            SPAN,
            BS,
            COUNT,
            SIZE,
            READ,
            TRIM,
            ALIGN,
            OFFSET,
            GAP,
            SEED,
        ],
    },
    build: |params, context| {
        let pattern = |area: &super::common::Area| {
            let hot = (area.slots as f64 * params.share("f")).round() as u64;
            if hot == 0 || hot >= area.slots {
                return Err(params.error(
                    "f",
                    format!("a share that leaves at least one of {} places hot and one cold", area.slots),
                ));
            }
            let threshold = (params.share("r") * (1u128 << 64) as f64) as u128;
            Ok(HotCold { hot, slots: area.slots, threshold, hints: params.flag("hints") })
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
