//! Random commands on few objects, and what objects are after them.

use crate::shrink::Outcome;
use nandscape_core::command::Payload;
use nandscape_core::rng::{Rng, Xoshiro256PlusPlus, below};
use nandscape_core::{
    Extent, Hint, NamespaceError, NamespaceResult, ObjectCommand, ObjectId, Reply, SimTime, Subsystem, Token,
};
use std::collections::BTreeMap;

/// Numbers of objects that are used: from 1 to this.
pub const OBJECTS: u64 = 12;

/// An object as it must be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plain {
    /// What it holds, up to its end.
    pub bytes: Vec<u8>,
    /// Its attributes.
    pub attributes: Vec<u8>,
    /// Its lifetime class.
    pub hint: u16,
}

impl Plain {
    /// Bytes up to `end`, which grow the file.
    fn grow(&mut self, end: u64) {
        if (self.bytes.len() as u64) < end {
            self.bytes.resize(end as usize, 0);
        }
    }

    fn part(&mut self, extent: Extent) -> &mut [u8] {
        let end = (extent.end() as usize).min(self.bytes.len());
        let start = (extent.offset as usize).min(end);
        &mut self.bytes[start..end]
    }
}

/// A command with its payload.
#[derive(Clone, Debug)]
pub struct Request {
    /// What to do.
    pub command: ObjectCommand,
    /// Bytes of a write or of attributes.
    pub data: Vec<u8>,
}

/// Which commands there are, and how large.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    /// Bytes of a write.
    pub most_bytes: u64,
    /// Bytes up to which writes make objects grow.
    pub most_size: u64,
    /// Half of the offsets are multiples of this.
    pub unit: u64,
}

impl Mix {
    /// A random command, for objects as they are.
    pub fn request(self, rng: &mut Xoshiro256PlusPlus, files: &BTreeMap<u64, Plain>) -> Request {
        let id = 1 + below(rng, OBJECTS);
        let object = ObjectId(id);
        let known = files.get(&id);
        let Some(file) = known else {
            let hint = Hint(below(rng, 6) as u16);
            return Request { command: ObjectCommand::Create { object, hint }, data: Vec::new() };
        };
        let size = file.bytes.len() as u64;
        let mut round = |byte: u64| if below(rng, 2) == 0 { byte / self.unit * self.unit } else { byte };
        let (any_a, any_b) = (round(self.most_bytes), round(size));
        let len = 1 + below(rng, any_a.max(1));
        let offset = match below(rng, 4) {
            0 | 1 => size,
            2 => any_b.min(size),
            _ => below(rng, size + 2 * self.unit),
        };
        let offset = if offset > 0 && below(rng, 3) == 0 {
            below(rng, offset) / self.unit * self.unit
        } else {
            offset
        };
        let extent = Extent::new(offset, len);
        let plain = |command| Request { command, data: Vec::new() };
        match below(rng, 100) {
            0..50 if extent.end() <= self.most_size => {
                let hint = (below(rng, 8) == 0).then(|| Hint(below(rng, 6) as u16));
                Request { command: ObjectCommand::Write { object, extent, hint }, data: content(rng, len) }
            }
            0..62 => plain(ObjectCommand::Truncate { object, size: below(rng, size + self.unit) }),
            62..72 => plain(ObjectCommand::Punch { object, extent }),
            72..80 => plain(ObjectCommand::Delete { object }),
            80..84 => plain(ObjectCommand::Hint { object, hint: Hint(below(rng, 6) as u16) }),
            84..94 => {
                let other = 1 + below(rng, OBJECTS);
                let replaces = (other != id && files.contains_key(&other)).then_some(ObjectId(other));
                // Long enough that no two are equal.
                let len = 8 + below(rng, 60);
                Request { command: ObjectCommand::SetAttributes { object, replaces }, data: bytes(rng, len) }
            }
            94..98 => plain(ObjectCommand::Flush { object: Some(object) }),
            _ => plain(ObjectCommand::Flush { object: None }),
        }
    }
}

fn bytes(rng: &mut Xoshiro256PlusPlus, len: u64) -> Vec<u8> {
    (0..len).map(|_| rng.next_u64() as u8).collect()
}

impl Mix {
    /// With room for bytes in the place of some other commands, for stores that can reserve it.
    pub fn reserving(self, request: Request, files: &BTreeMap<u64, Plain>) -> Request {
        let (object, extent) = match request.command {
            ObjectCommand::Truncate { object, size } if size % 2 == 1 => {
                let end = files.get(&object.0).map_or(0, |file| file.bytes.len() as u64);
                // From the middle of what is there, so that some of it is stored.
                (object, Extent::new(end / 2, size.saturating_sub(end / 2)))
            }
            ObjectCommand::Punch { object, extent } if extent.len % 2 == 0 => (object, extent),
            _ => return request,
        };
        if extent.len == 0 || extent.end() > self.most_size {
            return request;
        }
        Request { command: ObjectCommand::Reserve { object, extent }, ..request }
    }
}

/// Bytes of which half the time nothing, and half the time most can be saved by compression.
fn content(rng: &mut Xoshiro256PlusPlus, len: u64) -> Vec<u8> {
    let mut bytes = bytes(rng, len);
    if bytes[0] & 1 == 1 {
        bytes.chunks_mut(16).for_each(|run| run.fill(run[0]));
    }
    bytes
}

/// Does to plain objects what a command does.
pub fn apply(files: &mut BTreeMap<u64, Plain>, request: &Request) {
    match request.command {
        ObjectCommand::Create { object, hint } => {
            files.insert(object.0, Plain { hint: hint.0, ..Plain::default() });
        }
        ObjectCommand::Delete { object } => drop(files.remove(&object.0)),
        ObjectCommand::SetAttributes { object, replaces } => {
            replaces.map(|other| files.remove(&other.0));
            files.get_mut(&object.0).unwrap().attributes.clone_from(&request.data);
        }
        ObjectCommand::Write { object, extent, hint } => {
            let file = files.get_mut(&object.0).unwrap();
            if file.hint == Hint::NOT_SET.0 {
                file.hint = hint.unwrap_or_default().0;
            }
            file.grow(extent.end());
            file.part(extent).copy_from_slice(&request.data);
        }
        ObjectCommand::Truncate { object, size } => {
            files.get_mut(&object.0).unwrap().bytes.resize(size as usize, 0);
        }
        ObjectCommand::Reserve { object, extent } => files.get_mut(&object.0).unwrap().grow(extent.end()),
        ObjectCommand::Punch { object, extent } => files.get_mut(&object.0).unwrap().part(extent).fill(0),
        ObjectCommand::Hint { object, hint } => files.get_mut(&object.0).unwrap().hint = hint.0,
        _ => {}
    }
}

/// Submits a command.
pub fn submit<S: Subsystem>(store: &mut S, request: &Request, at: SimTime) -> NamespaceResult<Token> {
    let payload = if request.data.is_empty() { Payload::None } else { Payload::Write(&request.data) };
    store.submit(0, request.command.into(), payload, at).map(|answer| answer.done)
}

/// An object as it is; nothing where there is none.
pub fn find<S: Subsystem>(store: &mut S, id: u64) -> Outcome<Option<Plain>> {
    let object = ObjectId(id);
    let get = ObjectCommand::GetAttributes { object };
    let found = match store.submit(0, get.into(), Payload::None, SimTime::ZERO) {
        Ok(answer) => answer.reply,
        Err(NamespaceError::Object(_)) => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let Reply::Attributes(found) = found else { panic!("{found:?}") };
    let size = found.status.size;
    let mut bytes = vec![0xa5; size as usize + 100];
    let read = ObjectCommand::Read { object, extent: Extent::new(0, bytes.len() as u64) };
    let read = store.submit(0, read.into(), Payload::Read(&mut bytes), SimTime::ZERO);
    let reply = read.map_err(|error| format!("read of object {id}: {error}"))?.reply;
    if reply != Reply::Bytes(size) || bytes[size as usize..].iter().any(|byte| *byte != 0xa5) {
        return Err(format!("a read behind the end of object {id} at {size} gives {reply:?}"));
    }
    bytes.truncate(size as usize);
    let mut at = 0;
    while at < size {
        let ask = ObjectCommand::Allocation { object, extent: Extent::new(at, u64::MAX - at) };
        let asked =
            store.submit(0, ask.into(), Payload::None, SimTime::ZERO).map_err(|error| error.to_string())?;
        let Reply::Allocation(found) = asked.reply else { panic!("{:?}", asked.reply) };
        let end = at + found.bytes;
        if end <= at || end > size {
            return Err(format!("{found:?} from byte {at} of object {id} on, which has {size}"));
        }
        if !found.is_mapped && bytes[at as usize..end as usize].iter().any(|byte| *byte != 0) {
            return Err(format!("object {id} holds bytes in the hole {at}..{end}"));
        }
        at = end;
    }
    let read = ObjectCommand::Read { object, extent: Extent::new(size, 1) };
    let read = store.submit(0, read.into(), Payload::Read(&mut [0]), SimTime::ZERO);
    let reply = read.map_err(|error| format!("read at the end of object {id}: {error}"))?.reply;
    if reply != Reply::Bytes(0) {
        return Err(format!("a read at the end of object {id} at {size} gives {reply:?}"));
    }
    Ok(Some(Plain { bytes, attributes: found.bytes.into(), hint: found.status.hint.0 }))
}
