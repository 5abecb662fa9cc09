//! The server that has a cache, if one has.

use crate::console::{Failure, Result};
use nandscape_engine::control::{Client, running};
use nandscape_volumes::{CacheFile, CacheFileError, CacheStat, FileError};
use std::path::{Path, PathBuf};

/// What a cache in memory is called where the file of another one is named.
pub const IN_MEMORY: &str = "ram";

/// The server that serves the cache at `fast`, and what it tells of it. `None` if nobody uses it. `ram` is
/// the cache in memory that is served.
pub fn find(fast: &Path) -> Result<Option<(Client, CacheStat)>> {
    if is_in_memory(fast) {
        return in_memory().map(Some);
    }
    let in_use = match CacheFile::open(fast, true) {
        Ok(_) => return Ok(None),
        Err(error @ CacheFileError::File(FileError::InUse { .. })) => error,
        Err(error) => return Err(error.into()),
    };
    let path = std::fs::canonicalize(fast).unwrap_or_else(|_| fast.to_owned());
    match serving(&path).next() {
        Some(found) => Ok(Some(found)),
        None => Err(Failure::run(format!("{in_use}, and no server that can be asked has it"))),
    }
}

/// The server that serves the cache at `fast`; `None` if nobody uses it, or a member of its mirror is gone,
/// which a server would not wait for.
pub fn find_served(fast: &Path) -> Result<Option<Client>> {
    match CacheFile::open(fast, true) {
        Err(CacheFileError::File(FileError::InUse { .. })) => Ok(find(fast)?.map(|(client, _)| client)),
        _ => Ok(None),
    }
}

/// Whether this names the cache in memory that is served.
fn is_in_memory(fast: &Path) -> bool {
    fast == Path::new(IN_MEMORY) && !fast.exists()
}

/// The server of the cache in memory, if that is named.
pub fn memory(fast: &Path) -> Result<Option<Client>> {
    is_in_memory(fast).then(in_memory).map(|found| found.map(|(client, _)| client)).transpose()
}

fn in_memory() -> Result<(Client, CacheStat)> {
    let mut all: Vec<_> = serving(Path::new(IN_MEMORY)).collect();
    match (all.pop(), all.len()) {
        (Some(found), 0) => Ok(found),
        (None, _) => Err(Failure::run(
            "ram: no file of that name, and no server has a cache in memory: expected 'serve --cache ram:SIZE' to run",
        )),
        (Some(_), others) => {
            Err(Failure::run(format!("ram: {} servers have a cache in memory: expected one", others + 1)))
        }
    }
}

/// Every cache that a server of this user serves, with the control socket of the server.
pub fn all() -> Result<Vec<(PathBuf, CacheStat)>> {
    let sockets = running().map_err(Failure::run)?;
    let asked = sockets.into_iter().filter_map(|socket| {
        let (_, stat) = ask(&socket)?;
        Some((socket, stat))
    });
    Ok(asked.collect())
}

/// Servers that have this cache, and can be asked.
fn serving(path: &Path) -> impl Iterator<Item = (Client, CacheStat)> {
    let all = running().unwrap_or_default().into_iter();
    let is_it =
        move |other: &Path| other == path || std::fs::canonicalize(other).is_ok_and(|other| other == path);
    all.filter_map(|socket| ask(&socket))
        .filter(move |(_, stat)| stat.fast == path || stat.mirror.iter().any(|member| is_it(&member.path)))
}

/// The cache of a server; `None` if it has none, or has ended.
fn ask(socket: &Path) -> Option<(Client, CacheStat)> {
    let mut client = Client::connect(socket).ok()?;
    let (document, _) = client.stat().ok()?;
    let stat = serde_json::from_value::<CacheStat>(document.get("cached")?.clone()).ok()?;
    Some((client, stat))
}
