//! The keys of a cache's table, and whose parameter each of the others is.

use crate::presets::{Flushing, Partial, Victims};
use nandscape_core::{Info, ParamError, keys};
use std::collections::BTreeMap;

keys! { PARAMS:
    pub PRESET: Option<String> = text(), "published design, or nandscape";
    pub BLOCK: Option<u32> = size(512, 1 << 20), "cache block; absent: the preset's";
    pub SIZE: Option<String> = text(),
        "cached data at most, as bytes (64MiB) or blocks (10000b); absent: what fits on the fast store";
    pub MODE: Option<String> = text(), "write-back, write-through, write-around, write-only or pass-through";
    pub MAP: Option<String> = choice(&["full", "linear", "cluster-hashed"]), "which slots a block may lie in";
    pub WAYS: Option<u32> = int(1, 1 << 30), "slots of a set, where there are sets";
    pub CLUSTER: Option<u64> = size(512, 1 << 40),
        "neighbouring bytes of a disk that share a set of the cluster-hashed map";
    pub EVICTION: Option<String> = text(), "eviction policy";
    pub ADMISSION: Option<String> = text(),
        "admission policies, separated by commas, all of which must agree";
    pub CLEANING: Option<String> = text(),
        "cleaning policies, separated by commas, each of which may start cleaning";
    pub METADATA: Option<String> = text(), "kind of metadata";
    pub FLUSHING: Option<Flushing> = word(),
        "what is flushed before metadata say that it is there: both sides, the cache device, or nothing but \
         what hosts flush";
    pub PARTIAL: Option<Partial> = word(), "what becomes of requests for parts of blocks";
    pub VICTIMS: Option<Victims> = word(), "which blocks may leave to make room";
    pub SEED: u64 = int(0, u64::MAX) or "1", "of what policies draw";
}

/// What every cache is asked; the parameters of the policies that are named stand in the same table.
pub const KEYS: Info =
    Info { name: "cache", summary: "a preset, and what is to be otherwise", source: "", params: PARAMS };

/// Keys and values as they were typed.
pub type Typed = BTreeMap<String, String>;

/// A value that is wrong.
pub fn bad(prefix: &str, key: &str, value: impl Into<String>, expected: impl Into<String>) -> ParamError {
    ParamError::BadValue { key: format!("{prefix}{key}"), value: value.into(), expected: expected.into() }
}

/// Names of a list separated by commas.
pub fn names(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim)
}

/// The blocks of a size, such as `64MiB` or `10000b`.
pub fn blocks(prefix: &str, text: &str, block_bytes: u32) -> Result<u32, ParamError> {
    let blocks = match text.strip_suffix(['b', 'B']).and_then(|count| count.trim().parse::<u64>().ok()) {
        Some(count) if text.ends_with('b') => Some(count),
        _ => nandscape_core::units::parse_size(text).ok().map(|bytes| bytes / u64::from(block_bytes)),
    };
    blocks.and_then(|count| u32::try_from(count).ok()).filter(|count| *count > 0).ok_or_else(|| {
        bad(prefix, "size", text, format!("a size such as 64MiB, or blocks such as 10000b, of 1 to 4294967295 blocks of {block_bytes} bytes"))
    })
}

/// A value in quotes.
pub fn quoted(value: &str) -> String {
    let mut text = String::from("\"");
    for c in value.chars() {
        if matches!(c, '"' | '\\') {
            text.push('\\');
        }
        text.push(c);
    }
    text + "\""
}
