//! The cache layer's limit: objects that wait longest are flushed, at once or in steps.
//!
//! In steps, a flush stays one write. While it is open nothing else is written to the flash: whatever would
//! do so ends it first. Only bytes that hosts write are kept meanwhile, for a flush to come.

use super::Oftl;
use super::flush::Flush;
use super::oob::ObjectOob;
use nandscape_core::{Chores, FlashDevice, Hint, NamespaceResult, ObjectCommand, SimTime};

/// Objects with fewer pages to be written are flushed at once.
const LEAST_PAGES: usize = 4;
/// The least pages of a step.
const LEAST_STEP: u32 = 2;

/// An object that is being flushed in steps.
pub(super) struct Eviction {
    object: u64,
    flush: Flush,
    /// Bytes that hosts have written since the last step.
    came: u64,
}

impl Eviction {
    pub const fn flush(&self) -> &Flush {
        &self.flush
    }

    pub const fn is_of(&self, object: u64) -> bool {
        self.object == object
    }
}

impl<D: FlashDevice<ObjectOob>> Oftl<D> {
    /// More bytes are kept in memory: flushes what is too much. Whether anything was programmed for that
    /// since the last time; the write that comes next waits for it.
    pub(super) fn evict(&mut self, more: u64, at: SimTime) -> NamespaceResult<bool> {
        // What nobody did between the writes.
        self.chore(at)?;
        if let Some(eviction) = &mut self.eviction {
            eviction.came += more;
        }
        let mut has_flushed = std::mem::take(&mut self.has_evicted);
        while self.table.dirty_bytes > self.config.cache_bytes {
            let Some((oldest, _)) = self.table.oldest() else { break };
            if self.postpones && self.begin_eviction(oldest, at)? {
                continue;
            }
            self.flush_object(oldest, at)?;
            self.collect_if_short(at)?;
            has_flushed = true;
        }
        Ok(has_flushed)
    }

    /// Begins to flush an object in steps, if it is worth it.
    fn begin_eviction(&mut self, id: u64, at: SimTime) -> NamespaceResult<bool> {
        let is_large =
            self.table.slot(id).is_some_and(|slot| self.table.get(slot).dirty.len() >= LEAST_PAGES);
        if !is_large {
            return Ok(false);
        }
        self.end_eviction(at)?;
        self.collect_if_short(at)?;
        // When the windows end, what their objects have in memory is written at once, unless the metadata
        // says everything by then.
        let all = !self.make_room_for(id, at)?;
        let slot = self.table.slot(id).expect("it was there, and nothing was deleted");
        let mut object = self.table.take(slot);
        let begun = self.begin_flush(&mut object, all, at);
        self.put_back(slot, object, begun.is_ok());
        self.eviction = begun?.map(|flush| Eviction { object: id, flush, came: 0 });
        Ok(true)
    }

    /// Nothing is being flushed in steps afterwards.
    #[inline]
    pub(super) fn end_eviction(&mut self, at: SimTime) -> NamespaceResult<()> {
        if self.eviction.is_some() { self.go_on_evicting(u32::MAX, at) } else { Ok(()) }
    }

    fn go_on_evicting(&mut self, most: u32, at: SimTime) -> NamespaceResult<()> {
        let Some(mut eviction) = self.eviction.take() else { return Ok(()) };
        self.has_evicted = true;
        let slot = self.table.slot(eviction.object).expect("an object stays while it is flushed");
        let mut object = self.table.take(slot);
        let result = self.go_on(&mut object, &mut eviction.flush, most, at);
        if result.is_err() {
            self.put_back(slot, object, false);
            self.table.touch(slot, at);
        } else {
            self.table.put_back(slot, object);
        }
        if !result? {
            self.eviction = Some(Eviction { came: 0, ..eviction });
        }
        Ok(())
    }

    /// Ends the flush before a command that writes to the flash or needs what is on its way there.
    #[inline]
    pub(super) fn make_way(&mut self, command: &ObjectCommand, at: SimTime) -> NamespaceResult<()> {
        let Some(eviction) = &self.eviction else { return Ok(()) };
        let goes_beside = match command {
            ObjectCommand::Write { object, hint, .. } => {
                // A hint is part of the metadata, which may be on its way.
                !self.config.sync
                    && (hint.is_none_or(|hint| hint == Hint::NOT_SET) || !eviction.is_of(object.0))
            }
            ObjectCommand::Read { object, .. } => !eviction.is_of(object.0),
            ObjectCommand::GetAttributes { .. } | ObjectCommand::Space => true,
            _ => false,
        };
        if goes_beside {
            return Ok(());
        }
        let ended = self.end_eviction(at);
        // What could not be written is in memory again, where it is read.
        if command.writes_nothing() { Ok(()) } else { ended }
    }
}

impl<D: FlashDevice<ObjectOob>> Chores for Oftl<D> {
    fn postpone(&mut self) {
        self.postpones = true;
    }

    /// Programs as much as was written since the last step.
    fn chore(&mut self, at: SimTime) -> NamespaceResult<()> {
        let Some(eviction) = self.eviction.as_ref().filter(|eviction| eviction.came > 0) else {
            return Ok(());
        };
        let pages = eviction.came.div_ceil(self.sizes.page_bytes.into());
        self.go_on_evicting(u32::try_from(pages).unwrap_or(u32::MAX).max(LEAST_STEP), at)
    }
}
