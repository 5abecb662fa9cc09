//! What is kept of reads and of writes.

use serde::{Deserialize, Serialize};

/// How a cache treats reads and writes of blocks that it does not hold, and when writes reach the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Writes are answered when the cache has them.
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

impl Mode {
    /// Every mode.
    pub const ALL: [Self; 5] =
        [Self::WriteBack, Self::WriteThrough, Self::WriteAround, Self::WriteOnly, Self::PassThrough];

    /// The mode of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }

    /// Its name in configurations.
    pub const fn name(self) -> &'static str {
        match self {
            Self::WriteBack => "write-back",
            Self::WriteThrough => "write-through",
            Self::WriteAround => "write-around",
            Self::WriteOnly => "write-only",
            Self::PassThrough => "pass-through",
        }
    }

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

    #[test]
    fn a_mode_is_found_by_its_name_and_written_so() {
        for mode in Mode::ALL {
            assert_eq!(Mode::parse(mode.name()), Some(mode));
            assert_eq!(serde_json::to_value(mode).expect("a name"), mode.name());
        }
        assert_eq!(Mode::parse("writeback"), None);
    }
}
