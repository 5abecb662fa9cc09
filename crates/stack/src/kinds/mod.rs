//! Kinds of stacks: their names, and the keys that configurations of them have. [`crate::stacks`] builds
//! them.

pub(crate) mod directed;
pub(crate) mod dm_zoned;
pub(crate) mod ext;
pub(crate) mod f2fs;
pub(crate) mod host_ftl;
pub(crate) mod oftl;
pub(crate) mod pblk;
pub(crate) mod vector;
pub(crate) mod xfs;
pub(crate) mod zone;
pub(crate) mod zone_cache;
pub(crate) mod zone_files;
pub(crate) mod zone_map;

pub use vector::VECTOR;
pub use zone::ZONE;

use nandscape_core::{Info, Params, keys};

/// A kind of stack.
#[derive(Clone, Copy, Debug)]
pub struct StackKind {
    /// Its name and so on.
    pub info: Info,
    /// Its own layer, whose name is `ftl.kind` and whose keys those of `[ftl]`; absent: any of the registered
    /// translation layers.
    pub layer: Option<&'static Info>,
    /// Keys that are otherwise than by default where nothing else was typed, as TOML.
    pub preset: &'static str,
}

impl StackKind {
    pub(crate) fn preset_table(&self) -> toml::Table {
        self.preset.parse().expect("presets of stacks are TOML")
    }
}

pub(crate) const BLOCK: StackKind = StackKind {
    info: Info {
        name: "block",
        summary: "a block device: a translation layer on the device, as most drives have it",
        source: "",
        params: &[],
    },
    layer: None,
    preset: "",
};

/// Every kind, the default first.
pub static KINDS: &[StackKind] = &[
    BLOCK,
    ext::DATA_JOURNAL,
    ext::ATOMIC,
    xfs::KIND,
    directed::STREAMS,
    directed::FDP,
    zone::KIND,
    zone_map::KIND,
    dm_zoned::KIND,
    zone_files::KIND,
    zone_cache::KIND,
    f2fs::KIND,
    f2fs::ON_ZONES,
    vector::KIND,
    pblk::KIND,
    host_ftl::KIND,
    oftl::KIND,
];

const NAMES: &[&str] = &[
    BLOCK.info.name,
    ext::DATA_JOURNAL.info.name,
    ext::ATOMIC.info.name,
    xfs::KIND.info.name,
    directed::STREAMS.info.name,
    directed::FDP.info.name,
    zone::KIND.info.name,
    zone_map::KIND.info.name,
    dm_zoned::KIND.info.name,
    zone_files::KIND.info.name,
    zone_cache::KIND.info.name,
    f2fs::KIND.info.name,
    f2fs::ON_ZONES.info.name,
    vector::KIND.info.name,
    pblk::KIND.info.name,
    host_ftl::KIND.info.name,
    oftl::KIND.info.name,
];

keys! { PARAMS:
    pub(crate) KIND: String = choice(NAMES) or "block",
        "interface of the flash and host software over it ('nandscape list stacks')";
}

/// Keys of `[stack]`.
pub static STACK: Info = Info {
    name: "stack",
    summary: "which interface the flash has, and what the host makes of it",
    source: "nandscape",
    params: PARAMS,
};

/// The kind that `[stack]` names.
pub(crate) fn kind_of(params: &Params) -> &'static StackKind {
    let name = params.get(KIND);
    KINDS.iter().find(|kind| kind.info.name == name).expect("the values were checked against the registry")
}

impl StackKind {
    /// Whether it is a block device of the drive itself, with or without directives.
    pub(crate) fn is_drive(&self) -> bool {
        let of_device = [BLOCK, ext::DATA_JOURNAL, ext::ATOMIC, xfs::KIND];
        let with_more = [directed::STREAMS, directed::FDP, f2fs::KIND];
        of_device.iter().chain(&with_more).any(|kind| kind.info.name == self.info.name)
    }

    /// Whether a cache can stand over it.
    pub(crate) fn takes_cache(&self) -> bool {
        let of_host = [zone_map::KIND, dm_zoned::KIND, pblk::KIND, host_ftl::KIND, zone_cache::KIND];
        self.is_drive() || of_host.iter().any(|kind| kind.info.name == self.info.name)
    }

    /// Whether it is of use to a cache only.
    pub(crate) fn needs_cache(&self) -> bool {
        self.info.name == zone_cache::KIND.info.name
    }
}

/// The layers that kinds of stacks have of their own.
pub fn layers() -> impl Iterator<Item = &'static Info> {
    KINDS.iter().filter_map(|kind| kind.layer)
}
