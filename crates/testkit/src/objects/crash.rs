//! A host of a store of objects whose power is cut at every operation of the flash below.
//!
//! What may be found of an object: a size that it had since it was last flushed; of each of its units, what
//! the unit held then, or later, or zeroes where the object was longer or shorter then. What was not touched
//! since the flush is as it was. Of two objects of which one replaced the other, one is there. A store whose
//! commands are atomic leaves each object in one of its states, as a whole.

use super::load::{self, Mix, OBJECTS, Plain, Request, apply, find};
use crate::crash::{CrashDevice, Effort, Promises, Setup, Site, Subject, Sure, campaign, finds};
use crate::shrink::Outcome;
use nandscape_core::command::Payload;
use nandscape_core::rng::{below, seeded};
use nandscape_core::{
    Clocked as _, Extent, FlashLayer, FtlError, Hint, NamespaceError, ObjectCommand, ObjectError, ObjectId,
    ObjectSpace, OutOfBand, Reply, SimTime, Subsystem, Token,
};
use nandscape_media::Nand;
use nandscape_media::faults::FaultPlan;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::marker::PhantomData;

/// A store of objects, for [`ObjectHost`].
pub trait ObjectLayer {
    /// What it keeps beside the data of a page.
    type Oob: OutOfBand;
    /// Itself.
    type Layer: Subsystem + FlashLayer;
    /// Bytes that are there whole or not at all.
    const UNIT: usize;
    /// Each command is there whole or not at all.
    const IS_ATOMIC: bool;
    /// It can keep room for bytes that are not written.
    const RESERVES: bool = false;
    /// Bytes that may be free although a write of as many less this is refused: metadata takes room, too.
    const SLACK: u64;
}

/// Whether a command found no room.
pub const fn is_full(error: &NamespaceError) -> bool {
    matches!(error, NamespaceError::Object(ObjectError::Full | ObjectError::TooMany))
}

/// How the space of a store is divided.
pub fn space<S: Subsystem>(store: &mut S) -> ObjectSpace {
    match store
        .submit(0, ObjectCommand::Space.into(), Payload::None, SimTime::ZERO)
        .map(|answer| answer.reply)
    {
        Ok(Reply::Space(space)) => *space,
        other => panic!("{other:?}"),
    }
}

/// A store on an erased device, for a campaign.
pub fn case<U: ObjectLayer>(
    name: &str,
    nand: Nand<U::Oob>,
    effort: Effort,
    open: impl Fn(CrashDevice<U::Oob>) -> Outcome<U::Layer> + Sync + 'static,
) -> Setup<'static, ObjectHost<U>> {
    let (name, open) = (name.to_owned(), Box::new(open));
    Setup { name, nand, open, plan: FaultPlan::default(), needs_flush: true, damage: None, effort }
}

/// A campaign of at least so many cuts, by a test of the suite of a package, such as
/// `zone_files::crash::files_survive_every_cut`. Panics at the first broken promise, and where no erase was
/// cut.
pub fn survives<U: ObjectLayer>(package: &str, test: &str, setups: &[Setup<'_, ObjectHost<U>>], points: u64) {
    let command = format!("cargo test -p {package} --test suite {test} -- --exact --nocapture");
    let tally = campaign(test, setups, points, &command);
    assert!(std::env::var("CRASH_CASE").is_ok() || tally.erases > 0, "{tally}");
}

/// Every sabotage is found in one of the cases that a store with it makes. Panics with those that are not.
pub fn all_are_found<U: ObjectLayer, X: Copy + Debug>(
    all: &[X],
    cases: impl Fn(X) -> Vec<Setup<'static, ObjectHost<U>>>,
) {
    let few = Effort { scattered: 4, deep_every: 0, again_every: 40, row_every: 0, ..Effort::default() };
    let is_found = |sabotage: &X| {
        cases(*sabotage).into_iter().any(|case| finds(&Setup { effort: few, ..case }, 30).0.is_some())
    };
    let unnoticed: Vec<&X> = all.iter().filter(|sabotage| !is_found(sabotage)).collect();
    assert!(unnoticed.is_empty(), "{unnoticed:?} went unnoticed");
}

type Objects = BTreeMap<u64, Plain>;

/// A state of all files: what it was after a request.
#[derive(Clone, Debug)]
struct State {
    /// Operations submitted before the request that made it.
    from: usize,
    files: Objects,
}

/// States that may be found, oldest first.
#[derive(Clone, Debug)]
pub struct ObjectPromises {
    states: Vec<State>,
    /// By file: with so many operations submitted, it was known that the state of this number is durable.
    durable: BTreeMap<u64, Vec<(usize, usize)>>,
    /// States in which an object had just replaced another one.
    replaced: Vec<(usize, u64, u64)>,
}

impl ObjectPromises {
    fn fresh() -> Self {
        Self {
            states: vec![State { from: 0, files: Objects::new() }],
            durable: BTreeMap::new(),
            replaced: Vec::new(),
        }
    }

    fn latest(&self) -> &Objects {
        &self.states.last().expect("there is a state").files
    }

    /// The states of a file that a cut before operation `cut` may leave.
    fn possible(&self, id: u64, cut: usize) -> impl Iterator<Item = Option<&Plain>> + Clone {
        let durable = self.durable.get(&id).into_iter().flatten();
        let first = durable.filter(|(at, _)| *at <= cut).map(|(_, state)| *state).max().unwrap_or(0);
        let states = self.states[first..].iter().enumerate();
        states
            .filter(move |(index, state)| *index == 0 || state.from <= cut)
            .map(move |(_, state)| state.files.get(&id))
    }

    fn check<U: ObjectLayer>(&self, id: u64, cut: usize, found: Option<&Plain>) -> Outcome {
        let possible = self.possible(id, cut);
        let Some(found) = found else {
            if possible.clone().any(|state| state.is_none()) {
                return Ok(());
            }
            return Err(format!("object {id} is gone"));
        };
        let lives = possible.clone().flatten();
        if lives.clone().next().is_none() {
            return Err(format!("object {id} is there, which nobody made"));
        }
        let size = found.bytes.len();
        if lives.clone().all(|state| state.bytes.len() != size) {
            let sizes: Vec<usize> = lives.map(|state| state.bytes.len()).collect();
            return Err(format!("object {id} has {size} bytes, possible were {sizes:?}"));
        }
        if lives.clone().all(|state| state.attributes != found.attributes) {
            return Err(format!("object {id} has attributes that it never had"));
        }
        if U::IS_ATOMIC {
            if lives.clone().any(|state| state == found) {
                return Ok(());
            }
            return Err(format!("object {id} ({size} bytes) was never as it is"));
        }
        for (number, unit) in found.bytes.chunks(U::UNIT).enumerate() {
            let start = number * U::UNIT;
            let is_held = |state: &Plain| {
                let held = state.bytes.get(start..).unwrap_or(&[]);
                let held = &held[..held.len().min(unit.len())];
                // A later or earlier state may end before the unit does: the rest reads as zeroes.
                unit.starts_with(held) && unit[held.len()..].iter().all(|byte| *byte == 0)
            };
            if !lives.clone().any(is_held) {
                return Err(format!("unit {number} of object {id} ({size} bytes) holds what it never held"));
            }
        }
        Ok(())
    }
}

impl Promises for ObjectPromises {
    fn after_cut(&self, cut: usize) -> Self {
        let mut states: Vec<State> = Vec::new();
        for (index, state) in self.states.iter().enumerate() {
            if index == 0 || state.from <= cut {
                states.push(State { from: 0, files: state.files.clone() });
            }
        }
        let mut durable = BTreeMap::new();
        for (id, known) in &self.durable {
            if let Some(state) = known.iter().filter(|(at, _)| *at <= cut).map(|(_, state)| *state).max() {
                durable.insert(*id, vec![(0, state)]);
            }
        }
        let replaced = self.replaced.iter().filter(|(made, ..)| *made < states.len()).copied().collect();
        Self { states, durable, replaced }
    }
}

/// A host of a store of objects.
pub struct ObjectHost<U: ObjectLayer> {
    store: U::Layer,
    site: Site<U::Oob>,
    now: SimTime,
    promises: ObjectPromises,
    /// Flushes that are not answered: files that they cover, and up to which state.
    under_way: Vec<(Token, Vec<u64>, usize)>,
    sure: Sure,
    of: PhantomData<U>,
}

/// A request, made up when its turn comes: it depends on the files that there are then.
#[derive(Clone, Debug)]
pub struct Step {
    seed: u64,
    act: Act,
    waits: bool,
}

#[derive(Clone, Debug)]
enum Act {
    Any,
    Idle,
    Fill(u64),
}

impl<U: ObjectLayer> ObjectHost<U> {
    const fn mix() -> Mix {
        Mix { most_bytes: 7_000, most_size: 16_000, unit: U::UNIT as u64 }
    }

    fn wait_for(&mut self, token: Token, covered: &[u64], state: usize) {
        let now = self.site.handle.recorded();
        self.sure.push((now, self.site.handle.set_of(token)));
        if let Some(at) = self.store.completion(token) {
            self.now = self.now.max(at);
        }
        for id in covered {
            self.promises.durable.entry(*id).or_default().push((now, state));
        }
    }

    fn wait_for_all(&mut self) {
        for (token, covered, state) in std::mem::take(&mut self.under_way) {
            self.wait_for(token, &covered, state);
        }
    }

    fn allow(&self, error: &NamespaceError) -> Outcome {
        let is_read_only = matches!(error, NamespaceError::Ftl(FtlError::ReadOnly { .. }));
        if is_full(error) || (is_read_only && self.site.may_end_read_only) {
            return Ok(());
        }
        Err(error.to_string())
    }

    fn request(&mut self, request: &Request) -> Outcome {
        let now = self.site.handle.recorded();
        let result = load::submit(&mut self.store, request, self.now);
        let token = match result {
            Ok(token) => token,
            Err(error) if is_full(&error) => return Ok(()),
            Err(error) => {
                self.allow(&error)?;
                // What of it was done is not known.
                let mut files = self.promises.latest().clone();
                apply(&mut files, request);
                self.promises.states.push(State { from: now, files });
                return self.take_as_it_is();
            }
        };
        if let ObjectCommand::Flush { object } = request.command {
            let state = self.promises.states.len() - 1;
            let covered = object.map_or_else(|| (1..=OBJECTS).collect(), |object| vec![object.0]);
            self.under_way.push((token, covered, state));
        } else {
            let mut files = self.promises.latest().clone();
            apply(&mut files, request);
            self.promises.states.push(State { from: now, files });
            if let ObjectCommand::SetAttributes { object, replaces: Some(old) } = request.command {
                self.promises.replaced.push((self.promises.states.len() - 1, object.0, old.0));
            }
            self.sure_of(token);
        }
        Ok(())
    }

    /// A write was answered: that says nothing of the flash.
    fn sure_of(&mut self, token: Token) {
        let now = self.site.handle.recorded();
        self.sure.push((now, self.site.handle.set_of(token)));
    }

    /// The state that is there is a possible one from now on.
    fn take_as_it_is(&mut self) -> Outcome {
        let now = self.site.handle.recorded();
        let mut files = Objects::new();
        for id in 1..=OBJECTS {
            if let Some(found) = find(&mut self.store, id)? {
                files.insert(id, found);
            }
        }
        self.promises.states.push(State { from: now, files });
        Ok(())
    }
}

impl<U: ObjectLayer> Subject for ObjectHost<U> {
    type Oob = U::Oob;
    type Layer = U::Layer;
    type Step = Step;
    type Promises = ObjectPromises;

    fn new(store: U::Layer, site: Site<U::Oob>, promises: Option<ObjectPromises>) -> Self {
        Self {
            store,
            site,
            now: SimTime::ZERO,
            promises: promises.unwrap_or_else(ObjectPromises::fresh),
            under_way: Vec::new(),
            sure: Sure::new(),
            of: PhantomData,
        }
    }

    fn steps(seed: u64, count: usize, _: u32) -> Vec<Step> {
        let mut rng = seeded(seed);
        let step = |_| {
            let act = if below(&mut rng, 40) == 0 { Act::Idle } else { Act::Any };
            Step { seed: below(&mut rng, u64::MAX), act, waits: below(&mut rng, 3) > 0 }
        };
        (0..count).map(step).collect()
    }

    /// Files that take nearly everything.
    fn fill(&self, seed: u64) -> Vec<Step> {
        (1..=OBJECTS).map(|id| Step { seed, act: Act::Fill(id), waits: true }).collect()
    }

    fn step(&mut self, step: &Step) -> Outcome {
        if step.waits {
            self.wait_for_all();
        }
        let result = match step.act {
            Act::Any => {
                let request = Self::mix().request(&mut seeded(step.seed), self.promises.latest());
                let request = if U::RESERVES {
                    Self::mix().reserving(request, self.promises.latest())
                } else {
                    request
                };
                self.request(&request).map_err(|error| format!("{:?}: {error}", request.command))
            }
            Act::Idle => {
                let until = self.now + 40;
                let idle = self.store.idle(self.now, until);
                self.now = until;
                idle.or_else(|error| self.allow(&error))
            }
            Act::Fill(id) => {
                let object = ObjectId(id);
                let plain = |command| Request { command, data: Vec::new() };
                if !self.promises.latest().contains_key(&id) {
                    self.request(&plain(ObjectCommand::Create { object, hint: Hint(2 + id as u16 % 3) }))?;
                }
                if !self.promises.latest().contains_key(&id) {
                    // There was no room for it.
                    return Ok(());
                }
                let size = space(&mut self.store).free.min(15_000);
                let extent = Extent::new(0, size);
                let data = vec![step.seed as u8 ^ id as u8; size as usize];
                let write = ObjectCommand::Write { object, extent, hint: None };
                self.request(&Request { command: write, data })?;
                self.request(&plain(ObjectCommand::Flush { object: None }))
            }
        };
        result.map_err(|error| format!("{step:?}: {error}"))
    }

    fn observe(&mut self, cut: usize) -> Outcome {
        let now = self.site.handle.recorded();
        let mut files = Objects::new();
        for id in 1..=OBJECTS {
            let found = find(&mut self.store, id)?;
            self.promises.check::<U>(id, cut, found.as_ref())?;
            if let Some(found) = found {
                files.insert(id, found);
            }
        }
        self.promises.check_replaced(cut, &files)?;
        let room = space(&mut self.store);
        if room.live + room.free != room.capacity && !self.site.may_end_read_only {
            return Err(format!("space is missing: {room:?}"));
        }
        self.promises.states.push(State { from: now, files });
        let last = self.promises.states.len() - 1;
        for id in 1..=OBJECTS {
            self.promises.durable.entry(id).or_default().push((now, last));
        }
        Ok(())
    }

    fn verify(&mut self) -> Outcome {
        for id in 1..=OBJECTS {
            let found = find(&mut self.store, id)?;
            if found.as_ref() != self.promises.latest().get(&id) {
                return Err(format!("object {id} is not as it was left, without a cut in between"));
            }
        }
        Ok(())
    }

    fn check_invariants(&self) {
        Subsystem::check_invariants(&self.store);
    }

    fn check_clean_start(&self) -> Outcome {
        let Some(report) = self.store.recovery() else { return Err("a start without a report".to_owned()) };
        if report.was_clean { Ok(()) } else { Err(format!("not clean after a clean shutdown: {report:?}")) }
    }

    fn is_read_only(&self) -> bool {
        self.store.read_only().is_some()
    }

    fn shutdown(&mut self) -> Outcome<bool> {
        self.wait_for_all();
        let state = self.promises.states.len() - 1;
        match self.store.shutdown(self.now) {
            Ok(token) => {
                let all: Vec<u64> = (1..=OBJECTS).collect();
                self.wait_for(token, &all, state);
                Ok(true)
            }
            Err(error) => self.allow(&error).map(|()| false),
        }
    }

    fn promises(&self) -> &ObjectPromises {
        &self.promises
    }

    fn into_promises(self) -> (ObjectPromises, Sure) {
        (self.promises, self.sure)
    }
}

impl ObjectPromises {
    /// An object that replaced another one is there with the attributes of that change, or the other one is.
    fn check_replaced(&self, cut: usize, found: &Objects) -> Outcome {
        for (made, id, old) in self.replaced.iter().filter(|(made, ..)| self.states[*made].from <= cut) {
            let later = self.states[*made..].iter().filter(|state| state.from <= cut);
            let attributes = &self.states[*made].files[id].attributes;
            let is_done = found.get(id).is_some_and(|file| file.attributes == *attributes);
            if is_done && found.contains_key(old) && later.clone().all(|state| !state.files.contains_key(old))
            {
                return Err(format!("object {id} has replaced object {old}, which is there all the same"));
            }
            let durable = self.durable.get(old).into_iter().flatten().filter(|(at, _)| *at <= cut);
            let first = durable.map(|(_, state)| *state).max().unwrap_or(0);
            let was_there =
                first < *made && self.states[first..*made].iter().all(|state| state.files.contains_key(old));
            if !was_there || found.contains_key(old) {
                continue;
            }
            let is_later = |state: &State| match (found.get(id), state.files.get(id)) {
                (Some(found), Some(state)) => found.attributes == state.attributes,
                (found, state) => found.is_none() && state.is_none(),
            };
            if !later.clone().any(is_later) {
                return Err(format!("object {old} is gone, and object {id} has not replaced it"));
            }
        }
        Ok(())
    }
}
