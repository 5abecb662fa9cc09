//! Several files or devices with the same bytes, so that a cache outlives all of them but one.
//!
//! Invariants:
//! * what was flushed is on every current member, and each member's label says which are current;
//! * a member that fails is recorded as failed on the others, durably, before any command succeeds that it
//!   had no part in; as long as that cannot be recorded, commands that change something fail;
//! * members differ at most in the regions that are marked on all of them; marks are durable before the
//!   first write, so that after a loss of power only these regions are copied.

mod commands;
mod label;
mod members;
#[cfg(test)]
mod tests;

pub use label::MEMBERS_MAX;
pub(super) use members::open;
pub use members::{MirrorMember, Replacement};

use label::{AREA, COPY, Label, Listed, Regions};
use nandscape_core::command::Payload;
use nandscape_core::{
    Allocation, BlockCommand, Extent, Hint, Op, Store, StoreError, StoreResult, StoreShape,
};
use nandscape_files::FileStore;
use std::path::PathBuf;

/// Flushes after which marks of regions are taken away that were not written to since.
const FLUSHES: u32 = 64;
/// Errors of reads that a member may make good by taking the bytes of another one.
const REPAIRS_MAX: u32 = 16;
/// Bytes that are copied at once.
const CHUNK: u64 = 1 << 20;

/// A member that is in use.
#[derive(Debug)]
struct Member<S> {
    /// Its place in the label.
    place: usize,
    store: S,
    /// Of its two copies of the label the one that is written next: not the one that is known to be whole.
    copy: u64,
    repairs: u32,
}

impl<S: Store> Member<S> {
    fn apply(&mut self, command: BlockCommand, payload: Payload<'_>) -> StoreResult<()> {
        self.store.apply(command, payload).map(drop)
    }

    fn flush(&mut self) -> StoreResult<()> {
        self.apply(BlockCommand::FLUSH, Payload::None)
    }

    fn write_label(&mut self, label: &Label) -> StoreResult<()> {
        let bytes = label.encode(self.place);
        self.apply(command(Op::Write, self.copy * COPY as u64, COPY as u64), Payload::Write(&bytes))?;
        self.flush()?;
        self.copy = 1 - self.copy;
        Ok(())
    }
}

/// The members that are current. A file by itself is one without a label.
#[derive(Debug)]
pub(super) struct Mirror<S: Store + Send = FileStore> {
    members: Vec<Member<S>>,
    label: Option<Label>,
    /// Regions that were written to since marks were taken away last.
    recent: Regions,
    flushes: u32,
    /// Something was written since the last flush.
    is_volatile: bool,
    /// What the members are to know is not durable on all of them.
    is_unrecorded: bool,
    is_read_only: bool,
    /// Current members that are not in use, and why.
    absent: Vec<(PathBuf, String)>,
    rebuild: Option<Rebuild<S>>,
}

/// A member to be, which gets what the others have.
#[derive(Debug)]
struct Rebuild<S> {
    listed: Listed,
    member: Member<S>,
    /// What lies before this byte is copied, and kept equal.
    next: u64,
    /// Why it cannot become one.
    failed: Option<StoreError>,
    /// The file was made for this.
    is_new: bool,
}

/// Members that a command failed on, by their place in the label.
type Failed = Vec<(usize, StoreError)>;

fn command(op: Op, offset: u64, len: u64) -> BlockCommand {
    BlockCommand::new(op, Extent::new(offset, len), Hint::default())
}

/// Does something on all members at once.
fn on_all<S: Store + Send>(
    members: &mut [Member<S>],
    what: impl Fn(&mut Member<S>) -> StoreResult<()> + Sync,
) -> Failed {
    let run = |member: &mut Member<S>| what(member).err().map(|error| (member.place, error));
    let Some((first, rest)) = members.split_first_mut() else { return Failed::new() };
    std::thread::scope(|scope| {
        let others: Vec<_> = rest.iter_mut().map(|member| scope.spawn(|| run(member))).collect();
        let mut failed: Failed = run(first).into_iter().collect();
        failed.extend(
            others.into_iter().filter_map(|other| other.join().expect("a member's command does not panic")),
        );
        failed
    })
}

/// What a store begins with, if it is a member: the newer copy of its label, which one that is, and the
/// member's place.
fn read_label(store: &mut impl Store) -> StoreResult<Option<(u64, usize, Label)>> {
    let mut found: Option<(u64, usize, Label)> = None;
    if store.capacity_bytes() < AREA {
        return Ok(None);
    }
    for copy in 0..2 {
        let mut bytes = [0; COPY];
        let read = command(Op::Read, copy * COPY as u64, COPY as u64);
        store.apply(read, Payload::Read(&mut bytes))?;
        if let Some((place, label)) = Label::decode(&bytes)
            && found.as_ref().is_none_or(|(.., other)| other.generation < label.generation)
        {
            found = Some((copy, place, label));
        }
    }
    Ok(found)
}

/// A member that was opened, with what it knows.
struct Found<S> {
    store: S,
    copy: u64,
    uuid: [u8; 16],
    label: Label,
}

impl<S: Store> Found<S> {
    /// The store itself if it is no member.
    fn of(mut store: S) -> StoreResult<Result<Self, S>> {
        Ok(match read_label(&mut store)? {
            Some((copy, place, label)) => Ok(Self { store, copy, uuid: label.members[place].uuid, label }),
            None => Err(store),
        })
    }
}

impl<S: Store + Send> Mirror<S> {
    /// The members that are current by the newest label of those that were found.
    fn assemble(found: Vec<Found<S>>, is_read_only: bool) -> Self {
        let newest = found.iter().max_by_key(|found| found.label.generation);
        let mut label = newest.map(|found| found.label.clone()).expect("there is one");
        let mut members = Vec::new();
        for Found { store, copy, uuid, label: own } in found {
            let Some(place) = label.place_of(&uuid) else { continue };
            if label.members[place].failed.is_none() && own.generation >= label.settled {
                label.unsettled.add(&own.unsettled);
                members.push(Member { place, store, copy: 1 - copy, repairs: 0 });
            }
        }
        members.sort_by_key(|member| member.place);
        Self::with(members, Some(label), is_read_only)
    }

    /// A file by itself.
    pub(super) fn single(store: S) -> Self {
        Self::with(vec![Member { place: 0, store, copy: 0, repairs: 0 }], None, false)
    }

    const fn with(members: Vec<Member<S>>, label: Option<Label>, is_read_only: bool) -> Self {
        Self {
            members,
            label,
            recent: Regions::NONE,
            flushes: 0,
            is_volatile: false,
            is_unrecorded: false,
            is_read_only,
            absent: Vec::new(),
            rebuild: None,
        }
    }

    pub(super) fn shape(&self) -> StoreShape {
        let shape = self.members[0].store.shape();
        let Some(label) = &self.label else { return shape };
        let block = self.members.iter().map(|member| member.store.block_bytes()).max();
        StoreShape { capacity_bytes: label.bytes, block_bytes: block.unwrap_or(shape.block_bytes), ..shape }
    }

    /// What a file has; all of a mirror.
    pub(super) fn allocation(&self, extent: Extent) -> Allocation {
        match self.label {
            Some(_) => Allocation { is_mapped: true, bytes: extent.len },
            None => self.members[0].store.allocation(extent),
        }
    }

    pub(super) fn apply(&mut self, command: BlockCommand, payload: Payload<'_>) -> StoreResult<()> {
        let Some(label) = &self.label else {
            return self.members[0].apply(command, payload);
        };
        let Extent { offset, len } = command.extent;
        if command.op != Op::Flush && command.extent.end() > label.bytes {
            return Err(StoreError::OutOfRange { offset, len, capacity: label.bytes });
        }
        let moved = BlockCommand { extent: Extent::new(offset + AREA, len), ..command };
        match (command.op, payload) {
            (Op::Flush, _) => self.flush(),
            (Op::Read, Payload::Read(bytes)) => self.read(moved, bytes),
            (Op::Read, _) => Ok(()),
            (_, Payload::Write(bytes)) => self.write(command.extent, moved, Some(bytes)),
            (..) => self.write(command.extent, moved, None),
        }
    }

    /// Reads from the first member that can. One that cannot takes the bytes of the other, if it does.
    fn read(&mut self, moved: BlockCommand, bytes: &mut [u8]) -> StoreResult<()> {
        let mut failed = Failed::new();
        let mut is_read = false;
        for member in &mut self.members {
            match member.apply(moved, Payload::Read(bytes)) {
                Ok(()) => {
                    is_read = true;
                    break;
                }
                Err(error) => failed.push((member.place, error)),
            }
        }
        if !is_read {
            return Err(failed.swap_remove(0).1);
        }
        if failed.is_empty() || self.is_read_only {
            return Ok(());
        }
        let write = BlockCommand { op: Op::Write, ..moved };
        failed.retain(|(place, error)| {
            let member = self.members.iter_mut().find(|member| member.place == *place).expect("it is in use");
            member.repairs += 1;
            let may = matches!(error, StoreError::Io { .. }) && member.repairs <= REPAIRS_MAX;
            !(may && member.apply(write, Payload::Write(bytes)).is_ok())
        });
        self.is_volatile = true;
        // The bytes are right in any case; where this cannot be recorded, the next write fails.
        let _ = self.settle(failed);
        Ok(())
    }

    fn write(&mut self, extent: Extent, moved: BlockCommand, bytes: Option<&[u8]>) -> StoreResult<()> {
        self.mark(extent)?;
        self.is_volatile = true;
        let mut failed = Failed::new();
        for member in &mut self.members {
            let payload = bytes.map_or(Payload::None, Payload::Write);
            if let Err(error) = member.apply(moved, payload) {
                failed.push((member.place, error));
            }
        }
        if let Some(rebuild) = self.rebuild.as_mut().filter(|rebuild| extent.offset < rebuild.next) {
            let done = rebuild.member.apply(moved, bytes.map_or(Payload::None, Payload::Write));
            rebuild.failed = rebuild.failed.take().or(done.err());
        }
        self.settle(failed)
    }

    fn flush(&mut self) -> StoreResult<()> {
        if self.is_unrecorded {
            self.record()?;
        }
        let failed = on_all(&mut self.members, Member::flush);
        self.settle(failed)?;
        self.is_volatile = false;
        self.flushes += 1;
        if self.flushes.is_multiple_of(FLUSHES) { self.sweep() } else { Ok(()) }
    }

    /// Takes marks away, after a flush.
    fn sweep(&mut self) -> StoreResult<()> {
        let recent = std::mem::replace(&mut self.recent, Regions::NONE);
        match &mut self.label {
            // One that is not there may differ.
            Some(label) if label.current() != self.members.len() => Ok(()),
            Some(label) if label.unsettled != recent && !self.is_read_only => {
                label.unsettled = recent;
                self.record()
            }
            _ => Ok(()),
        }
    }

    /// Marks the regions of an extent that is about to be written.
    fn mark(&mut self, extent: Extent) -> StoreResult<()> {
        let Some(label) = &mut self.label else { return Ok(()) };
        let region = label.region_bytes();
        for region in extent.offset / region..extent.end().div_ceil(region) {
            self.recent.insert(region);
            self.is_unrecorded |= label.unsettled.insert(region);
        }
        if self.is_unrecorded { self.record() } else { Ok(()) }
    }

    /// Goes on without the members that failed, if that is not all of them.
    fn settle(&mut self, mut failed: Failed) -> StoreResult<()> {
        if failed.is_empty() {
            return Ok(());
        }
        if failed.len() == self.members.len() {
            return Err(failed.swap_remove(0).1);
        }
        self.go_without(failed)
    }

    fn go_without(&mut self, failed: Failed) -> StoreResult<()> {
        let dropped = self.put_out(failed);
        self.record()?;
        // It is of use if they know it too; the others must know it.
        if let Some(label) = &self.label {
            for mut member in dropped {
                let _ = member.write_label(label);
            }
        }
        Ok(())
    }

    /// Uses members no more.
    fn put_out(&mut self, failed: Failed) -> Vec<Member<S>> {
        let Some(label) = &mut self.label else { return Vec::new() };
        for (place, error) in failed {
            label.members[place].failed = Some(error.to_string());
        }
        self.members.extract_if(.., |member| label.members[member.place].failed.is_some()).collect()
    }

    /// Makes what the members are to know durable on all of them, or on those that are left.
    fn record(&mut self) -> StoreResult<()> {
        self.is_unrecorded = true;
        loop {
            let Some(label) = &mut self.label else { return Ok(()) };
            label.generation += 1;
            let label = &*label;
            let mut failed = on_all(&mut self.members, |member| member.write_label(label));
            if failed.is_empty() {
                if let Some(label) = &mut self.label {
                    label.settled = label.generation;
                }
                self.is_unrecorded = false;
                return Ok(());
            }
            if failed.len() == self.members.len() {
                return Err(failed.swap_remove(0).1);
            }
            drop(self.put_out(failed));
        }
    }

    /// Copies more of what a member to be has to get, and gives the bytes that are left. With the last of
    /// them it is a member, in place of the one that was there.
    fn copy(&mut self) -> StoreResult<u64> {
        let bytes = self.label.as_ref().map_or(0, |label| label.bytes);
        let Some(next) = self.rebuild.as_ref().map(|rebuild| rebuild.next) else { return Ok(0) };
        let mut chunk = vec![0; CHUNK.min(bytes - next) as usize];
        let read = command(Op::Read, next + AREA, chunk.len() as u64);
        self.read(read, &mut chunk)?;
        let Some(rebuild) = &mut self.rebuild else { return Ok(0) };
        if let Some(error) = rebuild.failed.take() {
            return Err(error);
        }
        let write = BlockCommand { op: Op::Write, ..read };
        rebuild.member.apply(write, Payload::Write(&chunk))?;
        rebuild.next += chunk.len() as u64;
        if rebuild.next < bytes {
            return Ok(bytes - rebuild.next);
        }
        rebuild.member.flush()?;
        if self.members.iter().all(|other| other.place == rebuild.member.place) {
            // Nobody would know that the old one has been replaced.
            let detail = "the other members failed while it was copied".to_owned();
            return Err(StoreError::Gone { detail });
        }
        let Some((Rebuild { listed, member, .. }, label)) = self.rebuild.take().zip(self.label.as_mut())
        else {
            return Ok(0);
        };
        // The others know it first: as long as it has no label, it is no member that counts.
        label.members[member.place] = listed;
        self.members.retain(|other| other.place != member.place);
        self.record()?;
        self.members.push(member);
        self.members.sort_by_key(|member| member.place);
        self.record().map(|()| 0)
    }

    /// Makes members equal where they may differ, as the first one has it.
    fn resync(&mut self) -> StoreResult<()> {
        let Some(label) = &self.label else { return Ok(()) };
        let (region, bytes) = (label.region_bytes(), label.bytes);
        let regions: Vec<u64> = label.unsettled.iter().collect();
        if regions.is_empty() || self.members.len() < 2 {
            return Ok(());
        }
        let mut chunk = vec![0; CHUNK as usize];
        for number in regions {
            let end = ((number + 1) * region).min(bytes);
            for offset in (number * region..end).step_by(CHUNK as usize) {
                let part = &mut chunk[..CHUNK.min(end - offset) as usize];
                let read = command(Op::Read, offset + AREA, part.len() as u64);
                self.read(read, part)?;
                let write = BlockCommand { op: Op::Write, ..read };
                let failed =
                    on_all(&mut self.members[1..], |member| member.apply(write, Payload::Write(part)));
                self.settle(failed)?;
            }
        }
        self.flush()?;
        self.clear()
    }

    /// Takes all marks away, when everything was flushed.
    fn clear(&mut self) -> StoreResult<()> {
        self.recent = Regions::NONE;
        self.sweep()
    }
}

impl<S: Store + Send> Drop for Mirror<S> {
    /// All members are equal if all was flushed. Without this they are copied at the next start.
    fn drop(&mut self) {
        if !(self.is_read_only || self.is_volatile || self.is_unrecorded) {
            let _ = self.clear();
        }
    }
}
