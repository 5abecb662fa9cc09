//! What a cache holds that its disk does not.

use super::{Curves, Show};
use crate::html::values::ratio;
use serde_json::json;

pub const CURVES: Curves = Curves {
    kind: "dirty",
    title: "Dirty blocks",
    about: "share of the cache that is newer than the disk, in %; blocks written to the disk so far",
    show: Show::Count,
    floor: 0,
    columns: &[
        ("dirty", |moment| moment.of_cache(|cache| ratio(cache.dirty as f64 * 100.0, cache.slots as f64))),
        ("cleaned", |moment| moment.of_cache(|cache| json!(cache.counts.cleaned))),
    ],
    tabs: |ends| ends.any_cache(|cache| cache.dirty + cache.counts.cleaned).then_some(&["dirty", "cleaned"]),
};
