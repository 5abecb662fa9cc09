//! Streams by the name of the file, in the manner of `FStream`: metadata classes, file names and extensions.

use super::{PolicyEntry, StreamPolicy, WriteFacts, write_hint};
use nandscape_core::{Info, MetadataClass, keys};

/// The rules without a `rules` key: journals and write-ahead logs first, since they die first, then what is
/// rewritten in place, then sorted tables, then metadata.
pub const DEFAULT_RULES: &str = "@journal; *.log, *-wal, *-journal, */pg_wal/*; @inode, @misc, @directory; *.tmp, *.dbtmp, xlogtemp*, \
    MANIFEST-*, CURRENT, OPTIONS-*, LOG, LOG.old*; *.db, */base/*, */global/*; *.sst; */pg_xact/*, */pg_multixact/*, */pg_logical/*; \
    */.git/*";

keys! { PARAMS:
    RULES: Option<String> = text(),
        "streams from 1 on, separated by ';', each a list of patterns (* stands for anything) of paths or \
         names, or of @journal @inode @directory @misc; absent: a table for databases";
}

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    info: Info {
        name: "names",
        summary: "by class of metadata, file name and extension, from a table of rules",
        source: "Rho et al., FAST 2018 [FStream]; [streams-article 4.2.3]",
        params: PARAMS,
    },
    needs_future: false,
    build: |params, setup| {
        let text = params.get(RULES).unwrap_or(DEFAULT_RULES);
        let rules = Rules::parse(text).map_err(|expected| params.error(RULES, expected))?;
        Ok(Box::new(ByName { rules, streams: setup.streams, beyond: 0, last: (String::new(), None) }))
    },
};

#[derive(Clone, Debug, PartialEq, Eq)]
enum Pattern {
    Metadata(MetadataClass),
    /// Matches the file's name, or with a slash in it the whole path.
    Glob(Box<str>),
}

/// A table of rules: group after group of patterns; the number of the first group that matches is the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    groups: Vec<Vec<Pattern>>,
}

impl Rules {
    /// Reads groups separated by `;`, each of patterns separated by `,`. The error says what was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut groups = Vec::new();
        for group in text.split(';') {
            let mut patterns = Vec::new();
            for pattern in group.split(',').map(str::trim) {
                patterns.push(match pattern {
                    "" => {
                        let expected = "a pattern in every group and after every comma";
                        return Err(format!("{expected}, such as *.log,*-wal;*.sst"));
                    }
                    "@journal" => Pattern::Metadata(MetadataClass::Journal),
                    "@inode" => Pattern::Metadata(MetadataClass::Inode),
                    "@directory" => Pattern::Metadata(MetadataClass::Directory),
                    "@misc" => Pattern::Metadata(MetadataClass::Misc),
                    other if other.starts_with('@') => {
                        return Err(format!("@journal, @inode, @directory or @misc instead of {other}"));
                    }
                    glob => Pattern::Glob(glob.into()),
                });
            }
            groups.push(patterns);
        }
        Ok(Self { groups })
    }

    /// Number of the first group that matches, from 1.
    fn group(&self, write: &WriteFacts<'_>) -> Option<usize> {
        let class = write.origin.kind.metadata_class();
        let path = if class.is_some() { None } else { write.origin.path };
        let name = path.map(|path| path.rsplit('/').next().unwrap_or(path));
        let matches = |pattern: &Pattern| match pattern {
            Pattern::Metadata(of) => class == Some(*of),
            Pattern::Glob(glob) if glob.contains('/') => path.is_some_and(|path| glob_matches(glob, path)),
            Pattern::Glob(glob) => name.is_some_and(|name| glob_matches(glob, name)),
        };
        self.groups.iter().position(|group| group.iter().any(matches)).map(|at| at + 1)
    }
}

/// Whether a text fits a pattern in which `*` stands for any characters.
fn glob_matches(glob: &str, text: &str) -> bool {
    let mut parts = glob.split('*');
    let first = parts.next().unwrap_or("");
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        // The earliest place leaves most for the others.
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    true
}

#[derive(Debug)]
struct ByName {
    rules: Rules,
    streams: u16,
    beyond: u64,
    /// The last path and its group: most writes go on with the same file.
    last: (String, Option<usize>),
}

impl StreamPolicy for ByName {
    fn assign(&mut self, write: &WriteFacts<'_>) -> u16 {
        let path = if write.origin.kind.is_metadata() { None } else { write.origin.path };
        let group = match (path, self.last.1) {
            (Some(path), Some(group)) if self.last.0 == path => group,
            _ => self.rules.group(write).unwrap_or(0),
        };
        if let Some(path) = path
            && self.last.0 != path
        {
            self.last.0.clear();
            self.last.0.push_str(path);
            self.last.1 = Some(group);
        }
        if group > usize::from(self.streams) {
            self.beyond += 1;
            return 0;
        }
        group as u16
    }

    fn warnings(&self) -> Vec<String> {
        write_hint::beyond(self.beyond, self.streams)
    }
}

/// What kind of file a path names: its extension; where it has none, the name without digits; where nothing
/// is left of that, the directory that holds it.
pub fn class_of(path: &str) -> String {
    let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
    if let Some((stem, extension)) = name.rsplit_once('.')
        && !stem.is_empty()
        && !extension.is_empty()
        && !extension.bytes().all(|b| b.is_ascii_digit())
    {
        return extension.to_owned();
    }
    // File numbers are decimal or, in upper case, hexadecimal.
    let is_number = |text: &str| {
        !text.is_empty()
            && text.bytes().all(|b| b.is_ascii_digit() || (b'A'..=b'F').contains(&b))
            && text.bytes().any(|b| b.is_ascii_digit())
    };
    let words: Vec<&str> =
        name.split(['.', '-', '_']).filter(|word| !word.is_empty() && !is_number(word)).collect();
    if !words.is_empty() {
        return words.join("-");
    }
    parent.split('/').filter(|part| !is_number(part)).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::super::tests::{build, facts, try_build};
    use super::*;
    use nandscape_core::{BlockKind, Origin};

    #[test]
    fn globs() {
        for (glob, text, fits) in [
            ("*.log", "000003.log", true),
            ("*.log", "log", false),
            ("*", "", true),
            ("a*b*c", "aXbXbc", true),
            ("a*b*c", "acb", false),
            ("LOG", "LOG.old", false),
            ("LOG*", "LOG.old", true),
            ("*/pg_wal/*", "pg/pg_wal/0001", true),
            ("ab", "ab", true),
            ("a*a", "a", false),
        ] {
            assert_eq!(glob_matches(glob, text), fits, "{glob} {text}");
        }
    }

    #[test]
    fn the_first_group_that_matches_is_the_stream() {
        let mut policy = build("names", &[("rules", "@journal;*.log,*-wal;*/base/*;*")], 3);
        let mut of = |path, kind| {
            policy.assign(&WriteFacts {
                origin: Origin { path: Some(path), kind, ..Origin::default() },
                ..facts(0)
            })
        };
        assert_eq!(of("x.log", BlockKind::Journal), 1);
        assert_eq!(of("db/x.log", BlockKind::FileData), 2);
        assert_eq!(of("pg/base/5/1234", BlockKind::FileData), 3);
        assert_eq!(of("db/other", BlockKind::FileData), 0);
        assert_eq!(of("db/other", BlockKind::Directory), 0);
        // The group of everything else is the fourth of three streams.
        assert_eq!(policy.warnings(), ["1 writes asked for a stream above 3 and were sent without one"]);
    }

    #[test]
    fn wrong_rules_say_what_was_expected() {
        for (rules, expected) in
            [("*.log;;x", "a pattern in every group"), ("@inodes", "@journal, @inode"), (" ", "a pattern")]
        {
            let error = try_build("names", &[("rules", rules)], 4).err().unwrap().to_string();
            assert!(error.contains("rules") && error.contains(expected), "{error}");
        }
    }

    #[test]
    fn classes_come_from_extensions_words_and_directories() {
        for (path, class) in [
            ("db/000012.sst", "sst"),
            ("db/MANIFEST-000001", "MANIFEST"),
            ("db/LOG.old.1795226114123462", "LOG-old"),
            ("pg/base/5/16384", "pg/base"),
            ("pg/base/5/16384_vm", "vm"),
            ("pg/pg_wal/00000001000000000000002C", "pg/pg_wal"),
            ("rollback.db-journal", "db-journal"),
            ("r/.gitignore", "gitignore"),
            ("", ""),
        ] {
            assert_eq!(class_of(path), class, "{path}");
        }
    }
}
