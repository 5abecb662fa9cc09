//! Mirrors that lose power or members at any operation.

use super::label::{AREA, Label, Listed, Regions};
use super::{Found, Mirror};
use nandscape_core::command::Payload;
use nandscape_core::rng::{Xoshiro256PlusPlus, below, seeded};
use nandscape_core::{BlockCommand, Extent, Hint, Op, SimTime};
use nandscape_disk::decorate::{Cut, Failing, Fate, Fault, Operations, Shared, When};
use nandscape_disk::{Keep, RamDisk, ram::RamSpeed};

const BLOCK: u64 = 4096;
const BLOCKS: u64 = 12;
const BYTES: u64 = 3 << 20;

/// Blocks that are written to lie in three regions.
const fn offset(block: u64) -> u64 {
    block % 3 * (1 << 20) + block / 3 * BLOCK
}

/// A member's device: what it keeps, how it fails, and how it loses power.
#[derive(Clone)]
struct Device {
    failing: Shared<Failing>,
    cut: Shared<Cut>,
}

/// Devices of all members, and the operations that they count together.
struct Devices {
    all: Vec<Device>,
    operations: Operations,
}

fn listed(place: usize) -> Listed {
    Listed { uuid: [place as u8 + 1; 16], path: format!("/{place}").into(), failed: None }
}

fn member(place: usize, device: &Device) -> super::Member<Shared<Failing>> {
    super::Member { place, store: device.failing.clone(), copy: 0, repairs: 0 }
}

impl Devices {
    fn new(count: usize) -> Self {
        let operations = Operations::default();
        let device = |_| {
            let speed =
                RamSpeed { request_ns: 1, jump_ns: 0, read_bytes_per_s: 1 << 40, write_bytes_per_s: 1 << 40 };
            let ram = RamDisk::new(AREA + BYTES, speed, Keep::Bytes);
            let cut = Shared::new(Cut::new(Box::new(ram), operations.clone(), u64::MAX));
            let failing = Shared::new(Failing::new(Box::new(cut.clone()), Operations::default(), []));
            Device { failing, cut }
        };
        Self { all: (0..count).map(device).collect(), operations }
    }

    fn create(&self) -> Mirror<Shared<Failing>> {
        let members = (0..self.all.len()).map(listed).collect();
        let label = Label {
            uuid: [9; 16],
            generation: 0,
            settled: 0,
            bytes: BYTES,
            members,
            unsettled: Regions::NONE,
        };
        let members = self.all.iter().enumerate().map(|(place, device)| member(place, device));
        let mut mirror = Mirror::with(members.collect(), Some(label), false);
        mirror.record().unwrap();
        mirror
    }

    fn open(&self) -> Mirror<Shared<Failing>> {
        let found = |device: &Device| Found::of(device.failing.clone()).ok()?.ok();
        Mirror::assemble(self.all.iter().filter_map(found).collect(), false)
    }

    fn cut_at(&self, at: u64) {
        let at = self.operations.count().saturating_add(at);
        self.all.iter().for_each(|device| device.cut.get().set_lost_at(at));
    }

    fn restore(&self, fate: Fate, at: u64) {
        for device in &self.all {
            device.failing.get().set_faults([]);
            let at = self.operations.count().saturating_add(at);
            device.cut.get().restore(fate, SimTime::ZERO, at).unwrap();
        }
    }
}

fn submit(
    mirror: &mut Mirror<Shared<Failing>>,
    op: Op,
    block: u64,
    payload: Payload<'_>,
) -> Result<(), String> {
    let extent = if op == Op::Flush { Extent::new(0, 0) } else { Extent::new(offset(block), BLOCK) };
    let done = mirror.apply(BlockCommand::new(op, extent, Hint::default()), payload);
    done.map_err(|error| error.to_string())
}

/// What each sector of a block may hold: versions from the last one that was flushed on.
struct Model {
    versions: Vec<Vec<u8>>,
    chance: Xoshiro256PlusPlus,
    next: u8,
}

impl Model {
    fn new(seed: u64) -> Self {
        Self { versions: vec![vec![0]; BLOCKS as usize], chance: seeded(seed), next: 0 }
    }

    /// Writes and flushes, and stops at the first error.
    fn run(&mut self, mirror: &mut Mirror<Shared<Failing>>, steps: u64) -> Result<(), String> {
        for _ in 0..steps {
            if below(&mut self.chance, 5) == 0 {
                submit(mirror, Op::Flush, 0, Payload::None)?;
                for versions in &mut self.versions {
                    versions.drain(..versions.len() - 1);
                }
                continue;
            }
            let block = below(&mut self.chance, BLOCKS);
            self.next = self.next.wrapping_add(1);
            self.versions[block as usize].push(self.next);
            submit(mirror, Op::Write, block, Payload::Write(&[self.next; BLOCK as usize]))?;
        }
        Ok(())
    }

    /// Every member in use has the same, and nothing that was flushed is gone. What was found is what there
    /// is from now on.
    fn check(&mut self, mirror: &mut Mirror<Shared<Failing>>, what: &str) {
        for block in 0..BLOCKS {
            let mut found = [0; BLOCK as usize];
            submit(mirror, Op::Read, block, Payload::Read(&mut found)).unwrap();
            let versions = &mut self.versions[block as usize];
            for sector in found.chunks(512) {
                assert!(
                    versions.contains(&sector[0]),
                    "{what}: block {block} has {}, expected {versions:?}",
                    sector[0]
                );
            }
            for member in &mut mirror.members {
                let mut other = [0; BLOCK as usize];
                let read = super::command(Op::Read, AREA + offset(block), BLOCK);
                nandscape_core::Store::apply(&mut member.store, read, Payload::Read(&mut other)).unwrap();
                assert!(other == found, "{what}: block {block} of member {}", member.place);
            }
        }
    }
}

const STEPS: u64 = 40;

/// Operations of a run without a cut.
fn operations(count: usize) -> u64 {
    let devices = Devices::new(count);
    let mut mirror = devices.create();
    let before = devices.operations.count();
    Model::new(7).run(&mut mirror, STEPS).unwrap();
    devices.operations.count() - before
}

#[test]
fn members_are_equal_and_have_what_was_flushed_after_power_was_lost_at_any_operation_and_again() {
    let all = operations(2);
    assert!(all > 80, "{all}");
    for at in 0..all {
        for (seed, fate) in [Fate::Lost, Fate::Kept, Fate::Torn { seed: at }, Fate::Torn { seed: at + 999 }]
            .into_iter()
            .enumerate()
        {
            let what = format!("cut at {at}, {fate:?}");
            let devices = Devices::new(2);
            let mut model = Model::new(7);
            let mut mirror = devices.create();
            devices.cut_at(at);
            model.run(&mut mirror, STEPS).unwrap_err();
            drop(mirror);
            // The copying is cut short as well.
            devices.restore(fate, 4 + (at * 7 + seed as u64) % 40);
            let mut mirror = devices.open();
            let _ = mirror.resync();
            drop(mirror);
            devices.restore(fate, u64::MAX);
            let mut mirror = devices.open();
            assert_eq!(mirror.members.len(), 2, "{what}: no member failed");
            mirror.resync().unwrap();
            model.check(&mut mirror, &what);
        }
    }
}

#[test]
fn a_member_that_fails_is_used_no_more_and_nothing_flushed_is_gone_whenever_power_is_lost_then() {
    let all = operations(2);
    let mut dropped = 0;
    for (bad, fault) in [(1, Fault::Io), (0, Fault::Io), (0, Fault::ReadOnly), (1, Fault::Gone)] {
        for from in (0..all / 2).step_by(2) {
            for after in [0, 1, 2, 3, 4, 6, 9, 14, 25] {
                let what = format!("member {bad}: {fault:?} from {from}, cut {after} later");
                let devices = Devices::new(2);
                let mut model = Model::new(7);
                let mut mirror = devices.create();
                // Numbers of its own: it has had the first label, with the flush of that.
                devices.all[bad].failing.get().set_faults([(When::From(2 + from), fault)]);
                devices.cut_at(from * 2 + after);
                let _ = model.run(&mut mirror, STEPS);
                drop(mirror);
                devices.restore(Fate::Torn { seed: from }, u64::MAX);
                // It is there again with what it had, or cannot be found.
                let mut mirror = devices.open();
                if mirror.label.as_ref().is_some_and(|label| label.current() != mirror.members.len()) {
                    assert_eq!(fault, Fault::Gone, "{what}");
                    continue;
                }
                mirror.resync().unwrap();
                model.check(&mut mirror, &what);
                dropped += usize::from(mirror.members.len() == 1);
                // And the other one is not taken to be what it is not.
                model.run(&mut mirror, STEPS).unwrap();
                submit(&mut mirror, Op::Flush, 0, Payload::None).unwrap();
                let left = mirror.members.len();
                drop(mirror);
                assert_eq!(devices.open().members.len(), left, "{what}");
            }
        }
    }
    assert!(dropped > 100, "{dropped} runs came to that");
}

#[test]
fn a_read_error_is_made_good_from_the_other_member_and_one_that_goes_on_failing_is_dropped() {
    let devices = Devices::new(3);
    let mut mirror = devices.create();
    let mut model = Model::new(3);
    model.run(&mut mirror, STEPS).unwrap();
    submit(&mut mirror, Op::Flush, 0, Payload::None).unwrap();
    model.versions.iter_mut().for_each(|versions| drop(versions.drain(..versions.len() - 1)));
    let bad = Extent::new(AREA + offset(4), BLOCK);
    devices.all[0].failing.get().set_faults([(When::Reading(bad), Fault::Io)]);
    let mut found = [0; BLOCK as usize];
    for round in 0..20 {
        submit(&mut mirror, Op::Read, 4, Payload::Read(&mut found)).unwrap();
        assert_eq!(found[0], model.versions[4][0]);
        assert_eq!(mirror.members.len(), if round < 16 { 3 } else { 2 }, "{round}");
    }
    devices.all[1].failing.get().set_faults([(When::From(0), Fault::Gone)]);
    model.run(&mut mirror, STEPS).unwrap();
    assert_eq!(mirror.members.len(), 1);
    let label = mirror.label.clone().unwrap();
    assert!(label.members[0].failed.as_ref().unwrap().contains("asked for"), "{label:?}");
    assert!(label.members[1].failed.as_ref().unwrap().contains("taken away"), "{label:?}");
    model.check(&mut mirror, "one is left");
    // The last one's errors are those of the cache device.
    devices.all[2].failing.get().set_faults([(When::From(0), Fault::Io)]);
    submit(&mut mirror, Op::Write, 0, Payload::Write(&[1; BLOCK as usize])).unwrap_err();
    assert_eq!(mirror.members.len(), 1);
}

#[test]
fn marks_are_few_writes_and_go_when_nothing_is_written_there() {
    let devices = Devices::new(2);
    let mut mirror = devices.create();
    let generation = |mirror: &Mirror<Shared<Failing>>| mirror.label.as_ref().unwrap().generation;
    let marked = |mirror: &Mirror<Shared<Failing>>| {
        mirror.label.as_ref().unwrap().unsettled.iter().collect::<Vec<_>>()
    };
    let block = [1; BLOCK as usize];
    for number in 0..300 {
        submit(&mut mirror, Op::Write, number % BLOCKS, Payload::Write(&block)).unwrap();
    }
    assert_eq!((generation(&mirror), marked(&mirror)), (4, vec![0, 1, 2]), "one label for each region");
    for _ in 0..200 {
        submit(&mut mirror, Op::Write, 0, Payload::Write(&block)).unwrap();
        submit(&mut mirror, Op::Flush, 0, Payload::None).unwrap();
    }
    assert_eq!(
        (generation(&mirror), marked(&mirror)),
        (5, vec![0]),
        "one more for those that are not written to"
    );
    drop(mirror);
    assert_eq!(marked(&devices.open()), [] as [u64; 0], "a clean end leaves none");
}

#[test]
fn a_member_is_not_replaced_when_it_is_the_only_one_left_at_the_end() {
    let devices = Devices::new(3);
    let stores = devices.all[..2].iter().enumerate();
    let members = stores.map(|(place, device)| member(place, device)).collect();
    let all = (0..2).map(listed).collect();
    let label = Label {
        uuid: [9; 16],
        generation: 0,
        settled: 0,
        bytes: BYTES,
        members: all,
        unsettled: Regions::NONE,
    };
    let mut mirror = Mirror::with(members, Some(label), false);
    mirror.record().unwrap();
    let new = super::Rebuild {
        listed: listed(7),
        member: member(1, &devices.all[2]),
        next: 0,
        failed: None,
        is_new: false,
    };
    mirror.rebuild = Some(new);
    assert!(mirror.copy().unwrap() > 0);
    devices.all[0].failing.get().set_faults([(When::From(0), Fault::Gone)]);
    let error = loop {
        match mirror.copy() {
            Ok(left) => assert!(left > 0, "the old member does not know that it was replaced"),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("the other members failed while it was copied"), "{error}");
    assert_eq!(mirror.members.iter().map(|member| member.place).collect::<Vec<_>>(), [1]);
}
