//! The files of a merge tree, below a file system and as objects.

use nandscape_core::{IoRecord, TraceOp};
use nandscape_host::fs::Below;
use nandscape_trace::{OpenOptions, Target, Workload};
use std::collections::BTreeMap;

const MIB: u64 = 1 << 20;
const SMALL: &str = "memory=1m,table=1m,base=4m,ratio=4";

fn records(spec: &str, takes_objects: bool) -> Vec<IoRecord> {
    let files = if takes_objects { Below::Objects } else { Below::Ext4 };
    let target = Target { capacity_bytes: 256 * MIB, volume_bytes: 256 * MIB, files, ..Target::NONE };
    let workload = Workload::new(spec, &OpenOptions::default(), target).unwrap();
    workload.open().unwrap().collect::<Result<_, _>>().unwrap_or_else(|error| panic!("{spec}: {error}"))
}

/// Sizes and hints of the objects that are left, and bytes written by hint; what is read must be there.
fn follow(records: &[IoRecord]) -> (BTreeMap<u32, (u64, u16)>, BTreeMap<u16, u64>) {
    let mut objects: BTreeMap<u32, (u64, u16)> = BTreeMap::new();
    let mut written = BTreeMap::new();
    for record in records {
        let IoRecord { op, volume, offset, len, hint, .. } = *record;
        match op {
            TraceOp::ObjectCreate => assert!(objects.insert(volume, (0, 0)).is_none(), "{volume} again"),
            TraceOp::ObjectWrite => {
                let object = objects.get_mut(&volume).expect("an object");
                assert!(offset <= object.0, "a hole in {volume}");
                *object = (object.0.max(offset + len), hint);
                *written.entry(hint).or_default() += len;
            }
            TraceOp::ObjectRead => assert!(offset < objects[&volume].0, "{volume} ends before {offset}"),
            TraceOp::ObjectDelete => drop(objects.remove(&volume).expect("an object")),
            TraceOp::ObjectFlush => assert!(len == 1 || objects.contains_key(&volume)),
            other => panic!("{other:?}"),
        }
    }
    (objects, written)
}

#[test]
fn tables_live_and_die_as_levels_want_it() {
    let all = records(&format!("lsm:span=64m,turns=4,{SMALL}"), true);
    let (left, written) = follow(&all);
    // The log of all writes, with the hint short.
    assert_eq!(written[&2], 4 * (64 * MIB / 1000 * 1000));
    // Of 4 turns nearly all keys are there once, and little more than once.
    let live: u64 = left.values().map(|(size, _)| size).sum();
    assert!(live > 64 * MIB && live < 64 * MIB * 13 / 10, "{} MiB live", live / MIB);
    assert!(left.values().all(|(_, hint)| *hint != 2), "no log is left");
    assert!(left.values().filter(|(_, hint)| *hint == 5).count() > 30, "most tables are in the last level");
    // Each byte is rewritten about ratio / 2 times in each level, and once more.
    let tables: u64 = written.values().sum::<u64>() - written[&2];
    let factor = tables as f64 / (4.0 * 64.0 * MIB as f64);
    assert!(factor > 4.0 && factor < 14.0, "tables are written {factor:.1} times");
    let reads: u64 = all.iter().filter(|r| r.op == TraceOp::ObjectRead).map(|r| r.len).sum();
    assert!(reads > tables * 8 / 10, "merges read what they merge");
}

#[test]
fn blocks_and_objects_are_of_the_same_tree_and_the_seed_repeats_it() {
    let spec = format!("lsm:span=32m,turns=2,read=20%,{SMALL}");
    let objects = records(&spec, true);
    assert_eq!(objects, records(&spec, true));
    let blocks = records(&spec, false);
    let data = |records: &[IoRecord], op| -> u64 {
        records.iter().filter(|record| record.op == op).map(|record| record.len).sum()
    };
    let (of_blocks, of_objects) = (data(&blocks, TraceOp::Write), data(&objects, TraceOp::ObjectWrite));
    // A file system adds its metadata.
    assert!(of_blocks > of_objects && of_blocks < of_objects * 11 / 10, "{of_blocks} {of_objects}");
    assert!(data(&blocks, TraceOp::Trim) > of_objects / 2, "what is deleted is discarded");
    let single =
        objects.iter().filter(|record| record.op == TraceOp::ObjectRead && record.len == 4096).count();
    // A quarter as many reads as writes; some keys are not there yet, or still in memory.
    let writes = 2 * 32 * MIB / 1000;
    assert!(single as u64 > writes / 8 && single as u64 <= writes / 4, "{single} of {writes}");
}

#[test]
fn what_does_not_fit_is_refused() {
    let target = Target { capacity_bytes: 64 * MIB, volume_bytes: 64 * MIB, ..Target::NONE };
    let open = |spec: &str| Workload::new(spec, &OpenOptions::default(), target);
    assert!(open("lsm:read=100%,span=32m,table=1m").err().unwrap().to_string().contains("below 1"));
    assert!(open("lsm:span=1m").err().unwrap().to_string().contains("span"));
    let full = open(&format!("lsm:span=100%,turns=2,{SMALL}")).unwrap();
    let error = full.open().unwrap().find_map(Result::err).unwrap().to_string();
    assert!(error.contains("the volume is full") && error.contains("smaller span"), "{error}");
}
