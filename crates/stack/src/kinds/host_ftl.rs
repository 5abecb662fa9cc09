//! The translation layers of the device as software of the host, over vector access.

use super::StackKind;
use nandscape_core::Info;

pub(crate) const KIND: StackKind = StackKind {
    info: Info {
        name: "host-ftl",
        summary: "a block device over vector access: any translation layer, as software of the host",
        source: "Open-Channel SSD 2.0; thesis 3.2",
        params: &[],
    },
    layer: None,
    preset: "",
};
