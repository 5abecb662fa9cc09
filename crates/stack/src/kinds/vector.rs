//! `[vector]`: the keys of vector access.

use super::StackKind;
use nandscape_core::{Info, keys};

keys! { PARAMS:
    pub(crate) WIDTH: Option<u32> = int(1, 1 << 24),
        "parallel units (dies) of a zone: a chunk of each; absent: 1, so that a zone is a chunk, or all of them below zone-map";
    pub(crate) SPANS_PLANES: bool = flag() or "false",
        "true: a chunk is a block of each plane of a die; false: a block of one plane";
    pub(crate) CACHED_UNITS: Option<u32> = int(0, 1 << 20),
        "smallest writes below the write pointer that cannot be read (MW_CUNITS); absent: the pages of a program unit of several, else none";
    pub(crate) RESETS_FREE: bool = flag() or "false", "a free chunk can be reset again";
    pub(crate) RESETS_OPEN: bool = flag() or "false",
        "an open chunk can be reset, as emulators allow; the specification does not: the host pads it first";
    pub(crate) FAILED_PROGRAM: String = choice(&["closes", "skips"]) or "closes",
        "closes: a failed program closes its chunk (2F1h); skips: the chunk stays open behind it (2F0h)";
}

/// Keys of `[vector]`.
pub static VECTOR: Info = Info {
    name: "vector",
    summary: "vector access to the flash, for stacks over it; other stacks ignore them",
    source: "Open-Channel SSD 2.0",
    params: PARAMS,
};

static LAYER: Info = Info {
    name: "vector",
    summary: "no translation layer: chunks, which the host writes in order as zones",
    source: "",
    params: &[],
};

pub(crate) const KIND: StackKind = StackKind {
    info: Info {
        name: "vector",
        summary: "vector access (open channel): the host writes chunks of the flash as zones and erases them",
        source: "Open-Channel SSD 2.0",
        params: &[],
    },
    layer: Some(&LAYER),
    preset: "",
};
