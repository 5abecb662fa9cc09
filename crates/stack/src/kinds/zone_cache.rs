//! Zones for a cache, which gives up a zone at a time.

use super::{StackKind, zone};
use nandscape_core::Info;

pub(crate) const KIND: StackKind = StackKind {
    info: Info {
        name: "zone-cache",
        summary: "zones below a cache ([cache]): a region of its slots is a zone, and nothing is moved to make room",
        source: "docs/cache-replay.md",
        params: &[],
    },
    layer: Some(&zone::LAYER),
    preset: "",
};
