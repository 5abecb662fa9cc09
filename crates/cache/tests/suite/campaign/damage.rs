//! Damage at rest: a bit of metadata is another one, or a sector of it holds zeroes, and the cache is
//! started. What was flushed before is right, or the start or a read is an error; nothing older and nothing
//! else is ever served.
//!
//! Damaged are the superblocks, the tables, the ring of records, the confirmation, the table of a removal,
//! the places of the disks, and the stamp file beside a disk. Cached data has no checksum, so it is not
//! damaged here.

use crate::campaign::subject::{Kept, Served, World};
use nandscape_cache::metadata::{Superblock, WATCH_BYTES};
use nandscape_cache::presets::PRESETS;
use nandscape_core::rng::{Xoshiro256PlusPlus, below, seeded};
use nandscape_testkit::campaign::{Act, Faults, Model, Subject as _, UNIT, acts, fill};
use nandscape_testkit::checksums::reseal_cache;
use std::fmt::Write as _;
use std::io::Write as _;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Cases with the metadata of one life.
const OF_A_LIFE: u64 = 40;
/// Bytes of the header of a superblock, a table block, a record block and a block of places that hold fields.
const HEADER: u64 = 160;
const SECTOR: u64 = 512;

/// A change of bytes at rest.
#[derive(Clone, Copy, Debug)]
struct Damage {
    place: Where,
    at: u64,
    /// Bit; without one the sector is zeroed.
    bit: Option<u8>,
}

#[derive(Clone, Copy, Debug)]
enum Where {
    Fast,
    /// The stamp file of a disk.
    Mark(usize),
}

/// A life that ended, and what each volume may hold.
struct Life {
    world: World,
    models: Vec<Model>,
    /// Bytes of a block of its tables.
    unit: usize,
    /// Structures on the cache device that are not blank: name and bytes.
    blocks: Vec<(&'static str, Range<u64>)>,
}

fn live(kept: &Kept, world: &World, rng: &mut Xoshiro256PlusPlus) -> Result<Life, String> {
    let mut served = Served::new(world, &Faults::default());
    let counts = served.volumes();
    let mut models: Vec<Model> =
        counts.iter().enumerate().map(|(volume, units)| Model::new(volume, *units, 1)).collect();
    served.start()?;
    for (act, version) in acts(&counts, 20, rng).iter().zip(2..) {
        match act {
            Act::Write { volume, units, is_durable } => {
                let mut bytes = vec![0; units.len() * UNIT];
                for (unit, bytes) in units.clone().zip(bytes.chunks_mut(UNIT)) {
                    fill(*volume, unit, version, bytes);
                }
                served.write(*volume, units.clone(), &bytes, *is_durable)?;
                models[*volume].written(units.clone(), version, true);
                if *is_durable {
                    models[*volume].flushed(Some(units), true);
                }
            }
            Act::Read { volume, units } => {
                served.read(*volume, units.clone(), &mut vec![0; units.len() * UNIT])?;
            }
            Act::Trim { volume, units } => {
                served.trim(*volume, units.clone())?;
                models[*volume].written(units.clone(), 0, true);
            }
            Act::Flush { volume } => {
                served.flush(*volume)?;
                models[*volume].flushed(None, true);
            }
            Act::Idle => served.idle(),
        }
    }
    // A design that loses dirty data in a kill is only ever ended cleanly.
    let end = if kept.design.metadata == "at-removal" { 0 } else { below(rng, 3) };
    match end {
        0 => {
            served.end()?;
            for model in &mut models {
                model.flushed(None, true);
            }
        }
        end => served.kill(end == 2),
    }
    let mut world = served.world();
    // All of it is on the media by now.
    world.fast.medium.settle();
    world.disks.iter_mut().for_each(|disk| disk.medium.settle());
    let (root, _) = Superblock::read(&mut served.fast).unwrap();
    let blocks = blocks(&root, &world);
    Ok(Life { world, models, unit: root.shape.unit as usize, blocks })
}

/// Blocks of metadata with anything in them.
fn blocks(root: &Superblock, world: &World) -> Vec<(&'static str, Range<u64>)> {
    let shape = root.shape;
    let unit = u64::from(shape.unit);
    let table = u64::from(shape.slots.div_ceil((shape.unit - 64) / 16)) * unit;
    let ring = u64::from(shape.ring) * 4096;
    let mut blocks = Vec::new();
    let mut next = 0;
    let mut add = |name: &'static str, start: u64, len: u64, unit: u64| {
        for at in (start..start + len).step_by(unit as usize) {
            let mut bytes = vec![0; unit as usize];
            world.fast.medium.peek(at, &mut bytes);
            if bytes.iter().any(|byte| *byte != 0) {
                blocks.push((name, at..at + unit));
            }
        }
    };
    let parts = [
        ("superblock", 2 * 4096, 4096),
        ("table", u64::from(shape.tables) * table, unit),
        ("records", 2 * ring, 4096),
        ("table of a removal", if shape.has_closing { table } else { 0 }, unit),
        ("confirmation", if shape.ring == 0 { 0 } else { 4096 }, 4096),
    ];
    for (name, len, unit) in parts {
        add(name, next, len, unit);
        next += len;
    }
    assert!(next <= shape.slot_offset(0), "the metadata end where the data begin");
    add("places", root.watch, WATCH_BYTES, 4096);
    blocks
}

impl Life {
    /// Draws a structure, a block of it, and a field or a sector.
    fn damage(&self, rng: &mut Xoshiro256PlusPlus) -> Damage {
        let mut names: Vec<&str> = self.blocks.iter().map(|(name, _)| *name).collect();
        names.dedup();
        let chosen = below(rng, names.len() as u64 + 1) as usize;
        let bit = (below(rng, 4) != 0).then(|| below(rng, 8) as u8);
        let Some(name) = names.get(chosen) else {
            let disk = below(rng, 2) as usize;
            let len = self.world.disks[disk].mark.now.as_ref().map_or(1, Vec::len);
            return Damage { place: Where::Mark(disk), at: below(rng, len as u64), bit };
        };
        let of_it: Vec<&Range<u64>> =
            self.blocks.iter().filter(|(other, _)| other == name).map(|(_, range)| range).collect();
        let block = of_it[below(rng, of_it.len() as u64) as usize];
        let len = block.end - block.start;
        let within = if below(rng, 2) == 0 { below(rng, HEADER.min(len)) } else { below(rng, len) };
        Damage { place: Where::Fast, at: block.start + within, bit }
    }

    fn name_of(&self, damage: &Damage) -> &'static str {
        let of_it = self.blocks.iter().find(|(_, range)| range.contains(&damage.at));
        match damage.place {
            Where::Fast => of_it.map_or("?", |(name, _)| name),
            Where::Mark(_) => "stamp file",
        }
    }
}

fn hurt(world: &mut World, damage: &Damage) {
    let start = damage.at / SECTOR * SECTOR;
    match damage.place {
        Where::Fast => {
            let mut sector = [0; SECTOR as usize];
            world.fast.medium.peek(start, &mut sector);
            match damage.bit {
                Some(bit) => sector[(damage.at - start) as usize] ^= 1 << bit,
                None => sector.fill(0),
            }
            world.fast.medium.poke(start, &sector);
            world.fast.medium.settle();
        }
        Where::Mark(disk) => {
            let mark = &mut world.disks[disk].mark;
            if let Some(bytes) = &mut mark.now {
                match damage.bit {
                    Some(bit) => bytes[damage.at as usize] ^= 1 << bit,
                    None => bytes.fill(0),
                }
            }
            mark.durable.clone_from(&mark.now);
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub cases: u64,
    pub refused: u64,
    /// Volumes of which something could not be read.
    pub errors: u64,
}

/// Every checksum on the cache device is right again.
fn reseal(world: &mut World, unit: usize) {
    let medium = &mut world.fast.medium;
    let mut bytes = vec![0; medium.bytes as usize];
    medium.peek(0, &mut bytes);
    reseal_cache(&mut bytes, unit);
    medium.poke(0, &bytes);
    medium.settle();
}

/// Starts, compares, ends cleanly, and starts and compares once more. The sabotage: checksums are made right
/// after the damage.
fn check(life: &Life, damages: &[Damage], is_sabotaged: bool, tally: &mut Tally) -> Result<(), String> {
    let mut world = life.world.clone();
    for damage in damages {
        hurt(&mut world, damage);
    }
    if is_sabotaged {
        reseal(&mut world, life.unit);
    }
    let mut served = Served::new(&world, &Faults::default());
    let mut models = life.models.clone();
    tally.cases += 1;
    for nth in 0..2 {
        if let Err(error) = served.start() {
            tally.refused += 1;
            if nth > 0 {
                return Err(format!("a second start is refused: {error}"));
            }
            return Ok(());
        }
        for (volume, model) in models.iter_mut().enumerate() {
            let mut bytes = vec![0xEE; model.len() * UNIT];
            if served.read(volume, 0..model.len(), &mut bytes).is_err() {
                tally.errors += 1;
                continue;
            }
            model.observe(0, &bytes).map_err(|error| format!("start {nth}: {error}"))?;
        }
        served.end()?;
    }
    Ok(())
}

fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text}: expected a number")))
}

/// Every kind of metadata in the modes that make blocks dirty and in others.
fn kept() -> Vec<(String, Kept)> {
    let mut all = Vec::new();
    for preset in PRESETS.iter().filter(|preset| preset.metadata.name != "none") {
        for mode in preset.modes.iter().filter(|mode| mode.caches_writes()) {
            let name = format!("{}/{}", preset.info.name, mode.name());
            all.push((name, Kept::new(preset.info.name, mode.name(), &[])));
        }
    }
    all
}

/// Tries so many cases of damage. `DAMAGE_CASES` is another number, `DAMAGE_CASE` limits it to one cache,
/// `DAMAGE_SEED` to one life of it; with `DAMAGE_ALL` it goes on after a broken promise.
fn campaign(cases: u64) -> Tally {
    let only = std::env::var("DAMAGE_CASE").ok();
    let all = kept();
    let each = variable("DAMAGE_CASES").unwrap_or(cases).div_ceil(all.len() as u64);
    let goes_on = std::env::var("DAMAGE_ALL").is_ok();
    let (mut total, mut found) = (Tally::default(), String::new());
    for (name, kept) in all.iter().filter(|(name, _)| only.as_ref().is_none_or(|only| only == name)) {
        let world = World::new(kept);
        let lives = each.div_ceil(OF_A_LIFE);
        let seeds = variable("DAMAGE_SEED").map_or(1..lives + 1, |seed| seed..seed + 1);
        for seed in seeds {
            let mut rng = seeded(seed);
            let life = live(kept, &world, &mut rng).unwrap_or_else(|error| panic!("{name}: {error}"));
            for _ in 0..OF_A_LIFE.min(each) {
                let first = life.damage(&mut rng);
                let second = (below(&mut rng, 10) == 0).then(|| life.damage(&mut rng));
                let damages: Vec<Damage> = std::iter::once(first).chain(second).collect();
                let done = catch_unwind(AssertUnwindSafe(|| check(&life, &damages, false, &mut total)));
                let Err(error) = done.unwrap_or_else(|_| Err("panic".to_owned())) else { continue };
                let names: Vec<&str> = damages.iter().map(|damage| life.name_of(damage)).collect();
                let text = format!(
                    "{name}, seed {seed}, {names:?} {damages:?}: {error}\n  repeat with: DAMAGE_CASE='{name}' DAMAGE_SEED={seed} cargo test --package nandscape-cache --test suite campaign::damage"
                );
                assert!(goes_on, "{text}");
                let _ = writeln!(found, "{text}");
            }
        }
    }
    let _ = writeln!(std::io::stderr(), "damage: {total:?}");
    assert!(found.is_empty(), "{found}");
    total
}

#[test]
fn damage_to_any_field_of_any_metadata_gives_errors_and_never_older_data() {
    let tally = campaign(2000);
    assert!(tally.refused > 0 && tally.refused < tally.cases, "{tally:?}");
}

#[test]
fn damage_that_no_checksum_tells_is_found_by_the_comparison() {
    let kept = Kept::new("nandscape", "write-back", &[]);
    let world = World::new(&kept);
    let mut rng = seeded(1);
    let found = (0..10).any(|_| {
        let life = live(&kept, &world, &mut rng).unwrap();
        (0..OF_A_LIFE).any(|_| {
            let damage = life.damage(&mut rng);
            let done =
                catch_unwind(AssertUnwindSafe(|| check(&life, &[damage], true, &mut Tally::default())));
            done.is_ok_and(|compared| compared.is_err())
        })
    });
    assert!(found, "wrong data passed");
}
