//! Published designs, and nandscape's own, as data.
//!
//! A preset names one member of every registry that a cache is composed of, with parameters, and says what
//! else the engine must do to follow the design, and what a loss of power leaves. It builds nothing.

mod bcache;
mod dm_cache;
mod dm_cache_fiu;
mod enhanceio;
mod flashcache;
mod nandscape;
mod rapidcache;

use crate::mode::Mode;
use nandscape_core::{Info, ParamError, registry, words};
use nandscape_policies::Map;
use serde::Serialize;

/// A member of a registry, and those of its parameters that are not at their defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// Name in the registry.
    pub name: &'static str,
    /// Keys and values, as they would be typed.
    pub params: &'static [(&'static str, &'static str)],
}

impl Choice {
    const fn of(name: &'static str) -> Self {
        Self { name, params: &[] }
    }
}

/// What grows with the block, where another one than the default is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grows {
    /// Ways and clusters stay as they are.
    Nothing,
    /// A set has more slots.
    Ways,
    /// A cluster has as many blocks, and so more bytes; but no more blocks than a set has slots.
    Cluster,
}

/// What a loss of power leaves. The crash suite holds every preset to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AfterCut {
    /// Every write that was flushed is there, and clean blocks are still cached.
    Everything,
    /// Every write that was flushed is there; clean blocks are gone.
    DirtyBlocks,
    /// Every write that was flushed is there; all cached blocks count as dirty, and are written to the disk
    /// again.
    AllAsDirty,
    /// The cache is empty, and no data is lost, since the disk has them all.
    EmptyCache,
    /// The cache is empty, and what was dirty in it is lost.
    DirtyLost,
}

impl AfterCut {
    /// Whether a write that was flushed is there after any cut.
    pub const fn keeps_flushed(self) -> bool {
        !matches!(self, Self::DirtyLost)
    }

    /// Whether blocks that were clean are still cached.
    pub const fn keeps_clean(self) -> bool {
        matches!(self, Self::Everything | Self::AllAsDirty)
    }
}

/// What a design flushes of its own accord, before metadata say that something is there. A host's flush
/// covers the metadata, the cache device, and the disk where the host has written to it, in every design.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Flushing {
    /// The cache device before and after metadata are written, and a disk before they rely on what was
    /// written to it.
    Both,
    /// The cache device, and no disk.
    CacheDevice,
    /// Nothing: metadata are written when the writes have been answered of which they speak, and answered for
    /// when they have been answered themselves.
    Nothing,
}

words!(pub Flushing: Both = "both", CacheDevice = "cache-device", Nothing = "nothing");

impl Flushing {
    /// Whether disks are flushed.
    pub const fn covers_disks(self) -> bool {
        matches!(self, Self::Both)
    }

    /// Whether the cache device is flushed.
    pub const fn covers_cache(self) -> bool {
        !matches!(self, Self::Nothing)
    }
}

/// What becomes of a request for a part of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Partial {
    /// It is cached; the sub-blocks that are there are known.
    Cached,
    /// The rest of the block is read from the disk, and the block is cached whole.
    Filled,
    /// It goes past the cache, and the block is cleaned and thrown out where it was cached.
    Uncached,
}

words!(Partial: Cached = "cached", Filled = "filled", Uncached = "uncached");

/// Which blocks may leave to make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Victims {
    /// Any; a dirty one is written to the disk first.
    Any,
    /// A clean one, if there is one among the next few in the policy's order; otherwise the next dirty one.
    PreferClean,
    /// The first clean one in the policy's order; without one, the first dirty one.
    CleanFirst,
    /// Clean ones only; without one, the request goes past the cache.
    CleanOnly,
}

words! { Victims:
    Any = "any", PreferClean = "prefer-clean", CleanFirst = "clean-first", CleanOnly = "clean-only",
}

/// What else the engine does to follow a design.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Quirks {
    /// Requests for parts of blocks.
    pub partial: Partial,
    /// Blocks that may leave.
    pub victims: Victims,
    /// In write-through, a write throws out the block that is cached and takes a new slot, so that it never
    /// counts as a hit.
    pub is_write_through_never_hit: bool,
    /// A request that meets a block under way waits, and then goes past the cache.
    pub is_requeued_past_cache: bool,
    /// A write that a loss of power cuts short may leave a block that is partly old and partly new.
    pub has_torn_blocks: bool,
}

impl Quirks {
    /// Nothing particular.
    pub const NONE: Self = Self {
        partial: Partial::Cached,
        victims: Victims::Any,
        is_write_through_never_hit: false,
        is_requeued_past_cache: false,
        has_torn_blocks: false,
    };
}

/// A design.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Preset {
    /// Name, summary, source.
    pub info: Info,
    /// What it lies on in a replay, where nothing is said.
    pub device: &'static str,
    /// Default cache block in bytes.
    pub block_bytes: u32,
    /// Smallest and largest cache block in bytes; every power of two between them will do.
    pub block_range: (u32, u32),
    /// Sets and ways, with the default block.
    #[serde(rename = "placement")]
    pub map: Map,
    /// What becomes of them with another block.
    pub grows: Grows,
    /// Default mode.
    pub mode: Mode,
    /// Every mode that the design has.
    pub modes: &'static [Mode],
    /// Eviction policy.
    pub eviction: Choice,
    /// Admission policies, all of which must agree.
    pub admission: &'static [Choice],
    /// Cleaning policies; each may start cleaning.
    pub cleaning: &'static [Choice],
    /// Kind of metadata.
    pub metadata: Choice,
    /// What it flushes of its own accord.
    pub flushing: Flushing,
    /// Where that is to be seen.
    pub flushing_source: &'static str,
    /// What a loss of power leaves in the default mode, of drives that keep what they have answered. On
    /// others a design with dirty blocks also loses what was flushed, unless it flushes [`Flushing::Both`].
    pub after_cut: AfterCut,
    /// What else is particular.
    pub quirks: Quirks,
    /// Settings of the original, by the original's names, for comparison; those that have a counterpart here
    /// are in the fields above.
    pub published: &'static [(&'static str, &'static str)],
}

impl Preset {
    /// Sets and ways with blocks of so many bytes.
    pub fn map_with(&self, block_bytes: u32) -> Map {
        let (block, default) = (u64::from(block_bytes), u64::from(self.block_bytes));
        let scaled = |value: u32, by: u64, of: u64| {
            u32::try_from(u64::from(value) * by / of).unwrap_or(u32::MAX).max(1)
        };
        match (self.grows, self.map) {
            (Grows::Ways, Map::Linear { ways }) => Map::Linear { ways: scaled(ways, block, default) },
            (Grows::Nothing | Grows::Ways, Map::ClusterHashed { ways, cluster }) => {
                Map::ClusterHashed { ways, cluster: scaled(cluster, default, block) }
            }
            (_, map) => map,
        }
    }

    /// Key and value of every setting, in the order of the fields: what `list caches --detail` shows.
    pub fn settings(&self) -> Vec<(String, String)> {
        let mut out = Vec::new();
        let mut put = |key: &str, value: String| out.push((key.to_owned(), value));
        put("block", nandscape_core::units::format_bytes(self.block_bytes.into()));
        for (key, value) in map_settings(self.map, self.block_bytes) {
            put(key, value);
        }
        put("mode", self.mode.name().to_owned());
        let members = [
            ("eviction", std::slice::from_ref(&self.eviction)),
            ("admission", self.admission),
            ("cleaning", self.cleaning),
            ("metadata", std::slice::from_ref(&self.metadata)),
        ];
        for (key, choices) in members {
            put(key, choices.iter().map(|choice| choice.name).collect::<Vec<_>>().join(","));
            for (name, value) in choices.iter().flat_map(|choice| choice.params) {
                put(name, (*value).to_owned());
            }
        }
        put("flushing", self.flushing.name().to_owned());
        out
    }
}

/// Keys and values of sets and ways, with blocks of so many bytes.
pub(crate) fn map_settings(map: Map, block_bytes: u32) -> Vec<(&'static str, String)> {
    let mut out = vec![("map", map.name().to_owned())];
    if let Map::Linear { ways } | Map::ClusterHashed { ways, .. } = map {
        out.push(("ways", ways.to_string()));
    }
    if let Map::ClusterHashed { cluster, .. } = map {
        let bytes = u64::from(cluster) * u64::from(block_bytes);
        out.push(("cluster", nandscape_core::units::format_bytes(bytes)));
    }
    out
}

/// Every preset; the first is the default.
pub static PRESETS: &[Preset] = &[
    nandscape::PRESET,
    dm_cache_fiu::PRESET,
    flashcache::PRESET,
    enhanceio::PRESET,
    rapidcache::PRESET,
    bcache::PRESET,
    dm_cache::PRESET,
];

/// The preset of that name, or an error with the names there are.
pub fn find(name: &str) -> Result<&'static Preset, ParamError> {
    registry::find("preset", name, PRESETS, |preset| &preset.info)
}

#[cfg(test)]
mod tests;
