//! The file system over a store of objects, without FUSE: what a loss of power leaves of it.

use crate::forgetful::Forgetful;
use crate::object_mount::store_of;
use nandscape_core::command::Payload;
use nandscape_core::rng::{Rng, below, seeded};
use nandscape_core::{
    Chores, Clocked, Command, Control, Layered, NamespaceResult, SimTime, Submitted, Subsystem,
};
use nandscape_engine::{Clock, Engine};
use nandscape_fuse::{Client, Kind, New, ObjectFs, ROOT};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

fn load(store: &Forgetful) -> (ObjectFs, Vec<String>) {
    let engine = Arc::new(Engine::new(Box::new(store.clone()), Clock::free()));
    ObjectFs::load(Client { engine, namespace: 0 }, false).unwrap()
}

fn new(kind: Kind) -> New {
    New { kind, mode: 0o644, uid: 1000, gid: 1000, rdev: 0, target: Box::default() }
}

/// A directory and a name in it.
type Place = (u64, Box<[u8]>);

/// What a file may be after a loss of power.
#[derive(Clone, Debug, Default)]
struct Possible {
    contents: Vec<Vec<u8>>,
    names: BTreeSet<Place>,
    /// It was synced, and has had a name ever since.
    is_safe: bool,
}

/// What the file system has to keep.
#[derive(Debug, Default)]
struct Model {
    contents: BTreeMap<u64, Vec<u8>>,
    names: BTreeMap<u64, BTreeSet<Place>>,
    possible: BTreeMap<u64, Possible>,
    /// Names that led to a safe file at some time and were taken by no call but a rename over them; and the
    /// files that they led to.
    held: BTreeMap<Place, BTreeSet<u64>>,
    /// Where every directory is.
    dirs: BTreeMap<u64, Place>,
}

impl Model {
    fn owner(&self, place: &Place) -> Option<u64> {
        self.names.iter().find(|(_, names)| names.contains(place)).map(|(ino, _)| *ino)
    }

    fn synced(&mut self, ino: u64) {
        let names = self.names.get(&ino).cloned().unwrap_or_default();
        for place in &names {
            self.held.entry(place.clone()).or_insert_with(|| BTreeSet::from([ino]));
        }
        let contents = self.contents.get(&ino).cloned().into_iter().collect();
        self.possible.insert(ino, Possible { contents, is_safe: !names.is_empty(), names });
    }

    fn wrote(&mut self, ino: u64, content: Vec<u8>) {
        self.possible.entry(ino).or_default().contents.push(content.clone());
        self.contents.insert(ino, content);
    }

    fn named(&mut self, ino: u64, place: Place) {
        self.possible.entry(ino).or_default().names.insert(place.clone());
        self.names.entry(ino).or_default().insert(place);
    }

    /// A file loses a name; with its last one it may vanish.
    fn unnamed(&mut self, ino: u64, place: &Place) {
        let names = self.names.get_mut(&ino).unwrap();
        names.remove(place);
        if names.is_empty() {
            self.names.remove(&ino);
            self.contents.remove(&ino);
            self.possible.entry(ino).or_default().is_safe = false;
        }
    }

    /// Checks what is there after a loss of power; the first promise that was not kept.
    fn check(&self, fs: &ObjectFs) -> Result<(), String> {
        let (mut there, mut names) = (BTreeMap::<Place, u64>::new(), BTreeMap::<u64, Vec<Place>>::new());
        let mut dirs = vec![ROOT];
        while let Some(dir) = dirs.pop() {
            for entry in fs.list(dir).unwrap().into_iter().skip(2) {
                if entry.kind == Kind::Directory {
                    dirs.push(entry.ino);
                }
                there.insert((dir, entry.name.clone()), entry.ino);
                names.entry(entry.ino).or_default().push((dir, entry.name));
            }
        }
        for (ino, possible) in self.possible.iter().filter(|(_, possible)| possible.is_safe) {
            let found =
                names.get(ino).ok_or(format!("file {ino} is gone, which was at {:?}", possible.names))?;
            if let Some(wrong) = found.iter().find(|place| !possible.names.contains(*place)) {
                return Err(format!("file {ino} is at {wrong:?}, expected one of {:?}", possible.names));
            }
            if self.contents.contains_key(ino) {
                let mut data = vec![0; 1 << 16];
                let len = fs.read(*ino, 0, &mut data).unwrap().len;
                if !possible.contents.iter().any(|content| *content == data[..len]) {
                    return Err(format!("file {ino} has other bytes than it ever had"));
                }
            }
        }
        for (place, owners) in &self.held {
            match there.get(place) {
                Some(ino) if owners.contains(ino) => {}
                found => return Err(format!("{place:?} leads to {found:?}, expected one of {owners:?}")),
            }
        }
        Ok(())
    }
}

/// A file system, and what it has to keep.
struct World<R> {
    rng: R,
    fs: ObjectFs,
    model: Model,
    open: Vec<u64>,
}

impl<R: Rng> World<R> {
    fn pick(&mut self, of: &[u64]) -> u64 {
        of[below(&mut self.rng, of.len() as u64) as usize]
    }

    /// A name of any directory; few, so that calls meet.
    fn place(&mut self) -> Place {
        let dirs: Vec<u64> = self.model.dirs.keys().copied().collect();
        (self.pick(&dirs), vec![b'a' + below(&mut self.rng, 4) as u8].into())
    }

    fn step(&mut self) {
        let (place, target) = (self.place(), self.place());
        let files: Vec<u64> = self.model.contents.keys().copied().collect();
        let kind = below(&mut self.rng, 22);
        let file = if files.is_empty() { None } else { Some(self.pick(&files)) };
        match (kind, file) {
            (0..=3, _) => {
                if let Some(ino) = self.make(Kind::File, place) {
                    self.model.wrote(ino, Vec::new());
                }
            }
            (4, _) => {
                if let Some(ino) = self.make(Kind::Directory, place.clone()) {
                    self.model.dirs.insert(ino, place);
                }
            }
            (5..=8, Some(ino)) => self.write(ino),
            (9 | 10, Some(ino)) => {
                self.fs.sync(ino).unwrap();
                self.model.synced(ino);
            }
            (11, _) => self.sync_all(place.0),
            (12 | 13, _) => self.remove(&place),
            (14, Some(ino)) if self.fs.link(ino, target.0, &target.1).is_ok() => {
                self.model.named(ino, target);
            }
            (15, Some(ino)) if self.open.len() < 4 => {
                self.fs.open(ino).unwrap();
                self.open.push(ino);
            }
            (16, _) => {
                if let Some(ino) = self.open.pop() {
                    self.fs.release(ino).unwrap();
                }
            }
            (17..=19, _) => self.rename(&place, target),
            (20, _) => self.exchange(&place, &target),
            (21, Some(ino)) => {
                let value = [below(&mut self.rng, 3) as u8; 9];
                self.fs.set_extended(ino, b"user.test", &value, 0).unwrap();
            }
            _ => {}
        }
    }

    fn make(&mut self, kind: Kind, place: Place) -> Option<u64> {
        let (stat, _) = self.fs.make(place.0, &place.1, new(kind), 0).ok()?;
        self.model.named(stat.ino, place);
        Some(stat.ino)
    }

    fn write(&mut self, ino: u64) {
        let mut data = vec![0; 1 + below(&mut self.rng, 3000) as usize];
        self.rng.fill_bytes(&mut data);
        let offset = below(&mut self.rng, 5000);
        self.fs.write(ino, offset, &data, false, false).unwrap();
        let mut content = self.model.contents[&ino].clone();
        let end = offset as usize + data.len();
        content.resize(content.len().max(end), 0);
        content[offset as usize..end].copy_from_slice(&data);
        self.model.wrote(ino, content);
    }

    fn sync_all(&mut self, dir: u64) {
        self.fs.sync(dir).unwrap();
        self.model.held.clear();
        self.model.possible.clear();
        let all: Vec<u64> = self.model.names.keys().copied().collect();
        for ino in all {
            self.model.synced(ino);
        }
    }

    fn remove(&mut self, place: &Place) {
        let Some(ino) = self.model.owner(place) else { return };
        let outcome = if self.model.dirs.contains_key(&ino) {
            self.fs.rmdir(place.0, &place.1)
        } else {
            self.fs.unlink(place.0, &place.1)
        };
        if outcome.is_ok() {
            self.model.held.remove(place);
            self.model.unnamed(ino, place);
            self.model.dirs.remove(&ino);
        }
    }

    fn rename(&mut self, place: &Place, target: Place) {
        let model = &mut self.model;
        let (source, replaced) = (model.owner(place), model.owner(&target));
        let outcome = self.fs.rename((place.0, &place.1), (target.0, &target.1), true);
        let (Some(ino), Ok(_)) = (source, outcome) else { return };
        if source == replaced {
            return;
        }
        model.held.remove(place);
        if let Some(replaced) = replaced {
            model.unnamed(replaced, &target);
            model.dirs.remove(&replaced);
        }
        // Who holds the name holds it on, with another file.
        if let Some(owners) = model.held.get_mut(&target) {
            owners.insert(ino);
        }
        model.named(ino, target.clone());
        model.names.get_mut(&ino).unwrap().remove(place);
        if let Some(at) = model.dirs.get_mut(&ino) {
            *at = target;
        }
    }
}

impl<R: Rng> World<R> {
    fn exchange(&mut self, place: &Place, target: &Place) {
        let model = &mut self.model;
        let (one, other) = (model.owner(place), model.owner(target));
        let outcome = self.fs.exchange((place.0, &place.1), (target.0, &target.1));
        let (Some(one), Some(other), Ok(_)) = (one, other, outcome) else { return };
        if one == other {
            return;
        }
        for (ino, from, to) in [(one, place, target), (other, target, place)] {
            model.names.get_mut(&ino).unwrap().remove(from);
            model.names.get_mut(&ino).unwrap().insert(to.clone());
            if let Some(at) = model.dirs.get_mut(&ino) {
                *at = to.clone();
            }
        }
        // Both are durable under their new names, with what they had in them.
        for ino in [one, other] {
            model.names[&ino]
                .iter()
                .for_each(|place| drop(model.held.insert(place.clone(), BTreeSet::from([ino]))));
            model.synced(ino);
        }
    }
}

/// Files `a` and `b`, and directories `c` and `d` with a file in each; their numbers.
fn pairs(fs: &ObjectFs) -> [u64; 4] {
    let make = |dir, name: &[u8], kind| fs.make(dir, name, new(kind), 0).unwrap().0.ino;
    let (a, b) = (make(ROOT, b"a", Kind::File), make(ROOT, b"b", Kind::File));
    let (c, d) = (make(ROOT, b"c", Kind::Directory), make(ROOT, b"d", Kind::Directory));
    make(c, b"of c", Kind::File);
    make(d, b"of d", Kind::File);
    [a, b, c, d]
}

#[test]
fn an_exchange_is_whole_wherever_the_power_is_cut() {
    let mut exchanged = BTreeSet::new();
    for (name, other) in [(b"a", b"b"), (b"c", b"d"), (b"a", b"d")] {
        for (commands, seed) in (0..12).flat_map(|commands| (0..20).map(move |seed| (commands, seed))) {
            let context = format!("{} and {} after {commands} commands, seed {seed}", name[0], other[0]);
            let store = Forgetful::new(false);
            let (fs, _) = load(&store);
            let inos = pairs(&fs);
            let ino_of = |name: &[u8; 1]| inos[usize::from(name[0] - b'a')];
            // Known to the store before; in half of the cases not in a durable way.
            if seed % 2 == 0 {
                fs.sync_all().unwrap();
            }
            *store.left.lock().unwrap() = Some(commands);
            let outcome = fs.exchange((ROOT, name), (ROOT, other));
            let look =
                |fs: &ObjectFs| [name, other].map(|name| fs.lookup(ROOT, name).map(|stat| stat.ino).ok());
            let (before, after) = ([ino_of(name), ino_of(other)], [ino_of(other), ino_of(name)]);
            let online = look(&fs).map(Option::unwrap);
            assert_eq!(online, if outcome.is_ok() { after } else { before }, "{context}");
            drop(fs);
            *store.left.lock().unwrap() = None;
            store.lose_power(&mut seeded(seed));
            for start in 0..2 {
                let (fs, _) = load(&store);
                let found = look(&fs);
                let expected = match (outcome.is_ok(), seed % 2 == 0) {
                    (true, _) => vec![after.map(Some)],
                    (false, true) => vec![before.map(Some), after.map(Some)],
                    // What was never made durable may be missing, and is at no other place.
                    (false, false) => continue,
                };
                assert!(expected.contains(&found), "{context}, start {start}: {found:?} of {expected:?}");
                for (dir, file) in [(inos[2], b"of c"), (inos[3], b"of d")] {
                    assert!(seed % 2 == 1 || fs.lookup(dir, file).is_ok(), "{context}: {file:?}");
                }
            }
            exchanged.insert((commands, outcome.is_ok()));
        }
    }
    // Cut short at the first command and later, and not cut short.
    assert!(
        exchanged.contains(&(0, false)) && exchanged.contains(&(1, false)) && exchanged.contains(&(11, true))
    );
}

#[test]
fn an_exchange_of_long_ago_takes_no_name_from_its_file() {
    let store = Forgetful::new(false);
    let (fs, _) = load(&store);
    let [one, other, ..] = pairs(&fs);
    fs.sync_all().unwrap();
    fs.exchange((ROOT, b"a"), (ROOT, b"b")).unwrap();
    drop(fs);
    let (fs, _) = load(&store);
    // Over a file that is open, and the power is cut before that has lost its name.
    fs.open(other).unwrap();
    *store.left.lock().unwrap() = Some(2);
    fs.rename((ROOT, b"b"), (ROOT, b"a"), true).unwrap_err();
    drop(fs);
    *store.left.lock().unwrap() = None;
    store.lose_power(&mut seeded(1));
    let (fs, notes) = load(&store);
    assert_eq!(fs.lookup(ROOT, b"a").unwrap().ino, one, "{notes:?}");
    assert_eq!(fs.lookup(ROOT, b"b").unwrap_err().errno, libc::ENOENT);
}

/// Random calls, a loss of power, a look at what is left; `None` if all of it is as promised.
fn round(seed: u64, splits_pairs: bool) -> Option<String> {
    let store = Forgetful::new(splits_pairs);
    let dirs = BTreeMap::from([(ROOT, (0, Box::default()))]);
    let model = Model { dirs, ..Model::default() };
    let mut world = World { rng: seeded(seed), fs: load(&store).0, model, open: Vec::new() };
    for _ in 0..=below(&mut world.rng, 60) {
        world.step();
    }
    let World { mut rng, model, .. } = world;
    store.lose_power(&mut rng);
    let (fs, _) = load(&store);
    if let Err(broken) = model.check(&fs) {
        return Some(broken);
    }
    // A start puts everything in order, so that the next one finds nothing to do.
    drop(fs);
    let (fs, notes) = load(&store);
    if !notes.is_empty() {
        return Some(format!("the second start: {notes:?}"));
    }
    model.check(&fs).err().map(|broken| format!("the second start: {broken}"))
}

#[test]
fn what_was_synced_is_found_under_its_names_after_a_loss_of_power() {
    for seed in 0..4_000 {
        assert_eq!(round(seed, false), None, "seed {seed}");
    }
}

#[test]
fn a_store_that_splits_changes_of_two_objects_is_found_out() {
    assert!((0..4_000).any(|seed| round(seed, true).is_some()));
}

#[test]
fn a_file_of_which_nothing_can_be_read_keeps_no_other_from_being_served() {
    let mut store = Forgetful::new(false);
    let fs = load(&store).0;
    let make = |name: &[u8]| fs.make(ROOT, name, new(Kind::File), 0).unwrap().0.ino;
    let (gone, kept) = (make(b"gone"), make(b"kept"));
    fs.sync_all().unwrap();
    drop(fs);
    store.unreadable = Some(gone);
    let (fs, notes) = load(&store);
    let note = format!("left out 1 files of which nothing can be read, their names neither: objects {gone}");
    assert_eq!(notes, [note]);
    assert_eq!(fs.lookup(ROOT, b"kept").unwrap().ino, kept);
    assert_eq!(fs.lookup(ROOT, b"gone").unwrap_err().errno, libc::ENOENT);
    assert!(fs.make(ROOT, b"new", new(Kind::File), 0).unwrap().0.ino > kept, "numbers are not given twice");
    drop(fs);
    store.unreadable = None;
    let (fs, _) = load(&store);
    assert_eq!(fs.lookup(ROOT, b"gone").unwrap().ino, gone, "it is left as it was");
}

/// When commands and chores were issued.
type Notes = Arc<Mutex<Vec<(&'static str, SimTime)>>>;

/// A store whose commands and chores are noted.
struct Noted {
    store: Box<dyn Subsystem + Send>,
    notes: Notes,
}

impl Clocked for Noted {
    nandscape_core::delegate_clock!(self, self.store);
}

nandscape_core::no_state!(impl [] Noted: "a store for tests");

impl Layered for Noted {
    fn below(&self) -> &dyn Subsystem {
        &*self.store
    }

    fn below_mut(&mut self) -> &mut dyn Subsystem {
        &mut *self.store
    }

    fn submit(&mut self, namespace: u32, command: Command, payload: Payload<'_>, at: SimTime) -> Submitted {
        self.notes.lock().unwrap().push((command.name(), at));
        self.store.submit(namespace, command, payload, at)
    }

    fn control(&mut self) -> Control<'_> {
        Control { chores: Some(self), ..Control::default() }
    }
}

impl Chores for Noted {
    fn postpone(&mut self) {
        self.store.control().chores.unwrap().postpone();
    }

    fn chore(&mut self, at: SimTime) -> NamespaceResult<()> {
        self.notes.lock().unwrap().push(("chore", at));
        self.store.control().chores.unwrap().chore(at)
    }
}

/// Writes more than the cache holds. Programs between the calls, and what was noted.
fn write_much(clock: Clock, scheduler: &str, has_chores: bool) -> (u64, Vec<(&'static str, SimTime)>) {
    const BYTES: usize = 64 << 10;
    let scheduler = format!("device.timing.scheduler={scheduler}");
    let store = store_of("oftl", &["ftl.cache=1MiB", &scheduler]);
    let notes = Notes::default();
    let engine = Arc::new(Engine::new(Box::new(Noted { store, notes: Arc::clone(&notes) }), clock));
    let programs = || engine.look(|stack| stack.inspect().device(0).tally().totals.programs);
    let (files, _) = ObjectFs::load(Client { engine: Arc::clone(&engine), namespace: 0 }, false).unwrap();
    let (file, _) = files.make(ROOT, b"file", new(Kind::File), 1).unwrap();
    let mut between = 0;
    let mut expected = Vec::new();
    for part in 0..80_u32 {
        let data: Vec<u8> = (0..BYTES as u32).map(|byte| (byte / 64 + part) as u8).collect();
        files.write(file.ino, expected.len() as u64, &data, false, false).unwrap();
        let answered = programs();
        if has_chores {
            engine.do_chores();
        }
        between += programs() - answered;
        expected.extend(data);
    }
    let notes = notes.lock().unwrap().clone();
    let mut read = vec![0; expected.len()];
    for _ in 0..2 {
        for (at, part) in read.chunks_mut(1 << 20).enumerate() {
            files.read(file.ino, (at << 20) as u64, part).unwrap();
        }
        assert!(read == expected, "{clock:?}");
        read.fill(0);
        files.sync(file.ino).unwrap();
    }
    engine.look(|stack| stack.check_invariants());
    (between, notes)
}

/// An object that leaves the cache goes to the flash a part after each answer, however time runs, and while
/// events of the device are under way.
#[test]
fn what_leaves_the_cache_is_written_between_the_calls() {
    for (clock, scheduler) in
        [(Clock::free(), "fifo"), (Clock::Paced, "read-first"), (Clock::Real, "read-first")]
    {
        assert!(write_much(clock, scheduler, true).0 > 0, "{clock:?}");
        assert_eq!(write_much(clock, scheduler, false).0, 0, "{clock:?}");
    }
}

/// On a free clock the model does not depend on when the host comes to what was left: it is issued once,
/// after its command and before the next one, at the time of the command.
#[test]
fn chores_are_issued_with_the_command_that_left_them() {
    for has_chores in [true, false] {
        let (_, notes) = write_much(Clock::free(), "fifo", has_chores);
        let is_write = |note: &&[(&str, SimTime)]| note[0].0 == "write object";
        let writes: Vec<_> = notes.chunks_exact(2).filter(is_write).collect();
        assert!(writes.len() >= 79, "{notes:?}");
        for pair in writes {
            assert_eq!(pair[1], ("chore", pair[0].1), "{notes:?}");
        }
    }
}

/// Nothing behind the end of a file is punched: stores, and recordings of what they are asked,
/// know nothing of it.
#[test]
fn a_punch_ends_with_the_file() {
    const PUNCH: i32 = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    for stack in ["oftl", "zone-files"] {
        let engine = Arc::new(Engine::new(store_of(stack, &[]), Clock::free()));
        let client = Client { engine: Arc::clone(&engine), namespace: 0 };
        let (files, _) = ObjectFs::load(client, false).unwrap();
        let (file, _) = files.make(ROOT, b"file", new(Kind::File), 1).unwrap();
        files.write(file.ino, 0, &[7; 100], false, false).unwrap();
        let punched = || engine.look(|stack| stack.inspect().host_counts(0).trim_bytes);
        let before = punched();
        files.allocate(file.ino, 40, i64::MAX as u64 - 40, PUNCH).unwrap();
        files.allocate(file.ino, 100, 1 << 40, PUNCH).unwrap();
        assert_eq!(punched() - before, 60, "{stack}");
        let mut read = [1; 200];
        assert_eq!(files.read(file.ino, 0, &mut read).unwrap().len, 100);
        assert!(read[..40] == [7; 40] && read[40..100] == [0; 60], "{stack}: {read:?}");
    }
}
