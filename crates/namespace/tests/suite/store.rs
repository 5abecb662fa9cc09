//! A namespace as a store, against a plain array of bytes and against the namespace itself.

use nandscape_core::command::Payload;
use nandscape_core::rng::{below, seeded};
use nandscape_core::{
    BlockCommand, Clocked, Completion, Extent, FlashDevice, Ftl, Hint, Op, OpCounts, Params, SimTime, Store,
    StoreError, Subsystem, Token,
};
use nandscape_media::{Fifo, Nand, NandOptions, ReadFirst, Scheduler, Timed, Timing};
use nandscape_namespace::{NamespaceStore, NvmSubsystem};
use nandscape_testkit::conformance::{Device, Shape, device, shapes};
use std::collections::BTreeMap;

fn layer<D: FlashDevice + Send + 'static>(device: D) -> Box<dyn Ftl + Send> {
    let entry = nandscape_ftl::find("page-map").expect("registered");
    (entry.build)(Box::new(device), &Params::defaults(entry.info)).unwrap()
}

fn over<D: FlashDevice + Send + 'static>(device: D) -> Box<dyn Subsystem + Send> {
    Box::new(NvmSubsystem::plain(layer(device)))
}

fn shape() -> Shape {
    shapes().into_iter().find(|shape| shape.name == "two channels, two LUNs").expect("a shape of the kit")
}

fn with_bytes<S: Scheduler + Send + 'static>() -> NamespaceStore {
    let device: Device<S> = device::<S>(&shape(), false);
    NamespaceStore::new(over(device), 0, 512)
}

fn without_bytes<S: Scheduler + Send + 'static>() -> Box<dyn Subsystem + Send> {
    let shape = shape();
    let timing = Timing {
        read_ns: 60_000,
        program_ns: 700_000,
        erase_ns: 3_000_000,
        channel_bytes_per_s: 800_000_000,
        command_ns: 0,
    };
    let nand = Nand::new(shape.geometry, &NandOptions::default()).unwrap();
    over(Timed::new(nand, S::new(&shape.geometry, &timing)))
}

fn command(op: Op, offset: u64, len: u64) -> BlockCommand {
    BlockCommand::new(op, Extent::new(offset, len), Hint::default())
}

fn programs(store: &dyn Store) -> u64 {
    let flash = store.flash().expect("it is flash");
    let totals: OpCounts = flash.inspect().device(0).tally().totals;
    totals.programs
}

/// Commands are applied in one order and started in another, later: bytes follow the order of applying, times
/// the starts.
fn bytes_follow_apply_and_times_follow_start<S: Scheduler + Send + 'static>() {
    for seed in 0..4 {
        let mut store = with_bytes::<S>();
        let capacity = store.capacity_bytes();
        let mut model = vec![0; capacity as usize];
        let mut rng = seeded(seed);
        let mut now = SimTime::ZERO;
        let mut tag = 0;
        let mut waiting = BTreeMap::new();
        let mut last = SimTime::ZERO;
        let mut out = Vec::new();
        let mut later = 0;
        for _ in 0..600 {
            let mut batch = Vec::new();
            for _ in 0..=below(&mut rng, 3) {
                let offset = below(&mut rng, capacity / 512) * 512;
                let len = ((below(&mut rng, 6) + 1) * 512).min(capacity - offset);
                let range = offset as usize..(offset + len) as usize;
                let (op, salt) = (below(&mut rng, 5), below(&mut rng, 256) as u8);
                let command = command(
                    [Op::Read, Op::Read, Op::Write, Op::Write, Op::WriteZeroes][op as usize],
                    offset,
                    len,
                );
                let applied = match command.op {
                    Op::Read => {
                        let mut data = vec![0xA5; len as usize];
                        let applied = store.apply(command, Payload::Read(&mut data)).unwrap();
                        assert_eq!(data, model[range], "seed {seed}: {}", command.extent);
                        applied
                    }
                    Op::Write => {
                        let data: Vec<u8> = range.clone().map(|at| salt ^ at as u8).collect();
                        model[range].copy_from_slice(&data);
                        store.apply(command, Payload::Write(&data)).unwrap()
                    }
                    _ => {
                        model[range].fill(0);
                        store.apply(command, Payload::None).unwrap()
                    }
                };
                batch.push((command, applied));
            }
            while !batch.is_empty() {
                let (command, applied) = batch.remove(below(&mut rng, batch.len() as u64) as usize);
                let token = store.start(command, applied, now).unwrap();
                if let Some(done) = store.completion(token) {
                    assert!(done >= now, "seed {seed}: done at {done:?}, started at {now:?}");
                } else {
                    store.watch(token, tag);
                    waiting.insert(tag, now);
                    tag += 1;
                }
                now += below(&mut rng, 300_000);
                later += usize::from(!batch.is_empty());
            }
            store.advance(now, &mut out);
            for Completion { tag, at } in out.drain(..) {
                let started = waiting.remove(&tag).expect("one report for each watched token");
                assert!(at >= started, "seed {seed}: done at {at:?}, started at {started:?}");
                assert!(at >= last && at <= now, "seed {seed}: {at:?} after {last:?}, until {now:?}");
                last = at;
            }
        }
        store.advance(SimTime::MAX, &mut out);
        for Completion { tag, .. } in out {
            assert!(waiting.remove(&tag).is_some());
        }
        assert!(waiting.is_empty(), "seed {seed}: {} commands never completed", waiting.len());
        assert!(later > 100 && programs(&store) > 500, "seed {seed}: the run tried nothing");
        store.subsystem().check_invariants();
    }
}

#[test]
fn bytes_follow_apply_and_times_follow_start_where_completions_are_known() {
    bytes_follow_apply_and_times_follow_start::<Fifo>();
}

#[test]
fn bytes_follow_apply_and_times_follow_start_where_completions_are_events() {
    bytes_follow_apply_and_times_follow_start::<ReadFirst>();
}

#[test]
fn without_bytes_a_command_reaches_the_flash_when_it_is_started() {
    let mut store = NamespaceStore::new(without_bytes::<Fifo>(), 0, 512);
    let mut plain = without_bytes::<Fifo>();
    assert!(!store.stores_bytes());
    let write = command(Op::Write, 1024, 4096);
    let applied = store.apply(write, Payload::None).unwrap();
    assert_eq!((store.counts().write_bytes, programs(&store)), (4096, 0), "counted, not done");
    for (op, at) in [(Op::Write, 5_000), (Op::Read, 6_000)] {
        let same = BlockCommand { op, ..write };
        let at = SimTime(at);
        let token = if op == Op::Write {
            store.start(write, applied, at).unwrap()
        } else {
            store.submit(same, Payload::None, at).unwrap()
        };
        let expected = plain.submit(0, same.into(), Payload::None, at).unwrap();
        assert_eq!(
            store.completion(token),
            plain.completion(expected.done),
            "{op:?} takes its time on the flash"
        );
    }
    assert_eq!(programs(&store), 4);
    store.reset_counters(SimTime(1_000_000));
    assert_eq!((store.counts().writes, programs(&store)), (0, 0), "counters of both begin anew");
}

#[test]
fn refusals_name_the_place_and_change_nothing() {
    let mut store = with_bytes::<Fifo>();
    let capacity = store.capacity_bytes();
    let error = |store: &mut NamespaceStore, offset, len| {
        store
            .submit(command(Op::Write, offset, len), Payload::Write(&vec![1; len as usize]), SimTime(0))
            .unwrap_err()
    };
    let past = error(&mut store, capacity - 512, 1024);
    assert_eq!(past, StoreError::OutOfRange { offset: capacity - 512, len: 1024, capacity });
    let odd = error(&mut store, 100, 512);
    assert_eq!(odd, StoreError::Unaligned { offset: 100, len: 512, block: 512 });
    assert_eq!(programs(&store), 0);
    assert_eq!(
        store
            .submit(command(Op::Flush, 7, 7), Payload::None, SimTime(3))
            .map(|token| store.completion(token)),
        Ok(Some(SimTime(3)))
    );
    assert_eq!(store.completion(Token::NONE), Some(SimTime::ZERO));
}

fn passes_the_suite<S: Scheduler + Send + 'static>() {
    for seed in 0..4 {
        let with = || Box::new(with_bytes::<S>()) as Box<dyn Store + Send>;
        let without = || Box::new(NamespaceStore::new(without_bytes::<S>(), 0, 512)) as Box<dyn Store + Send>;
        nandscape_testkit::store::run(&with, seed, 600).unwrap_or_else(|error| panic!("{error}"));
        nandscape_testkit::store::run(&without, seed, 600).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn it_passes_the_suite_for_stores_under_any_scheduler() {
    passes_the_suite::<Fifo>();
    passes_the_suite::<ReadFirst>();
}
