//! The article on disk caches (`cache-article` in docs/sources.md): sequential and random reads and writes of
//! 4 KiB at depth 32, on the raw drives, on a RAM disk and on every design of a cache.
//!
//! The article says neither how large its files were nor what was cached before. Here each cache is read once
//! in random order, and then asked for what it has.

use super::{Context, Reproduction, number, statement};
use nandscape_cache::presets::PRESETS;
use nandscape_core::Info;
use nandscape_jobs::JobFile;
use nandscape_report::{ReproductionRow, Run};
use nandscape_stack::cache::NO_CACHE;
use nandscape_stack::config::{StackConfig, Typed};
use nandscape_stack::jobs::run_parsed;
use nandscape_stack::{RunError, RunOptions};
use rayon::prelude::*;
use serde_json::Value;
use std::fmt::Write as _;

const ID: &str = "cache-article";

pub(super) const CACHE_ARTICLE: Reproduction = Reproduction {
    info: Info {
        name: ID,
        summary: "raw SSD, HDD and RAM disk, and every design of a cache: sequential and random reads and writes",
        source: "[cache-article introduction], [cache-article dm-cache], [cache-article flashcache], [cache-article rapiddisk]",
        params: &[],
    },
    run: |context| rows(&context.scale(FULL, SMALL), context),
};

/// How long it takes.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Cached MiB of the designs of which the article says no size, and of rapidcache
    /// [cache-article rapiddisk].
    pub cache_mib: u64,
    /// Cached MiB of dm-cache: 65,536 blocks [cache-article dm-cache].
    pub fiu_mib: u64,
    /// Cached MiB of flashcache: a quarter of the 57,018 MiB of [cache-article flashcache].
    pub flashcache_mib: u64,
    /// Requests in sequence to a raw device.
    pub sequential: u64,
    /// Requests at random to a raw device.
    pub random: u64,
}

/// The published experiment.
pub const FULL: Scale =
    Scale { cache_mib: 1024, fiu_mib: 256, flashcache_mib: 14_254, sequential: 100_000, random: 20_000 };
/// The same with caches of 1/64, for tests.
pub const SMALL: Scale =
    Scale { cache_mib: 16, fiu_mib: 4, flashcache_mib: 222, sequential: 10_000, random: 3_000 };

impl Scale {
    /// MiB of a design's cache, and the KiB that it is asked for.
    ///
    /// That is three quarters of the cache, and less where a hash spreads blocks over sets unevenly: so much
    /// that few sets are full, or, with flashcache, are more than 20 % dirty, from where on it cleans.
    fn sizes(&self, preset: &str) -> (u64, u64) {
        match preset {
            "dm-cache-fiu" => (self.fiu_mib, self.fiu_mib * 256),
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
const MISSES: &str = "SSD and disk mixed by the share of misses: the hash spreads runs of 2 MiB over sets unevenly, and the article's file, which \
     decides how many miss, is unknown (its status shows 3.7 % hits)";
const SOFTWARE: &str = "the design allows what the SSD gives; the article's figure is below that, for its driver and kernel of 2006 or for writes of dirty \
     blocks to the disk: its file is unknown";
const SLOTS: &str = "a write that makes a clean block dirty is answered when its record is on the SSD too, as the design says; records of requests that come \
     together are one write, and nothing is flushed for them, as in the original";
const MEMORY: &str = "a read is a copy from memory: the article's path through the device mapper costs twice that of the RAM disk itself, and costs of \
     processors are not modelled";
const DISK_WRITES: &str = "writes go to the disk and equal those of the disk alone under the same load ('none'); the model's disk sorts writes in its \
     cache, and here all lie close together, so that the arm moves little";
const RAM_RANDOM: &str = "the RAM disk has one time for a request and one more for a jump; the article's random writes are slower than its reads for \
     reasons of its processor";

/// A raw device with what the article published of it.
struct Raw {
    name: &'static str,
    source: &'static str,
    preset: &'static str,
    request: &'static str,
    unit: &'static str,
    published: Four,
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
        note: "",
    },
    Raw {
        name: "raw HDD",
        source: "[cache-article introduction]",
        preset: "article-hdd",
        request: "4k",
        unit: "MB/s",
        published: [115.0, 72.0, 2.0, 2.0],
        note: WRITE_CACHE,
    },
    Raw {
        name: "RAM disk, 4 KB",
        source: "[cache-article rapiddisk]",
        preset: "ram",
        request: "4k",
        unit: "GB/s",
        published: [1.6, 1.6, 1.3, 1.1],
        note: RAM_RANDOM,
    },
    Raw {
        name: "RAM disk, 1 MB",
        source: "[cache-article rapiddisk]",
        preset: "ram",
        request: "1m",
        unit: "GB/s",
        published: [4.9, 4.3, 4.9, 4.0],
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
        preset: "dm-cache-fiu",
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

fn run(config: &StackConfig, jobs: &str, context: &Context<'_>) -> Result<Run, RunError> {
    context.check_stop()?;
    let file = JobFile::parse(ID, jobs)?;
    let run = run_parsed(config, &file, ID, &RunOptions { stop: context.stop, ..RunOptions::default() })?;
    context.check_stop()?;
    match &run.result.error {
        Some(error) => Err(RunError::Failed { label: run.label, message: error.message.clone() }),
        None => Ok(run),
    }
}

fn four(run: &Run) -> Four {
    let of = |name: &str| {
        let job = run.result.jobs.iter().find(|job| job.name == name).expect("a job of the file");
        (job.read.bytes_per_s + job.write.bytes_per_s) / 1e6
    };
    [of("read"), of("write"), of("randread"), of("randwrite")]
}

fn typed(pairs: &[(&str, &str)], seed: u64) -> Result<StackConfig, RunError> {
    let mut typed = Typed::new();
    for (key, value) in pairs {
        typed.set(key, value)?;
    }
    typed.set("workload.seed", &seed.to_string())?;
    Ok(typed.check()?)
}

fn raw(raw: &Raw, scale: &Scale, context: &Context<'_>) -> Result<Four, RunError> {
    let config = typed(&[("cache.preset", "none"), ("disk.preset", raw.preset)], context.seed)?;
    let jobs = jobs(VOLUME, raw.request, false, Some((scale.sequential, scale.random)));
    Ok(four(&run(&config, &jobs, context)?))
}

/// The SSD as a flash stack, empty.
fn raw_flash(scale: &Scale, context: &Context<'_>) -> Result<Four, RunError> {
    let mut typed = Typed::new();
    typed.merge_preset("article-ssd")?;
    typed.set("device.blocks_per_plane", &FLASH_BLOCKS.to_string())?;
    typed.set("workload.seed", &context.seed.to_string())?;
    // Reads of what was never written take no time, so all is written first.
    typed.set("workload.precondition", "fill:50%")?;
    let jobs = jobs("256m", "4k", false, Some((scale.sequential, scale.random)));
    Ok(four(&run(&typed.check()?, &jobs, context)?))
}

/// Blocks of a plane of the flash stack, instead of 8192: what is not used makes no difference on an empty
/// drive.
const FLASH_BLOCKS: u32 = 512;

/// A cache of a design in front of the disk, over the rated SSD or over the flash stack.
fn cached(preset: &str, is_flash: bool, scale: &Scale, context: &Context<'_>) -> Result<Run, RunError> {
    let (mut mib, region_kib) = scale.sizes(preset);
    let mut typed = Typed::new();
    if is_flash {
        typed.merge_preset("article-ssd")?;
        typed.set("device.blocks_per_plane", &FLASH_BLOCKS.to_string())?;
        mib = mib.min(scale.cache_mib);
    }
    typed.set("cache.preset", preset)?;
    if preset != NO_CACHE {
        typed.set("cache.size", &format!("{mib}MiB"))?;
    }
    if !is_flash && preset != NO_CACHE {
        typed.set("cache.device", if preset == "rapidcache" { "ram" } else { "article-ssd" })?;
    }
    typed.set("disk.preset", "article-hdd")?;
    typed.set("workload.seed", &context.seed.to_string())?;
    run(&typed.check()?, &jobs(&format!("{region_kib}k"), "4k", true, None), context)
}

fn unpublished(name: String, unit: &str, measured: f64, note: &str) -> ReproductionRow {
    ReproductionRow {
        id: ID.to_owned(),
        source: String::new(),
        name,
        unit: unit.to_owned(),
        published: Value::Null,
        measured: measured.into(),
        ratio: None,
        note: note.to_owned(),
        series: None,
    }
}

/// The rows at a scale.
pub fn rows(scale: &Scale, context: &Context<'_>) -> Result<Vec<ReproductionRow>, RunError> {
    let mut rows = Vec::new();
    for device in &RAW {
        let measured = raw(device, scale, context)?;
        let divisor = if device.unit == "GB/s" { 1000.0 } else { 1.0 };
        for ((name, published), measured) in NAMES.iter().zip(device.published).zip(measured) {
            let row = number(
                ID,
                device.source,
                format!("{}, {name}", device.name),
                device.unit,
                published,
                measured / divisor,
                "",
            );
            rows.push(ReproductionRow {
                note: if row.needs_note() { device.note.to_owned() } else { String::new() },
                ..row
            });
        }
    }
    let flash = raw_flash(scale, context)?;
    for ((name, published), measured) in NAMES.iter().zip(RAW[0].published).zip(flash) {
        let note = "the drive as a flash stack, fitted to these figures (preset article-ssd)";
        rows.push(number(
            ID,
            RAW[0].source,
            format!("SSD of flash, {name}"),
            "MB/s",
            published,
            measured,
            note,
        ));
    }
    let names: Vec<&str> = PRESETS.iter().map(|preset| preset.info.name).chain([NO_CACHE]).collect();
    let runs: Vec<(Run, Option<Run>)> = names
        .par_iter()
        .map(|&name| {
            let has_ssd = !["rapidcache", NO_CACHE].contains(&name);
            let over_flash = has_ssd.then(|| cached(name, true, scale, context)).transpose()?;
            Ok((cached(name, false, scale, context)?, over_flash))
        })
        .collect::<Result<_, RunError>>()?;
    for (run, _) in &runs {
        rows.extend(of_cache(run));
    }
    rows.extend(runs.iter().filter_map(|(_, over_flash)| over_flash.as_ref()).flat_map(of_flash));
    let rates: Vec<(String, Four)> = runs.iter().map(|(run, _)| (run.label.clone(), four(run))).collect();
    rows.extend(statements(&rates, four_of(&rows, "raw SSD")));
    Ok(rows)
}

/// The four figures of a device in the rows so far.
fn four_of(rows: &[ReproductionRow], device: &str) -> Four {
    NAMES.map(|name| {
        let name = format!("{device}, {name}");
        rows.iter()
            .find(|row| row.name == name)
            .and_then(|row| row.measured.as_f64())
            .expect("measured before")
    })
}

fn of_cache(run: &Run) -> Vec<ReproductionRow> {
    let preset = run.label.as_str();
    let published = PUBLISHED.iter().find(|published| published.preset == preset);
    let figures = four(run).into_iter().zip(NAMES).enumerate().map(|(at, (measured, name))| {
        let name = format!("{preset}, {name}");
        match published {
            None => unpublished(name, "MB/s", measured, ""),
            Some(published) => {
                let row = number(ID, published.source, name, "MB/s", published.figures[at], measured, "");
                let note = if row.needs_note() { published.notes[at].to_owned() } else { String::new() };
                ReproductionRow { note, ..row }
            }
        }
    });
    figures.collect()
}

/// What the cache's writes cost the flash.
fn of_flash(run: &Run) -> Vec<ReproductionRow> {
    let (preset, cache) = (run.label.as_str(), run.result.cache.as_ref().expect("it has a cache"));
    let note = "over the flash stack; published nowhere";
    let mut rows = Vec::new();
    for (name, value) in [
        ("bytes written to the SSD for each byte of the host", cache.device_write_ratio),
        ("bytes programmed for each byte written to the SSD", cache.device_waf),
    ] {
        rows.extend(value.map(|value| unpublished(format!("{preset}, {name}"), "", value, note)));
    }
    rows
}

/// What the article says in words.
fn statements(caches: &[(String, Four)], ssd: Four) -> Vec<ReproductionRow> {
    let of = |name: &str| caches.iter().find(|(label, _)| label == name).expect("every preset was run").1;
    let (ram, flashcache, hdd) = (of("rapidcache"), of("flashcache"), of(NO_CACHE));
    let is_over_ssd = |(label, _): &&(String, Four)| label != "rapidcache";
    let near = |measured: f64, expected: f64| (measured / expected - 1.0).abs() < 0.25;
    vec![
        statement(
            ID,
            "[cache-article rapiddisk]",
            "rapidcache reads far above the SSD",
            "at least twice the SSD's rate",
            ram[0] > 2.0 * ssd[0] && ram[2] > 2.0 * ssd[2],
            &format!("measured: {:.0} and {:.0} MB/s, SSD {:.0}", ram[0], ram[2], ssd[0]),
        ),
        statement(
            ID,
            "[cache-article rapiddisk]",
            "rapidcache writes as the disk does",
            "within 25 % of the disk alone under the same load",
            near(ram[1], hdd[1]) && near(ram[3], hdd[3]),
            &format!(
                "measured: {:.1} and {:.1} MB/s, disk alone {:.1} and {:.1}",
                ram[1], ram[3], hdd[1], hdd[3]
            ),
        ),
        statement(
            ID,
            "[cache-article flashcache]",
            "flashcache writes to dirty blocks as the SSD does",
            "within 25 % of the SSD's rate at random",
            near(flashcache[3], ssd[3]),
            &format!("measured: {:.1} MB/s, SSD {:.1}", flashcache[3], ssd[3]),
        ),
        statement(
            ID,
            "[cache-article flashcache]",
            "no cache over the SSD reads faster than the SSD",
            "follows from the designs; the article's flashcache did",
            caches
                .iter()
                .filter(is_over_ssd)
                .all(|(_, four)| four[0] < 1.05 * ssd[0] && four[2] < 1.05 * ssd[2]),
            &format!(
                "measured: at most {:.0} MB/s",
                caches.iter().filter(is_over_ssd).map(|(_, four)| four[0].max(four[2])).fold(0.0, f64::max)
            ),
        ),
    ]
}
