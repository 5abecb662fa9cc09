//! Fail, go on, restart: every translation layer over a journal over an image, and the store of objects over
//! one, whose file fails at any of its operations. Store 0 is the file (reads, writes, holes, syncs), store 1
//! the mapped tables (a write for which the file system has no page).
//!
//! After an error of the file the image refuses programs, erases and syncs until it is opened again, but for
//! a full file system, which may have room later; reads go on. What was flushed is there after the next
//! start.

mod store;
mod subject;

use crate::flash::Flash;
use nandscape_core::{BlockId, BlockState, FlashError, Geometry, Lpn, Oob, Ppn};
use nandscape_ftl::boxed_ftls;
use nandscape_media::{Medium as _, MediumState as _};
use nandscape_testkit::campaign::{Case, Fault, Faults, Kind, Subject, campaign, finds};
use store::{Disk, ModelStore, Sabotage};
use subject::{ImageSubject, Stack};

const COMMAND: &str = "cargo test -p nandscape-image --lib campaign -- --nocapture";

/// Runs of single faults and of pairs, in all.
const RUNS: (u64, u64) = (1000, 1000);

fn stack(layer: &'static str, typed: &[(&str, &str)], page_bytes: u32) -> Stack {
    let geometry = Geometry {
        channels: 2,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: 14,
        pages_per_block: 8,
        page_bytes,
        sector_bytes: 512,
        oob_bytes: 16,
    };
    let typed = typed.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Stack { layer, typed, geometry: geometry.checked().unwrap(), sabotage: Sabotage::None }
}

fn case(name: &str, stack: Stack) -> Case<'static> {
    let fresh = stack.fresh();
    let mut probe = ImageSubject::new(&stack, &fresh, &[], &Faults::default());
    probe.start().unwrap();
    let volumes = probe.capacity();
    let make = Box::new(move |faults: &_| -> Box<dyn Subject> {
        Box::new(ImageSubject::new(&stack, &fresh, &volumes, faults))
    });
    Case { name: name.to_owned(), make, steps: 60 }
}

fn cases() -> Vec<Case<'static>> {
    let sectors = stack("page-map", &[("op", "0.5"), ("background_gc", "true")], 2048);
    let all =
        boxed_ftls().into_iter().map(|entry| case(entry.info.name, stack(entry.info.name, entry.tiny, 512)));
    let background = ["pm-gcl", "pm-gcc", "sbm-gcl", "hsbm-gcl"].into_iter().map(|layer| {
        let mut typed = vec![("background_gc", "true"), ("background_watermark", "100%")];
        typed.extend((layer == "hsbm-gcl").then_some(("logs", "2")));
        typed.extend((layer == "hsbm-gcl").then_some(("background_logs", "1")));
        case(&format!("{layer} background"), stack(layer, &typed, 512))
    });
    all.chain(background).chain([case("page-map sectors", sectors), case("oftl", objects())]).collect()
}

/// A store of objects, with blocks for its windows.
fn objects() -> Stack {
    let mut stack = stack("oftl", &[("window", "2"), ("cache", "4KiB")], 512);
    stack.geometry.blocks_per_plane = 24;
    stack.geometry = stack.geometry.checked().unwrap();
    stack
}

#[test]
fn campaign_of_files_that_fail_loses_nothing_that_was_flushed() {
    let tally = campaign("images", &cases(), RUNS, COMMAND);
    assert!(tally.failed > 0 && tally.errors > 0, "{tally}");
}

#[test]
fn campaign_finds_a_sync_that_does_nothing_and_one_that_hides_its_error() {
    for sabotage in [Sabotage::NoSync, Sabotage::HiddenError] {
        for stack in [stack("page-map", &[("op", "0.5")], 512), stack("pm-gcl", &[], 512), objects()] {
            let stack = Stack { sabotage, ..stack };
            let layer = stack.layer;
            let broken = finds(&case(layer, stack), 1, (500, 300));
            assert!(broken.is_some(), "{layer}: {sabotage:?} was not noticed");
        }
    }
}

/// A flash whose file fails so, wholly erased; and what its file had done until it was open.
struct Plant {
    stack: Stack,
    disk: Disk,
    faults: Faults,
}

const BYTES: [u8; 512] = [0x5A; 512];
const OOB: Oob = Oob { lpn: Lpn(3), stream: 0, seq: 77 };

impl Plant {
    /// Does `act` with a flash that was just opened, and gives the operations of its file before and after.
    fn operations(act: impl Fn(&mut Flash<ModelStore>)) -> std::ops::Range<u64> {
        let plant = Self::new(&[]);
        let mut flash = plant.open(2).unwrap();
        let count = || plant.faults.seen()[0].len() as u64;
        let before = count();
        act(&mut flash);
        before..count()
    }

    fn new(faults: &[Fault]) -> Self {
        let stack = stack("page-map", &[("op", "0.5")], 512);
        let faults = Faults::new(faults);
        let disk = Disk::new(stack.fresh(), &faults, Sabotage::None);
        Self { stack, disk, faults }
    }

    fn open(&self, boot: u8) -> Result<Flash<ModelStore>, String> {
        self.stack.open(&self.disk, boot)
    }
}

/// Programs the first page of an erased block.
fn program(flash: &mut Flash<ModelStore>) -> Ppn {
    let block = (0..28).map(BlockId).find(|block| flash.write_pointer(*block) == 0).expect("an erased block");
    let page = flash.layout.geometry.page(block, 0);
    flash.program(page, OOB, Some(&BYTES)).unwrap();
    page
}

#[test]
fn what_a_failed_sync_lost_is_covered_by_the_first_sync_after_the_next_start() {
    let done = Plant::operations(|flash| {
        program(flash);
        flash.sync().unwrap();
    });
    let plant = Plant::new(&[Fault { store: 0, at: done.end - 1, kind: Kind::IoOnce }]);
    let mut flash = plant.open(2).unwrap();
    let page = program(&mut flash);
    assert!(flash.sync().is_err(), "{done:?}");
    plant.disk.kill();
    drop(flash);
    // The system has given the page up, and reads it from its cache.
    let mut flash = plant.open(2).unwrap();
    assert_eq!(flash.read(page, Some(&mut [0; 512])), Ok(OOB));
    flash.sync().unwrap();
    plant.disk.kill();
    drop(flash);
    plant.disk.lose_power();
    let mut flash = plant.open(3).unwrap();
    let mut bytes = [0; 512];
    assert_eq!((flash.read(page, Some(&mut bytes)), bytes), (Ok(OOB), BYTES));
}

#[test]
fn pages_that_the_file_refuses_to_a_start_after_a_power_loss_are_not_given_up() {
    let plant = Plant::new(&[]);
    let mut flash = plant.open(2).unwrap();
    let page = program(&mut flash);
    flash.sync().unwrap();
    plant.disk.kill();
    drop(flash);
    plant.disk.lose_power();
    let medium = plant.disk.medium();
    // Every operation of the start, until one is refused no more.
    for at in 0.. {
        let faults = Faults::new(&[Fault { store: 0, at, kind: Kind::IoWhile }]);
        let disk = Disk::new(medium.clone(), &faults, Sabotage::None);
        drop(plant.stack.open::<Oob>(&disk, 3));
        disk.kill();
        let is_over = faults.refused() == 0;
        faults.mend();
        let mut flash = plant.stack.open(&disk, 3).unwrap();
        assert_eq!(flash.read(page, Some(&mut [0; 512])), Ok(OOB), "refused from operation {at} on");
        if is_over {
            assert!(at > 1, "nothing was refused");
            break;
        }
    }
}

#[test]
fn pages_that_the_file_refuses_for_a_while_are_not_erased() {
    let done = Plant::operations(|flash| {
        program(flash);
    });
    let plant = Plant::new(&[Fault { store: 0, at: done.end, kind: Kind::IoOnce }]);
    let mut flash = plant.open(2).unwrap();
    let page = program(&mut flash);
    let block = flash.layout.geometry.block_of(page);
    let mut bytes = [0; 512];
    assert_eq!(flash.read(page, Some(&mut bytes)), Err(FlashError::Uncorrectable { page }));
    // A layer that gave the page up would erase its block now.
    let refused = flash.erase(block);
    assert!(matches!(refused, Err(FlashError::ReadOnly { .. })), "{refused:?}");
    assert_eq!((flash.read(page, Some(&mut bytes)), bytes), (Ok(OOB), BYTES));
    assert_eq!(flash.erase(block), Ok(()));
}

/// A sync failed, and the next start could not read a page that it left: what the page is newer than was
/// erased, though no sync covered its bytes.
#[test]
fn nothing_is_erased_before_what_a_failed_sync_left_can_be_read() {
    let done = Plant::operations(|flash| {
        program(flash);
        flash.sync().unwrap();
    });
    for is_killed in [false, true] {
        let plant = Plant::new(&[Fault { store: 0, at: done.end - 1, kind: Kind::IoOnce }]);
        let mut flash = plant.open(2).unwrap();
        let page = program(&mut flash);
        assert!(flash.sync().is_err());
        plant.disk.kill();
        drop(flash);
        let refuse = |count| {
            let next = plant.faults.seen()[0].len() as u64;
            (next..next + count).for_each(|at| plant.faults.arm(Fault { store: 0, at, kind: Kind::IoOnce }));
        };
        refuse(3);
        let mut flash = plant.open(2).unwrap();
        assert_eq!(flash.unproven, [page]);
        let other = (0..28).map(BlockId).find(|block| flash.write_pointer(*block) == 0).unwrap();
        refuse(1);
        let refused = flash.erase(other);
        assert!(matches!(refused, Err(FlashError::ReadOnly { .. })), "{refused:?}");
        if is_killed {
            flash.sync().unwrap();
            plant.disk.kill();
            drop(flash);
            flash = plant.open(2).unwrap();
            assert!(flash.unproven.is_empty());
        }
        assert_eq!(flash.erase(other), Ok(()));
        flash.sync().unwrap();
        plant.disk.kill();
        drop(flash);
        plant.disk.lose_power();
        let mut flash = plant.open(3).unwrap();
        let mut bytes = [0; 512];
        assert_eq!((flash.read(page, Some(&mut bytes)), bytes), (Ok(OOB), BYTES));
    }
}
