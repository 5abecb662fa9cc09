//! Four relative levels shared by everyone [streams-article 4.2.2].
//!
//! A level is what the hint says, else what is known about the kind of block; user data without a hint has
//! none. At most four streams: what is short to one program lies with what is short to another.

use super::{PolicyEntry, StreamPolicy, WriteFacts, prototype_hint};
use crate::hints::WriteHint;
use nandscape_core::Info;

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    info: Info {
        name: "shared",
        summary: "four levels of lifetime shared by all writers and the file system; never more than four streams",
        source: "[streams-article 4.2.2]",
        params: &[],
    },
    needs_future: false,
    build: |_, setup| Ok(Box::new(Shared { streams: setup.streams.min(LEVELS) })),
};

/// Levels, and the most streams that are used.
pub(super) const LEVELS: u16 = 4;

#[derive(Debug)]
struct Shared {
    streams: u16,
}

/// Level 1 (shortest) to 4 of a write, if anything is known.
pub(super) fn level(write: &WriteFacts<'_>) -> Option<u16> {
    let hint = write.origin.kind.metadata_class().map_or(write.hint, prototype_hint);
    WriteHint::from_number(u64::from(hint))?.stream()
}

/// Folds `level` of `levels` into ids from 1 to `streams`, keeping the order.
pub(super) fn fold(level: u16, levels: u16, streams: u16) -> u16 {
    if streams >= levels { level } else { ((level - 1) * streams) / levels + u16::from(streams > 0) }
}

impl StreamPolicy for Shared {
    fn assign(&mut self, write: &WriteFacts<'_>) -> u16 {
        level(write).map_or(0, |level| fold(level, LEVELS, self.streams))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{build, facts};
    use super::*;

    #[test]
    fn never_more_than_four_streams_whatever_there_is() {
        for streams in [1, 2, 3, 4, 8, 1000] {
            let mut policy = build("shared", &[], streams);
            let ids: Vec<u16> = (2..6).map(|hint| policy.assign(&WriteFacts { hint, ..facts(0) })).collect();
            assert!(ids.is_sorted() && ids[0] == 1, "{ids:?}");
            assert_eq!(ids[3], streams.min(4), "{ids:?}");
        }
    }

    #[test]
    fn writers_with_the_same_word_share_a_stream() {
        let mut policy = build("shared", &[], 16);
        let mut of = |writer| {
            let origin = nandscape_core::Origin { writer, ..Default::default() };
            policy.assign(&WriteFacts { hint: 2, origin, ..facts(0) })
        };
        assert_eq!((of(1), of(2)), (1, 1));
    }
}
