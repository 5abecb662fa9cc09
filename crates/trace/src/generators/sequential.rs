//! One place after the other, from the start of the span again at its end.

use super::Generator;
use super::common::{COMMON, Pattern, synthetic};
use nandscape_core::Info;
use nandscape_core::rng::Xoshiro256PlusPlus;

pub const ENTRY: Generator = Generator {
    info: Info {
        name: "sequential",
        summary: "one request behind the other, from the start of the span again at its end",
        source: "the usual best case",
        params: COMMON,
    },
    build: |params, context| {
        let pattern =
            |area: &super::common::Area| Ok(Sequential { next: 0, slots: area.slots, stride: area.stride });
        Ok(Box::new(synthetic("sequential", params, context, pattern)?))
    },
};

struct Sequential {
    next: u64,
    slots: u64,
    stride: u64,
}

impl Pattern for Sequential {
    #[inline]
    fn slot(&mut self, _rng: &mut Xoshiro256PlusPlus) -> (u64, u16) {
        if self.next >= self.slots {
            self.next = 0;
        }
        let slot = self.next;
        self.next += self.stride;
        (slot, 0)
    }
}
