//! The article on disk caches (`cache-article` in docs/sources.md): sequential and random reads and writes of
//! 4 KiB at depth 32, on the raw drives, on a RAM disk and on every design of a cache.
//!
//! The article says neither how large its files were nor what was cached before. Here each cache is read once
//! in random order, and then asked for what it has.

use super::{Context, Done, Reproduction, Sabotage, Table, experiment};
use crate::Result;
use nandscape_cache::presets::PRESETS;
use nandscape_report::{RowKind, Run};
use nandscape_stack::RunOptions;
use nandscape_stack::cache::NO_CACHE;
use rayon::prelude::*;
use std::fmt::{Display, Write as _};

const ID: &str = "cache-article";

pub(super) const CACHE_ARTICLE: Reproduction = Reproduction {
    sabotage: Some(Sabotage {
        what: "caches over the SSD are in memory, rapidcache is on the SSD, and the disk alone is memory",
        turns: &[
            "raw HDD, sequential read",
            "raw HDD, random read",
            "flashcache, sequential read",
            "flashcache, sequential write",
            "flashcache, random read",
            "flashcache, random write",
            "rapidcache reads far above the SSD",
            "rapidcache writes as the disk does",
            "flashcache writes to dirty blocks as the SSD does",
            "no cache over the SSD reads faster than the SSD",
        ],
    }),
    ..experiment(
        ID,
        "raw SSD, HDD and RAM disk, and every design of a cache: sequential and random reads and writes",
        "[cache-article introduction], [cache-article dm-cache], [cache-article flashcache], [cache-article rapiddisk]",
        |context, out| rows(&context.scale(FULL, SMALL), context, out),
    )
};

#[derive(Clone, Copy, Debug)]
struct Scale {
    /// Cached MiB of the designs of which the article says no size, and of rapidcache
    /// [cache-article rapiddisk].
    cache_mib: u64,
    /// Cached MiB of dm-cache: 65,536 blocks [cache-article dm-cache].
    fiu_mib: u64,
    /// Cached MiB of flashcache: a quarter of the 57,018 MiB of [cache-article flashcache].
    flashcache_mib: u64,
    /// Requests in sequence to a raw device.
    sequential: u64,
    /// Requests at random to a raw device.
    random: u64,
}

const FULL: Scale =
    Scale { cache_mib: 1024, fiu_mib: 256, flashcache_mib: 14_254, sequential: 100_000, random: 20_000 };
/// The same with caches of 1/64, for tests.
const SMALL: Scale =
    Scale { cache_mib: 16, fiu_mib: 4, flashcache_mib: 222, sequential: 10_000, random: 3_000 };

impl Scale {
    /// MiB of a design's cache, and the KiB that it is asked for.
    ///
    /// That is three quarters of the cache, and less where a hash spreads blocks over sets unevenly: so much
    /// that few sets are full, or, with flashcache, are more than 20 % dirty, from where on it cleans.
    fn sizes(&self, preset: &str) -> (u64, u64) {
        match preset {
            FIU => (self.fiu_mib, self.fiu_mib * 256),
            "flashcache" => (self.flashcache_mib, self.fiu_mib * 256),
            _ => (self.cache_mib, self.cache_mib * 768),
        }
    }
}

/// The four numbers: sequential read and write, random read and write, in MB/s.
type Four = [f64; 4];

const NAMES: [&str; 4] = ["sequential read", "sequential write", "random read", "random write"];

const WRITE_CACHE: &str = "the article's disk writes more slowly than it reads; the model is a plausible drive of 7200 turns a minute with 8 MiB of write \
     cache in which it sorts what is written, and is not fitted";
const BEYOND: &str = "no cache reads faster than what it reads from: the article's figure is above its SSD's own 231 MB/s, so part of it came from \
     memory or from how it was measured; read it as an upper bound";
const MISSES: &str = "SSD and disk mixed by the share of misses: the hash spreads runs of 16 blocks over sets of 16 unevenly, and the article's file, which \
     decides how many miss, is unknown (its status shows 3.7 % hits)";
const SOFTWARE: &str = "full sets write dirty blocks to the disk first, and otherwise the design allows what the SSD gives; the article's figure is \
     below that, for its driver and kernel of 2006 or for more full sets: its file is unknown";
const SLOTS: &str = "a write that makes a clean block dirty is answered when its record is on the SSD too, as the design says; records of requests that come \
     together are one write, and nothing is flushed for them, as in the original";
const MEMORY: &str = "a read is a copy from memory: the article's path through the device mapper costs twice that of the RAM disk itself, and costs of \
     processors are not modelled";
const DISK_WRITES: &str = "writes go to the disk and equal those of the disk alone under the same load ('none'); the model's disk sorts writes in its \
     cache, and here all lie close together, so that the arm moves little";
const RAM_RANDOM: &str = "disk.request, jump, read_rate and write_rate were set to the article's eight figures of its RAM disk; its random writes \
     are slower than its reads for reasons of its processor";
const RATED: &str = "the four rates of the preset are the published ones";
const FITTED: &str = "the drive as a flash stack: device.timing.program and channel_bytes_per_s of the preset article-ssd were set to these \
     figures";

struct Raw {
    name: &'static str,
    source: &'static str,
    preset: &'static str,
    request: &'static str,
    unit: &'static str,
    published: Four,
    kind: RowKind,
    note: &'static str,
}

const RAW: [Raw; 4] = [
    Raw {
        name: "raw SSD",
        source: "[cache-article introduction]",
        preset: "article-ssd",
        request: "4k",
        unit: "MB/s",
        published: [231.0, 74.0, 230.0, 72.0],
        kind: RowKind::Input,
        note: RATED,
    },
    Raw {
        name: "raw HDD",
        source: "[cache-article introduction]",
        preset: "article-hdd",
        request: "4k",
        unit: "MB/s",
        published: [115.0, 72.0, 2.0, 2.0],
        kind: RowKind::Measured,
        note: WRITE_CACHE,
    },
    Raw {
        name: "RAM disk, 4 KB",
        source: "[cache-article rapiddisk]",
        preset: "ram",
        request: "4k",
        unit: "GB/s",
        published: [1.6, 1.6, 1.3, 1.1],
        kind: RowKind::Calibrated,
        note: RAM_RANDOM,
    },
    Raw {
        name: "RAM disk, 1 MB",
        source: "[cache-article rapiddisk]",
        preset: "ram",
        request: "1m",
        unit: "GB/s",
        published: [4.9, 4.3, 4.9, 4.0],
        kind: RowKind::Calibrated,
        note: RAM_RANDOM,
    },
];

/// What the article published of a design: where, figures, and why each may be far off.
struct Published {
    preset: &'static str,
    source: &'static str,
    figures: Four,
    notes: [&'static str; 4],
}

const PUBLISHED: [Published; 3] = [
    Published {
        preset: FIU,
        source: "[cache-article dm-cache]",
        figures: [105.0, 50.0, 67.0, 51.0],
        notes: [MISSES, SOFTWARE, MISSES, SOFTWARE],
    },
    Published {
        preset: "flashcache",
        source: "[cache-article flashcache]",
        figures: [284.0, 72.0, 284.0, 71.0],
        notes: [BEYOND, SLOTS, BEYOND, SLOTS],
    },
    Published {
        preset: "rapidcache",
        source: "[cache-article rapiddisk]",
        figures: [794.0, 70.0, 901.0, 2.0],
        notes: [MEMORY, DISK_WRITES, MEMORY, DISK_WRITES],
    },
];

/// Part of the disk that raw devices are asked for: the size of the article's volumes (20,971,520 sectors).
const VOLUME: &str = "10g";

fn jobs(size: &str, request: &str, is_warmed: bool, counts: Option<(u64, u64)>) -> String {
    let mut text =
        format!("[global]\nioengine=libaio\niodepth=32\nbs={request}\nsize={size}\nfilename=ns1\n");
    if is_warmed {
        text += "[warm]\nrw=randread\n";
    }
    // Reads first, so that they find what was read before, and nothing is dirty.
    for (name, rw) in
        [("read", "read"), ("randread", "randread"), ("write", "write"), ("randwrite", "randwrite")]
    {
        let _ = write!(text, "[{name}]\nstonewall\nrw={rw}\n");
        if let Some((sequential, random)) = counts {
            let count = if rw.starts_with("rand") { random } else { sequential };
            let _ = writeln!(text, "number_ios={count}");
        }
    }
    text
}

fn run(context: &Context<'_>, keys: &[(&str, &dyn Display)], jobs: &str) -> Result<Run> {
    context.run_jobs(&context.config(None, keys)?, ID, jobs, RunOptions::default())
}

fn four(run: &Run) -> Four {
    let of = |name: &str| {
        let job = run.result.jobs.iter().find(|job| job.name == name).expect("a job of the file");
        (job.read.bytes_per_s + job.write.bytes_per_s) / 1e6
    };
    [of("read"), of("write"), of("randread"), of("randwrite")]
}

fn raw(raw: &Raw, scale: &Scale, context: &Context<'_>) -> Result<Four> {
    let jobs = jobs(VOLUME, raw.request, false, Some((scale.sequential, scale.random)));
    let is_spoiled = context.is_sabotaged && raw.kind == RowKind::Measured;
    let preset = if is_spoiled { MEMORY_PRESET } else { raw.preset };
    Ok(four(&run(context, &[("cache.preset", &"none"), ("disk.preset", &preset)], &jobs)?))
}

const MEMORY_PRESET: &str = "ram";

const FLASH: (&str, &dyn Display) = ("device.preset", &"article-ssd");
/// Blocks of a plane of the flash stack, instead of 8192: what is not used makes no difference on an empty
/// drive.
const FLASH_BLOCKS: (&str, &dyn Display) = ("device.blocks_per_plane", &512);

fn raw_flash(scale: &Scale, context: &Context<'_>) -> Result<Four> {
    let jobs = jobs("256m", "4k", false, Some((scale.sequential, scale.random)));
    // Reads of what was never written take no time, so all is written first.
    Ok(four(&run(context, &[FLASH, FLASH_BLOCKS, ("workload.precondition", &"fill:50%")], &jobs)?))
}

const FIU: &str = "dm-cache-fiu";
/// Of the article's table line.
const FIU_WAYS: (&str, &dyn Display) = ("cache.ways", &16);

/// Working sets of dm-cache, in percent of its cache: a quarter is what its figures are of.
const WORKING_SETS: [u64; 6] = [6, 12, 25, 50, 75, 100];

/// A cache of a design in front of the disk, over the rated SSD or over the flash stack, which is asked for
/// so many KiB.
fn cached(
    preset: &str,
    is_flash: bool,
    region_kib: u64,
    scale: &Scale,
    context: &Context<'_>,
) -> Result<Run> {
    let (mut mib, _) = scale.sizes(preset);
    let disk = if preset == NO_CACHE && context.is_sabotaged { MEMORY_PRESET } else { "article-hdd" };
    let mut keys: Vec<(&str, &dyn Display)> = vec![("cache.preset", &preset), ("disk.preset", &disk)];
    if is_flash {
        keys.extend([FLASH, FLASH_BLOCKS]);
        mib = mib.min(scale.cache_mib);
    }
    let is_in_memory = (preset == "rapidcache") != context.is_sabotaged;
    let (size, device) = (format!("{mib}MiB"), if is_in_memory { MEMORY_PRESET } else { "article-ssd" });
    if preset != NO_CACHE {
        keys.push(("cache.size", &size));
    }
    if !is_flash && preset != NO_CACHE {
        keys.push(("cache.device", &device));
    }
    if preset == FIU {
        keys.push(FIU_WAYS);
    }
    run(context, &keys, &jobs(&format!("{region_kib}k"), "4k", true, None))
}

fn rows(scale: &Scale, context: &Context<'_>, out: &mut Table) -> Done {
    let mut ssd = [0.0; 4];
    for device in &RAW {
        let measured = raw(device, scale, context)?;
        if device.name == "raw SSD" {
            ssd = measured;
        }
        let divisor = if device.unit == "GB/s" { 1000.0 } else { 1.0 };
        for ((name, published), measured) in NAMES.iter().zip(device.published).zip(measured) {
            out.row(device.source, format!("{}, {name}", device.name))
                .number(device.unit, published, measured / divisor)
                .near()
                .kind(device.kind)
                .note(device.note);
        }
    }
    let flash = raw_flash(scale, context)?;
    for ((name, published), measured) in NAMES.iter().zip(RAW[0].published).zip(flash) {
        out.row(RAW[0].source, format!("SSD of flash, {name}"))
            .number("MB/s", published, measured)
            .kind(RowKind::Calibrated)
            .note(FITTED);
    }
    let names: Vec<&str> = PRESETS.iter().map(|preset| preset.info.name).chain([NO_CACHE]).collect();
    let runs: Vec<(Run, Option<Run>)> = names
        .par_iter()
        .map(|&name| {
            let has_ssd = !["rapidcache", NO_CACHE].contains(&name);
            let (_, region) = scale.sizes(name);
            let over_flash = has_ssd.then(|| cached(name, true, region, scale, context)).transpose()?;
            Ok((cached(name, false, region, scale, context)?, over_flash))
        })
        .collect::<Result<_>>()?;
    for (run, _) in &runs {
        of_cache(run, out);
    }
    for run in runs.iter().filter_map(|(_, over_flash)| over_flash.as_ref()) {
        of_flash(run, out);
    }
    let quarter = runs.iter().map(|(run, _)| run).find(|run| run.label == FIU).expect("every preset was run");
    working_sets(quarter, scale, context, out)?;
    let rates: Vec<(String, Four)> = runs.iter().map(|(run, _)| (run.label.clone(), four(run))).collect();
    statements(&rates, ssd, out);
    Ok(())
}

fn of_cache(run: &Run, out: &mut Table) {
    let preset = run.label.as_str();
    let published = PUBLISHED.iter().find(|published| published.preset == preset);
    for (at, (measured, name)) in four(run).into_iter().zip(NAMES).enumerate() {
        let name = format!("{preset}, {name}");
        match published {
            None => drop(out.row("", name).figure("MB/s", measured)),
            Some(published) => out
                .row(published.source, name)
                .number("MB/s", published.figures[at], measured)
                .near()
                .note(published.notes[at]),
        }
    }
}

/// What dm-cache reads at random, where sets of 16 begin to overflow. The run of a quarter is there already.
fn working_sets(quarter: &Run, scale: &Scale, context: &Context<'_>, out: &mut Table) -> Done {
    let (mib, region_kib) = scale.sizes(FIU);
    let runs: Vec<Run> = WORKING_SETS
        .par_iter()
        .map(|percent| match mib * 1024 * percent / 100 / 4 * 4 {
            kib if kib == region_kib => Ok(quarter.clone()),
            kib => cached(FIU, false, kib, scale, context),
        })
        .collect::<Result<_>>()?;
    for (percent, run) in WORKING_SETS.iter().zip(&runs) {
        let job = run.result.jobs.iter().find(|job| job.name == "randread").expect("a job of the file");
        let [.., random_read, _] = four(run);
        out.row("", format!("{FIU}, random read of {percent} % of its cache"))
            .figure("MB/s", random_read)
            .note(format!("p99 {:.1} ms", job.read.latency_ns.p99 as f64 / 1e6));
    }
    Ok(())
}

/// What the cache's writes cost the flash.
fn of_flash(run: &Run, out: &mut Table) {
    let (preset, cache) = (run.label.as_str(), run.result.cache.as_ref().expect("it has a cache"));
    for (name, value) in [
        ("bytes written to the SSD for each byte of the host", cache.device_write_ratio),
        ("bytes programmed for each byte written to the SSD", cache.device_waf),
    ] {
        if let Some(value) = value {
            let row = out.row("", format!("{preset}, {name}")).figure("", value);
            row.note("over the flash stack; published nowhere");
        }
    }
}

fn statements(caches: &[(String, Four)], ssd: Four, out: &mut Table) {
    const RAPIDDISK: &str = "[cache-article rapiddisk]";
    const FLASHCACHE: &str = "[cache-article flashcache]";
    let of = |name: &str| caches.iter().find(|(label, _)| label == name).expect("every preset was run").1;
    let (ram, flashcache, hdd) = (of("rapidcache"), of("flashcache"), of(NO_CACHE));
    let near = |measured: f64, expected: f64| (measured / expected - 1.0).abs() < 0.25;
    out.row(RAPIDDISK, "rapidcache reads far above the SSD")
        .says("at least twice the SSD's rate", ram[0] >= 2.0 * ssd[0] && ram[2] >= 2.0 * ssd[2])
        .found(format!("{:.0} and {:.0} MB/s, SSD {:.0}", ram[0], ram[2], ssd[0]));
    out.row(RAPIDDISK, "rapidcache writes as the disk does")
        .says(
            "within 25 % of the disk alone under the same load",
            near(ram[1], hdd[1]) && near(ram[3], hdd[3]),
        )
        .found(format!("{:.1} and {:.1} MB/s, disk alone {:.1} and {:.1}", ram[1], ram[3], hdd[1], hdd[3]));
    out.row(FLASHCACHE, "flashcache writes to dirty blocks as the SSD does")
        .says("within 25 % of the SSD's rate at random", near(flashcache[3], ssd[3]))
        .found(format!("{:.1} MB/s, SSD {:.1}", flashcache[3], ssd[3]));
    let over_ssd = || caches.iter().filter(|(label, _)| label != "rapidcache").map(|(_, four)| four);
    let is_bound = over_ssd().all(|four| four[0] < 1.05 * ssd[0] && four[2] < 1.05 * ssd[2]);
    let most = over_ssd().map(|four| four[0].max(four[2])).fold(0.0, f64::max);
    out.row(FLASHCACHE, "no cache over the SSD reads faster than the SSD")
        .says("by 5 % at most: follows from the designs; the article's flashcache did", is_bound)
        .found(format!("at most {most:.0} MB/s"));
}
