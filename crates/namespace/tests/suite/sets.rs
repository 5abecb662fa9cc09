//! Namespaces over NVM sets against plain arrays of bytes, on a device that stores data.

use nandscape_core::command::Payload;
use nandscape_core::rng::{Xoshiro256PlusPlus, below, seeded};
use nandscape_core::{
    BlockCommand, BlockId, BlockState, Cause, Clocked, Extent, FlashDevice, FlashError, Ftl, Geometry, Hint,
    Issue, Lpn, Oob, Op, OpCounts, Params, Ppn, SimTime, Subsystem, UnitId,
};
use nandscape_ftl::boxed_ftls;
use nandscape_media::{Fifo, ReadFirst, Scheduler};
use nandscape_namespace::sets::{Part, SetLayout, share};
use nandscape_namespace::{NamespaceSpec, NvmSet, NvmSubsystem, SetFacts, SharedDevice, SubsystemError};
use nandscape_testkit::conformance::{Device, Shape, device, run, shapes, steps};

type Piece = Part<dyn FlashDevice + Send>;

fn ftl(kind: &str, part: Piece) -> Result<Box<dyn Ftl + Send>, String> {
    let entry = nandscape_ftl::find(kind).expect("a registered kind");
    (entry.build)(Box::new(part), &Params::defaults(entry.info)).map_err(|error| error.to_string())
}

fn shape(geometry: (u32, u32, u32, u32)) -> Shape {
    let (channels, dies_per_channel, blocks_per_plane, pages_per_block) = geometry;
    let geometry = Geometry {
        channels,
        dies_per_channel,
        planes_per_die: 1,
        blocks_per_plane,
        pages_per_block,
        page_bytes: 1024,
        sector_bytes: 512,
        oob_bytes: 16,
    };
    Shape { name: "sets", geometry, bad: Vec::new(), units: 1 }
}

/// Two namespaces in each set, the second a quarter of what the first leaves.
fn subsystem<S: Scheduler + Send + 'static>(
    shape: &Shape,
    layout: &SetLayout,
    kinds: &[&str],
) -> NvmSubsystem {
    let shared: SharedDevice = share(device::<S>(shape, true));
    let page = u64::from(shape.geometry.page_bytes);
    let mut namespaces = Vec::new();
    let mut sets = Vec::new();
    for (index, units) in layout.sets().iter().enumerate() {
        let kind = kinds[index % kinds.len()];
        let ftl = ftl(kind, Part::new(SharedDevice::clone(&shared), units)).unwrap();
        let pages = ftl.logical_pages();
        let (first, second) = (pages / 2, pages / 8);
        for (offset, count) in [(0, first), (first, second)] {
            namespaces.push(NamespaceSpec {
                name: format!("ns{}", namespaces.len() + 1),
                set: index as u16,
                offset_bytes: offset * page,
                capacity_bytes: count * page,
            });
        }
        sets.push(NvmSet { ftl, endurance_group: index as u16, facts: SetFacts::default() });
    }
    NvmSubsystem::divided(shared, sets, &namespaces).unwrap()
}

struct Model {
    subsystem: NvmSubsystem,
    bytes: Vec<Vec<u8>>,
    rng: Xoshiro256PlusPlus,
    now: SimTime,
}

impl Model {
    fn new(subsystem: NvmSubsystem, seed: u64) -> Self {
        let bytes = subsystem.namespaces().iter().map(|ns| vec![0; ns.capacity_bytes as usize]).collect();
        Self { subsystem, bytes, rng: seeded(seed), now: SimTime::ZERO }
    }

    fn step(&mut self) {
        let namespace = below(&mut self.rng, self.bytes.len() as u64) as u32;
        let size = self.bytes[namespace as usize].len() as u64;
        let align = [1, 512, 1024][below(&mut self.rng, 3) as usize];
        let offset = below(&mut self.rng, size) / align * align;
        let len = (below(&mut self.rng, 8 * 1024) / align + 1) * align;
        let extent = Extent::new(offset, len.min(size - offset));
        let range = extent.offset as usize..extent.end() as usize;
        let op = [Op::Read, Op::Write, Op::Write, Op::Write, Op::Trim, Op::WriteZeroes, Op::Flush]
            [below(&mut self.rng, 7) as usize];
        let command = BlockCommand::new(op, extent, Hint::default());
        let model = &mut self.bytes[namespace as usize];
        match op {
            Op::Read => {
                let mut data = vec![0xA5; extent.len as usize];
                self.subsystem.submit(namespace, command.into(), Payload::Read(&mut data), self.now).unwrap();
                assert_eq!(data, model[range], "namespace {namespace}, {extent}");
            }
            Op::Write => {
                let salt = below(&mut self.rng, 256) as u8;
                let data: Vec<u8> = range.clone().map(|at| salt ^ (at as u8) ^ namespace as u8).collect();
                self.subsystem.submit(namespace, command.into(), Payload::Write(&data), self.now).unwrap();
                model[range].copy_from_slice(&data);
            }
            _ => {
                self.subsystem.submit(namespace, command.into(), Payload::None, self.now).unwrap();
                if op == Op::WriteZeroes {
                    model[range].fill(0);
                } else if op == Op::Trim {
                    let (first, count) = extent.whole_pages(1024);
                    model[(first * 1024) as usize..((first + count) * 1024) as usize].fill(0);
                }
            }
        }
        self.now += 100_000;
        self.subsystem.advance(self.now, &mut Vec::new());
    }

    fn check(&mut self) {
        self.subsystem.check_invariants();
        for namespace in 0..self.bytes.len() {
            let extent = Extent::new(0, self.bytes[namespace].len() as u64);
            let mut data = vec![0xA5; extent.len as usize];
            let command = BlockCommand::new(Op::Read, extent, Hint::default());
            let payload = Payload::Read(&mut data);
            self.subsystem.submit(namespace as u32, command.into(), payload, self.now).unwrap();
            assert!(data == self.bytes[namespace], "namespace {namespace} differs");
            let past = BlockCommand { extent: Extent::new(extent.len - 1, 2), ..command };
            assert!(self.subsystem.submit(namespace as u32, past.into(), Payload::None, self.now).is_err());
        }
    }
}

fn no_namespace_sees_anothers_bytes<S: Scheduler + Send + 'static>(layout: &str, kinds: &[&str]) {
    let shape = shape((4, 2, 16, 8));
    let layout = match layout {
        "vertical" => SetLayout::vertical(&shape.geometry, 2).unwrap(),
        "horizontal" => SetLayout::horizontal(&shape.geometry, 2).unwrap(),
        list => SetLayout::parse(&shape.geometry, list).unwrap(),
    };
    for seed in 0..3 {
        let mut model = Model::new(subsystem::<S>(&shape, &layout, kinds), seed);
        for _ in 0..2500 {
            model.step();
        }
        model.check();
        for set in 0..model.subsystem.inspect().sets() {
            let causes = model.subsystem.inspect().device(set).counters();
            assert!(causes.total().erases > 0, "set {set} never collected: {causes:?}");
        }
    }
}

#[test]
fn no_namespace_sees_anothers_bytes_whatever_the_layout() {
    for layout in ["vertical", "horizontal", "0-5;7,6", "5,0,3;1-2;4,7"] {
        no_namespace_sees_anothers_bytes::<Fifo>(layout, &["page-map"]);
        no_namespace_sees_anothers_bytes::<ReadFirst>(layout, &["page-map"]);
    }
}

#[test]
fn each_set_may_have_a_layer_of_another_kind() {
    no_namespace_sees_anothers_bytes::<Fifo>("vertical", &["pm-gcl", "page-map"]);
    no_namespace_sees_anothers_bytes::<ReadFirst>("horizontal", &["sbm-gcl", "hsbm-gcl"]);
}

#[test]
fn every_layer_keeps_bytes_on_a_part_of_a_device() {
    for entry in boxed_ftls() {
        for shape in shapes() {
            let units = shape.geometry.units();
            // All dies in reverse, so that no address of the part is one of the device.
            let dies: Vec<UnitId> = (0..units).rev().map(UnitId).collect();
            let build = |device: Device<Fifo>| ftl(entry.info.name, Part::new(share(device), &dies));
            if build(device(&shape, true)).is_err() {
                continue;
            }
            run(&shape, &steps(7, 300, shape.geometry.page_bytes), &build)
                .unwrap_or_else(|error| panic!("{}: {error}", entry.info.name));
        }
    }
}

#[test]
fn what_the_sets_count_is_what_the_device_counts() {
    let shape = shape((4, 2, 10, 8));
    let layout = SetLayout::parse(&shape.geometry, "0-3;4-6").unwrap();
    let mut model = Model::new(subsystem::<Fifo>(&shape, &layout, &["page-map"]), 3);
    for _ in 0..300 {
        model.step();
    }
    model.subsystem.check_invariants();
    let programs: Vec<u64> =
        (0..2).map(|set| model.subsystem.inspect().device(set).counters().total().programs).collect();
    assert!(programs.iter().all(|n| *n > 0), "{programs:?}");
    model.subsystem.reset_counters(model.now);
    model.subsystem.check_invariants();
    assert_eq!(model.subsystem.inspect().device(1).tally().totals, OpCounts::default());
    assert_eq!(model.subsystem.inspect().host_counts(0).writes, 0);
}

#[test]
fn a_part_reaches_only_its_dies_and_speaks_in_its_own_addresses() {
    let shape = shape((4, 2, 4, 8));
    let g = shape.geometry;
    let shared: SharedDevice = share(device::<Fifo>(&shape, false));
    let mut part = Part::new(SharedDevice::clone(&shared), &[UnitId(6), UnitId(1)]);
    assert_eq!((part.geometry().channels, part.geometry().dies_per_channel), (2, 1));
    let issue = Issue::new(SimTime::ZERO, Cause::Host);
    let oob = Oob { lpn: Lpn(3), stream: 0, seq: 0 };
    let page = part.geometry().page(BlockId(5), 0);
    part.program(page, oob, 1024, None, issue).unwrap();
    let place = g.page(g.block(UnitId(1), 1), 0);
    assert!(shared.lock().unwrap().is_programmed(place), "die 1, block 1");
    assert_eq!(part.program(page, oob, 1024, None, issue), Err(FlashError::NotErased { page }));
    let limit = u64::from(part.geometry().pages());
    assert_eq!(limit, 2 * 4 * 8);
    for beyond in [64, 65, u32::MAX] {
        let error = part.program(Ppn(beyond), oob, 1024, None, issue).unwrap_err();
        assert_eq!(error, FlashError::OutOfRange { address: u64::from(beyond), limit });
        assert!(part.read(Ppn(beyond), 1024, None, issue).is_err() && !part.is_programmed(Ppn(beyond)));
        assert!(part.erase(BlockId(beyond), issue).is_err() && part.is_bad(BlockId(beyond)));
    }
}

#[test]
fn parts_that_are_grids_keep_their_channels() {
    let shape = shape((4, 2, 4, 8));
    let shared: SharedDevice = share(device::<Fifo>(&shape, false));
    let grid = |list: &str| {
        let layout = SetLayout::parse(&shape.geometry, list).unwrap();
        let part = Part::new(SharedDevice::clone(&shared), &layout.sets()[0]);
        (part.geometry().channels, part.geometry().dies_per_channel)
    };
    assert_eq!(grid("0-7"), (4, 2));
    assert_eq!(grid("0,1,4,5"), (2, 2));
    assert_eq!(grid("0,4"), (1, 2));
    assert_eq!(grid("4-7"), (4, 1));
    assert_eq!(grid("0,1,4"), (3, 1), "no grid");
    assert_eq!(grid("0,1,5,4"), (4, 1), "a grid out of order is none");
}

#[test]
fn namespaces_that_cannot_be_are_refused() {
    let shape = shape((2, 2, 10, 8));
    let build = |namespaces: &[(u16, u64, u64)]| {
        let shared: SharedDevice = share(device::<Fifo>(&shape, false));
        let units: Vec<UnitId> = (0..4).map(UnitId).collect();
        let ftl = ftl("page-map", Part::new(SharedDevice::clone(&shared), &units)).unwrap();
        let specs: Vec<NamespaceSpec> = namespaces
            .iter()
            .enumerate()
            .map(|(i, (set, offset_bytes, capacity_bytes))| NamespaceSpec {
                name: format!("ns{}", i + 1),
                set: *set,
                offset_bytes: *offset_bytes,
                capacity_bytes: *capacity_bytes,
            })
            .collect();
        NvmSubsystem::divided(
            shared,
            vec![NvmSet { ftl, endurance_group: 0, facts: SetFacts::default() }],
            &specs,
        )
        .map(|_| ())
    };
    assert_eq!(build(&[(0, 0, 4096), (0, 4096, 4096)]), Ok(()));
    assert!(matches!(build(&[(1, 0, 4096)]), Err(SubsystemError::NoSuchSet { set: 1, sets: 1, .. })));
    assert!(matches!(build(&[(0, 512, 4096)]), Err(SubsystemError::Unaligned { .. })));
    assert!(matches!(build(&[(0, 0, 0)]), Err(SubsystemError::Unaligned { .. })));
    assert!(matches!(build(&[(0, 1024, u64::MAX / 1024 * 1024)]), Err(SubsystemError::OutsideSet { .. })));
    let error = build(&[(0, 0, 4096), (0, 3072, 4096)]).unwrap_err().to_string();
    assert_eq!(error, "namespaces 'ns1' and 'ns2' overlap in set 0: expected ranges apart");
}
