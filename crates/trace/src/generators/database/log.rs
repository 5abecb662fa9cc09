//! The transaction log: appends, a flush after each, in a ring of files.

use super::super::common::{SPAN, threshold};
use super::space::Space;
use super::{COMMIT, FILES, GROUP, Load, MEMBERS, given};
use nandscape_core::rng::{Rng, Xoshiro256PlusPlus, below};
use nandscape_core::{ParamError, Params};

pub(super) struct Log {
    /// Bytes of a file, and of all.
    file: u64,
    total: u64,
    /// Where the next commit begins.
    at: u64,
    /// Whether every file was written before.
    is_reused: bool,
    commit: u64,
    /// Draws below it are commits of 2 to `members` transactions.
    group: u128,
    members: u64,
}

impl Log {
    pub(super) fn new(params: &Params, space: &Space) -> Result<Self, ParamError> {
        let files = params.get(FILES).unwrap_or(4);
        let file = space.whole(space.usable / files);
        if file == 0 {
            let expected = format!("room for {} B in each of {files} files", space.grain);
            return Err(params.error(given(params, FILES, SPAN), expected));
        }
        let commit = params.get(COMMIT).unwrap_or(6 << 10);
        let group = params.get(GROUP).unwrap_or(0.2);
        let members = params.get(MEMBERS).unwrap_or(8);
        let longest = (commit * if group > 0.0 { members } else { 1 }).next_multiple_of(space.bs);
        if longest > file {
            let expected = format!("room in a file, {file} B, for the longest commit, {longest} B");
            return Err(params.error(given(params, COMMIT, SPAN), expected));
        }
        let group = threshold(group);
        Ok(Self { file, total: file * files, at: 0, is_reused: false, commit, group, members })
    }
}

impl Load for Log {
    fn step(&mut self, space: &mut Space, rng: &mut Xoshiro256PlusPlus) -> bool {
        let is_group = self.group > 0 && u128::from(rng.next_u64()) < self.group;
        let members = if is_group { 2 + below(rng, self.members - 1) } else { 1 };
        let mut left = (self.commit * members).next_multiple_of(space.bs);
        let mut is_pass = false;
        while left > 0 {
            let inside = self.at % self.file;
            if inside == 0 && self.is_reused {
                space.free(self.at, self.file);
            }
            let len = left.min(self.file - inside);
            space.write(self.at, len);
            self.at += len;
            left -= len;
            if self.at == self.total {
                self.at = 0;
                self.is_reused = true;
                is_pass = true;
            }
        }
        space.flush();
        is_pass
    }
}
