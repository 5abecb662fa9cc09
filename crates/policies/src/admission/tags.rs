//! Who may use the cache, by the tag that the client gives its requests.

use super::{Admission, Ask, Bypass, Entry};
use nandscape_core::{Info, Key, Op, ParamError, Params, keys};

keys! { PARAMS:
    TAGS_ALLOW: Option<String> = text(),
        "tags that are cached, such as 1,4-7 (0: requests without a tag); all if absent";
    TAGS_DENY: Option<String> = text(), "tags that are not cached, such as 2,8-9; stronger than tags_allow";
}

/// Registry entry.
pub const ENTRY: Entry = Entry {
    info: Info {
        name: "tags",
        summary: "requests with some stream numbers (tags) are cached, others are not",
        source: "takes the place of FlashCache's lists of process ids",
        params: PARAMS,
    },
    build: |setup| {
        let allow = ranges(setup.params, TAGS_ALLOW)?;
        let deny = ranges(setup.params, TAGS_DENY)?.unwrap_or_default();
        Ok(Box::new(Tags { allow, deny, refused: [0; 2] }))
    },
};

/// Ranges of tags, both ends inclusive.
type Ranges = Vec<(u16, u16)>;

#[derive(Debug)]
struct Tags {
    allow: Option<Ranges>,
    deny: Ranges,
    /// Reads, writes.
    refused: [u64; 2],
}

fn holds(ranges: &Ranges, tag: u16) -> bool {
    ranges.iter().any(|(first, last)| (*first..=*last).contains(&tag))
}

fn ranges(params: &Params, key: Key<Option<String>>) -> Result<Option<Ranges>, ParamError> {
    let Some(text) = params.get(key) else { return Ok(None) };
    let part = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u16, u16) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        (first <= last).then_some((first, last))
    };
    text.split(',')
        .map(part)
        .collect::<Option<_>>()
        .map(Some)
        .ok_or_else(|| params.error(key, "tags and ranges of tags from 0 to 65535, such as 1,4-7"))
}

impl Admission for Tags {
    fn request(&mut self, ask: &Ask) -> Result<(), Bypass> {
        let tag = ask.hint.0;
        if holds(&self.deny, tag) || self.allow.as_ref().is_some_and(|allow| !holds(allow, tag)) {
            self.refused[usize::from(ask.op == Op::Write)] += 1;
            return Err(Bypass::Tag);
        }
        Ok(())
    }

    fn counts(&self, out: &mut Vec<(&'static str, u64)>) {
        out.extend([("tags_reads_refused", self.refused[0]), ("tags_writes_refused", self.refused[1])]);
    }

    fn memory_bytes(&self) -> u64 {
        let ranges = self.allow.as_ref().map_or(0, Vec::capacity) + self.deny.capacity();
        (ranges * size_of::<(u16, u16)>()) as u64
    }
}
