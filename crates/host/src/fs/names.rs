//! Paths of files by the number of their life.

use std::collections::BTreeMap;

/// `file -> the names it had, in order`.
#[derive(Clone, Debug, Default)]
pub struct FileNames {
    names: BTreeMap<u32, Vec<Box<str>>>,
}

impl FileNames {
    /// Notes a file's path; renames are written `a -> b -> c`.
    pub fn insert(&mut self, file: u32, path: &str) {
        self.names.insert(file, path.split(" -> ").map(Into::into).collect());
    }

    /// Notes the path that a file has from now on, behind those it had.
    pub fn push(&mut self, file: u32, path: &str) {
        self.names.entry(file).or_default().push(path.into());
    }

    /// The name after so many renames; the last known one if there were more.
    pub fn get(&self, file: u32, renames: u32) -> Option<&str> {
        let names = self.names.get(&file)?;
        names.get(renames as usize).or(names.last()).map(|name| &**name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renames_walk_along_the_names() {
        let mut names = FileNames::default();
        names.insert(3, "db/a.tmp -> db/a");
        assert_eq!(
            (names.get(3, 0), names.get(3, 1), names.get(3, 9)),
            (Some("db/a.tmp"), Some("db/a"), Some("db/a"))
        );
        assert_eq!((names.get(4, 0), names.names.len()), (None, 1));
        names.push(3, "a -> b");
        assert_eq!((names.get(3, 1), names.get(3, 2)), (Some("db/a"), Some("a -> b")));
    }
}
