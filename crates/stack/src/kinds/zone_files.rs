//! A store of files that the host makes of zones.

use super::StackKind;
use nandscape_core::Info;
use nandscape_hostftl::zone_files;

pub(crate) const KIND: StackKind = StackKind {
    info: Info {
        name: "zone-files",
        summary: "a store of files over zones, for recordings of file operations: extents placed by lifetime",
        source: "ZenFS; [ATC21 4.2]",
        params: &[],
    },
    layer: Some(&zone_files::INFO),
    preset: "",
};
