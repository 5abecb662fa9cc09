//! A stream of its own for each class of data, until the ids run out [streams-article 4.2.1].
//!
//! The upper bound of what knowing the class can give: no two classes share a block. Classes get ids in the
//! order of their first write; those that come too late have none.

use super::names::class_of;
use super::{PolicyEntry, StreamPolicy, WriteFacts, write_hint};
use nandscape_core::{Info, MetadataClass, keys, words};
use std::collections::BTreeMap;

keys! { PARAMS:
    BY: By = word() or "class",
        "what a class is: the kind of file (its extension, or its directory) and of metadata; the hint; the \
         hint, or the kind of a file without one; the writer; the single file";
}

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    info: Info {
        name: "exclusive",
        summary: "a stream for each class of data, in order of appearance, until the ids run out",
        source: "[streams-article 4.2.1]",
        params: PARAMS,
    },
    needs_future: false,
    build: |params, setup| {
        Ok(Box::new(Exclusive {
            by: params.get(BY),
            ids: BTreeMap::new(),
            streams: setup.streams,
            beyond: 0,
            last: (String::new(), 0),
        }))
    },
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Class,
    Hint,
    HintOrClass,
    Writer,
    File,
}

words!(By: Class = "class", Hint = "hint", HintOrClass = "hint-or-class", Writer = "writer", File = "file");

/// A class that may have a stream.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Metadata(MetadataClass),
    Named(Box<str>),
    Number(u32),
}

#[derive(Debug)]
struct Exclusive {
    by: By,
    ids: BTreeMap<Class, u16>,
    streams: u16,
    beyond: u64,
    /// Path and id of the last write, as most go on with the same file. 0 where there was none yet.
    last: (String, u16),
}

impl Exclusive {
    fn id_of(&mut self, class: Class) -> u16 {
        if let Some(&id) = self.ids.get(&class) {
            return id;
        }
        // Classes beyond the ids are not kept, so that memory is bounded by the streams.
        if self.ids.len() >= usize::from(self.streams) {
            self.beyond += 1;
            return 0;
        }
        let id = self.ids.len() as u16 + 1;
        self.ids.insert(class, id);
        id
    }

    fn id_of_kind(&mut self, path: Option<&str>) -> u16 {
        let Some(path) = path else { return 0 };
        if self.last.1 > 0 && self.last.0 == path {
            return self.last.1;
        }
        let id = self.id_of(Class::Named(class_of(path).into()));
        self.last.0.clear();
        self.last.0.push_str(path);
        self.last.1 = id;
        id
    }
}

impl StreamPolicy for Exclusive {
    fn assign(&mut self, write: &WriteFacts<'_>) -> u16 {
        let origin = &write.origin;
        if let Some(class) = origin.kind.metadata_class() {
            return self.id_of(Class::Metadata(class));
        }
        match self.by {
            By::Hint if write.hint == 0 => 0,
            By::HintOrClass if write.hint == 0 => self.id_of_kind(origin.path),
            By::Hint | By::HintOrClass => self.id_of(Class::Number(u32::from(write.hint))),
            By::Writer if origin.writer == 0 => 0,
            By::Writer => self.id_of(Class::Number(origin.writer)),
            By::File if origin.file == 0 => 0,
            By::File => self.id_of(Class::Number(origin.file)),
            By::Class => self.id_of_kind(origin.path),
        }
    }

    fn warnings(&self) -> Vec<String> {
        write_hint::beyond(self.beyond, self.streams)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{build, facts};
    use super::*;
    use nandscape_core::{BlockKind, Origin};

    #[test]
    fn no_two_classes_share_an_id_and_late_ones_have_none() {
        let mut policy = build("exclusive", &[], 3);
        let mut of = |path, kind| {
            policy.assign(&WriteFacts { origin: Origin { path, kind, ..Origin::default() }, ..facts(0) })
        };
        assert_eq!(of(Some("db/000012.sst"), BlockKind::FileData), 1);
        assert_eq!(of(None, BlockKind::Journal), 2);
        assert_eq!(of(Some("db/000013.log"), BlockKind::FileData), 3);
        assert_eq!(of(Some("db/000999.sst"), BlockKind::FileData), 1);
        assert_eq!(of(Some("db/MANIFEST-000001"), BlockKind::FileData), 0);
        assert_eq!(of(None, BlockKind::Directory), 0);
        assert_eq!(of(None, BlockKind::FileData), 0);
        assert!(policy.warnings()[0].starts_with("2 writes"), "{:?}", policy.warnings());
    }

    #[test]
    fn a_hint_goes_before_the_kind_of_file_where_both_count() {
        let mut policy = build("exclusive", &[("by", "hint-or-class")], 3);
        let mut of = |path, hint| {
            policy.assign(&WriteFacts { hint, origin: Origin { path, ..Origin::default() }, ..facts(0) })
        };
        assert_eq!(of(Some("db/000012.sst"), 4), 1);
        assert_eq!(of(Some("db/000012.sst"), 0), 2);
        assert_eq!(of(Some("mail/1.eml"), 4), 1);
        assert_eq!(of(Some("db/000013.sst"), 0), 2);
        assert_eq!(of(None, 0), 0);
    }
}
