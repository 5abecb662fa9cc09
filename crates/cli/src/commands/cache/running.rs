//! The server that has a cache, if one has.

use crate::console::Failure;
use nandscape_engine::control::{Client, running};
use nandscape_stack::caches::{CacheFile, CacheFileError, CacheStat, FileError};
use std::path::Path;

/// The server that serves the cache at `fast`, and what it tells of it. `None` if nobody uses it.
pub fn find(fast: &Path) -> Result<Option<(Client, CacheStat)>, Failure> {
    let in_use = match CacheFile::open(fast, true) {
        Ok(_) => return Ok(None),
        Err(error @ CacheFileError::File(FileError::InUse { .. })) => error,
        Err(error) => return Err(error.into()),
    };
    let path = std::fs::canonicalize(fast).unwrap_or_else(|_| fast.to_owned());
    for socket in running().unwrap_or_default() {
        let Ok(mut client) = Client::connect(&socket) else { continue };
        let Ok((document, _)) = client.stat() else { continue };
        let stat = document.get("cached").cloned();
        let stat = stat.and_then(|stat| serde_json::from_value::<CacheStat>(stat).ok());
        if let Some(stat) = stat.filter(|stat| stat.fast == path) {
            return Ok(Some((client, stat)));
        }
    }
    Err(Failure::run(format!("{in_use}, and no server that can be asked has it")))
}
