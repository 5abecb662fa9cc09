//! A block device that the host makes of zones.

use super::StackKind;
use nandscape_core::Info;
use nandscape_hostftl::zone_map;

pub(crate) const KIND: StackKind = StackKind {
    info: Info {
        name: "zone-map",
        summary: "a block device over zones: the host's own translation layer",
        source: "dm-zap; pblk (LightNVM, FAST 2017); [ATC21 2.2]",
        params: &[],
    },
    layer: Some(&zone_map::INFO),
    preset: "",
};
