//! Limits of what the files of a user may take, and what they take.

use crate::client::Failed;
use nandscape_core::units;
use std::collections::{BTreeMap, HashMap};

/// What the files of a user may take together; `None`: anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Quota {
    pub bytes: Option<u64>,
    pub files: Option<u64>,
}

/// What they take.
#[derive(Clone, Copy, Debug, Default)]
struct Used {
    bytes: u64,
    files: u64,
}

/// Users with limits. Of others nothing is counted.
#[derive(Debug, Default)]
pub struct Quotas {
    users: BTreeMap<u32, (Quota, Used)>,
    /// What their files are charged with.
    charged: HashMap<u64, (u32, u64)>,
}

impl Quotas {
    /// These limits, and no files yet.
    pub fn new(quotas: &BTreeMap<u32, Quota>) -> Self {
        let users = quotas.iter().map(|(uid, quota)| (*uid, (*quota, Used::default())));
        Self { users: users.collect(), charged: HashMap::new() }
    }

    /// Whether a user has a limit.
    pub fn limits(&self, uid: u32) -> bool {
        self.users.contains_key(&uid)
    }

    fn used(&mut self, uid: u32) -> Option<&mut Used> {
        self.users.get_mut(&uid).map(|(_, used)| used)
    }

    /// A file of a user takes so many bytes from now on.
    pub fn charge(&mut self, ino: u64, uid: u32, bytes: u64) {
        self.forget(ino);
        if let Some(used) = self.used(uid) {
            (used.bytes, used.files) = (used.bytes + bytes, used.files + 1);
            self.charged.insert(ino, (uid, bytes));
        }
    }

    /// A file is gone.
    pub fn forget(&mut self, ino: u64) {
        if self.users.is_empty() {
            return;
        }
        if let Some((uid, bytes)) = self.charged.remove(&ino)
            && let Some(used) = self.used(uid)
        {
            (used.bytes, used.files) = (used.bytes - bytes, used.files - 1);
        }
    }

    /// Whether a user may have so many more bytes and files.
    pub fn check(&self, uid: u32, bytes: u64, files: u64) -> Result<(), Failed> {
        let Some((quota, used)) = self.users.get(&uid) else { return Ok(()) };
        let is_over = |limit: Option<u64>, used: u64, more| {
            more > 0 && limit.is_some_and(|limit| used.saturating_add(more) > limit)
        };
        if is_over(quota.bytes, used.bytes, bytes) || is_over(quota.files, used.files, files) {
            return Err(Failed::number(libc::EDQUOT));
        }
        Ok(())
    }

    /// What users with limits have, in a line each.
    pub fn notes(&self) -> Vec<String> {
        let bytes = units::format_bytes;
        let part = |used: String, limit: Option<String>| match limit {
            Some(limit) => format!("{used} of {limit}"),
            None => used,
        };
        let note = |(uid, (quota, used)): (&u32, &(Quota, Used))| {
            let space = part(bytes(used.bytes), quota.bytes.map(bytes));
            let files = part(used.files.to_string(), quota.files.map(|files| files.to_string()));
            format!("user {uid} has {space} and {files} files")
        };
        self.users.iter().map(note).collect()
    }
}
