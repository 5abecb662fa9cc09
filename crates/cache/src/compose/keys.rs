//! The keys of a cache's table, and whose parameter each of the others is.

use nandscape_core::{Info, Param, ParamError, ParamKind};
use std::collections::BTreeMap;

const fn text(name: &'static str, summary: &'static str) -> Param {
    Param { name, summary, kind: ParamKind::Text, default: "" }
}

/// What every cache is asked; the parameters of the policies that are named stand in the same table.
pub const KEYS: Info = Info {
    name: "cache",
    summary: "a preset, and what is to be otherwise",
    source: "",
    params: &[
        text("preset", "published design, or nandscape"),
        Param {
            name: "block",
            summary: "cache block; absent: the preset's",
            kind: ParamKind::Size { min: 512, max: 1 << 20 },
            default: "",
        },
        text(
            "size",
            "cached data at most, as bytes (64MiB) or blocks (10000b); absent: what fits on the fast store",
        ),
        text("mode", "write-back, write-through, write-around, write-only or pass-through"),
        Param {
            name: "map",
            summary: "which slots a block may lie in",
            kind: ParamKind::Choice { of: &["full", "linear", "cluster-hashed"] },
            default: "",
        },
        Param {
            name: "ways",
            summary: "slots of a set, where there are sets",
            kind: ParamKind::Int { min: 1, max: 1 << 30 },
            default: "",
        },
        Param {
            name: "cluster",
            summary: "neighbouring bytes of a disk that share a set of the cluster-hashed map",
            kind: ParamKind::Size { min: 512, max: 1 << 40 },
            default: "",
        },
        text("eviction", "eviction policy"),
        text("admission", "admission policies, separated by commas, all of which must agree"),
        text("cleaning", "cleaning policies, separated by commas, each of which may start cleaning"),
        text("metadata", "kind of metadata"),
        Param {
            name: "flushing",
            summary: "what is flushed before metadata say that it is there: both sides, the cache device, or nothing but what hosts flush",
            kind: ParamKind::Choice { of: &["both", "cache-device", "nothing"] },
            default: "",
        },
        Param {
            name: "partial",
            summary: "what becomes of requests for parts of blocks",
            kind: ParamKind::Choice { of: &["cached", "filled", "uncached"] },
            default: "",
        },
        Param {
            name: "victims",
            summary: "which blocks may leave to make room",
            kind: ParamKind::Choice { of: &["any", "prefer-clean", "clean-first", "clean-only"] },
            default: "",
        },
        Param {
            name: "seed",
            summary: "of what policies draw",
            kind: ParamKind::Int { min: 0, max: u64::MAX },
            default: "1",
        },
    ],
};

/// Keys and values as they were typed.
pub type Typed = BTreeMap<String, String>;

/// A value that is wrong.
pub fn bad(prefix: &str, key: &str, value: impl Into<String>, expected: impl Into<String>) -> ParamError {
    ParamError::BadValue { key: format!("{prefix}{key}"), value: value.into(), expected: expected.into() }
}

/// Takes out of `typed` what is a key of `info`.
pub fn take(typed: &mut Typed, info: &Info) -> Typed {
    let is_own = |key: &str| info.params.iter().any(|param| param.name == key);
    let (own, others) = std::mem::take(typed).into_iter().partition(|(key, _)| is_own(key));
    *typed = others;
    own
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

/// The value that was quoted; `None` if it was not.
pub fn unquoted(text: &str) -> Option<String> {
    let mut rest = text.strip_prefix('"')?.strip_suffix('"')?.chars();
    let mut value = String::new();
    while let Some(c) = rest.next() {
        match c {
            '"' => return None,
            '\\' => value.push(rest.next()?),
            c => value.push(c),
        }
    }
    Some(value)
}
