//! What published designs do otherwise.

use super::counting::Piece as Became;
use super::directory::Piece;
use super::timeline::Place;
use super::{Cache, Result};
use crate::presets::{Partial, Quirks};
use nandscape_core::Extent;
use nandscape_policies::BlockKey;
use nandscape_policies::admission::Bypass;
use nandscape_policies::eviction::Eviction;

impl<E: Eviction> Cache<E> {
    /// Follows a design in these from now on.
    pub const fn set_quirks(&mut self, quirks: Quirks) {
        self.quirks = quirks;
    }

    /// Whether blocks are cached whole or not at all.
    pub(super) fn fills_blocks(&self) -> bool {
        // A slot that is written once has room for nothing more.
        self.quirks.partial == Partial::Filled || self.directory.log.is_some()
    }

    /// Why a piece goes past the cache, whatever admission says. Counts the piece if it has to wait.
    #[inline]
    pub(super) fn shuns(&mut self, slot: Option<u32>, key: BlockKey, piece: Piece) -> Option<Bypass> {
        if self.quirks.partial == Partial::Uncached && (piece.start, piece.end) != (0, piece.limit) {
            return Some(Bypass::Shape);
        }
        let is_busy = slot.is_some_and(|slot| self.note_busy(slot, key));
        if is_busy && self.quirks.is_requeued_past_cache {
            self.meter.own().requeued_past_cache += 1;
            return Some(Bypass::Busy);
        }
        None
    }

    /// Whether a block is being filled, cleaned or moved. Counts the piece that has to wait for it.
    #[inline]
    pub(super) fn note_busy(&mut self, slot: u32, key: BlockKey) -> bool {
        if !self.timeline.has_holds() {
            return false;
        }
        let is_busy = self.timeline.is_held(Place::slot(slot)) || self.timeline.is_held(Place::block(key));
        self.meter.own().waits += u64::from(is_busy);
        is_busy
    }

    /// Throws out the blocks that a write is not cached in, to the disk as far as they are dirty, before the
    /// write gets there.
    pub(super) fn shun(&mut self, volume: u16, extent: Extent) -> Result<()> {
        self.shunned.clear();
        if self.quirks.partial != Partial::Uncached && !self.quirks.is_requeued_past_cache {
            return Ok(());
        }
        let (first, end) = self.directory.shape.blocks(extent);
        for block in first..end {
            let key = BlockKey::new(volume, block);
            let Some(slot) = self.directory.find(key) else { continue };
            let piece = self.directory.piece(volume, extent, block);
            if let Some(why) = self.shuns(Some(slot), key, piece) {
                self.throw_out(slot)?;
                self.meter.own().write_invalidates += 1;
                self.shunned.push((block, why));
            }
        }
        Ok(())
    }

    /// What became of a piece of a write that is not cached, if that is because of the design.
    pub(super) fn shunned(&self, key: BlockKey, piece: Piece) -> Option<Became> {
        if let Some((_, why)) = self.shunned.iter().find(|(block, _)| *block == key.block()) {
            return Some(Became::PastCached(*why));
        }
        let is_part = (piece.start, piece.end) != (0, piece.limit);
        (self.quirks.partial == Partial::Uncached && is_part).then_some(Became::Past(Bypass::Shape))
    }

    /// A block leaves, to the disk as far as it is dirty.
    pub(super) fn throw_out(&mut self, slot: u32) -> Result<()> {
        self.make_note_room()?;
        self.evacuate(slot)
    }

    /// In a write-through that never hits, a cached block leaves before its slot could be used again. Gives
    /// the slot otherwise.
    pub(super) fn renounce(&mut self, slot: u32) -> Option<u32> {
        if !self.quirks.is_write_through_never_hit || self.directory.slots.dirty_bits(slot) != 0 {
            return Some(slot);
        }
        self.meter.own().write_invalidates += 1;
        self.expel(slot, false);
        None
    }
}
