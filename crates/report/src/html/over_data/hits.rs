//! Hit ratios of a cache.

use super::{Curves, Show};
use crate::html::values::optional;

pub const CURVES: Curves = Curves {
    kind: "hits",
    title: "Hit ratio",
    about: "requests that found all of their blocks in the cache",
    show: Show::Digits,
    floor: 0,
    columns: &[
        ("rhit", |moment| moment.of_cache(|cache| optional(cache.counts.read_hit_ratio()))),
        ("whit", |moment| moment.of_cache(|cache| optional(cache.counts.write_hit_ratio()))),
        ("rhit_i", |moment| moment.of_cache_since(|cache| optional(cache.counts.read_hit_ratio()))),
        ("whit_i", |moment| moment.of_cache_since(|cache| optional(cache.counts.write_hit_ratio()))),
    ],
    tabs: |ends| match (
        ends.any_cache(|cache| cache.counts.reads),
        ends.any_cache(|cache| cache.counts.writes),
    ) {
        (true, true) => Some(&["reads", "writes", "reads per interval", "writes per interval"]),
        (true, false) => Some(&["since the start", "", "per interval", ""]),
        (false, true) => Some(&["", "since the start", "", "per interval"]),
        (false, false) => None,
    },
};
