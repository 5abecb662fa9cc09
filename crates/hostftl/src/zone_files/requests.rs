//! Commands of hosts.

use super::files::{File, LOST, Tail};
use super::sabotage::Sabotage;
use super::{Writer, ZoneFiles};
use crate::below::{Reading, Run, lost, overlay};
use nandscape_core::command::{Payload, check_attributes, check_payload};
use nandscape_core::{
    Answer, Cause, Extent, Hint, Issue, Lpn, NamespaceError, NamespaceResult, ObjectAttributes,
    ObjectCommand, ObjectError, ObjectId, ObjectSpace, ObjectStatus, Reply, SimTime, Submitted, Subsystem,
    Token,
};

/// Pieces that a write adds at most: its own, and the part of another one behind it; and those of two units
/// that are kept in memory.
const MORE_PIECES: u64 = 4 * super::files::PIECE;

impl<S: Subsystem> ZoneFiles<S> {
    #[inline]
    pub(super) fn object(&mut self, command: ObjectCommand, payload: Payload<'_>, at: SimTime) -> Submitted {
        let is_change = !command.writes_nothing();
        if is_change && (self.stopped.is_some() || !self.collector.failed.is_empty()) {
            self.refuse_if_stopped()?;
            self.evacuate(at)?;
        }
        let done = match command {
            ObjectCommand::Write { object, extent, hint } => {
                let data = if let Payload::Write(data) = payload { Some(data) } else { None };
                check_payload(extent, data.map(<[u8]>::len))?;
                let slot = self.files.slot(object)?;
                let done = self.write(slot, extent, data, hint, at)?;
                self.hosts.wrote_object(extent.len, self.shape.page_bytes);
                done
            }
            ObjectCommand::Read { object, extent } => {
                let data = if let Payload::Read(data) = payload { Some(data) } else { None };
                check_payload(extent, data.as_ref().map(|data| data.len()))?;
                let slot = self.files.slot(object)?;
                let bytes = self.files.get(slot).size.saturating_sub(extent.offset).min(extent.len);
                let data = data.map(|data| &mut data[..bytes as usize]);
                let done = self.read(slot, Extent::new(extent.offset, bytes), data, at)?;
                self.hosts.read_object(bytes, self.shape.page_bytes);
                return Ok(Answer { done, reply: Reply::Bytes(bytes) });
            }
            ObjectCommand::Allocation { object, extent } => {
                let file = self.files.get(self.files.slot(object)?);
                let reply = Reply::Allocation(file.allocation(extent, self.shape.unit));
                return Ok(Answer { done: Token::NONE, reply });
            }
            ObjectCommand::Create { object, hint } => self.create(object, hint, at)?,
            ObjectCommand::Delete { object } => {
                let slot = self.files.slot(object)?;
                self.hosts.trimmed_object(self.files.get(slot).size);
                self.delete(slot, None);
                Token::NONE
            }
            ObjectCommand::Truncate { object, size } => {
                let slot = self.files.slot(object)?;
                let done = self.truncate(slot, size, at)?;
                self.hosts.trimmed_object(0);
                done
            }
            ObjectCommand::Punch { object, extent } => {
                let slot = self.files.slot(object)?;
                let end = extent.end().min(self.files.get(slot).size);
                let done = self.punch(slot, extent, at)?;
                self.hosts.trimmed_object(end.saturating_sub(extent.offset));
                done
            }
            ObjectCommand::Reserve { .. } => {
                return Err(NamespaceError::NotSupported { command: command.name() });
            }
            ObjectCommand::Hint { object, hint } => {
                let slot = self.files.slot(object)?;
                self.files.get_mut(slot).hint = hint;
                self.files.touch(slot);
                Token::NONE
            }
            ObjectCommand::Flush { object } => {
                let slot = object.map(|object| self.files.slot(object)).transpose()?;
                return Ok(self.flush(slot, at)?.into());
            }
            ObjectCommand::SetAttributes { object, replaces } => {
                let bytes = if let Payload::Write(bytes) = payload { bytes } else { &[] };
                self.set_attributes(object, replaces, bytes)?;
                Token::NONE
            }
            ObjectCommand::GetAttributes { object } => {
                let file = self.files.get(self.files.slot(object)?);
                let attributes =
                    ObjectAttributes { status: self.status(file), bytes: file.attributes.clone() };
                return Ok(Answer { done: Token::NONE, reply: Reply::Attributes(Box::new(attributes)) });
            }
            ObjectCommand::List => {
                let all = self.files.iter().map(|(_, file)| self.status(file)).collect();
                return Ok(Answer { done: Token::NONE, reply: Reply::Objects(all) });
            }
            ObjectCommand::Space => {
                return Ok(Answer { done: Token::NONE, reply: Reply::Space(Box::new(self.space())) });
            }
        };
        self.settle(at)?;
        Ok(done.into())
    }

    fn status(&self, file: &File) -> ObjectStatus {
        let allocated = (file.stored + u64::from(file.owes())) * self.shape.unit;
        ObjectStatus { object: file.id, size: file.size, hint: file.hint, allocated }
    }

    /// How the space is divided.
    pub(super) fn space(&self) -> ObjectSpace {
        let live = self.space.live + self.files.owed;
        let free = if self.stopped.is_some() { 0 } else { self.capacity.saturating_sub(live) };
        let now = self.space.free_units.saturating_sub(self.space.floor_units);
        let unit = self.shape.unit;
        ObjectSpace {
            capacity: self.capacity * unit,
            live: live * unit,
            free: free * unit,
            reclaimable: free.saturating_sub(now) * unit,
        }
    }

    /// Makes durable what hosts were answered.
    pub(super) fn flush(&mut self, only: Option<u32>, at: SimTime) -> NamespaceResult<Token> {
        self.hosts.flushes += 1;
        if self.stopped.is_some() || self.sabotage == Sabotage::FlushWithoutRecords {
            return self.durable(self.committed, at);
        }
        let done = self.commit(only, at)?;
        self.settle(at)?;
        Ok(done)
    }

    fn create(&mut self, object: ObjectId, hint: Hint, at: SimTime) -> NamespaceResult<Token> {
        if self.files.find(object).is_some() {
            return Err(ObjectError::Exists.into());
        }
        self.check_room(0, super::files::OBJECT)?;
        // The record that deletes the object of that number has to come before those of the new one.
        if let Some(slot) = self.files.replaced.get(&object).copied() {
            self.commit(Some(slot), at)?;
        }
        let slot = self.files.add(File::new(object, hint, self.now));
        self.files.touch(slot);
        Ok(Token::NONE)
    }

    /// Deletes a file, by a record of its own or by that of the file that replaces it.
    fn delete(&mut self, slot: u32, by: Option<u32>) {
        let file = self.files.remove(slot);
        self.learned.deleted(file.hint, self.now - file.born);
        self.learned.sized(file.hint, file.stored);
        for (_, piece) in file.extents.iter().filter(|(_, piece)| piece.is_stored()) {
            self.space.invalidate(piece, &mut *self.victims, self.now);
        }
        let gone = file.replaced.iter().copied().chain(file.is_logged.then_some(file.id));
        for id in gone {
            match by {
                Some(by) if self.sabotage != Sabotage::ReplaceInTwo => {
                    self.files.get_mut(by).replaced.push(id);
                    self.files.replaced.insert(id, by);
                }
                _ => self.log.records.deleted(id),
            }
        }
    }

    fn set_attributes(
        &mut self,
        object: ObjectId,
        replaces: Option<ObjectId>,
        bytes: &[u8],
    ) -> NamespaceResult<()> {
        check_attributes(object, replaces, bytes)?;
        let slot = self.files.slot(object)?;
        let replaced = replaces.map(|id| self.files.slot(id)).transpose()?;
        let old = self.files.get(slot).attributes.len();
        self.check_room(0, bytes.len().saturating_sub(old) as u64)?;
        self.files.record_bytes = self.files.record_bytes + bytes.len() as u64 - old as u64;
        let file = self.files.get_mut(slot);
        file.attributes = bytes.into();
        file.has_new_attributes = true;
        self.files.touch(slot);
        if let Some(replaced) = replaced {
            self.delete(replaced, Some(slot));
        }
        Ok(())
    }

    #[inline]
    fn write(
        &mut self,
        slot: u32,
        extent: Extent,
        data: Option<&[u8]>,
        hint: Option<Hint>,
        at: SimTime,
    ) -> NamespaceResult<Token> {
        if extent.len == 0 {
            return Ok(Token::NONE);
        }
        let unit = self.shape.unit;
        let end = extent.end().div_ceil(unit);
        if end >= u64::from(LOST) {
            return Err(ObjectError::TooLarge.into());
        }
        let (from, to) = ((extent.offset / unit) as u32, end as u32);
        let file = self.files.get(slot);
        let kept = file.tail.as_ref().is_some_and(|tail| (from..to).contains(&tail.unit) && file.owes());
        let new = u64::from(to - from) - file.extents.mapped(from, to) - u64::from(kept);
        self.check_room(new, MORE_PIECES)?;
        if file.hint == Hint::NOT_SET {
            self.files.get_mut(slot).hint = hint.unwrap_or_default();
        }
        let hint = hint.unwrap_or(self.files.get(slot).hint);
        let writer = Writer { slot, hint, moves: false };
        self.pace = Token::NONE;
        let done = self.write_bytes(writer, extent, data, at)?;
        if self.pace == Token::NONE {
            return Ok(done);
        }
        let both = self.below.device.join(done, self.pace);
        let ends = (self.below.device.completion(done), self.below.device.completion(both));
        if let (Some(own), Some(all)) = ends {
            self.stats.waited_ns += all.0.saturating_sub(own.0.max(at.0));
        }
        Ok(both)
    }

    /// Writes bytes: whole units to a zone, others over what is there.
    #[inline]
    fn write_bytes(
        &mut self,
        writer: Writer,
        extent: Extent,
        data: Option<&[u8]>,
        at: SimTime,
    ) -> NamespaceResult<Token> {
        let slot = writer.slot;
        let unit = self.shape.unit;
        let size = self.files.get(slot).size.max(extent.end());
        let mut done = Token::NONE;
        let mut byte = extent.offset;
        while byte < extent.end() {
            let (at_unit, start) = ((byte / unit) as u32, byte % unit);
            let left = extent.end() - byte;
            let part = data.map(|data| &data[(byte - extent.offset) as usize..]);
            let written;
            if start > 0 || left < unit {
                let len = (unit - start).min(left);
                let span = (at_unit, start as usize, len as usize);
                let is_last = u64::from(at_unit) == size / unit && start + len < unit;
                written = self.write_part(slot, span, part.map(|part| &part[..len as usize]), is_last, at)?;
                byte += len;
            } else {
                let units = self.make_room((left / unit) as u32, at)?;
                let (units, token) =
                    self.append(writer, (at_unit, units), part, Issue::new(at, Cause::Host))?;
                self.drop_tail(slot, at_unit, at_unit + units);
                written = token;
                byte += u64::from(units) * unit;
            }
            let file = self.files.get_mut(slot);
            file.size = file.size.max(byte);
            done = self.below.device.join(done, written);
        }
        Ok(done)
    }

    /// Writes, or fills with zeroes, a part of a unit in memory. The last unit of a file stays there until it
    /// is full or has to be durable.
    fn write_part(
        &mut self,
        slot: u32,
        (unit, start, len): (u32, usize, usize),
        data: Option<&[u8]>,
        stays: bool,
        at: SimTime,
    ) -> NamespaceResult<Token> {
        self.make_room(1, at)?;
        self.load_tail(slot, unit, at)?;
        let file = self.files.get_mut(slot);
        let needs_unit = file.extents.place(unit).is_none();
        let tail = file.tail.as_mut().expect("it is loaded");
        let read = tail.read;
        overlay(&mut tail.bytes, start, len, data);
        let was_dirty = std::mem::replace(&mut tail.is_dirty, true);
        self.files.owed += u64::from(needs_unit && !was_dirty);
        self.files.touch(slot);
        if stays { Ok(read) } else { self.write_tail(slot, at) }
    }

    /// Keeps a unit of a file in memory, as it is in the zones.
    fn load_tail(&mut self, slot: u32, unit: u32, at: SimTime) -> NamespaceResult<()> {
        if let Some(tail) = &self.files.get(slot).tail {
            if tail.unit == unit {
                return Ok(());
            }
            self.write_tail(slot, at)?;
        } else {
            if self.files.tails.len() >= self.shape.config.tails {
                let oldest = self.files.tails[0];
                self.write_tail(oldest, at)?;
                self.files.get_mut(oldest).tail = None;
                self.files.tails.remove(0);
            }
            self.files.tails.push(slot);
        }
        let mut bytes = match self.files.get_mut(slot).tail.take() {
            Some(tail) => tail.bytes,
            None => vec![0; if self.shape.stores_data { self.shape.unit as usize } else { 0 }],
        };
        bytes.fill(0);
        let read = match self.files.get(slot).extents.place(unit) {
            None => Ok(Token::NONE),
            Some(LOST) => Err(lost(Lpn(unit))),
            Some(place) => {
                let extent = Extent::new(self.offset(place), self.shape.unit);
                let data = (!bytes.is_empty()).then_some(bytes.as_mut_slice());
                self.below.read(extent, data, Issue::new(at, Cause::Host))
            }
        };
        match read {
            Ok(read) => {
                let tail = Tail { unit, bytes, is_dirty: false, read };
                self.files.get_mut(slot).tail = Some(Box::new(tail));
                Ok(())
            }
            Err(error) => {
                self.files.tails.retain(|with| *with != slot);
                Err(error)
            }
        }
    }

    /// Units were written or dropped: what is kept of them in memory is not needed any more.
    #[inline]
    fn drop_tail(&mut self, slot: u32, from: u32, to: u32) {
        let file = self.files.get_mut(slot);
        if file.tail.as_ref().is_some_and(|tail| (from..to).contains(&tail.unit)) {
            let owed = file.owes();
            file.tail = None;
            self.files.owed -= u64::from(owed);
            self.files.tails.retain(|with| *with != slot);
        }
    }

    fn read(
        &mut self,
        slot: u32,
        extent: Extent,
        mut data: Option<&mut [u8]>,
        at: SimTime,
    ) -> NamespaceResult<Token> {
        if extent.len == 0 {
            return Ok(Token::NONE);
        }
        let unit = self.shape.unit;
        let file = self.files.get(slot);
        let (from, to) = ((extent.offset / unit) as u32, extent.end().div_ceil(unit) as u32);
        let mut reading = Reading::new(at);
        for (at_unit, piece) in file.extents.with_holes(from, to) {
            let start = (u64::from(at_unit) * unit).max(extent.offset);
            let end = (u64::from(at_unit + piece.units) * unit).min(extent.end());
            let (at_byte, len) = (start - extent.offset, end - start);
            let is_kept = |tail: &Tail| piece.units == 1 && tail.unit == at_unit;
            if file.tail.as_deref().is_some_and(is_kept) {
                continue;
            }
            if piece.place == LOST {
                return Err(lost(Lpn(at_unit)));
            }
            if !piece.is_stored() {
                if let Some(data) = data.as_deref_mut() {
                    data[at_byte as usize..][..len as usize].fill(0);
                }
                continue;
            }
            let zone = self.space.zone_of(piece.place);
            let index = u64::from(piece.place - self.space.first_of(zone));
            let offset = self.shape.start(zone) + index * unit + (start - u64::from(at_unit) * unit);
            let run = Run { zone, offset, at: at_byte, len };
            reading.add(&mut self.below, run, data.as_deref_mut())?;
        }
        let mut done = reading.end(&mut self.below, data.as_deref_mut())?;
        if let Some(tail) = file.tail.as_deref().filter(|tail| (from..to).contains(&tail.unit)) {
            let first = u64::from(tail.unit) * unit;
            let (start, end) = (first.max(extent.offset), (first + unit).min(extent.end()));
            if let Some(data) = data.filter(|_| !tail.bytes.is_empty()) {
                let kept = &tail.bytes[(start - first) as usize..(end - first) as usize];
                data[(start - extent.offset) as usize..][..kept.len()].copy_from_slice(kept);
            }
            done = self.below.device.join(done, tail.read);
        }
        Ok(done)
    }

    /// Drops whole units and zeroes the parts of others where anything is.
    fn clear(&mut self, slot: u32, extent: Extent, at: SimTime) -> NamespaceResult<Token> {
        let unit = self.shape.unit;
        let bytes = unit as u32;
        let mut done = Token::NONE;
        for end in extent.ragged_ends(bytes) {
            let (at_unit, start) = ((end.offset / unit) as u32, end.offset % unit);
            let file = self.files.get(slot);
            let is_kept = file.tail.as_ref().is_some_and(|tail| tail.unit == at_unit);
            if is_kept || file.extents.place(at_unit).is_some() {
                let is_last = u64::from(at_unit) == file.size / unit;
                let span = (at_unit, start as usize, end.len as usize);
                let written = self.write_part(slot, span, None, is_last, at)?;
                done = self.below.device.join(done, written);
            }
        }
        let (first, count) = extent.whole_pages(bytes);
        if count > 0 {
            self.drop_units(slot, first as u32, (first + count) as u32);
        }
        Ok(done)
    }

    /// Units hold nothing any more.
    fn drop_units(&mut self, slot: u32, from: u32, to: u32) {
        self.drop_tail(slot, from, to);
        self.unmap(slot, from, to);
    }

    fn punch(&mut self, slot: u32, extent: Extent, at: SimTime) -> NamespaceResult<Token> {
        let size = self.files.get(slot).size;
        let end = extent.end().min(size);
        if extent.offset >= end {
            return Ok(Token::NONE);
        }
        self.check_room(0, MORE_PIECES)?;
        self.clear(slot, Extent::new(extent.offset, end - extent.offset), at)
    }

    fn truncate(&mut self, slot: u32, size: u64, at: SimTime) -> NamespaceResult<Token> {
        let unit = self.shape.unit;
        if size.div_ceil(unit) >= u64::from(LOST) {
            return Err(ObjectError::TooLarge.into());
        }
        let old = self.files.get(slot).size;
        let mut done = Token::NONE;
        if size < old {
            self.check_room(0, if size.is_multiple_of(unit) { 0 } else { MORE_PIECES })?;
            self.drop_units(slot, size.div_ceil(unit) as u32, old.div_ceil(unit) as u32);
            self.files.get_mut(slot).size = size;
            // What is behind the end reads as zeroes if the file grows again.
            let rest = (size.next_multiple_of(unit) - size).min(old - size);
            done = self.clear(slot, Extent::new(size, rest), at)?;
        }
        self.files.get_mut(slot).size = size;
        self.files.touch(slot);
        Ok(done)
    }
}
