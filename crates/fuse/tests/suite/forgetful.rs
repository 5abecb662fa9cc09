//! A store of objects that keeps what it has to over a loss of power, and of everything else what chance
//! wants.

use nandscape_core::command::Payload;
use nandscape_core::rng::{Rng, below};
use nandscape_core::{
    Allocation, Answer, Clocked, Command, Completion, Control, Extent, FlashError, FtlError, Hint, Inspect,
    NamespaceError, NamespaceInfo, NamespaceResult, ObjectAttributes, ObjectCommand, ObjectError, ObjectId,
    ObjectStatus, Op, Ppn, Reply, SimTime, Submitted, Subsystem, Token,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// What an object is; `None` if it does not exist.
type State = Option<Object>;

#[derive(Clone, Debug, Default)]
struct Object {
    bytes: Vec<u8>,
    attributes: Vec<u8>,
}

/// What an object was since it was last made durable, the oldest first.
#[derive(Clone, Debug)]
struct Versions(Vec<State>);

/// Two objects of which one is at a version if and only if the other is at that version or later.
type Pair = [(u64, usize); 2];

#[derive(Debug, Default)]
struct Inside {
    objects: BTreeMap<u64, Versions>,
    /// Numbers of versions count from 0 at the creation of the number; these are below what is kept.
    forgotten: BTreeMap<u64, usize>,
    pairs: Vec<Pair>,
}

/// The store. Clones share the objects, so that one can be kept while an engine owns the other.
#[derive(Clone, Debug)]
pub struct Forgetful {
    inside: Arc<Mutex<Inside>>,
    infos: Vec<NamespaceInfo>,
    /// A change of two objects may be there in half.
    pub splits_pairs: bool,
    /// An object whose metadata cannot be read.
    pub unreadable: Option<u64>,
    /// Commands that change something or flush until everything fails, if it does.
    pub left: Arc<Mutex<Option<u64>>>,
}

impl Forgetful {
    pub fn new(splits_pairs: bool) -> Self {
        let info = NamespaceInfo {
            name: "files".to_owned(),
            capacity_bytes: 1 << 30,
            page_bytes: 4096,
            set: 0,
            endurance_group: 0,
            zones: None,
            objects: true,
        };
        Self {
            inside: Arc::default(),
            infos: vec![info],
            splits_pairs,
            unreadable: None,
            left: Arc::default(),
        }
    }

    /// Power is lost: of every object some version stays, the last one that was made durable or a later one.
    pub fn lose_power(&self, rng: &mut impl Rng) {
        let mut inside = self.inside.lock().unwrap();
        let Inside { objects, forgotten, pairs } = &mut *inside;
        let floor = |forgotten: &BTreeMap<u64, usize>, id: &u64| forgotten.get(id).copied().unwrap_or(0);
        let mut chosen: BTreeMap<u64, usize> = objects
            .iter()
            .map(|(id, versions)| (*id, floor(forgotten, id) + below(rng, versions.0.len() as u64) as usize))
            .collect();
        join(pairs, &mut chosen);
        for (id, versions) in objects.iter_mut() {
            let state = versions.0[chosen[id] - floor(forgotten, id)].clone();
            *versions = Versions(vec![state]);
        }
        objects.retain(|_, versions| versions.0[0].is_some());
        forgotten.clear();
        pairs.clear();
    }
}

/// Raises versions until both of every pair are there, or none.
fn join(pairs: &[Pair], at: &mut BTreeMap<u64, usize>) {
    let mut changed = true;
    while changed {
        changed = false;
        for [a, b] in pairs.iter().flat_map(|[a, b]| [[*a, *b], [*b, *a]]) {
            let is_there = |(id, version): (u64, usize)| at.get(&id).is_some_and(|at| *at >= version);
            if is_there(a) && !is_there(b) {
                at.insert(b.0, b.1);
                changed = true;
            }
        }
    }
}

impl Inside {
    fn now(&self, id: ObjectId) -> Option<&Object> {
        self.objects.get(&id.0).and_then(|versions| versions.0.last()?.as_ref())
    }

    fn get(&self, id: ObjectId) -> Result<Object, NamespaceError> {
        self.now(id).cloned().ok_or(NamespaceError::Object(ObjectError::Unknown))
    }

    /// An object has another version; gives its number.
    fn change(&mut self, id: ObjectId, state: State) -> usize {
        let versions = self.objects.entry(id.0).or_insert(Versions(vec![None]));
        versions.0.push(state);
        self.forgotten.get(&id.0).copied().unwrap_or(0) + versions.0.len() - 1
    }

    /// Makes an object durable, and what was changed together with it.
    fn flush(&mut self, id: u64) {
        let last = |(id, versions): (&u64, &Versions), forgotten: &BTreeMap<u64, usize>| {
            forgotten.get(id).copied().unwrap_or(0) + versions.0.len() - 1
        };
        let mut at = BTreeMap::new();
        if let Some(versions) = self.objects.get(&id) {
            at.insert(id, last((&id, versions), &self.forgotten));
        }
        join(&self.pairs, &mut at);
        for (id, version) in at {
            let forgotten = self.forgotten.entry(id).or_insert(0);
            if version > *forgotten {
                self.objects.get_mut(&id).expect("it has versions").0.drain(..version - *forgotten);
                *forgotten = version;
            }
        }
    }

    fn run(&mut self, command: ObjectCommand, payload: Payload<'_>, splits: bool) -> NamespaceResult<Reply> {
        match command {
            ObjectCommand::Create { object, .. } => {
                if self.now(object).is_some() {
                    return Err(NamespaceError::Object(ObjectError::Exists));
                }
                self.change(object, Some(Object::default()));
            }
            ObjectCommand::Delete { object } => {
                self.get(object)?;
                self.change(object, None);
            }
            ObjectCommand::Write { object, extent, .. } => {
                let Payload::Write(data) = payload else { panic!("a write without bytes") };
                let mut state = self.get(object)?;
                let (start, end) = (extent.offset as usize, (extent.offset + extent.len) as usize);
                state.bytes.resize(state.bytes.len().max(end), 0);
                state.bytes[start..end].copy_from_slice(data);
                self.change(object, Some(state));
            }
            ObjectCommand::Read { object, extent } => {
                let Payload::Read(data) = payload else { panic!("a read without room") };
                let state = self.get(object)?;
                let start = state.bytes.len().min(extent.offset as usize);
                let len = (state.bytes.len() - start).min(extent.len as usize);
                data[..len].copy_from_slice(&state.bytes[start..start + len]);
                return Ok(Reply::Bytes(len as u64));
            }
            ObjectCommand::Truncate { object, size } => {
                let mut state = self.get(object)?;
                state.bytes.resize(size as usize, 0);
                self.change(object, Some(state));
            }
            ObjectCommand::Punch { object, extent } => {
                let mut state = self.get(object)?;
                let end = state.bytes.len().min((extent.offset + extent.len) as usize);
                let start = end.min(extent.offset as usize);
                state.bytes[start..end].fill(0);
                self.change(object, Some(state));
            }
            ObjectCommand::Reserve { .. } => {
                return Err(NamespaceError::NotSupported { command: command.name() });
            }
            ObjectCommand::Hint { object, .. } => drop(self.get(object)?),
            ObjectCommand::Flush { object: Some(object) } => {
                self.get(object)?;
                self.flush(object.0);
            }
            ObjectCommand::Flush { object: None } => {
                let all: Vec<u64> = self.objects.keys().copied().collect();
                for id in all {
                    self.flush(id);
                }
            }
            ObjectCommand::SetAttributes { object, replaces } => {
                let attributes = if let Payload::Write(data) = payload { data.to_vec() } else { Vec::new() };
                let state = Object { attributes, ..self.get(object)? };
                let replaced = replaces.map(|id| self.get(id).map(|_| id)).transpose()?;
                let version = self.change(object, Some(state));
                if let Some(id) = replaced {
                    let gone = self.change(id, None);
                    if !splits {
                        self.pairs.push([(object.0, version), (id.0, gone)]);
                    }
                }
            }
            ObjectCommand::GetAttributes { object } => {
                let state = self.get(object)?;
                let bytes = state.attributes.clone().into();
                let attributes = ObjectAttributes { status: status(object.0, &state), bytes };
                return Ok(Reply::Attributes(Box::new(attributes)));
            }
            ObjectCommand::Allocation { object, extent } => {
                let size = self.get(object)?.bytes.len() as u64;
                let bytes = extent.end().min(size).saturating_sub(extent.offset);
                return Ok(Reply::Allocation(Allocation { is_mapped: bytes > 0, bytes }));
            }
            ObjectCommand::List => {
                let live = self.objects.iter().filter_map(|(id, v)| Some((*id, v.0.last()?.as_ref()?)));
                return Ok(Reply::Objects(live.map(|(id, object)| status(id, object)).collect()));
            }
            ObjectCommand::Space => return Ok(Reply::Space(Box::default())),
        }
        Ok(Reply::Nothing)
    }
}

fn status(id: u64, object: &Object) -> ObjectStatus {
    let size = object.bytes.len() as u64;
    ObjectStatus { object: ObjectId(id), size, hint: Hint::default(), allocated: size }
}

impl Clocked for Forgetful {
    fn completion(&self, _: Token) -> Option<SimTime> {
        Some(SimTime::ZERO)
    }

    fn watch(&mut self, token: Token, _: u64) {
        panic!("{token:?} is complete");
    }

    fn advance(&mut self, _: SimTime, _: &mut Vec<Completion>) {}

    fn next_event(&self) -> Option<SimTime> {
        None
    }

    fn idle_from(&self) -> SimTime {
        SimTime::ZERO
    }
}

nandscape_core::no_state!(impl [] Forgetful: "a subsystem of a test");

impl Subsystem for Forgetful {
    fn namespaces(&self) -> &[NamespaceInfo] {
        &self.infos
    }

    fn prepare(&self, _: u32, _: Op, _: Extent) {}

    fn submit(&mut self, _: u32, command: Command, payload: Payload<'_>, _: SimTime) -> Submitted {
        let Command::Object(command) = command else {
            return Err(NamespaceError::NotSupported { command: command.name() });
        };
        if let ObjectCommand::GetAttributes { object } = command
            && self.unreadable == Some(object.0)
        {
            return Err(FtlError::Flash(FlashError::Uncorrectable { page: Ppn(7) }).into());
        }
        let is_read = command.writes_nothing() && !matches!(command, ObjectCommand::Flush { .. });
        if let Some(left) = self.left.lock().unwrap().as_mut().filter(|_| !is_read) {
            if *left == 0 {
                return Err(FtlError::ReadOnly { reason: "the test says so" }.into());
            }
            *left -= 1;
        }
        let reply = self.inside.lock().unwrap().run(command, payload, self.splits_pairs)?;
        Ok(Answer { done: Token::NONE, reply })
    }

    fn join(&mut self, a: Token, _: Token) -> Token {
        a
    }

    fn idle(&mut self, _: SimTime, _: SimTime) -> NamespaceResult<()> {
        Ok(())
    }

    fn shutdown(&mut self, _: SimTime) -> NamespaceResult<Token> {
        Ok(Token::NONE)
    }

    fn allocation(&self, _: u32, extent: Extent) -> Allocation {
        Allocation { is_mapped: true, bytes: extent.len }
    }

    fn inspect(&self) -> Inspect<'_> {
        Inspect::default()
    }

    fn control(&mut self) -> Control<'_> {
        Control::default()
    }

    fn reset_counters(&mut self, _: SimTime) {}

    fn check_invariants(&self) {}
}
