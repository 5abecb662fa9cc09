//! Commands of hosts.

use super::flush::lost;
use super::layout::{LOST, RESERVED, is_page};
use super::object::Object;
use super::oob::ObjectOob;
use super::{Oftl, Sabotage};
use nandscape_core::command::{Payload, check_attributes, check_payload};
use nandscape_core::{
    Answer, Cause, Extent, FlashDevice, FtlError, Hint, Issue, NamespaceError, NamespaceResult,
    ObjectAttributes, ObjectCommand, ObjectError, ObjectId, ObjectSpace, ObjectStatus, Ppn, Reply, SimTime,
    Submitted, Token, Way,
};

/// Logical pages are below this number.
const MOST_PAGES: u64 = 1 << 31;
/// With so many replaced objects the metadata is written.
const MOST_REPLACED: usize = 16;

impl<D: FlashDevice<ObjectOob>> Oftl<D> {
    #[inline]
    pub(super) fn object(&mut self, command: ObjectCommand, payload: Payload<'_>, at: SimTime) -> Submitted {
        if !command.writes_nothing() {
            self.refuse_if_stopped()?;
        }
        self.make_way(&command, at)?;
        self.reading = Token::NONE;
        let mut reply = Reply::Nothing;
        let done = match command {
            ObjectCommand::Write { object, extent, hint } => {
                let data = if let Payload::Write(data) = payload { Some(data) } else { None };
                check_payload(extent, data.map(<[u8]>::len))?;
                let slot = self.find(object, at)?;
                let done = self.write(slot, extent, data, hint, at)?;
                self.hosts.wrote_object(extent.len, self.sizes.page_bytes);
                done
            }
            ObjectCommand::Read { object, extent } => {
                let data = if let Payload::Read(data) = payload { Some(data) } else { None };
                check_payload(extent, data.as_ref().map(|data| data.len()))?;
                let slot = self.find(object, at)?;
                let bytes = self.table.get(slot).size.saturating_sub(extent.offset).min(extent.len);
                let data = data.map(|data| &mut data[..bytes as usize]);
                reply = Reply::Bytes(bytes);
                let done = self.read(slot, Extent::new(extent.offset, bytes), data, at)?;
                self.hosts.read_object(bytes, self.sizes.page_bytes);
                done
            }
            ObjectCommand::Create { object, hint } => self.create(object, hint, at)?,
            ObjectCommand::Delete { object } => {
                let slot = self.find(object, at)?;
                self.hosts.trimmed_object(self.table.get(slot).size);
                self.delete(slot, None);
                Token::NONE
            }
            ObjectCommand::Truncate { object, size } => {
                let slot = self.find(object, at)?;
                self.truncate(slot, size, at)?;
                self.hosts.trimmed_object(0);
                Token::NONE
            }
            ObjectCommand::Punch { object, extent } => {
                let slot = self.find(object, at)?;
                let end = extent.end().min(self.table.get(slot).size);
                self.hosts.trimmed_object(end.saturating_sub(extent.offset));
                if extent.offset < end {
                    self.clear(slot, Extent::new(extent.offset, end - extent.offset), at);
                }
                Token::NONE
            }
            ObjectCommand::Reserve { object, extent } => {
                let slot = self.find(object, at)?;
                self.reserve(slot, extent, at)?;
                Token::NONE
            }
            ObjectCommand::Hint { object, hint } => {
                let slot = self.find(object, at)?;
                let object = self.table.get_mut(slot);
                (object.hint, object.needs_meta) = (hint, true);
                self.table.touch(slot, at);
                Token::NONE
            }
            ObjectCommand::Flush { object } => {
                let done = self.flush(object, at)?;
                self.hosts.flushes += 1;
                done
            }
            ObjectCommand::SetAttributes { object, replaces } => {
                let bytes = if let Payload::Write(bytes) = payload { bytes } else { &[] };
                self.set_attributes(object, replaces, bytes, at)?;
                Token::NONE
            }
            ObjectCommand::GetAttributes { object } => {
                let slot = self.find(object, at)?;
                let status = self.status(slot);
                let bytes = self.table.get(slot).attributes.clone();
                reply = Reply::Attributes(Box::new(ObjectAttributes { status, bytes }));
                Token::NONE
            }
            ObjectCommand::Allocation { object, extent } => {
                let slot = self.find(object, at)?;
                reply = Reply::Allocation(self.table.get(slot).allocation(extent, self.sizes.page_bytes));
                Token::NONE
            }
            ObjectCommand::List => {
                reply = Reply::Objects(self.statuses(at)?);
                Token::NONE
            }
            ObjectCommand::Space => {
                reply = Reply::Space(Box::new(self.space()));
                Token::NONE
            }
        };
        let is_flush = matches!(command, ObjectCommand::Flush { .. });
        if self.stopped.is_none() && (is_flush || !command.writes_nothing()) {
            self.settle(at)?;
        }
        self.unload();
        Ok(Answer { done: self.device.join(done, self.reading), reply })
    }

    /// The slot of an object, which is read from the flash if it is not in memory.
    #[inline]
    pub(super) fn find(&mut self, object: ObjectId, at: SimTime) -> NamespaceResult<u32> {
        let Some(slot) = self.table.slot(object.0) else { return self.load(object.0, at) };
        self.table.get_mut(slot).is_used = true;
        Ok(slot)
    }

    /// Lets objects leave the memory if there are too many. No slot is known afterwards.
    #[inline]
    fn unload(&mut self) {
        // What no bytes are stored of cannot be read again.
        if self.sizes.stores_data {
            let (eviction, is_early) = (&self.eviction, self.sabotage == Sabotage::EarlyUnload);
            self.table.unload(self.config.resident, |object| {
                let is_evicted = eviction.as_ref().is_some_and(|eviction| eviction.is_of(object.id));
                !is_evicted && (object.is_known() || (is_early && object.is_on_flash()))
            });
        }
    }

    fn status(&self, slot: u32) -> ObjectStatus {
        let Object { id, size, hint, .. } = *self.table.get(slot);
        ObjectStatus { object: ObjectId(id), size, hint, allocated: self.allocated(id) }
    }

    /// Of all objects, in the order of their numbers.
    fn statuses(&mut self, at: SimTime) -> NamespaceResult<Box<[ObjectStatus]>> {
        let ids: Vec<u64> = self.table.entries().map(|(id, _)| id).collect();
        let statuses = ids.into_iter().map(|id| {
            self.unload();
            match self.find(ObjectId(id), at) {
                Ok(slot) => Ok(self.status(slot)),
                Err(NamespaceError::Ftl(FtlError::Flash(_))) => {
                    let allocated = self.allocated(id);
                    Ok(ObjectStatus { object: ObjectId(id), size: 0, hint: Hint::NONE, allocated })
                }
                Err(error) => Err(error),
            }
        });
        statuses.collect()
    }

    /// Bytes of space that the object is charged with.
    fn allocated(&self, id: u64) -> u64 {
        self.table.entry(id).map_or(0, |entry| entry.cost) * u64::from(self.sizes.page_bytes)
    }

    pub(super) fn space(&self) -> ObjectSpace {
        let page = u64::from(self.sizes.page_bytes);
        let free = self.config.capacity - self.table.charged.min(self.config.capacity);
        let rooms: u64 = self.blocks.windows.iter().map(|window| window.room).sum();
        let erased = self.blocks.free_count * u64::from(self.blocks.pages) + rooms;
        ObjectSpace {
            capacity: self.config.capacity * page,
            live: self.table.charged * page,
            free: free * page,
            reclaimable: free.saturating_sub(erased) * page,
        }
    }

    fn create(&mut self, object: ObjectId, hint: Hint, at: SimTime) -> NamespaceResult<Token> {
        let id = object.0;
        if self.table.entry(id).is_some() {
            return Err(ObjectError::Exists.into());
        }
        // What the flash says of the number's last object is over first.
        if let Some(by) = self.table.replacing.get(&id).copied() {
            self.flush_object(by, at)?;
        }
        if self.table.deleted.contains(&id) {
            self.write_deletions(at)?;
        }
        let new = Object::new(id, hint, &self.sizes);
        let cost = new.cost(0, 0, 0, &self.sizes);
        self.check_room(cost)?;
        let slot = self.table.add(new);
        self.table.charge(id, cost);
        self.table.touch(slot, at);
        Ok(Token::NONE)
    }

    fn check_room(&self, more: u64) -> NamespaceResult<()> {
        if more > 0 && self.table.charged + more > self.config.capacity {
            return Err(ObjectError::Full.into());
        }
        Ok(())
    }

    /// What an object would be charged with.
    fn cost(&self, slot: u32, touched: u64, size: u64, attributes: usize) -> u64 {
        let end = size.div_ceil(self.sizes.page_bytes.into());
        self.table.get(slot).cost(touched, end, attributes as u64, &self.sizes)
    }

    /// Charges an object with so many more pages, of which the last one ends at `end` or before; refused if
    /// there is no room for them.
    #[inline]
    fn charge_more(&mut self, slot: u32, new: u64, end: u64) -> NamespaceResult<()> {
        let object = self.table.get(slot);
        let id = object.id;
        let cost = self.cost(slot, object.touched + new, object.size.max(end), object.attributes.len());
        let before = self.table.entry(id).map_or(0, |entry| entry.cost);
        self.check_room(cost.saturating_sub(before))?;
        self.table.charge(id, cost);
        Ok(())
    }

    fn recharge(&mut self, slot: u32) {
        let object = self.table.get(slot);
        let cost = self.cost(slot, object.touched, object.size, object.attributes.len());
        self.table.charge(object.id, cost);
    }

    /// Deletes an object, by itself or with the metadata of the one that replaces it.
    fn delete(&mut self, slot: u32, by: Option<u64>) {
        let object = self.table.remove(slot);
        for (_, place) in object.layout.iter() {
            self.blocks.invalidate(place);
        }
        for (_, leaf) in object.layout.leaves() {
            self.blocks.invalidate(leaf.page);
        }
        for place in &object.parts {
            self.blocks.invalidate(*place);
        }
        let is_known = !object.parts.is_empty();
        for id in object.replaced.iter().copied().chain(is_known.then_some(object.id)) {
            self.table.replacing.remove(&id);
            match by.and_then(|by| self.table.slot(by).map(|slot| (by, slot))) {
                Some((by, slot)) => {
                    self.table.get_mut(slot).replaced.push(id);
                    self.table.replacing.insert(id, by);
                }
                None => drop(self.table.deleted.insert(id)),
            }
        }
    }

    fn set_attributes(
        &mut self,
        object: ObjectId,
        replaces: Option<ObjectId>,
        bytes: &[u8],
        at: SimTime,
    ) -> NamespaceResult<()> {
        check_attributes(object, replaces, bytes)?;
        let slot = self.find(object, at)?;
        let replaced = replaces.map(|id| self.find(id, at)).transpose()?;
        let old = self.table.get(slot);
        let cost = self.cost(slot, old.touched, old.size, bytes.len() + 8 * MOST_REPLACED);
        let before = self.table.entry(object.0).map_or(0, |entry| entry.cost);
        self.check_room(cost.saturating_sub(before))?;
        let changed = self.table.get_mut(slot);
        (changed.attributes, changed.needs_meta) = (bytes.into(), true);
        if let Some(replaced) = replaced {
            self.delete(replaced, Some(object.0));
        }
        self.recharge(slot);
        self.table.touch(slot, at);
        if self.table.get(slot).replaced.len() >= MOST_REPLACED {
            self.flush_object(object.0, at)?;
            self.recharge(slot);
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
        let page_bytes = self.sizes.page_bytes;
        if extent.end().div_ceil(page_bytes.into()) >= MOST_PAGES {
            return Err(ObjectError::TooLarge.into());
        }
        let object = self.table.get(slot);
        let id = object.id;
        let new = extent.pages(page_bytes).filter(|span| !object.has(span.lpn.0)).count() as u64;
        self.charge_more(slot, new, extent.end())?;
        let object = self.table.get_mut(slot);
        if object.hint == Hint::NOT_SET && hint.is_some() {
            (object.hint, object.needs_meta) = (hint.unwrap_or_default(), true);
        }
        // What one window takes is written together.
        let most = u64::from(self.config.window) * self.geometry.block_bytes();
        let mut done = Token::NONE;
        let mut from = extent.offset;
        while from < extent.end() {
            let to = extent.end().min((from / most + 1) * most);
            let part = data.map(|data| &data[(from - extent.offset) as usize..(to - extent.offset) as usize]);
            self.keep(slot, Extent::new(from, to - from), part, at);
            let passed = self.device.pass(Way::In, (to - from) as u32, at, Token::NONE);
            done = self.device.join(done, passed);
            if self.config.sync {
                self.flush_object(id, at)?;
            }
            if self.evict(to - from, at)? {
                done = self.device.join(done, self.written);
            }
            from = to;
        }
        if self.config.sync {
            let durable = self.durable(at)?;
            done = self.device.join(done, durable);
        }
        Ok(done)
    }

    /// Keeps what was written in memory.
    #[inline]
    fn keep(&mut self, slot: u32, extent: Extent, data: Option<&[u8]>, at: SimTime) {
        let sizes = self.sizes;
        let object = self.table.get_mut(slot);
        let mut more = 0;
        for span in extent.pages(sizes.page_bytes) {
            object.touched += u64::from(!object.has(span.lpn.0));
            let part = data.map(|data| &data[span.at as usize..][..span.len as usize]);
            more +=
                object.keep(span.lpn.0, (span.start, span.start + span.len), part, &sizes, &mut self.spare);
        }
        object.size = object.size.max(extent.end());
        object.dirty_bytes += more;
        self.table.dirty_bytes += more;
        self.table.touch(slot, at);
    }

    fn read(
        &mut self,
        slot: u32,
        extent: Extent,
        mut data: Option<&mut [u8]>,
        at: SimTime,
    ) -> NamespaceResult<Token> {
        let mut done = Token::NONE;
        let object = self.table.get(slot);
        let mut in_memory = 0;
        for span in extent.pages(self.sizes.page_bytes) {
            let (page, start, end) = (span.lpn.0, span.start, span.start + span.len);
            let (diff, dirty) = (object.diffs.get(&page), object.dirty.get(&page));
            let part = data.as_deref_mut().map(|data| &mut data[span.at as usize..][..span.len as usize]);
            let is_covered = [diff, dirty].into_iter().flatten().any(|patch| patch.covers(start, end));
            let place = object.layout.get(page).filter(|place| !is_covered && *place != RESERVED);
            let mut nothing = [];
            let part = part.unwrap_or(&mut nothing);
            match place {
                Some(LOST) => return Err(lost(page)),
                Some(place) => {
                    assert!(is_page(place), "page {page} of object {} is at {place}", object.id);
                    let issue = Issue::new(at, Cause::Host);
                    let read = if self.sizes.stores_data && !part.is_empty() {
                        self.device.read_part(Ppn(place), start, part, issue)
                    } else {
                        self.device.read(Ppn(place), span.len, None, issue)
                    };
                    let read = read.map_err(FtlError::Flash)?;
                    done = self.device.join(done, read.done);
                }
                None => {
                    part.fill(0);
                    in_memory += u64::from(span.len);
                }
            }
            for patch in [diff, dirty].into_iter().flatten() {
                if !part.is_empty() {
                    patch.apply(start, part);
                }
            }
        }
        if in_memory > 0 {
            let passed = self.device.pass(Way::Out, in_memory.min(1 << 30) as u32, at, Token::NONE);
            done = self.device.join(done, passed);
        }
        Ok(done)
    }

    /// Keeps room for pages that have nothing.
    fn reserve(&mut self, slot: u32, extent: Extent, at: SimTime) -> NamespaceResult<()> {
        let page_bytes = self.sizes.page_bytes;
        if extent.len == 0 {
            return Ok(());
        }
        let object = self.table.get(slot);
        if extent.end().div_ceil(page_bytes.into()) >= MOST_PAGES {
            return Err(ObjectError::TooLarge.into());
        }
        // More than could be new, however large the object is.
        if extent.len / u64::from(page_bytes) > object.touched + self.config.capacity {
            return Err(ObjectError::Full.into());
        }
        let pages = extent.pages(page_bytes).map(|span| span.lpn.0);
        let new: Vec<u32> = pages.filter(|page| !object.has(*page)).collect();
        self.charge_more(slot, new.len() as u64, extent.end())?;
        let object = self.table.get_mut(slot);
        object.touched += new.len() as u64;
        for page in new {
            object.layout.reserve(page);
        }
        (object.size, object.needs_meta) = (object.size.max(extent.end()), true);
        self.table.touch(slot, at);
        Ok(())
    }

    /// Makes bytes read as zeroes: whole pages are nowhere, parts of others are written.
    fn clear(&mut self, slot: u32, extent: Extent, at: SimTime) {
        let page_bytes = self.sizes.page_bytes;
        let (first, count) = extent.whole_pages(page_bytes);
        for end in extent.ragged_ends(page_bytes) {
            self.zero(
                slot,
                (end.offset / u64::from(page_bytes)) as u32,
                end.offset % u64::from(page_bytes),
                end.len,
            );
        }
        self.drop_pages(slot, first as u32, (first + count) as u32);
        self.recharge(slot);
        self.table.touch(slot, at);
    }

    /// Zeroes a part of a page where anything is.
    fn zero(&mut self, slot: u32, page: u32, start: u64, len: u64) {
        let sizes = self.sizes;
        let object = self.table.get_mut(slot);
        if !object.has(page) {
            return;
        }
        let more = object.keep(page, (start as u32, (start + len) as u32), None, &sizes, &mut self.spare);
        object.dirty_bytes += more;
        self.table.dirty_bytes += more;
    }

    /// Pages hold nothing any more.
    fn drop_pages(&mut self, slot: u32, from: u32, to: u32) {
        if from >= to {
            return;
        }
        let object = self.table.get_mut(slot);
        let id = object.id;
        let mut gone = std::collections::BTreeSet::new();
        let mut less = 0;
        let mut is_known = false;
        let dirty: Vec<u32> = object.dirty.range(from..to).map(|(page, _)| *page).collect();
        for page in dirty {
            let patch = object.dirty.remove(&page).expect("it was found");
            less += Object::waiting(&patch);
            gone.insert(page);
        }
        let diffs: Vec<u32> = object.diffs.range(from..to).map(|(page, _)| *page).collect();
        for page in diffs {
            object.diffs.change().remove(&page);
            gone.insert(page);
            is_known = true;
        }
        let mapped: Vec<u32> = object.layout.within(from, to).collect();
        gone.extend(mapped);
        let blocks = &mut self.blocks;
        object.layout.remove(from, to, |place| {
            blocks.invalidate(place);
            is_known = true;
        });
        object.touched -= gone.len() as u64;
        object.dirty_bytes -= less;
        object.needs_meta |= is_known;
        self.table.dirty_bytes -= less;
        if is_known {
            self.table.removals.insert(id);
        }
    }

    fn truncate(&mut self, slot: u32, size: u64, at: SimTime) -> NamespaceResult<()> {
        let page_bytes = u64::from(self.sizes.page_bytes);
        if size.div_ceil(page_bytes) >= MOST_PAGES {
            return Err(ObjectError::TooLarge.into());
        }
        let object = self.table.get(slot);
        let (id, old) = (object.id, object.size);
        let cost = self.cost(slot, object.touched, size, object.attributes.len());
        let before = self.table.entry(id).map_or(0, |entry| entry.cost);
        if size > old {
            self.check_room(cost.saturating_sub(before))?;
        }
        if size < old {
            let (page, start) = ((size / page_bytes) as u32, size % page_bytes);
            // What is behind the end reads as zeroes if the object grows again.
            if start > 0 {
                self.zero(slot, page, start, (old - size).min(page_bytes - start));
            }
            self.drop_pages(slot, size.div_ceil(page_bytes) as u32, old.div_ceil(page_bytes) as u32);
        }
        let object = self.table.get_mut(slot);
        (object.size, object.needs_meta) = (size, object.needs_meta || size != old);
        self.recharge(slot);
        self.table.touch(slot, at);
        Ok(())
    }

    /// Makes durable what was answered, of an object or of all.
    pub(super) fn flush(&mut self, object: Option<ObjectId>, at: SimTime) -> NamespaceResult<Token> {
        match object {
            Some(object) => {
                if self.table.entry(object.0).is_none() {
                    return Err(ObjectError::Unknown.into());
                }
                let slot = self.table.slot(object.0);
                if slot.is_some_and(|slot| self.table.get(slot).is_dirty()) {
                    self.refuse_if_stopped()?;
                }
                self.flush_object(object.0, at)?;
            }
            None => self.flush_all(at)?,
        }
        self.durable(at)
    }

    /// Writes what all objects have in memory.
    pub(super) fn flush_all(&mut self, at: SimTime) -> NamespaceResult<()> {
        self.end_eviction(at)?;
        if self.table.oldest().is_some() || !self.table.deleted.is_empty() {
            self.refuse_if_stopped()?;
        }
        while let Some((id, _)) = self.table.oldest() {
            self.flush_object(id, at)?;
            self.collect_if_short(at)?;
        }
        self.write_deletions(at)
    }
}
