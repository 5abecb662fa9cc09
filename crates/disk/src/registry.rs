//! Kinds of stores by name, with their parameters, and presets of them.

use crate::Keep;
use crate::disk::{Build, Disk, DiskOptions, Order, SECTOR_BYTES};
use crate::ram::{RamDisk, RamSpeed};
use crate::rated::{RatedDrive, Rates};
use nandscape_core::{Info, Key, ParamError, Params, Store, keys, words};
use std::collections::BTreeMap;

words!(Order: Fifo = "fifo", Elevator = "elevator", Shortest = "shortest");

type Made = Result<Box<dyn Store + Send>, ParamError>;

/// A kind of store.
#[derive(Debug)]
pub struct DiskEntry {
    /// Name, parameters and source.
    pub info: Info,
    /// Makes one of so many bytes.
    build: fn(&Params, u64, Keep) -> Made,
}

/// A kind with values that stand for a particular device.
#[derive(Clone, Copy, Debug)]
pub struct DiskPreset {
    /// The name that is typed.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Which kind it is.
    pub kind: &'static str,
    /// Parameters that differ from the kind's defaults.
    pub values: &'static [(&'static str, &'static str)],
    /// Published MB/s with 4 KiB requests at depth 32: sequential read and write, random read and write.
    pub published_mb_per_s: Option<[f64; 4]>,
}

keys! { DISK:
    RPM: u32 = int(100, 100_000) or "7200", "revolutions a minute";
    HEADS: u32 = int(1, 64) or "4", "surfaces";
    ZONES: u32 = int(1, 1000) or "16", "zones of equal capacity";
    OUTER_RATE: f64 = float(0.001, 1e6) or "125", "rate of the medium outside, MB/s";
    INNER_RATE: f64 = float(0.001, 1e6) or "60", "rate of the medium inside, MB/s";
    SEEK_NEXT: u64 = time() or "1ms", "seek to the next cylinder";
    SEEK_AVERAGE: u64 = time() or "8.5ms", "seek over a third of the cylinders";
    SEEK_FULL: u64 = time() or "18ms", "seek over all cylinders";
    HEAD_SWITCH: u64 = time() or "800us", "change of the head";
    ORDER: Order = word() or "shortest", "order of the queue";
    DEPTH: u32 = int(1, 65_536) or "32", "commands that are reordered";
    WAIT_MAX: u64 = time() or "1s", "a command that waited longer is next";
    COMMAND: u64 = time() or "20us", "controller time of a command";
    INTERFACE_RATE: f64 = float(0.001, 1e6) or "300", "between buffer and host, MB/s";
    WRITE_CACHE: u64 = size(0, 1 << 40) or "8MiB", "bytes of the write cache";
    READ_SEGMENTS: u32 = int(0, 4096) or "16", "ranges kept after reading";
    READ_AHEAD: u64 = size(0, 1 << 40) or "256KiB", "bytes read on after a read";
    BLOCK: u32 = int(512, 65_536) or "512", "bytes that are written whole";
}

keys! { RATED:
    SEQUENTIAL_READ: f64 = float(0.001, 1e6) or "231", "MB/s";
    SEQUENTIAL_WRITE: f64 = float(0.001, 1e6) or "74", "MB/s";
    RANDOM_READ: f64 = float(0.001, 1e6) or "230", "MB/s, 4 KiB requests";
    RANDOM_WRITE: f64 = float(0.001, 1e6) or "72", "MB/s, 4 KiB requests";
    READ_LATENCY: u64 = time() or "0ns", "of a read beyond its share of the rate";
    WRITE_LATENCY: u64 = time() or "0ns", "of a write beyond its share of the rate";
}

keys! { RAM:
    REQUEST: u64 = time() or "1.7us", "time of a request besides copying";
    JUMP: u64 = time() or "600ns", "more, where it is not in sequence";
    READ_RATE: f64 = float(0.001, 1e6) or "4900", "copying out, MB/s";
    WRITE_RATE: f64 = float(0.001, 1e6) or "4300", "copying in, MB/s";
}

/// Kinds of stores.
pub static DISKS: &[DiskEntry] = &[
    DiskEntry {
        info: Info {
            name: "disk",
            summary: "arm, rotation, zones, a queue that is reordered, read-ahead and a write cache",
            source: "Ruemmler and Wilkes, IEEE Computer 27(3), 1994",
            params: DISK,
        },
        build: build_disk,
    },
    DiskEntry {
        info: Info {
            name: "rated",
            summary: "a drive of which four rates are known",
            source: "[cache-article introduction]",
            params: RATED,
        },
        build: |params, capacity, keep| {
            let rates = Rates {
                sequential_read: rate(params, SEQUENTIAL_READ),
                sequential_write: rate(params, SEQUENTIAL_WRITE),
                random_read: rate(params, RANDOM_READ),
                random_write: rate(params, RANDOM_WRITE),
                read_latency_ns: params.get(READ_LATENCY),
                write_latency_ns: params.get(WRITE_LATENCY),
            };
            Ok(Box::new(RatedDrive::new(capacity, rates, keep)))
        },
    },
    DiskEntry {
        info: Info {
            name: "ram",
            summary: "memory whose pages are allocated when they are first written; volatile",
            source: "[cache-article rapiddisk]",
            params: RAM,
        },
        build: |params, capacity, keep| {
            let speed = RamSpeed {
                request_ns: params.get(REQUEST),
                jump_ns: params.get(JUMP),
                read_bytes_per_s: rate(params, READ_RATE),
                write_bytes_per_s: rate(params, WRITE_RATE),
            };
            Ok(Box::new(RamDisk::new(capacity, speed, keep)))
        },
    },
];

/// Devices by name.
pub static PRESETS: &[DiskPreset] = &[
    DiskPreset {
        name: "article-ssd",
        summary: "the SSD of the article on disk caches, by its four rates",
        kind: "rated",
        values: &[],
        published_mb_per_s: Some([231.0, 74.0, 230.0, 72.0]),
    },
    DiskPreset {
        name: "article-hdd",
        summary: "the disk of the article on disk caches, as a plausible drive of 7200 turns a minute",
        kind: "disk",
        values: &[],
        published_mb_per_s: Some([115.0, 72.0, 2.0, 2.0]),
    },
];

/// Checks what was typed for a store of a kind or preset, and makes one: see [`DiskSpec`].
pub fn build(
    name: &str,
    prefix: &str,
    typed: &BTreeMap<String, String>,
    capacity_bytes: u64,
    keep: Keep,
) -> Result<Box<dyn Store + Send>, ParamError> {
    DiskSpec::new(name, prefix, typed)?.build(capacity_bytes, keep)
}

/// A kind of store with checked parameters, of which any number can be made.
#[derive(Clone, Debug)]
pub struct DiskSpec {
    name: String,
    prefix: String,
    entry: &'static DiskEntry,
    params: Params,
}

impl DiskSpec {
    /// Checks what was typed for a kind or preset (`key -> text`; `prefix` is the table's, for messages).
    /// Errors: an unknown name or key, or a value out of its range.
    pub fn new(name: &str, prefix: &str, typed: &BTreeMap<String, String>) -> Result<Self, ParamError> {
        let preset = PRESETS.iter().find(|preset| preset.name == name);
        let kind = preset.map_or(name, |preset| preset.kind);
        let Some(entry) = DISKS.iter().find(|entry| entry.info.name == kind) else {
            return Err(ParamError::UnknownName {
                what: "disk",
                name: name.to_owned(),
                known: names().collect::<Vec<_>>().join(", "),
            });
        };
        let given = preset.map_or(&[][..], |preset| preset.values);
        let mut values: BTreeMap<_, _> =
            given.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        values.extend(typed.iter().map(|(key, value)| (key.clone(), value.clone())));
        let params = Params::check(&entry.info, prefix, &values)?;
        Ok(Self { name: name.to_owned(), prefix: prefix.to_owned(), entry, params })
    }

    /// The kind or preset that was asked for.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kind.
    pub const fn info(&self) -> &'static Info {
        &self.entry.info
    }

    /// Its parameters.
    pub const fn params(&self) -> &Params {
        &self.params
    }

    /// Bytes that are written whole.
    pub fn block_bytes(&self) -> u64 {
        self.params.find(BLOCK).map_or(SECTOR_BYTES, u64::from)
    }

    /// Makes a store. Errors: values that do not go together, or a capacity that is not whole blocks.
    pub fn build(&self, capacity_bytes: u64, keep: Keep) -> Result<Box<dyn Store + Send>, ParamError> {
        let block = self.block_bytes();
        if capacity_bytes == 0 || !capacity_bytes.is_multiple_of(block) {
            let expected = format!("one or more blocks of {block} bytes");
            return Err(ParamError::bad(format!("{}size", self.prefix), capacity_bytes, expected));
        }
        (self.entry.build)(&self.params, capacity_bytes, keep)
    }
}

/// Names of kinds and presets.
pub fn names() -> impl Iterator<Item = &'static str> {
    DISKS.iter().map(|entry| entry.info.name).chain(PRESETS.iter().map(|preset| preset.name))
}

/// Bytes per second of a parameter in MB/s.
fn rate(params: &Params, key: Key<f64>) -> u64 {
    (params.get(key) * 1e6).round() as u64
}

fn build_disk(params: &Params, capacity: u64, keep: Keep) -> Made {
    let build = Build {
        capacity_bytes: capacity,
        rpm: params.get(RPM),
        heads: params.get(HEADS),
        zones: params.get(ZONES),
        outer_bytes_per_s: rate(params, OUTER_RATE),
        inner_bytes_per_s: rate(params, INNER_RATE),
        seek_next_ns: params.get(SEEK_NEXT),
        seek_third_ns: params.get(SEEK_AVERAGE),
        seek_full_ns: params.get(SEEK_FULL),
        head_switch_ns: params.get(HEAD_SWITCH),
    };
    if build.inner_bytes_per_s > build.outer_bytes_per_s {
        return Err(params.error(INNER_RATE, "at most outer_rate"));
    }
    if build.seek_next_ns > build.seek_third_ns {
        return Err(params.error(SEEK_AVERAGE, "at least seek_next"));
    }
    if build.seek_third_ns > build.seek_full_ns {
        return Err(params.error(SEEK_FULL, "at least seek_average"));
    }
    let block = params.get(BLOCK);
    if !block.is_power_of_two() {
        return Err(params.error(BLOCK, "a power of two"));
    }
    let options = DiskOptions {
        order: params.get(ORDER),
        depth: params.get(DEPTH),
        wait_ns_max: params.get(WAIT_MAX),
        command_ns: params.get(COMMAND),
        interface_bytes_per_s: rate(params, INTERFACE_RATE),
        write_cache_bytes: params.get(WRITE_CACHE),
        read_segments: params.get(READ_SEGMENTS),
        read_ahead_bytes: params.get(READ_AHEAD),
    };
    Ok(Box::new(Disk::new(build, options, block, keep)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::tests::measure::{Load, Pattern, measure};
    use nandscape_core::{Op, SimTime};

    fn typed(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn every_name_is_built_and_answers_a_load() {
        for name in names() {
            let mut store = build(name, "disk.", &BTreeMap::new(), 1 << 30, Keep::Nothing).unwrap();
            let load = Load { requests: 500, ..Load::default() };
            assert!(measure(&mut *store, &load, SimTime::ZERO).unwrap().elapsed_ns > 0, "{name}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |name, pairs: &[(&str, &str)], size| {
            build(name, "disk.", &typed(pairs), size, Keep::Nothing).err().expect("refused").to_string()
        };
        assert!(error("floppy", &[], 512).contains("known: disk, rated, ram, article-ssd, article-hdd"));
        assert!(error("disk", &[("rmp", "1")], 512).contains("disk.rmp"));
        assert_eq!(
            error("disk", &[("inner_rate", "200")], 512),
            "disk.inner_rate = '200': expected at most outer_rate"
        );
        assert_eq!(error("disk", &[("block", "1000")], 4000), "disk.block = '1000': expected a power of two");
        assert_eq!(error("ram", &[], 1000), "disk.size = '1000': expected one or more blocks of 512 bytes");
    }

    /// The presets against what was published, with the misfit as it is.
    #[test]
    fn presets_come_as_near_to_the_article_as_the_document_says() {
        for (name, expected) in [("article-ssd", [1.0; 4]), ("article-hdd", HDD_RATIOS)] {
            let preset = PRESETS.iter().find(|preset| preset.name == name).unwrap();
            let loads = [
                (Op::Read, Pattern::Sequential),
                (Op::Write, Pattern::Sequential),
                (Op::Read, Pattern::Random),
                (Op::Write, Pattern::Random),
            ];
            let mut ratios = [0.0; 4];
            for (index, (op, pattern)) in loads.into_iter().enumerate() {
                let mut store =
                    build(name, "disk.", &BTreeMap::new(), 500_000_000_000 / 512 * 512, Keep::Nothing)
                        .unwrap();
                let requests = if pattern == Pattern::Sequential { 100_000 } else { 6_000 };
                let load = Load { op, pattern, requests, ..Load::default() };
                let rate = measure(&mut *store, &load, SimTime::ZERO).unwrap().bytes_per_s() / 1e6;
                ratios[index] = rate / preset.published_mb_per_s.unwrap()[index];
            }
            for (ratio, expected) in ratios.iter().zip(expected) {
                assert!((ratio / expected - 1.0).abs() < 0.02, "{name}: {ratios:?} of the published");
            }
        }
    }

    /// Measured over published: the article's disk writes slower than it reads, and reads more at random than
    /// a whole disk of such a drive can.
    const HDD_RATIOS: [f64; 4] = [0.984, 1.598, 0.399, 1.033];
}
