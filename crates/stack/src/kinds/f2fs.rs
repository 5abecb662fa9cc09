//! A log-structured file system over a block device, or over zones.

use super::{StackKind, zone};
use nandscape_core::Info;

pub(crate) const KIND: StackKind = StackKind {
    info: Info {
        name: "f2fs",
        summary: "f2fs over a block device, for replays: six logs by lifetime, cleaning, holes filled when space is short",
        source: "[F2FS]; Linux 5.9",
        params: &[],
    },
    layer: None,
    preset: "[f2fs]\nmode = \"adaptive\"\n",
};

pub(crate) const ON_ZONES: StackKind = StackKind {
    info: Info {
        name: "f2fs-zones",
        summary: "f2fs over zones, for replays: sections are zones, metadata in conventional ones",
        source: "[F2FS]; [ATC21 4.1]",
        params: &[],
    },
    layer: Some(&zone::LAYER),
    preset: "[f2fs]\nmode = \"lfs\"\n",
};
