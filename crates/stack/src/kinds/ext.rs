//! Block devices with files on them as variants of ext4 put them there.

use super::StackKind;
use nandscape_core::Info;

pub(crate) const DATA_JOURNAL: StackKind = StackKind {
    info: Info {
        name: "data-journal",
        summary: "a block device, on which files of recordings lie as in ext3 or ext4 with data=journal: data are written twice",
        source: "Linux ext3, ext4; [OFTL table 3]",
        params: &[],
    },
    layer: None,
    preset: "",
};

pub(crate) const ATOMIC: StackKind = StackKind {
    info: Info {
        name: "atomic",
        summary: "a block device with atomic writes of several pages, and files as in ext4 without its journal; for replays",
        source: "Ouyang and others, HPCA 2011; TxFlash, OSDI 2008",
        params: &[],
    },
    layer: None,
    preset: "",
};
