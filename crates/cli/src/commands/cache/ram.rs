//! `nandscape cache ram`: a cache in memory, by the commands of RapidDisk. Each stands for a command that
//! other caches have too.

use super::{files, list, running};
use crate::args::{CacheAttachArgs, CacheDetachArgs, RamVerb};
use crate::console::{Console, Failure, Result};
use nandscape_core::units;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What a number without a unit counts.
const MB: u64 = 1 << 20;

pub fn run(verb: &RamVerb, console: Console) -> Result<()> {
    let fast = PathBuf::from(running::IN_MEMORY);
    match verb {
        RamVerb::Create { .. } => unreachable!("it was taken for the command that it stands for"),
        RamVerb::Attach { disk, name } => {
            let (disk, name) = (disk.clone(), name.clone());
            files::attach(&CacheAttachArgs { fast, disk, name, quota: None, force: false }, console)
        }
        RamVerb::Detach { volume } => {
            let volume = volume.clone();
            let args = CacheDetachArgs { fast, volume, disk: None, discard: false, discard_lost: false };
            files::detach(&args, console)
        }
        RamVerb::List(args) => list::run(args, |fast| fast == Path::new(running::IN_MEMORY), console),
    }
}

/// The command line that `create` stands for.
pub fn served(size: &str, options: &[OsString]) -> Result<Vec<OsString>> {
    let bytes = match size.parse::<u64>() {
        Ok(count) => count.checked_mul(MB),
        Err(_) => units::parse_size(size).ok(),
    };
    let bytes = bytes.filter(|bytes| *bytes > 0).ok_or_else(|| {
        Failure::usage(format!("'{size}': expected a size in MB such as 256, or with a unit such as 1GiB"))
    })?;
    let cache = format!("{}:{bytes}", running::IN_MEMORY);
    let line = ["nandscape", "serve", "nbd", "--cache", &cache].map(OsString::from);
    Ok(line.into_iter().chain(options.iter().cloned()).collect())
}
