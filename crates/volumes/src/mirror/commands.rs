//! What is done to the members of a cache that is mirrored.

use super::{Mirror, open};
use crate::making::{Files, Making};
use crate::{CacheFile, FAST, Result};
use std::path::Path;

impl CacheFile {
    /// Goes on without a member of a mirror, whether it is there or not.
    pub fn fail(path: &Path, member: &Path) -> Result<()> {
        open(path, FAST, Some(member))?.fail(path, member)
    }

    /// Puts the file `new` in place of a member, which may be gone, with all that the others have. A file
    /// that is not there is made.
    pub fn replace(
        path: &Path,
        member: &Path,
        new: &Path,
        with: Making<'_>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<()> {
        let mut mirror: Mirror = open(path, FAST, Some(member))?;
        let mut files = Files::new(with);
        let begun = mirror.replace(path, member, &mut files, new, with.replace);
        files.keep_if(begun)?;
        let all = mirror.shape().capacity_bytes;
        loop {
            let left = mirror.copy_more()?;
            progress(all - left, all);
            if left == 0 {
                return Ok(());
            }
        }
    }
}
