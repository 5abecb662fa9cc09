//! Objects: the device knows them instead of logical blocks.

use super::StackKind;
use nandscape_core::Info;
use nandscape_object::oftl;

pub(crate) const KIND: StackKind = StackKind {
    info: Info {
        name: "oftl",
        summary: "objects: the device allocates pages for them and finds the index again by back pointers",
        source: "Lu, Shu and Zheng, FAST 2013; [thesis A]",
        params: &[],
    },
    layer: Some(&oftl::INFO),
    preset: "",
};
