//! The article on disk caches (`cache-article` in docs/sources.md): sequential and random reads and writes of
//! 4 KiB at depth 32, on the raw drives, on a RAM disk and on every design of a cache.
//!
//! The article says neither how large its files were nor what was cached before. Here each cache is read once
//! in random order, and then asked for what it has. The designs are compared under one load; the figures
//! beside published ones are of the article's sizes.

use super::{Context, Done, Reproduction, Sabotage, Table, experiment};
use crate::Result;
use nandscape_cache::presets::PRESETS;
use nandscape_report::{RowKind, RowSeries, Run};
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
            "one load: only where a hash selects the set, random reads miss",
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
    /// Cached MiB of all designs where they are compared, the size of rapidcache [cache-article rapiddisk].
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
    /// Where the designs are compared: three quarters of the cache are asked for.
    const fn one_load(&self) -> Shape {
        Shape { cache_mib: self.cache_mib, asked_kib: self.cache_mib * 768, ways: FIU_WAYS }
    }

    /// As the article has it, where its figures are of another size than those compared. Little is asked for,
    /// so that few sets of dm-cache-fiu are full, and none of flashcache is more than 20 % dirty, from where
    /// on it cleans.
    fn of_article(&self, preset: &str) -> Option<Shape> {
        let cache_mib = match preset {
            FIU => self.fiu_mib,
            "flashcache" => self.flashcache_mib,
            _ => return None,
        };
        Some(Shape { cache_mib, asked_kib: self.fiu_mib * 256, ways: FIU_WAYS })
    }
}

/// A cache and its load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    cache_mib: u64,
    /// Data that the load is of.
    asked_kib: u64,
    /// Of dm-cache-fiu.
    ways: u32,
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
/// Designs that spread runs of neighbours over the sets by a hash.
const HASHED: [&str; 2] = [FIU, "flashcache"];
/// Of the article's table line.
const FIU_WAYS: u32 = 16;

/// What is asked of dm-cache-fiu, in percent of its cache.
const WORKING_SETS: [u64; 10] = [3, 6, 9, 12, 18, 25, 37, 50, 75, 100];
/// The place among them of what the figures beside published ones are of.
const QUARTER: usize = 5;
const _: () = assert!(WORKING_SETS[QUARTER] == 25);

/// A cache of a design in front of the disk, over the rated SSD or over the flash stack.
fn cached(preset: &str, is_flash: bool, shape: Shape, context: &Context<'_>) -> Result<Run> {
    let disk = if preset == NO_CACHE && context.is_sabotaged { MEMORY_PRESET } else { "article-hdd" };
    let mut keys: Vec<(&str, &dyn Display)> = vec![("cache.preset", &preset), ("disk.preset", &disk)];
    if is_flash {
        keys.extend([FLASH, FLASH_BLOCKS]);
    }
    let is_in_memory = (preset == "rapidcache") != context.is_sabotaged;
    let size = format!("{}MiB", shape.cache_mib);
    let device = if is_in_memory { MEMORY_PRESET } else { "article-ssd" };
    if preset != NO_CACHE {
        keys.push(("cache.size", &size));
    }
    if !is_flash && preset != NO_CACHE {
        keys.push(("cache.device", &device));
    }
    if preset == FIU {
        keys.push(("cache.ways", &shape.ways));
    }
    run(context, &keys, &jobs(&format!("{}k", shape.asked_kib), "4k", true, None))
}

/// The runs of a design.
struct Design {
    /// Under the load of all.
    alike: Run,
    /// The same over the flash stack.
    over_flash: Option<Run>,
    /// Of the article's size, where that is another.
    of_article: Option<Run>,
}

fn design(name: &str, scale: &Scale, context: &Context<'_>) -> Result<Design> {
    let has_ssd = !["rapidcache", NO_CACHE].contains(&name);
    let (alike, of_article) = (scale.one_load(), scale.of_article(name));
    Ok(Design {
        alike: cached(name, false, alike, context)?,
        over_flash: has_ssd.then(|| cached(name, true, alike, context)).transpose()?,
        of_article: of_article.map(|shape| cached(name, false, shape, context)).transpose()?,
    })
}

fn rows(scale: &Scale, context: &Context<'_>, out: &mut Table) -> Done {
    let ssd = raw_devices(scale, context, out)?;
    let names: Vec<&str> = PRESETS.iter().map(|preset| preset.info.name).chain([NO_CACHE]).collect();
    let designs: Vec<Design> =
        names.par_iter().map(|name| design(name, scale, context)).collect::<Result<_>>()?;
    for published in PUBLISHED {
        let of = |design: &&Design| design.alike.label == published.preset;
        let design = designs.iter().find(of).expect("every preset was run");
        of_design(&published, four(design.of_article.as_ref().unwrap_or(&design.alike)), out);
    }
    for Design { alike, .. } in &designs {
        for (measured, name) in four(alike).into_iter().zip(NAMES) {
            drop(out.row("", format!("one load: {}, {name}", alike.label)).figure("MB/s", measured));
        }
    }
    for run in designs.iter().filter_map(|design| design.over_flash.as_ref()) {
        of_flash(run, out);
    }
    working_sets(&designs, scale, context, out)?;
    let of = |run: &Run| (run.label.clone(), four(run));
    let alike: Vec<(String, Four)> = designs.iter().map(|design| of(&design.alike)).collect();
    let of_article: Vec<(String, Four)> =
        designs.iter().filter_map(|design| design.of_article.as_ref().map(of)).collect();
    statements(&alike, &of_article, ssd, out);
    Ok(())
}

/// Returns the rates of the SSD.
fn raw_devices(scale: &Scale, context: &Context<'_>, out: &mut Table) -> Result<Four> {
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
    Ok(ssd)
}

fn of_design(published: &Published, measured: Four, out: &mut Table) {
    for (at, name) in NAMES.iter().enumerate() {
        out.row(published.source, format!("{}, {name}", published.preset))
            .number("MB/s", published.figures[at], measured[at])
            .near()
            .note(published.notes[at]);
    }
}

/// What dm-cache-fiu reads at random, where its sets begin to overflow: with the ways of the article, and
/// with those of its source code.
fn working_sets(designs: &[Design], scale: &Scale, context: &Context<'_>, out: &mut Table) -> Done {
    const PART: &str = "dm-cache-fiu: random reads over how much is asked of it";
    let line_of = |line: &str, is_bound, at: Vec<f64>, values: Vec<Option<f64>>| RowSeries {
        part: PART.to_owned(),
        chart: "random reads".to_owned(),
        line: line.to_owned(),
        is_bound,
        axis: "data asked for, % of the cache".to_owned(),
        at,
        values,
    };
    let of_article =
        designs.iter().find_map(|design| design.of_article.as_ref().filter(|run| run.label == FIU));
    let random_read = |ways, percent| {
        let asked_kib = scale.fiu_mib * 1024 * percent / 100 / 4 * 4;
        let shape = Shape { cache_mib: scale.fiu_mib, asked_kib, ways };
        let known = of_article.filter(|_| scale.of_article(FIU) == Some(shape));
        let read = |run: &Run| four(run)[2];
        known.map_or_else(|| Ok(read(&cached(FIU, false, shape, context)?)), |run| Ok(read(run)))
    };
    for (line, ways) in [("16 ways", FIU_WAYS), ("1,024 ways", 1024)] {
        let reads: Vec<f64> =
            WORKING_SETS.par_iter().map(|percent| random_read(ways, *percent)).collect::<Result<_>>()?;
        out.row("", format!("{FIU}, random read of a quarter of its cache, {line}"))
            .figure("MB/s", reads[QUARTER])
            .series(line_of(
                line,
                false,
                WORKING_SETS.map(|percent| percent as f64).to_vec(),
                reads.into_iter().map(Some).collect(),
            ));
    }
    let [_, _, random_read, _] = PUBLISHED[0].figures;
    out.row(PUBLISHED[0].source, format!("{FIU}, random read of the article, whose share is unknown"))
        .number("MB/s", random_read, random_read)
        .kind(RowKind::Input)
        .series(line_of("the article's figure", true, vec![0.0, 100.0], vec![Some(random_read); 2]));
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
            let row = out.row("", format!("one load: {preset}, {name}")).figure("", value);
            row.note("over the flash stack; published nowhere");
        }
    }
}

/// What follows from the designs: of those under one load, and of those of the article's sizes.
fn statements(alike: &[(String, Four)], of_article: &[(String, Four)], ssd: Four, out: &mut Table) {
    const RAPIDDISK: &str = "[cache-article rapiddisk]";
    const FLASHCACHE: &str = "[cache-article flashcache]";
    let of = |caches: &[(String, Four)], name: &str| {
        caches.iter().find(|(label, _)| label == name).expect("every preset was run").1
    };
    let (ram, hdd, flashcache) = (of(alike, "rapidcache"), of(alike, NO_CACHE), of(of_article, "flashcache"));
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
    let over_ssd = |label: &str| !["rapidcache", NO_CACHE].contains(&label);
    let caches = || alike.iter().chain(of_article).filter(|(label, _)| over_ssd(label)).map(|(_, four)| four);
    let is_bound = caches().all(|four| four[0] < 1.05 * ssd[0] && four[2] < 1.05 * ssd[2]);
    let most = caches().map(|four| four[0].max(four[2])).fold(0.0, f64::max);
    out.row(FLASHCACHE, "no cache over the SSD reads faster than the SSD")
        .says("by 5 % at most: follows from the designs; the article's flashcache did", is_bound)
        .found(format!("at most {most:.0} MB/s"));
    let is_hashed = |label: &str| HASHED.contains(&label);
    let of_kind = |hashed: bool| {
        let reads = alike.iter().filter(move |(label, _)| over_ssd(label) && is_hashed(label) == hashed);
        reads.map(|(_, four)| four[2])
    };
    let (most_hashed, least) =
        (of_kind(true).fold(0.0, f64::max), of_kind(false).fold(f64::INFINITY, f64::min));
    let are_hits = of_kind(false).all(|read| (read / ssd[2] - 1.0).abs() < 0.1);
    out.row("", "one load: only where a hash selects the set, random reads miss")
        .says(
            "dm-cache-fiu and flashcache below 0.8 of the SSD, others within 10 % of it; three quarters of the cache are asked for",
            are_hits && most_hashed < 0.8 * ssd[2],
        )
        .found(format!(
            "{FIU} {:.1}, flashcache {:.1} MB/s, others at least {least:.0}, SSD {:.0}",
            of(alike, FIU)[2],
            of(alike, "flashcache")[2],
            ssd[2]
        ));
}
