//! Recordings that are not in the tree.

use std::path::{Path, PathBuf};

/// Where recordings are looked for: the folder that this environment variable names.
const FOLDER: &str = "NANDSCAPE_TRACES";
/// What the note of a row begins with that has no figure for lack of a recording.
pub(super) const SKIPPED: &str = "skipped: ";

/// A recording, if the folder is given and has it; else why not.
pub(super) fn find(file: &str) -> Result<PathBuf, String> {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return Err(format!("{SKIPPED}{FOLDER} does not name a folder of recordings with {file}"));
    };
    let path = Path::new(&folder).join(file);
    if path.is_file() { Ok(path) } else { Err(format!("{SKIPPED}{} is not there", path.display())) }
}
