//! The loads of the table of OFTL: each has the counts that it says.

use nandscape_core::{IoRecord, TraceOp};
use nandscape_host::fs::Below;
use nandscape_trace::{OpenOptions, Target, Workload};
use std::collections::BTreeMap;

const PAGE: u64 = 4096;
const OBJECTS: Target = Target { files: Below::Objects, ..Target::NONE };

fn records(spec: &str, target: Target) -> Vec<IoRecord> {
    let workload = Workload::new(spec, &OpenOptions::default(), target).unwrap();
    let reader = workload.open().unwrap();
    reader.collect::<Result<_, _>>().unwrap_or_else(|error| panic!("{spec}: {error}"))
}

#[derive(Debug, Default)]
struct Counts {
    writes: u64,
    bytes: u64,
    closes: u64,
    unaligned: u64,
    overwrites: u64,
    /// Sizes of files.
    sizes: BTreeMap<u32, u64>,
}

/// Counts what is written; files are there before and closed behind.
fn count(spec: &str, page: u64) -> Counts {
    let mut counts = Counts::default();
    let mut open = None;
    for record in records(spec, OBJECTS) {
        let IoRecord { op, volume, offset, len, .. } = record;
        match op {
            TraceOp::ObjectCreate => assert!(counts.sizes.insert(volume, 0).is_none(), "{volume} again"),
            TraceOp::ObjectWrite => {
                assert!(len > 0 && open.is_none_or(|open| open == volume), "{record:?}");
                open = Some(volume);
                let size = counts.sizes.get_mut(&volume).expect("a file");
                counts.overwrites += u64::from(offset < *size);
                *size = (*size).max(offset + len);
                let is_aligned = offset.is_multiple_of(page) && (offset + len).is_multiple_of(page);
                counts.unaligned += u64::from(!is_aligned);
                counts.writes += 1;
                counts.bytes += len;
            }
            TraceOp::ObjectFlush => {
                assert!(len == 0 && open == Some(volume), "{record:?}");
                open = None;
                counts.closes += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(open, None, "the last file is closed");
    counts
}

#[test]
fn each_load_has_the_published_counts() {
    let loads: [(&str, f64, u64, u64, u64, f64); 6] = [
        ("iphoto,scale=1/10", 10.0, 496_542, 6_651_962, 37_054, 51.2),
        ("ipages", 1.0, 75_661, 183_728, 565, 99.6),
        ("lasr-1", 1.0, 32_249, 42_600, 1714, 93.3),
        ("lasr-2", 1.0, 111_531, 216_114, 14_998, 99.0),
        ("lasr-3", 1.0, 21_956, 24_426, 3056, 96.1),
        ("tpc-c", 1.0, 26_144, 219_689, 489, 7.1),
    ];
    for (load, by, writes, kib, closes, unaligned) in loads {
        let counts = count(&format!("fast13:load={load}"), PAGE);
        let scaled = |count: u64| (count as f64 / by).round() as u64;
        assert_eq!(counts.writes, scaled(writes), "{load}");
        assert_eq!(counts.closes, scaled(closes), "{load}");
        assert_eq!(counts.sizes.len() as u64, counts.closes, "{load}: a file for each close");
        let bytes = scaled(kib * 1024);
        assert!(counts.bytes.abs_diff(bytes) <= 1, "{load}: {} of {bytes}", counts.bytes);
        let percent = counts.unaligned as f64 * 100.0 / counts.writes as f64;
        assert!((percent - unaligned).abs() < 0.005, "{load}: {percent} of {unaligned}");
        let share = if load == "tpc-c" { 0.8 } else { 0.2 };
        let overwrites = counts.overwrites as f64 / counts.writes as f64;
        assert!((overwrites - share).abs() < 0.001, "{load}: {overwrites}");
    }
}

#[test]
fn keys_change_what_they_say_and_the_seed_repeats_the_load() {
    let spec = "fast13:load=lasr-3,scale=0.1,files=7,overwrites=50%,page=16k,seed=3";
    let counts = count(spec, 16 << 10);
    assert_eq!((counts.sizes.len(), counts.closes, counts.writes), (7, 306, 2196));
    assert_eq!(counts.overwrites, 1098);
    assert_eq!(counts.unaligned, (2196 * 961 + 500) / 1000);
    assert_eq!(records(spec, OBJECTS), records(spec, OBJECTS));
    assert_ne!(records(spec, OBJECTS), records(&spec.replace("seed=3", "seed=4"), OBJECTS));
    // No more can overwrite than are not the first of a file.
    let all = count("fast13:load=lasr-2,overwrites=100%", PAGE);
    assert_eq!(all.overwrites, 111_531 - 14_998);
    let timed = records("fast13:load=tpc-c,scale=1/100,gap=1ms", OBJECTS);
    assert!(timed.windows(2).all(|pair| pair[1].at.as_ns() - pair[0].at.as_ns() == 1_000_000));
}

#[test]
fn any_scale_is_a_load_or_an_error_that_names_the_key() {
    for load in ["iphoto", "ipages", "lasr-1", "lasr-2", "lasr-3", "tpc-c"] {
        for scale in ["1e-9", "1/100000", "1/5000", "1/777", "1/99"] {
            let counts = count(&format!("fast13:load={load},scale={scale},page=1m"), 1 << 20);
            assert!(counts.writes > 0 && counts.closes > 0, "{load} {scale}");
        }
    }
    for wrong in ["0", "-1", "1/0", "x", "101", "nan", "1/", "inf"] {
        let spec = format!("fast13:scale={wrong}");
        let error = Workload::new(&spec, &OpenOptions::default(), OBJECTS).err().unwrap().to_string();
        assert!(error.contains("scale = "), "{wrong}: {error}");
    }
}

#[test]
fn a_block_device_gets_the_writes_of_a_file_system() {
    let target =
        Target { capacity_bytes: 1 << 30, volume_bytes: 1 << 30, files: Below::Ext4, ..Target::NONE };
    let spec = "fast13:load=lasr-1,scale=1/10";
    let all = records(spec, target);
    assert!(all.iter().all(|record| !record.op.is_object_op()), "blocks only");
    let written: u64 = all.iter().filter(|record| record.op.is_write()).map(|record| record.len).sum();
    assert!(written > count(spec, PAGE).bytes, "{written}: whole blocks, and a journal");
    assert_eq!(all.iter().filter(|record| record.op == TraceOp::Flush).count(), 172);
}
