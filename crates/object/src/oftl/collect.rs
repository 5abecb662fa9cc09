//! Collection of blocks that have left the update windows.

use super::layout::Known;
use super::oob::{ObjectOob, PageKind};
use super::program::Page;
use super::{Oftl, Sabotage};
use nandscape_core::{
    Cause, FlashDevice, FlashError, FtlError, NamespaceError, NamespaceResult, ObjectId, SimTime, Token,
};
use nandscape_ftl::victim::VictimFacts;
use std::collections::BTreeSet;

/// What is moved by writing the metadata of its object.
#[derive(Debug, Default)]
struct Moving {
    objects: BTreeSet<u64>,
    /// Pages that are valid until then.
    pages: u32,
}

impl<D: FlashDevice<ObjectOob>> Oftl<D> {
    /// Collects until so many blocks are free, or nothing can be gained.
    pub(super) fn collect(&mut self, wanted: u64, at: SimTime) -> NamespaceResult<()> {
        // What is moved needs room, too, which the free blocks are for.
        if std::mem::replace(&mut self.is_collecting, true) {
            return Ok(());
        }
        let mut result = Ok(());
        // What a collection gains, the metadata of what it moved may take again.
        let (mut most, mut in_vain) = (0, 0);
        while result.is_ok() && self.blocks.free_count < wanted && in_vain < 2 * self.blocks.infos.len() {
            in_vain = if self.blocks.free_count > most { 0 } else { in_vain + 1 };
            most = most.max(self.blocks.free_count);
            result = match self.victim(at) {
                Ok(Some(victim)) => self.collect_block(victim, at),
                Ok(None) => break,
                Err(error) => Err(error),
            };
        }
        self.is_collecting = false;
        result
    }

    /// A block that is worth it. Blocks that failed go first. A count that may be too high is put right
    /// before; and before little is gained, one of a block that may have more to gain than it seems.
    fn victim(&mut self, at: SimTime) -> NamespaceResult<Option<u32>> {
        if let Some(block) = self.blocks.failed.pop() {
            return Ok(Some(block));
        }
        let mut has_looked = false;
        loop {
            let facts = VictimFacts { blocks: &self.blocks.infos, now: self.blocks.now };
            let picked = self.blocks.victims.pick(&facts);
            let valid = |block: u32| self.blocks.infos[block as usize].valid;
            let picked = picked.filter(|block| valid(*block) < self.blocks.pages);
            let gains_little = picked.is_none_or(|block| !has_looked && 2 * valid(block) > self.blocks.pages);
            let unknown = if gains_little { self.blocks.inexact().next() } else { None };
            has_looked = true;
            let block = match unknown.or(picked) {
                None => return Ok(None),
                Some(block) if self.blocks.is_exact(block) => return Ok(Some(block)),
                Some(block) => block,
            };
            let valid = self.count_valid(block, at)?;
            self.blocks.set_valid(block, valid, true);
        }
    }

    /// Valid pages of a block, by their back pointers and the index.
    fn count_valid(&mut self, block: u32, at: SimTime) -> NamespaceResult<u32> {
        let mut valid = 0;
        for place in block * self.blocks.pages..(block + 1) * self.blocks.pages {
            match self.read_page(place, Cause::Gc, at) {
                Ok((oob, _, done)) => {
                    self.wait_for(done);
                    valid += u32::from(self.is_valid(&oob, place, at)?);
                }
                Err(FlashError::Uncorrectable { .. } | FlashError::Damaged { .. }) => {
                    valid += u32::from(self.owner(place, at)?.is_some());
                }
                Err(FlashError::Erased { .. }) => break,
                Err(error) => return Err(self.failed(error)),
            }
        }
        Ok(valid)
    }

    /// Whether the index has a page.
    fn is_valid(&mut self, oob: &ObjectOob, place: u32, at: SimTime) -> NamespaceResult<bool> {
        if self.table.entry(oob.object).is_none() {
            return Ok(false);
        }
        match oob.kind {
            PageKind::Data | PageKind::Object | PageKind::Layout => {}
            _ => return Ok(false),
        }
        let Some(slot) = self.find_whole(oob.object, at)? else {
            // Nothing can be read of the object any more, its pages included.
            let block = place / self.blocks.pages;
            let valid = self.blocks.infos[block as usize].valid;
            self.blocks.set_valid(block, valid, false);
            return Ok(false);
        };
        let object = self.table.get(slot);
        Ok(match oob.kind {
            PageKind::Data => object.layout.get(oob.offset) == Some(place),
            PageKind::Object => object.parts.get(oob.offset as usize) == Some(&place),
            _ => object.layout.leaf(oob.offset).is_some_and(|leaf| leaf.page == place),
        })
    }

    /// The slot of an object; nothing if its metadata cannot be read.
    fn find_whole(&mut self, id: u64, at: SimTime) -> NamespaceResult<Option<u32>> {
        match self.find(ObjectId(id), at) {
            Ok(slot) => Ok(Some(slot)),
            Err(NamespaceError::Ftl(FtlError::Flash(
                FlashError::Uncorrectable { .. } | FlashError::Damaged { .. } | FlashError::Erased { .. },
            ))) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whose page this is, where that cannot be read from it: looks through all objects.
    fn owner(&mut self, place: u32, at: SimTime) -> NamespaceResult<Option<ObjectOob>> {
        let ids: Vec<u64> = self.table.entries().map(|(id, _)| id).collect();
        for id in ids {
            let Some(slot) = self.find_whole(id, at)? else { continue };
            let object = self.table.get(slot);
            let data =
                object.layout.iter().find(|(_, at)| *at == place).map(|(page, _)| (PageKind::Data, page));
            let part =
                || object.parts.iter().position(|at| *at == place).map(|at| (PageKind::Object, at as u32));
            let leaf = || {
                let found = object.layout.leaves().find(|(_, leaf)| leaf.page == place);
                found.map(|(number, _)| (PageKind::Layout, number))
            };
            if let Some((kind, offset)) = data.or_else(part).or_else(leaf) {
                return Ok(Some(ObjectOob { kind, object: id, offset, ..ObjectOob::default() }));
            }
        }
        Ok(None)
    }

    /// Moves what is valid in a block, and erases it.
    fn collect_block(&mut self, block: u32, at: SimTime) -> NamespaceResult<()> {
        let most = u64::from(self.blocks.infos[block as usize].valid);
        if !self.has_room(most, most) {
            self.checkpoint(false, at)?;
        }
        self.commit_removals(at)?;
        self.blocks.take_victim(block);
        let mut moving = Moving::default();
        for place in block * self.blocks.pages..(block + 1) * self.blocks.pages {
            // The rest of the block is invalid.
            if self.blocks.is_exact(block) && self.blocks.infos[block as usize].valid == moving.pages {
                break;
            }
            let (oob, data, done) = match self.read_page(place, Cause::Gc, at) {
                Ok(read) => read,
                Err(FlashError::Uncorrectable { .. } | FlashError::Damaged { .. }) => {
                    if let Some(oob) = self.owner(place, at)? {
                        self.lose(&oob, place, &mut moving);
                    }
                    continue;
                }
                Err(FlashError::Erased { .. }) => break,
                Err(error) => return Err(self.failed(error)),
            };
            if !self.is_valid(&oob, place, at)? {
                continue;
            }
            if oob.kind == PageKind::Data {
                self.move_page(&oob, place, &data, done, at)?;
            } else {
                self.moves_with(&oob, &mut moving);
            }
        }
        for id in moving.objects {
            self.write_object(id, true, at)?;
        }
        let left = self.blocks.infos[block as usize].valid;
        assert!(left == 0 || !self.blocks.is_exact(block), "{left} pages of block {block} are valid");
        self.blocks.set_valid(block, 0, true);
        self.counts.collected += 1;
        let after = self.ordered(at)?;
        let after = self.device.join(after, self.system.committed);
        self.erase(block, Cause::Gc, after, at)
    }

    /// Moves a data page.
    fn move_page(
        &mut self,
        oob: &ObjectOob,
        place: u32,
        data: &[u8],
        read: Token,
        at: SimTime,
    ) -> NamespaceResult<()> {
        let mut copy = self.begin_copy(at);
        let page = Page {
            kind: PageKind::Data,
            object: oob.object,
            offset: oob.offset,
            len: oob.len,
            version: oob.version,
            data: self.sizes.stores_data.then_some(data),
            after: read,
            cause: Cause::Gc,
        };
        self.counts.flash.writes += 1;
        let new = self.program(&mut copy, &page)?;
        let slot = self.table.slot(oob.object).expect("the page was found valid");
        let object = self.table.get_mut(slot);
        object.layout.set(oob.offset, new);
        let pages = object.metadata_pages(&self.sizes);
        self.table.lags(oob.object, pages);
        self.blocks.invalidate(place);
        self.counts.moved_pages += 1;
        Ok(())
    }

    /// Metadata and layout pages are not copied but written anew.
    fn moves_with(&mut self, oob: &ObjectOob, moving: &mut Moving) {
        let slot = self.table.slot(oob.object).expect("the page was found valid");
        let object = self.table.get_mut(slot);
        if let Some(leaf) = object.layout.leaf_mut(oob.offset).filter(|_| oob.kind == PageKind::Layout) {
            leaf.known = Known::Stale;
        }
        self.counts.moved_pages += 1;
        moving.objects.insert(oob.object);
        moving.pages += 1;
    }

    /// A page cannot be read: data is lost, and metadata is in memory.
    fn lose(&mut self, oob: &ObjectOob, place: u32, moving: &mut Moving) {
        if oob.kind != PageKind::Data {
            return self.moves_with(oob, moving);
        }
        let slot = self.table.slot(oob.object).expect("the page was found");
        let mut object = self.table.take(slot);
        self.lose_page(&mut object, oob.offset, Some(place));
        self.table.put_back(slot, object);
        self.table.removals.insert(oob.object);
        // Its metadata has to say so before the block is erased.
        moving.objects.insert(oob.object);
    }

    /// Makes durable that objects were deleted and have given up pages, before blocks are erased.
    pub(super) fn commit_removals(&mut self, at: SimTime) -> NamespaceResult<()> {
        if self.sabotage == Sabotage::ForgottenDeletions {
            return Ok(());
        }
        while let Some(id) = self.table.removals.first().copied() {
            self.flush_object(id, at)?;
            self.table.removals.remove(&id);
        }
        // An object that replaces others has them in its metadata.
        while let Some((_, by)) = self.table.replacing.first_key_value().map(|(id, by)| (*id, *by)) {
            self.flush_object(by, at)?;
        }
        self.write_deletions(at)
    }

    /// Writes which objects were deleted.
    pub(super) fn write_deletions(&mut self, at: SimTime) -> NamespaceResult<()> {
        if self.table.deleted.is_empty() {
            return Ok(());
        }
        let records: Vec<u8> = self.table.deleted.iter().flat_map(|id| id.to_le_bytes()).collect();
        let pages = super::format::system_pages(&records, 8, self.sizes.page_bytes);
        self.make_room(0, pages.len() as u64, at)?;
        // Making room may have written it all.
        if self.table.deleted.is_empty() {
            return Ok(());
        }
        self.counts.flash.writes += 1;
        let mut write = self.begin(pages.len() as u32, at);
        for (offset, data) in (0..).zip(&pages) {
            let page = Page {
                kind: PageKind::Deletions,
                object: 0,
                offset,
                len: self.sizes.page_bytes,
                version: write.tid,
                data: self.sizes.stores_data.then_some(data.as_slice()),
                after: Token::NONE,
                cause: Cause::Meta,
            };
            let place = self.program(&mut write, &page)?;
            // Nothing refers to it: it is read after a loss of power, while it is in the window.
            self.blocks.invalidate(place);
        }
        self.table.deleted.clear();
        Ok(())
    }
}
