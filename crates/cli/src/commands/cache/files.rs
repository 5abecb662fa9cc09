//! The verbs of `nandscape cache` that are about files and block devices.

use super::running;
use crate::args::{
    CacheAttachArgs, CacheCleanArgs, CacheDetachArgs, CacheFailArgs, CacheReplaceArgs, CacheResizeArgs,
    CacheSalvageArgs, CacheSetArgs, CacheStatusArgs,
};
use crate::console::{Console, Failure, Result};
use nandscape_cache::compose::Typed;
use nandscape_cache::metadata::Lost;
use nandscape_cache::status::{self, Printer};
use nandscape_core::units::format_bytes;
use nandscape_engine::control::{Ask, ClientError};
use nandscape_volumes::{CacheFile, CacheStat, Making};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Ranges that are printed; JSON has more.
const MOST_PRINTED: usize = 50;

/// `NAME=PATH` as it was typed for `--disk`.
pub fn disks(typed: &[String]) -> Result<Vec<(String, PathBuf)>> {
    let pair = |text: &String| {
        let (name, path) =
            text.split_once('=').filter(|(name, path)| !name.is_empty() && !path.is_empty())?;
        Some((name.to_owned(), PathBuf::from(path)))
    };
    let wrong = |text: &String| Failure::usage(format!("--disk {text}: expected NAME=PATH"));
    typed.iter().map(|text| pair(text).ok_or_else(|| wrong(text))).collect()
}

/// `KEY=VALUE`, the key with or without its table.
pub fn pairs(flag: &str, typed: &[String]) -> Result<Typed> {
    let pair = |text: &String| {
        let (key, value) = text.split_once('=')?;
        let key = key.trim();
        Some((key.strip_prefix("cache.").unwrap_or(key).to_owned(), value.trim().to_owned()))
    };
    let wrong = |text: &String| {
        Failure::usage(format!("{flag}'{text}': expected KEY=VALUE, such as mode=write-through"))
    };
    typed.iter().map(|text| pair(text).ok_or_else(|| wrong(text))).collect()
}

/// The name of a volume, or that of its disk.
pub fn name_of(name: Option<&String>, disk: &Path) -> Result<String> {
    let name = name.cloned().or_else(|| Some(disk.file_stem()?.to_string_lossy().into_owned()));
    name.ok_or_else(|| Failure::usage(format!("{}: expected a file or a block device", disk.display())))
}

pub fn attach(args: &CacheAttachArgs, console: Console) -> Result<()> {
    let name = name_of(args.name.as_ref(), &args.disk)?;
    if let Some(mut server) = running::memory(&args.fast)? {
        if args.force {
            return Err(Failure::usage(
                "--force: a cache in memory takes no disk with the stamp of another cache",
            ));
        }
        let disk = std::path::absolute(&args.disk).map_err(Failure::run)?;
        server.ask(&Ask::CacheAttach { disk, name: name.clone() }).map_err(Failure::run)?;
        if let Some(quota) = &args.quota {
            let settings = [(format!("quota.{name}"), quota.clone())].into();
            server.ask(&Ask::CacheSet { settings }).map_err(refused)?;
        }
        console.note(&format!("{name}: behind the cache in memory, and an export of its server"));
        return Ok(());
    }
    let mut cache = CacheFile::open(&args.fast, false)?;
    let bytes = cache.attach(&args.disk, &name, args.quota.as_deref(), args.force)?;
    console.note(&format!("{name}: {} behind {}", format_bytes(bytes), args.fast.display()));
    // The disk is attached, whatever becomes of this.
    if let Ok(stat) = cache.stat()
        && stat.preset == "flashcache"
        && let Some(at) = stat.volumes.iter().position(|volume| volume.name == name)
    {
        console.note(&stat.flashcache_created(at, main_memory_bytes()).text_with_truths());
    }
    Ok(())
}

/// Memory of this machine; 0 where it does not say.
fn main_memory_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// Goes on without what a session that was cut short has lost, and says so.
pub fn discard_lost(cache: &mut CacheFile, volume: Option<&str>, console: Console) -> Result<bool> {
    let names = cache.discard_lost(volume)?;
    for name in &names {
        console.note(&format!(
            "{name}: blocks that were dirty when the last session was cut short are lost, flushed ones too"
        ));
    }
    Ok(!names.is_empty())
}

pub fn detach(args: &CacheDetachArgs, console: Console) -> Result<()> {
    if let Some(mut server) = running::memory(&args.fast)? {
        if args.disk.is_some() || args.discard || args.discard_lost {
            return Err(Failure::usage(
                "the disk of a cache in memory has everything: expected none of --disk, --discard and --discard-lost",
            ));
        }
        server.ask(&Ask::CacheDetach { name: args.volume.clone() }).map_err(Failure::run)?;
        console.note(&format!("{}: taken off; its disk is complete", args.volume));
        return Ok(());
    }
    let mut cache = CacheFile::open(&args.fast, false)?;
    let has_lost =
        (args.discard_lost || args.discard) && discard_lost(&mut cache, Some(&args.volume), console)?;
    if args.discard {
        let lost = cache.discard(&args.volume)?;
        console.note(&format!(
            "{}: taken off; {} that the disk does not have are lost",
            args.volume,
            format_bytes(lost)
        ));
        return Ok(());
    }
    let bar = console.progress("detach");
    let disk = cache.detach(&args.volume, args.disk.as_deref(), &mut |done, all| bar.show_bytes(done, all));
    bar.finish();
    let complete = if has_lost { "has what was not lost" } else { "is complete by itself" };
    console.note(&format!("{}: taken off; {} {complete}", args.volume, disk?.display()));
    Ok(())
}

pub fn clean(args: &CacheCleanArgs, console: Console) -> Result<()> {
    let disks = disks(&args.disks)?;
    if let Some((mut server, _)) = running::find(&args.fast)? {
        if args.volume.is_some() || !disks.is_empty() {
            return Err(Failure::usage(
                "a cache that is served is cleaned as a whole: expected neither a volume nor --disk",
            ));
        }
        let cleaned = server.ask(&Ask::CacheClean {}).map_err(Failure::run)?;
        console.note(&format!("cleaned by its server: {} blocks", cleaned.unwrap_or_default()));
        return Ok(());
    }
    let mut cache = CacheFile::open(&args.fast, false)?;
    if args.discard_lost {
        discard_lost(&mut cache, args.volume.as_deref(), console)?;
    }
    let bar = console.progress("clean");
    let mut cleaned = 0;
    let done = cache.clean(args.volume.as_deref(), &disks, &mut |done, all| {
        cleaned = done;
        bar.show_bytes(done, all);
    });
    bar.finish();
    done?;
    console.note(&format!("{} written to disk", format_bytes(cleaned)));
    Ok(())
}

pub fn set(args: &CacheSetArgs, console: Console) -> Result<()> {
    let pairs = pairs("", &args.pairs)?;
    let Some((mut server, stat)) = running::find(&args.fast)? else {
        return Ok(CacheFile::open(&args.fast, false)?.set(&pairs)?);
    };
    let dirty = stat.gauges.dirty;
    server.ask(&Ask::CacheSet { settings: pairs.clone() }).map_err(refused)?;
    let is_kept = stat.fast != Path::new(running::IN_MEMORY) && stat.given_up.is_none();
    console.note(if is_kept {
        "in force now, and at every start from now on"
    } else {
        "in force until the server ends: there is no cache device to write it to"
    });
    if pairs.contains_key("mode") && dirty > 0 {
        console.note(&format!(
            "{dirty} blocks are dirty and stay so until they are cleaned: nandscape cache clean {}",
            args.fast.display()
        ));
    }
    Ok(())
}

/// What a server said of settings that it does not take is about what was typed.
fn refused(error: ClientError) -> Failure {
    match error {
        ClientError::Refused { name, message } if name == "cache" => Failure::usage(message),
        error => Failure::run(error),
    }
}

pub fn resize(args: &CacheResizeArgs, console: Console) -> Result<()> {
    let (old, new) = CacheFile::open(&args.fast, false)?.resize(&args.volume, args.disk.as_deref())?;
    let (old, new) = (format_bytes(old), format_bytes(new));
    let said = if old == new { format!("{new}, as before") } else { format!("{new} instead of {old}") };
    console.note(&format!("{}: {said}", args.volume));
    Ok(())
}

pub fn fail(args: &CacheFailArgs, console: Console) -> Result<()> {
    match running::find_served(&args.fast)? {
        Some(mut server) => {
            let member = std::path::absolute(&args.member).map_err(Failure::run)?;
            server.ask(&Ask::CacheFail { member }).map_err(Failure::run)?;
        }
        None => CacheFile::fail(&args.fast, &args.member)?,
    }
    let (cache, member) = (args.fast.display(), args.member.display());
    console.note(&format!(
        "{cache}: goes on without {member}; 'nandscape cache replace' puts another one there"
    ));
    Ok(())
}

pub fn replace(args: &CacheReplaceArgs, console: Console) -> Result<()> {
    let bar = console.progress("replace");
    let done = if let Some(mut server) = running::find_served(&args.fast)? {
        if args.sparse {
            return Err(Failure::usage("--sparse: a server reserves the space of a file that it makes"));
        }
        let absolute = |path: &Path| std::path::absolute(path).map_err(Failure::run);
        let (member, new) = (absolute(&args.member)?, absolute(&args.new)?);
        server.ask(&Ask::CacheReplace { member, new, force: args.force }).map(drop).map_err(Failure::run)
    } else {
        let with = Making { replace: args.force, is_sparse: args.sparse, ..Making::default() };
        let mut progress = |done, all| bar.show_bytes(done, all);
        CacheFile::replace(&args.fast, &args.member, &args.new, with, &mut progress).map_err(Failure::from)
    };
    bar.finish();
    done?;
    let (cache, member, new) = (args.fast.display(), args.member.display(), args.new.display());
    console.note(&format!("{cache}: {new} in place of {member}, with all that the others have"));
    Ok(())
}

/// Lists what a disk does not have, and writes it somewhere.
pub fn salvage(args: &CacheSalvageArgs, console: Console) -> Result<()> {
    let mut cache = CacheFile::open(&args.fast, !args.onto_disk)?;
    let (ranges, given_up) = cache.dirty(&args.volume, args.disk.as_deref())?;
    let bytes: u64 = ranges.iter().map(|range| range.len).sum();
    if let Some(given_up) = &given_up {
        console.note(&format!("{}: {given_up}", args.volume));
    }
    if args.json {
        let ranges: Vec<Value> =
            ranges.iter().map(|range| json!({ "offset": range.offset, "len": range.len })).collect();
        let mut document = json!({ "schema": 1, "volume": args.volume, "bytes": bytes, "ranges": ranges });
        if let Some(given_up) = &given_up {
            document["given_up"] = json!(given_up.to_string());
        }
        console.result(&format!("{document:#}"))?;
    } else {
        console.result(&listed(&args.volume, &ranges, bytes))?;
    }
    let bar = console.progress("salvage");
    let mut progress = |done, all| bar.show_bytes(done, all);
    let done = if let Some(target) = &args.to {
        cache.salvage_to(&args.volume, args.disk.as_deref(), target, &mut progress)
    } else if args.onto_disk {
        cache.salvage(&args.volume, args.disk.as_deref(), &mut progress)
    } else {
        console.note(
            "nothing was written; --to FILE copies it, --onto-disk writes it over what the disk has now",
        );
        Ok(())
    };
    bar.finish();
    Ok(done?)
}

fn listed(volume: &str, ranges: &[Lost], bytes: u64) -> String {
    let mut text =
        format!("{volume}: {bytes} bytes in {} ranges that the disk does not have\n", ranges.len());
    for range in ranges.iter().take(MOST_PRINTED) {
        let _ = writeln!(text, "{:>16} {:>12}", range.offset, range.len);
    }
    if ranges.len() > MOST_PRINTED {
        let _ = writeln!(text, "... and {} more (--json has all)", ranges.len() - MOST_PRINTED);
    }
    text
}

pub fn status(args: &CacheStatusArgs, is_table: bool, console: Console) -> Result<()> {
    let stat = match running::find(&args.fast)? {
        Some((_, stat)) => stat,
        None => CacheFile::open(&args.fast, true)?.stat()?,
    };
    let preset = args.preset.as_deref().unwrap_or(&stat.preset);
    let printer = status::find(preset).map_err(Failure::usage)?;
    let volumes = chosen(&stat, args.volume.as_deref())?;
    if args.json {
        let mut document = serde_json::to_value(&stat).expect("plain data");
        document["schema"] = json!(1);
        let pages = volumes.iter().map(|at| {
            let name = at.map_or_else(|| "all".to_owned(), |at| stat.volumes[at].name.clone());
            (name, serde_json::to_value(stat.page(printer, *at, is_table)).expect("plain data"))
        });
        document["pages"] = Value::Object(pages.collect());
        return console.result(&format!("{document:#}"));
    }
    let mut text = String::new();
    for at in volumes {
        text += &page(&stat, printer, at, is_table);
    }
    console.result(&text)
}

/// Places of the volumes to print; none if the cache has none.
fn chosen(stat: &CacheStat, name: Option<&str>) -> Result<Vec<Option<usize>>> {
    let Some(name) = name else {
        let all: Vec<Option<usize>> = (0..stat.volumes.len()).map(Some).collect();
        return Ok(if all.is_empty() { vec![None] } else { all });
    };
    let at = stat.volumes.iter().position(|volume| volume.name == name);
    let names = || stat.volumes.iter().map(|volume| volume.name.as_str()).collect::<Vec<_>>().join(", ");
    at.map(|at| vec![Some(at)])
        .ok_or_else(|| Failure::usage(format!("no volume '{name}': expected one of {}", names())))
}

fn page(stat: &CacheStat, printer: &Printer, at: Option<usize>, is_table: bool) -> String {
    let mut text = String::new();
    if let Some(volume) = at.map(|at| &stat.volumes[at]) {
        let _ =
            writeln!(text, "# {}: {}, {}", volume.name, volume.disk.display(), format_bytes(volume.bytes));
        if !is_table {
            let _ = writeln!(text, "# disk: {}", volume.state);
            let of_bytes = match volume.dirty_bytes {
                0 => String::new(),
                bytes => format!(" ({})", format_bytes(bytes)),
            };
            let (blocks, dirty) = (volume.blocks, volume.dirty_blocks);
            let _ = writeln!(text, "# {blocks} blocks cached, {dirty} of them dirty{of_bytes}");
        }
        if let Some(quota) = volume.quota_blocks {
            let _ = writeln!(text, "# quota: {quota} blocks");
        }
        if !is_table && stat.is_served && stat.volumes.len() > 1 {
            text.push_str("# of this volume, but for metadata and errors of the cache device, which are counted together\n");
        }
    }
    if let Some(limit) = stat.limit_blocks {
        let _ = writeln!(text, "# limit: {limit} blocks of all volumes");
    }
    for member in stat.mirror.iter().filter(|_| !is_table) {
        let _ = writeln!(text, "# mirror: {member}");
    }
    if !is_table && let Some(trouble) = &stat.trouble {
        let _ = writeln!(text, "# {trouble}");
    }
    for lost in stat.lost.iter().filter(|_| !is_table) {
        let _ = writeln!(text, "# lost: {}, {} bytes at offset {}", lost.volume, lost.len, lost.offset);
    }
    if !is_table && let Some(recovery) = &stat.recovery {
        let _ = writeln!(text, "# {}", recovery.replace('\n', "\n# "));
    }
    if !is_table && !stat.is_served {
        text.push_str("# not served: what is counted begins anew with each server\n");
    }
    text + &stat.page(printer, at, is_table).text_with_truths() + "\n"
}
