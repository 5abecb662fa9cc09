//! A store fails at any operation of a command on a cache that is not served. Then the process or the machine
//! goes, the stores are mended or not, and the command is given again: before and after, each volume is what
//! it was, and in the end the command has had its effect.

use crate::campaign::place::{Content, Place, Time};
use crate::campaign::subject::{DISK_AT, Kept, World, fill_all, uuid};
use nandscape_cache::manage::{self, Attach, ManageError};
use nandscape_cache::metadata::Area as _;
use nandscape_core::rng::{below, seeded};
use nandscape_testkit::campaign::{Access, Fault, Faults, Kind, UNIT};
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A cache that nobody serves, and its disks; the third one is not attached.
#[derive(Clone)]
struct Stores {
    kept: Kept,
    fast: Content,
    disks: Vec<Content>,
    /// Of each volume, the bytes from its first unit on.
    meant: Vec<Vec<u8>>,
    at: u64,
}

/// The same while a process has them open.
struct Open {
    kept: Kept,
    fast: Place,
    disks: Vec<Place>,
}

/// A command: what it is called, what has happened before, and what it does.
struct BlockCommand {
    name: &'static str,
    prepare: fn(&mut Stores),
    act: fn(&mut Open) -> Result<(), ManageError>,
    /// Volumes when it is done.
    volumes: &'static [u16],
}

const COMMANDS: [BlockCommand; 7] = [
    BlockCommand { name: "attach", prepare: nothing, act: attach, volumes: &[0, 1, 2] },
    BlockCommand { name: "detach", prepare: nothing, act: detach, volumes: &[1] },
    BlockCommand { name: "clean", prepare: nothing, act: clean, volumes: &[0, 1] },
    BlockCommand { name: "resize", prepare: grow, act: resize, volumes: &[0, 1] },
    BlockCommand { name: "salvage", prepare: use_alone, act: salvage, volumes: &[0, 1] },
    BlockCommand { name: "create", prepare: wipe, act: create, volumes: &[] },
    BlockCommand { name: "create over a cache", prepare: clean_up, act: create_over, volumes: &[] },
];

fn nothing(_: &mut Stores) {}

/// The second disk has become larger.
fn grow(stores: &mut Stores) {
    let old = &stores.disks[1];
    let mut bytes = vec![0; old.medium.bytes as usize];
    old.medium.peek(0, &mut bytes);
    let mut new = Content::new(old.medium.bytes + 16 * UNIT as u64);
    new.medium.poke(0, &bytes);
    new.medium.settle();
    new.mark = old.mark.clone();
    stores.disks[1] = new;
    stores.meant[1].resize(bytes.len() + 16 * UNIT, 0);
}

/// The first disk was written to without its cache, where the cache has nothing.
fn use_alone(stores: &mut Stores) {
    stores.disks[0].medium.poke(0, &[0x5A; UNIT]);
    stores.disks[0].medium.settle();
}

fn wipe(stores: &mut Stores) {
    clean_up(stores);
    stores.fast = Content::new(stores.fast.medium.bytes);
    for disk in &mut stores.disks {
        disk.mark = crate::campaign::place::Beneath::default();
    }
}

/// The disks have everything.
fn clean_up(stores: &mut Stores) {
    let mut open = Open::new(stores, &Faults::default());
    clean(&mut open).unwrap();
    *stores = open.close(stores, false);
}

fn attach(open: &mut Open) -> Result<(), ManageError> {
    let with = Attach { id: 2, uuid: uuid(2), settings: open.kept.design.text(), replace: false };
    manage::attach(&mut open.fast, &mut open.disks[2], &with)
}

fn detach(open: &mut Open) -> Result<(), ManageError> {
    let settings = open.kept.design.text();
    manage::detach(&mut open.fast, &mut open.disks[0], 0, &settings, &mut |_, _| {})
}

fn clean(open: &mut Open) -> Result<(), ManageError> {
    let [first, second, _] = &mut open.disks[..] else { unreachable!("there are three") };
    manage::clean(&mut open.fast, &mut [(0, first), (1, second)], &mut |_, _| {})
}

fn resize(open: &mut Open) -> Result<(), ManageError> {
    manage::resize(&mut open.fast, &mut open.disks[1], 1).map(drop)
}

fn salvage(open: &mut Open) -> Result<(), ManageError> {
    manage::salvage(&mut open.fast, &mut open.disks[0], 0, &mut |_, _| {})
}

fn create_with(open: &mut Open, replace: bool) -> Result<(), ManageError> {
    let design = &open.kept.design;
    let bytes = open.fast.content().medium.bytes - nandscape_cache::metadata::WATCH_BYTES;
    let setup = design.metadata_setup(bytes, UNIT as u32, [8; 16], Vec::new())?;
    manage::create(&mut open.fast, design.metadata, &setup, replace).map(drop)
}

fn create(open: &mut Open) -> Result<(), ManageError> {
    match create_with(open, false) {
        // What was cut short is given again with `--force`.
        Err(ManageError::NotBlank { .. } | ManageError::Exists { volumes: 0, .. }) => create_with(open, true),
        done => done,
    }
}

fn create_over(open: &mut Open) -> Result<(), ManageError> {
    create_with(open, true)
}

impl Stores {
    fn new(kept: &Kept) -> Self {
        let world = World::new(kept);
        let mut meant = Vec::new();
        for (volume, units) in kept.units().into_iter().enumerate() {
            let mut bytes = vec![0; units * UNIT];
            fill_all(volume, 0..units, 1, &mut bytes);
            meant.push(bytes);
        }
        let mut third = Content::new(64 * UNIT as u64);
        let mut bytes = vec![0; 64 * UNIT];
        fill_all(2, 0..64, 1, &mut bytes);
        third.medium.poke(0, &bytes);
        third.medium.settle();
        meant.push(bytes);
        let [first, second] = world.disks.clone();
        let disks = vec![first, second, third];
        Self { kept: kept.clone(), fast: world.fast.clone(), disks, meant, at: world.at() }
    }
}

impl Open {
    fn new(stores: &Stores, faults: &Faults) -> Self {
        let time = Time::default();
        time.pass(stores.at);
        let disk = |(number, content): (usize, &Content)| {
            Place::new(content.clone(), faults, &time, number + 1, Some(number + 4))
        };
        Self {
            kept: stores.kept.clone(),
            fast: Place::new(stores.fast.clone(), faults, &time, 0, None),
            disks: stores.disks.iter().enumerate().map(disk).collect(),
        }
    }

    /// The process is gone.
    fn close(&self, stores: &Stores, is_power_lost: bool) -> Stores {
        let content = |place: &Place| {
            place.content().close(is_power_lost);
            place.content().clone()
        };
        Stores {
            fast: content(&self.fast),
            disks: self.disks.iter().map(content).collect(),
            at: stores.at + 1_000_000_000,
            ..stores.clone()
        }
    }
}

/// Volumes that are attached, after each was compared: with what the cache has of it, or alone.
fn check(stores: &Stores) -> Result<Vec<u16>, String> {
    let mut open = Open::new(stores, &Faults::default());
    let held = match manage::look(&mut open.fast) {
        Ok(held) => Some(held),
        Err(ManageError::Metadata(nandscape_cache::metadata::MetadataError::Absent)) => None,
        Err(error) => return Err(format!("cannot be looked at: {error}")),
    };
    let ids: Vec<u16> =
        held.iter().flat_map(|held| &held.superblock.volumes).map(|volume| volume.id).collect();
    for (volume, meant) in stores.meant.iter().enumerate() {
        let first = DISK_AT.get(volume).copied().unwrap_or(0);
        let mut bytes = vec![0; stores.disks[volume].medium.bytes as usize];
        stores.disks[volume].medium.peek(0, &mut bytes);
        for held in held.iter().filter(|_| ids.contains(&(volume as u16))) {
            let shape = held.superblock.shape;
            let (block, sub) = (shape.block_bytes as usize, (shape.block_bytes as usize / 16).max(512));
            for (slot, entry) in held.entries.iter().filter(|(_, entry)| entry.key.volume() == volume as u16)
            {
                let mut data = vec![0; block];
                open.fast.read(shape.slot_offset(*slot), &mut data).map_err(|error| error.to_string())?;
                for bit in (0..block / sub).filter(|bit| entry.valid >> bit & 1 == 1) {
                    let at = entry.key.block() as usize * block + bit * sub;
                    let len = sub.min(bytes.len().saturating_sub(at));
                    let cached = &data[bit * sub..bit * sub + len];
                    if entry.dirty >> bit & 1 == 0 && &bytes[at..at + len] != cached {
                        return Err(format!("volume {volume}, byte {at}: clean, and not what the disk has"));
                    }
                    bytes[at..at + len].copy_from_slice(cached);
                }
            }
        }
        let found = &bytes[first as usize..][..meant.len()];
        if let Some(at) = found.iter().zip(meant).position(|(found, meant)| found != meant) {
            let is_attached = ids.contains(&(volume as u16));
            return Err(format!(
                "volume {volume} (attached: {is_attached}) is not what it was, from byte {at} on"
            ));
        }
    }
    Ok(ids)
}

/// What is tried of a command.
struct Plan {
    fault: Fault,
    is_power_lost: bool,
    is_mended: bool,
}

impl BlockCommand {
    /// Operations of each store without a fault.
    fn operations(&self, stores: &Stores) -> Vec<Vec<Access>> {
        let faults = Faults::default();
        let mut open = Open::new(stores, &faults);
        (self.act)(&mut open).unwrap_or_else(|error| panic!("{}: {error}", self.name));
        assert_eq!(check(&open.close(stores, false)).as_deref(), Ok(self.volumes), "{}", self.name);
        faults.seen()
    }

    /// Whether the command failed.
    fn run(&self, stores: &Stores, plan: &Plan) -> Result<bool, String> {
        let faults = Faults::new(&[plan.fault]);
        let mut open = Open::new(stores, &faults);
        let done = (self.act)(&mut open);
        let mut stores = open.close(stores, plan.is_power_lost);
        check(&stores).map_err(|error| format!("after it ended with {done:?}: {error}"))?;
        if !plan.is_mended {
            let mut open = Open::new(&stores, &faults);
            let again = (self.act)(&mut open);
            stores = open.close(&stores, plan.is_power_lost);
            check(&stores).map_err(|error| format!("given again, it ended with {again:?}: {error}"))?;
        }
        let mut open = Open::new(&stores, &Faults::default());
        let last = (self.act)(&mut open);
        let stores = open.close(&stores, false);
        let ids =
            check(&stores).map_err(|error| format!("given at last, it ended with {last:?}: {error}"))?;
        // Where it had its effect before it failed, there is nothing left to do.
        if ids != self.volumes {
            return Err(format!("{last:?} at last, with volumes {ids:?}, after it ended with {done:?}"));
        }
        match last {
            Ok(()) | Err(ManageError::NoVolume(_) | ManageError::Taken { .. }) => Ok(done.is_err()),
            Err(error) => Err(format!("at last it ended with {error}, after {done:?}")),
        }
    }
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    let all = (text == "all").then_some(u64::MAX);
    Some(all.unwrap_or_else(|| text.parse().unwrap_or_else(|_| panic!("{name}={text}: expected a number"))))
}

#[test]
fn a_command_whose_store_fails_at_any_operation_loses_nothing_and_can_be_given_again() {
    // `COMMAND_CASES` is another number of cases in all, `all` for every one of them.
    let wanted = number("COMMAND_CASES").unwrap_or(1500);
    let goes_on = std::env::var("CAMPAIGN_ALL").is_ok();
    let presets = ["nandscape", "flashcache", "dm-cache", "dm-cache-fiu"];
    let share = (wanted / (presets.len() * COMMANDS.len()) as u64).max(1);
    let (mut cases, mut failed, mut found) = (0, 0, Vec::new());
    for preset in presets {
        let before = Stores::new(&Kept::new(preset, "write-back", &[]));
        for command in &COMMANDS {
            if preset == "dm-cache-fiu" && matches!(command.name, "detach" | "salvage") {
                // Refused while another volume has dirty blocks.
                continue;
            }
            let mut stores = before.clone();
            (command.prepare)(&mut stores);
            let mut plans = Vec::new();
            for (store, accesses) in command.operations(&stores).iter().enumerate() {
                for (at, access) in (0..).zip(accesses) {
                    for kind in Kind::ALL.into_iter().filter(|kind| kind.fits(*access)) {
                        for is_power_lost in [false, true] {
                            let fault = Fault { store, at, kind };
                            for is_mended in
                                [true, false].into_iter().filter(|mended| *mended || kind.stays())
                            {
                                plans.push(Plan { fault, is_power_lost, is_mended });
                            }
                        }
                    }
                }
            }
            let mut rng = seeded(11);
            let tried = share.min(plans.len() as u64);
            for nth in 0..tried {
                let (first, end) = (nth * plans.len() as u64 / tried, (nth + 1) * plans.len() as u64 / tried);
                let plan = &plans[(first + below(&mut rng, end - first)) as usize];
                let done = catch_unwind(AssertUnwindSafe(|| command.run(&stores, plan)));
                cases += 1;
                match done.unwrap_or_else(|_| Err("panic".to_owned())) {
                    Ok(is_failed) => failed += u64::from(is_failed),
                    Err(error) => {
                        let Plan { fault, is_power_lost, is_mended } = plan;
                        let text = format!(
                            "{preset}, {}, {fault}, power lost: {is_power_lost}, mended: {is_mended}: {error}",
                            command.name
                        );
                        assert!(goes_on, "{text}");
                        found.push(text);
                    }
                }
            }
        }
    }
    let _ = writeln!(std::io::stderr(), "commands: {cases} cases, the command failed in {failed}");
    assert!(found.is_empty(), "{} broken:\n{}", found.len(), found.join("\n"));
    assert!(failed > cases / 3, "{failed} of {cases}");
}
