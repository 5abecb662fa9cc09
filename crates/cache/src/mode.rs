//! What is kept of reads and of writes.

use nandscape_core::words;
use serde::{Deserialize, Serialize};

/// How a cache treats reads and writes of blocks that it does not hold, and when writes reach the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Writes are answered when the cache has them.
    #[default]
    WriteBack,
    /// Writes go to the disk and to the cache.
    WriteThrough,
    /// Writes go to the disk and throw out what the cache has of them; reads are cached.
    WriteAround,
    /// As write-back, but reads bring nothing into the cache.
    WriteOnly,
    /// Nothing enters the cache, and nothing but what the disk does not have is read from it.
    PassThrough,
}

words! { pub Mode:
    WriteBack = "write-back", WriteThrough = "write-through", WriteAround = "write-around",
    WriteOnly = "write-only", PassThrough = "pass-through",
}

impl Mode {
    /// Whether what a read misses is brought in.
    pub const fn caches_reads(self) -> bool {
        matches!(self, Self::WriteBack | Self::WriteThrough | Self::WriteAround)
    }

    /// Whether what is written is cached.
    pub const fn caches_writes(self) -> bool {
        matches!(self, Self::WriteBack | Self::WriteThrough | Self::WriteOnly)
    }

    /// Whether writes make blocks dirty.
    pub const fn makes_dirty(self) -> bool {
        matches!(self, Self::WriteBack | Self::WriteOnly)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_core::Word as _;

    #[test]
    fn a_mode_is_found_by_its_name_and_written_so() {
        for mode in Mode::ALL {
            assert_eq!(Mode::of_word(mode.name()), Some(mode));
            assert_eq!(serde_json::to_value(mode).expect("a name"), mode.name());
        }
        assert_eq!(Mode::of_word("writeback"), None);
    }
}
