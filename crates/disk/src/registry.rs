//! Kinds of stores by name, with their parameters, and presets of them.

use crate::disk::{Build, Disk, DiskOptions, Order};
use crate::ram::{RamDisk, RamSpeed};
use crate::rated::{RatedDrive, Rates};
use crate::{Keep, SECTOR_BYTES};
use nandscape_core::{Info, Param, ParamError, ParamKind, Params, Store, registry};
use std::collections::BTreeMap;

type Made = Result<Box<dyn Store + Send>, ParamError>;

/// A kind of store.
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
    /// Published rates in MB/s with 4 KiB requests at depth 32, where there are any: sequential read and
    /// write, random read and write.
    pub published_mb_per_s: Option<[f64; 4]>,
}

const RATE: ParamKind = ParamKind::Float { min: 0.001, max: 1_000_000.0 };

const fn param(name: &'static str, summary: &'static str, kind: ParamKind, default: &'static str) -> Param {
    Param { name, summary, kind, default }
}

/// Kinds of stores.
pub static DISKS: &[DiskEntry] = &[
    DiskEntry {
        info: Info {
            name: "disk",
            summary: "arm, rotation, zones, a queue that is reordered, read-ahead and a write cache",
            source: "Ruemmler and Wilkes, IEEE Computer 27(3), 1994",
            params: &[
                param("rpm", "revolutions a minute", ParamKind::Int { min: 100, max: 100_000 }, "7200"),
                param("heads", "surfaces", ParamKind::Int { min: 1, max: 64 }, "4"),
                param("zones", "zones of equal capacity", ParamKind::Int { min: 1, max: 1000 }, "16"),
                param("outer_rate", "rate of the medium outside, MB/s", RATE, "125"),
                param("inner_rate", "rate of the medium inside, MB/s", RATE, "60"),
                param("seek_next", "seek to the next cylinder", ParamKind::Time, "1ms"),
                param("seek_average", "seek over a third of the cylinders", ParamKind::Time, "8.5ms"),
                param("seek_full", "seek over all cylinders", ParamKind::Time, "18ms"),
                param("head_switch", "change of the head", ParamKind::Time, "800us"),
                param(
                    "order",
                    "order of the queue",
                    ParamKind::Choice { of: &["fifo", "elevator", "shortest"] },
                    "shortest",
                ),
                param("depth", "commands that are reordered", ParamKind::Int { min: 1, max: 65_536 }, "32"),
                param("wait_max", "a command that waited longer is next", ParamKind::Time, "1s"),
                param("command", "controller time of a command", ParamKind::Time, "20us"),
                param("interface_rate", "between buffer and host, MB/s", RATE, "300"),
                param("write_cache", "bytes of the write cache", SIZE, "8MiB"),
                param(
                    "read_segments",
                    "ranges kept after reading",
                    ParamKind::Int { min: 0, max: 4096 },
                    "16",
                ),
                param("read_ahead", "bytes read on after a read", SIZE, "256KiB"),
                param("block", "bytes that are written whole", BLOCK, "512"),
            ],
        },
        build: build_disk,
    },
    DiskEntry {
        info: Info {
            name: "rated",
            summary: "a drive of which four rates are known",
            source: "[cache-article introduction]",
            params: &[
                param("sequential_read", "MB/s", RATE, "231"),
                param("sequential_write", "MB/s", RATE, "74"),
                param("random_read", "MB/s, 4 KiB requests", RATE, "230"),
                param("random_write", "MB/s, 4 KiB requests", RATE, "72"),
                param("read_latency", "of a read beyond its share of the rate", ParamKind::Time, "0ns"),
                param("write_latency", "of a write beyond its share of the rate", ParamKind::Time, "0ns"),
            ],
        },
        build: |params, capacity, keep| {
            let rates = Rates {
                sequential_read: rate(params, "sequential_read"),
                sequential_write: rate(params, "sequential_write"),
                random_read: rate(params, "random_read"),
                random_write: rate(params, "random_write"),
                read_latency_ns: params.time_ns("read_latency"),
                write_latency_ns: params.time_ns("write_latency"),
            };
            Ok(Box::new(RatedDrive::new(capacity, rates, keep)))
        },
    },
    DiskEntry {
        info: Info {
            name: "ram",
            summary: "memory whose pages are allocated when they are first written; volatile",
            source: "[cache-article rapiddisk]",
            params: &[
                param("request", "time of a request besides copying", ParamKind::Time, "1.7us"),
                param("jump", "more, where it is not in sequence", ParamKind::Time, "600ns"),
                param("read_rate", "copying out, MB/s", RATE, "4900"),
                param("write_rate", "copying in, MB/s", RATE, "4300"),
            ],
        },
        build: |params, capacity, keep| {
            let speed = RamSpeed {
                request_ns: params.time_ns("request"),
                jump_ns: params.time_ns("jump"),
                read_bytes_per_s: rate(params, "read_rate"),
                write_bytes_per_s: rate(params, "write_rate"),
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

const SIZE: ParamKind = ParamKind::Size { min: 0, max: 1 << 40 };
const BLOCK: ParamKind = ParamKind::Int { min: 512, max: 65_536 };

/// Checks what was typed for a store of a kind or preset, and makes one: see [`DiskSpec`].
///
/// # Errors
/// As of [`DiskSpec::new`] and [`DiskSpec::build`].
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
#[derive(Clone)]
pub struct DiskSpec {
    name: String,
    prefix: String,
    entry: &'static DiskEntry,
    params: Params,
}

impl DiskSpec {
    /// Checks what was typed for a store of a kind or preset (`key -> text`; `prefix` is the table's, for
    /// messages).
    ///
    /// # Errors
    /// An unknown name or key, or a value out of its range.
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
        let params = registry::Params::check(&entry.info, prefix, &values)?;
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

    /// Makes a store of `capacity_bytes`.
    ///
    /// # Errors
    /// Values that do not go together, or a capacity that is not whole blocks.
    pub fn build(&self, capacity_bytes: u64, keep: Keep) -> Result<Box<dyn Store + Send>, ParamError> {
        let block = self.params.get("block").map_or(SECTOR_BYTES, |text| text.parse().expect("checked"));
        if capacity_bytes == 0 || !capacity_bytes.is_multiple_of(block) {
            return Err(ParamError::BadValue {
                key: format!("{}size", self.prefix),
                value: capacity_bytes.to_string(),
                expected: format!("one or more blocks of {block} bytes"),
            });
        }
        (self.entry.build)(&self.params, capacity_bytes, keep)
    }
}

impl std::fmt::Debug for DiskSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DiskSpec")
            .field("name", &self.name)
            .field("params", &self.params)
            .finish_non_exhaustive()
    }
}

/// Names of kinds and presets.
pub fn names() -> impl Iterator<Item = &'static str> {
    DISKS.iter().map(|entry| entry.info.name).chain(PRESETS.iter().map(|preset| preset.name))
}

/// Bytes per second of a parameter in MB/s.
fn rate(params: &Params, name: &str) -> u64 {
    (params.float(name) * 1e6).round() as u64
}

fn build_disk(params: &Params, capacity: u64, keep: Keep) -> Made {
    let build = Build {
        capacity_bytes: capacity,
        rpm: params.int32("rpm"),
        heads: params.int32("heads"),
        zones: params.int32("zones"),
        outer_bytes_per_s: rate(params, "outer_rate"),
        inner_bytes_per_s: rate(params, "inner_rate"),
        seek_next_ns: params.time_ns("seek_next"),
        seek_third_ns: params.time_ns("seek_average"),
        seek_full_ns: params.time_ns("seek_full"),
        head_switch_ns: params.time_ns("head_switch"),
    };
    if build.inner_bytes_per_s > build.outer_bytes_per_s {
        return Err(params.error("inner_rate", "at most outer_rate"));
    }
    if build.seek_next_ns > build.seek_third_ns {
        return Err(params.error("seek_average", "at least seek_next"));
    }
    if build.seek_third_ns > build.seek_full_ns {
        return Err(params.error("seek_full", "at least seek_average"));
    }
    let block = params.int32("block");
    if !block.is_power_of_two() {
        return Err(params.error("block", "a power of two"));
    }
    let options = DiskOptions {
        order: match params.text("order") {
            "fifo" => Order::Fifo,
            "elevator" => Order::Elevator,
            _ => Order::Shortest,
        },
        depth: params.int32("depth"),
        wait_ns_max: params.time_ns("wait_max"),
        command_ns: params.time_ns("command"),
        interface_bytes_per_s: rate(params, "interface_rate"),
        write_cache_bytes: params.size("write_cache"),
        read_segments: params.int32("read_segments"),
        read_ahead_bytes: params.size("read_ahead"),
    };
    Ok(Box::new(Disk::new(build, options, block, keep)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Load, Pattern, measure};
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
