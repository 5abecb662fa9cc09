//! Cuts a life before each of its operations, in several ways, and looks at what comes back.

use crate::crash::life::{Begin, Case, Life, Mark, Sabotage, at_start, live, read_volumes, start};
use crate::crash::model::{self, Volume};
use crate::crash::tape::{Fate, Image, Tape, Walk};
use nandscape_cache::Mode;
use nandscape_cache::presets::AfterCut;
use nandscape_core::rng::{Xoshiro256PlusPlus, below, seeded};
use std::fmt;

/// How much is tried.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Commands of a life.
    pub steps: usize,
    /// After one of so many cuts a second life begins, and each of its operations is cut too, those of its
    /// start among them.
    pub again_every: u64,
}

/// What was tried.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// States after a cut that were opened and compared.
    pub points: u64,
    /// Of these, in a second life.
    pub again: u64,
    /// Operations that were cut at.
    pub operations: u64,
    /// Units whose flushed version was gone, with a design that loses dirty data.
    pub lost: u64,
    /// Blocks that were found to be a mix of old and new, with a design that allows it.
    pub torn: u64,
    /// Blocks that were still cached though clean.
    pub warm: u64,
    /// Writes of blocks that went past the cache above the cut-off.
    pub past: u64,
}

impl Tally {
    pub fn add(&mut self, other: Self) {
        self.points += other.points;
        self.again += other.again;
        self.operations += other.operations;
        self.lost += other.lost;
        self.torn += other.torn;
        self.warm += other.warm;
        self.past += other.past;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} cut points ({} of them in or after a recovery) at {} operations; {} clean blocks still warm, {} flushed units lost, {} blocks torn",
            self.points, self.again, self.operations, self.warm, self.lost, self.torn
        )
    }
}

/// A broken promise.
#[derive(Debug)]
pub struct Failure {
    pub cut: String,
    pub message: String,
}

/// The stores after a cut.
struct After<'a> {
    life: &'a Life,
    cut: usize,
    images: Vec<Image>,
    /// Sub-blocks that must still be cached.
    warm: &'a [u16],
}

struct Explorer<'a> {
    case: &'a Case,
    effort: Effort,
    tally: Tally,
    depth: u32,
    /// Only this cut of the first life.
    only: Option<usize>,
}

/// Explores one seed of a case.
pub fn explore(case: &Case, effort: Effort, seed: u64, only: Option<usize>) -> Result<Tally, Failure> {
    let mut rng = seeded(seed);
    let (images, volumes) = case.images();
    let closes = below(&mut rng, 2) == 0;
    let mut explorer = Explorer { case, effort, tally: Tally::default(), depth: 0, only };
    let life = live(case, &images, volumes, Begin::Create, effort.steps, closes, &mut rng)
        .map_err(|message| Failure { cut: "-".to_owned(), message })?;
    explorer.tally.past += life.past;
    explorer.cuts(&life, &images, &mut rng)?;
    Ok(explorer.tally)
}

impl Explorer<'_> {
    fn cuts(&mut self, life: &Life, images: &[Image], rng: &mut Xoshiro256PlusPlus) -> Result<(), Failure> {
        if self.only.is_some() {
            let _ = life.print(&mut std::io::stderr());
        }
        let mut walk = Walk::new(images, self.case.drives);
        let mut warm = vec![0; life.marks[0].valid.len()];
        let mut mark = 0;
        for cut in 0..=life.records.len() {
            let at = life.records.get(cut).map_or(u64::MAX, |record| record.at);
            walk.settle(at);
            while let Some(next) = life.marks.get(mark).filter(|next| next.end <= cut) {
                warm_up(&mut warm, next);
                mark += 1;
            }
            let expected = life.marks.get(mark).map_or_else(
                || warm.clone(),
                |next| {
                    let mut warm = warm.clone();
                    cool(&mut warm, &next.valid, &next.touched);
                    warm
                },
            );
            self.tally.operations += 1;
            // Decided by the cut alone, so that it can be repeated without the others.
            let mut chance = seeded(below(&mut rng.clone(), 1 << 40) ^ (cut as u64) << 8);
            if self.depth > 0 || self.only.is_none_or(|only| only == cut) {
                for (fast, disk) in fates(&walk) {
                    let images = (0..walk.devices())
                        .map(|device| walk.image(device, if device == 0 { fast } else { disk }, &mut chance))
                        .collect();
                    let after = After { life, cut, images, warm: &expected };
                    self.point(&after, &mut chance).map_err(|failure| Failure {
                        cut: format!("{cut} {fast:?}/{disk:?}, {}", failure.cut),
                        message: failure.message,
                    })?;
                }
            }
            if let Some(record) = life.records.get(cut) {
                walk.step(record);
            }
        }
        Ok(())
    }

    /// Opens what a cut left, and perhaps lives on.
    fn point(&mut self, after: &After<'_>, chance: &mut Xoshiro256PlusPlus) -> Result<(), Failure> {
        let depth = self.depth;
        let here = |message: String| Failure { cut: format!("depth {depth}"), message };
        self.tally.points += 1;
        self.tally.again += u64::from(self.depth > 0);
        let has_opened = self.check(after).map_err(here)?;
        if !has_opened || self.depth > 0 || below(chance, self.effort.again_every) != 0 {
            return Ok(());
        }
        let volumes: Vec<Volume> = after.life.volumes.iter().map(|volume| volume.after(after.cut)).collect();
        let closes = below(chance, 2) == 0;
        self.depth += 1;
        let steps = self.effort.steps / 8;
        let life = live(self.case, &after.images, volumes, Begin::Open, steps, closes, chance)
            .map_err(|message| Failure { cut: "second life".to_owned(), message })?;
        self.cuts(&life, &after.images, chance)?;
        self.depth -= 1;
        Ok(())
    }

    /// Whether it opens; an error if what is found is not what was promised.
    fn check(&mut self, after: &After<'_>) -> Result<bool, String> {
        let &After { life, cut, ref images, warm } = after;
        let case = self.case;
        let started = match start(case, images, Begin::Open, &Tape::default()) {
            Ok(started) => started,
            // While a cache is being created there may be none, and the disks are what they were.
            Err(error) if at_start(&error) && self.depth == 0 && cut < life.ready => return Ok(false),
            Err(error) => return Err(format!("does not open: {error}")),
        };
        let (mut cache, at) = (started.cache, started.at.0);
        cache.check_invariants();
        let is_closed = life.closed.is_some() && cut == life.records.len();
        if is_closed && case.kind != "none" {
            let entries: Vec<_> = case.blocks().map(|key| cache.entry(key)).collect();
            if !started.report.is_clean || Some(&entries) != life.closed.as_ref() {
                return Err(format!(
                    "a clean removal does not bring back what there was: {}",
                    started.report
                ));
            }
        }
        if cut <= life.closing {
            self.check_entries(&cache, warm)?;
        }
        let all = read_volumes(case, &mut cache, Mode::WriteOnly, at)?;
        for (number, bytes) in all.iter().enumerate() {
            let ids = model::read_all(number, bytes)?;
            self.check_ids(&life.volumes[number], cut, &ids)
                .map_err(|error| format!("{error}\n  {}", started.report))?;
        }
        // What the disk has where the cache is not newer: so nothing changes when a clean block leaves.
        let direct = read_volumes(case, &mut cache, Mode::PassThrough, at)?;
        for (number, (cached, direct)) in all.iter().zip(&direct).enumerate() {
            if let Some(at) = cached.iter().zip(direct).position(|(cached, direct)| cached != direct) {
                let unit = at / crate::crash::tape::UNIT;
                let [cached, direct] =
                    [cached, direct].map(|bytes| model::read_all(number, bytes).map(|ids| ids[unit]));
                return Err(format!(
                    "unit {unit} of volume {number} is {cached:?} in the cache and clean, and {direct:?} on the disk"
                ));
            }
        }
        Ok(true)
    }

    fn check_ids(&mut self, volume: &Volume, cut: usize, ids: &[u32]) -> Result<(), String> {
        for (unit, id) in ids.iter().enumerate() {
            let is_lost = volume.check(unit, cut, *id)?;
            self.tally.lost += u64::from(is_lost);
        }
        for (block, ids) in ids.chunks(self.case.per_block()).enumerate() {
            let done = volume.check_block(block, cut, ids);
            if self.case.is_atomic {
                done?;
            } else {
                self.tally.torn += u64::from(done.is_err());
            }
        }
        Ok(())
    }

    /// What is cached is what the design brings back.
    fn check_entries(
        &mut self,
        cache: &nandscape_cache::Cache<nandscape_policies::eviction::AnyEviction>,
        warm: &[u16],
    ) -> Result<(), String> {
        let after = self.case.after_cut;
        for (key, warm) in self.case.blocks().zip(warm) {
            let entry = cache.entry(key);
            let (valid, dirty) = entry.map_or((0, 0), |entry| (entry.valid, entry.dirty));
            let wrong = |what: &str| Err(format!("{key:?}: {what}; {entry:?}, warm {warm:#x}"));
            match after {
                AfterCut::Everything | AfterCut::AllAsDirty if warm & !valid != 0 => {
                    return wrong("what was cached and committed is not cached any more");
                }
                AfterCut::AllAsDirty | AfterCut::DirtyBlocks if valid != dirty => {
                    return wrong("is clean after a cut");
                }
                AfterCut::EmptyCache | AfterCut::DirtyLost if valid != 0 => {
                    return wrong("is cached after a cut");
                }
                _ => self.tally.warm += u64::from(valid & !dirty != 0),
            }
        }
        Ok(())
    }
}

/// Which fates differ here: fast store, disks.
fn fates(walk: &Walk) -> Vec<(Fate, Fate)> {
    let disks = (1..walk.devices()).any(|device| walk.is_volatile(device));
    match (walk.is_volatile(0), disks) {
        (false, false) => vec![(Fate::Kept, Fate::Kept)],
        (true, false) => vec![(Fate::Kept, Fate::Kept), (Fate::Lost, Fate::Kept), (Fate::Torn, Fate::Kept)],
        (false, true) => vec![(Fate::Kept, Fate::Kept), (Fate::Kept, Fate::Lost), (Fate::Kept, Fate::Torn)],
        (true, true) => vec![
            (Fate::Kept, Fate::Kept),
            (Fate::Lost, Fate::Kept),
            (Fate::Kept, Fate::Lost),
            (Fate::Torn, Fate::Torn),
            (Fate::Torn, Fate::Torn),
        ],
    }
}

/// A command is over. After a flush all that is cached will stay; otherwise what was not touched and is
/// cached still.
fn warm_up(warm: &mut [u16], mark: &Mark) {
    cool(warm, &mark.valid, &mark.touched);
    for ((warm, valid), is_flushed) in warm.iter_mut().zip(&mark.valid).zip(&mark.flushed) {
        if *is_flushed {
            *warm = *valid;
        }
    }
}

fn cool(warm: &mut [u16], valid: &[u16], touched: &[bool]) {
    for ((warm, valid), touched) in warm.iter_mut().zip(valid).zip(touched) {
        *warm &= if *touched { 0 } else { *valid };
    }
}

/// Runs seed after seed of each case until `points` cuts were tried in each, and panics at the first broken
/// promise with the command that repeats it. The variables `CRASH_CASE`, `CRASH_SEED` and `CRASH_CUT` limit
/// it to that; with a cut, the operations of second lives are printed.
pub fn campaign(cases: &[Case], effort: Effort, points: u64) -> Vec<Tally> {
    use std::io::Write as _;
    let variable = |name: &str| std::env::var(name).ok();
    let number = |name: &str| {
        variable(name)
            .map(|text| text.parse::<u64>().unwrap_or_else(|_| panic!("{name}={text}: expected a number")))
    };
    let (only_case, seed, cut) = (variable("CRASH_CASE"), number("CRASH_SEED"), number("CRASH_CUT"));
    let mut tallies = Vec::new();
    for case in cases {
        let mut total = Tally::default();
        let is_wanted = only_case.as_ref().is_none_or(|only| *only == case.name);
        for seed in seed.unwrap_or(1).. {
            if !is_wanted || (total.points >= points && seed > 1) {
                break;
            }
            match explore(case, effort, seed, cut.map(|cut| cut as usize)) {
                Ok(tally) => total.add(tally),
                Err(Failure { cut, message }) => {
                    let first = cut.split(' ').next().unwrap_or_default();
                    let limit = if first == "-" { String::new() } else { format!(" CRASH_CUT={first}") };
                    panic!(
                        "{}, seed {seed}, cut {cut}: {message}\n  repeat with: CRASH_CASE='{}' CRASH_SEED={seed}{limit} cargo test --package nandscape-cache --test suite crash::",
                        case.name, case.name
                    );
                }
            }
            if variable("CRASH_SEED").is_some() {
                break;
            }
        }
        let _ = writeln!(std::io::stderr(), "{}: {total}", case.name);
        tallies.push(total);
    }
    tallies
}

/// The first broken promise among some seeds of a sabotaged case.
pub fn finds(case: &Case, sabotage: Sabotage, effort: Effort, seeds: u64) -> Option<Failure> {
    let case = Case { sabotage, ..case.clone() };
    (1..=seeds).find_map(|seed| explore(&case, effort, seed, None).err())
}
