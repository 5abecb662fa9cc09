//! What admission is asked and told by a running cache.

use crate::rig;

use nandscape_core::command::Payload;
use nandscape_core::{BlockCommand, Extent, Hint, Op, SimTime};
use nandscape_disk::{Keep, rated};
use nandscape_policies::admission::Bypass;
use rig::Rig;

const BLOCK: u64 = 4096;

/// A stream of reads of 16 KiB, `depth` of them at a time, over 4 MiB; then what is cached of it, in blocks.
fn stream(head: &str, depth: u64) -> (u32, Rig) {
    let pairs = [
        ("admission", "sequential"),
        ("sequential_read", "256KiB"),
        ("sequential_head", head),
        ("cleaning", "none"),
        ("size", "4096b"),
    ];
    let mut rig = Rig::new(&pairs, ("ram", 40 << 20), ("disk", 64 << 20), Keep::Nothing);
    for i in 0..256 {
        rig.run(Op::Read, i * 4 * BLOCK, 4 * BLOCK, 0);
        if i % depth == depth - 1 {
            rig.pass(100_000_000);
        }
    }
    rig.pass(1_000_000_000);
    rig.cache.check_invariants();
    (rig.cache.used(), rig)
}

#[test]
fn of_a_long_stream_the_head_is_kept_given_up_in_time_or_dropped() {
    let (kept, rig) = stream("keep", 1);
    assert_eq!(kept, 64, "256 KiB, and no more");
    let bypass = rig.counters().bypass;
    assert_eq!(bypass.read_pieces[Bypass::Sequential.index()], 1024 - 64);
    assert_eq!(bypass.bytes[Bypass::Sequential.index()], (1024 - 64) * BLOCK);
    assert_eq!(stream("late", 1).0, 64, "one after the other there is nothing to learn in time");
    assert_eq!(stream("late", 32).0, 0, "all of the head was under way when the stream became long");
    assert_eq!(stream("keep", 32).0, 64);
    let (dropped, rig) = stream("drop", 1);
    assert_eq!((dropped, rig.counters().read_invalidates), (0, 64));
}

#[test]
fn a_slow_cache_device_is_told_to_admission_which_sends_requests_past_it() {
    for (latency_ns, is_slow) in [(100_000, false), (5_000_000, true)] {
        let design = rig::design(&[("preset", "bcache"), ("size", "1024b"), ("cleaning", "none")]);
        let rates = rated::Rates {
            sequential_read: 200_000_000,
            sequential_write: 200_000_000,
            random_read: 200_000_000,
            random_write: 200_000_000,
            read_latency_ns: latency_ns,
            write_latency_ns: 0,
        };
        let fast = Box::new(rated::RatedDrive::new(16 << 20, rates, Keep::Nothing));
        let disk = rig::store("ram", 16 << 20, Keep::Nothing);
        let disks = vec![nandscape_cache::engine::Disk { store: disk, uuid: [0; 16] }];
        let mut cache = design.create(fast, disks, [1; 16], SimTime::ZERO).expect("a cache").cache;
        for i in 0..2000 {
            let extent = Extent::new(i % 64 * 16 * BLOCK, 16 * BLOCK);
            let command = BlockCommand::new(Op::Read, extent, Hint::default());
            cache.submit(0, command, Payload::None, SimTime(i * 20_000_000)).expect("no error");
        }
        let counters = cache.counters().total();
        assert_eq!(counters.bypassed_read_hits > 0, is_slow, "{counters:?}");
        assert_eq!(counters.check(), Ok(()));
    }
}
