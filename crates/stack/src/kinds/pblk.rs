//! A block device that the host makes of chunks.

use super::StackKind;
use nandscape_core::Info;
use nandscape_hostftl::pblk;

pub(crate) const KIND: StackKind = StackKind {
    info: Info {
        name: "pblk",
        summary: "a block device over vector access: the host's own translation layer, in lines of chunks",
        source: "Bjorling, Gonzalez and Bonnet, FAST 2017 (LightNVM); pblk",
        params: &[],
    },
    layer: Some(&pblk::INFO),
    preset: "",
};
