//! What a start makes of what the zones hold.

use super::format::{Chunk, ENTRY, NONE, Superblock, words};
use super::zones::Use;
use super::{DmZoned, INFO, Sabotage};
use crate::error::HostFtlError;
use nandscape_core::zone::{Zone, ZoneState};
use nandscape_core::{Cause, FtlError, Issue, NamespaceError, RecoveryReport, SimTime, Subsystem, Token};

type Result<T> = std::result::Result<T, HostFtlError>;

const AT: SimTime = SimTime::ZERO;
/// Most blocks of metadata in one read.
const RUN: u32 = 64;

impl<S: Subsystem> DmZoned<S> {
    /// Makes chunks and zones of what the zones hold; all of a namespace that keeps no data are empty.
    pub(super) fn start(&mut self) -> Result<()> {
        let zones = self.below.report(0, self.shape.identity.zones.into(), AT)?;
        assert_eq!(zones.len(), self.shape.identity.zones as usize, "zones in a report of all");
        let started = self.start_from(&zones);
        self.allow_read_only(started)
    }

    fn start_from(&mut self, zones: &[Zone]) -> Result<()> {
        let found = if self.shape.stores_data {
            [self.read_superblock(0)?, self.read_superblock(1)?]
        } else {
            [None; 2]
        };
        let generation = |set: usize| found[set].map_or(0, |superblock: Superblock| superblock.generation);
        let set = u32::from(generation(1) > generation(0));
        let Some(superblock) = found[set as usize] else {
            let holds_nothing = |zone: &Zone| {
                matches!(zone.state, ZoneState::Empty | ZoneState::ReadOnly | ZoneState::Offline)
            };
            if zones[self.shape.identity.conventional as usize..].iter().all(holds_nothing) {
                return self.format(zones);
            }
            return Err(start_error("data, and no superblock".to_owned()));
        };
        self.meta.superblock = superblock;
        self.recovery.checkpoint = superblock.generation;
        self.recovery.was_clean = superblock.is_clean && generation(0) == generation(1);
        self.read_set(set)?;
        if !self.recovery.was_clean && self.sabotage != Sabotage::KeepDifferences {
            let repaired = self.repair(1 - set, generation(1 - set as usize) == superblock.generation);
            self.allow_read_only(repaired)?;
        }
        self.adopt(zones)?;
        self.recovery.live_pages = self.zones.valid_blocks();
        Ok(())
    }

    /// Goes on where nothing can be written any more: what there is can be read.
    fn allow_read_only(&mut self, done: Result<()>) -> Result<()> {
        match done {
            Err(HostFtlError::Namespace(NamespaceError::Ftl(FtlError::ReadOnly { reason }))) => {
                self.stop(reason);
                Ok(())
            }
            done => done,
        }
    }

    /// A namespace without data: two sets without any chunk, whatever an earlier attempt left of them.
    fn format(&mut self, zones: &[Zone]) -> Result<()> {
        for (zone, described) in (0..).zip(zones) {
            self.adopt_free(zone, described)?;
        }
        self.meta.all_changed();
        self.commit(AT)?;
        self.recovery = RecoveryReport::default();
        Ok(())
    }

    fn read_superblock(&mut self, set: u32) -> Result<Option<Superblock>> {
        let Some(block) = self.read_blocks(set, 0, 1) else { return Ok(None) };
        match Superblock::decode(&block, &self.shape.identity) {
            None => Ok(None),
            Some(Ok(superblock)) => Ok(Some(superblock)),
            Some(Err(difference)) => Err(start_error(difference)),
        }
    }

    /// Blocks of a set, if they can be read.
    fn read_blocks(&mut self, set: u32, first: u32, count: u32) -> Option<Vec<u8>> {
        let mut data = Vec::new();
        self.recovery.metadata_pages += u64::from(count);
        for extent in self.extents_of_set(set, first, count) {
            let from = data.len();
            data.resize(from + extent.len as usize, 0);
            let issue = Issue::new(AT, Cause::Meta);
            self.below.read(extent, Some(&mut data[from..]), issue).ok()?;
        }
        Some(data)
    }

    /// Takes the table of chunks and the bitmaps of a set.
    fn read_set(&mut self, set: u32) -> Result<()> {
        let (map, blocks) = (self.meta.layout.map, self.meta.layout.blocks);
        let per_block = self.shape.block_bytes as usize / 8;
        debug_assert_eq!(ENTRY, 8);
        let mut first = 1;
        while first < blocks {
            let count = RUN.min(blocks - first);
            let data = self.read_blocks(set, first, count).ok_or_else(|| {
                start_error(format!("blocks {first} and on of set {set} that cannot be read"))
            })?;
            for (index, word) in ((first as usize - 1) * per_block..).zip(words(&data)) {
                let table = map as usize * per_block;
                if index >= table {
                    if let Some(bits) = self.zones.bits.get_mut(index - table) {
                        *bits = word;
                    }
                } else if let Some(chunk) = self.chunks.get_mut(index) {
                    *chunk = Chunk::decode(word);
                }
            }
            first += count;
        }
        Ok(())
    }

    /// Makes a set equal to what was read of the other one. Its superblock comes last, unless it `is_last`
    /// already: where both have the same number, this one is not looked at before it is whole.
    fn repair(&mut self, set: u32, is_last: bool) -> Result<()> {
        let mut runs = Vec::new();
        for block in 1..self.meta.layout.blocks {
            let expected = self.block_of_set(block);
            if self.read_blocks(set, block, 1).is_none_or(|found| found != expected) {
                runs.push((block, 1));
            }
        }
        if runs.is_empty() && is_last {
            return Ok(());
        }
        let written = self.write_runs(set, &runs, Token::NONE, AT)?;
        let flushed = self.below.flush(Issue::new(AT, Cause::Meta).after(written))?;
        let last = self.write_superblock(set, flushed, AT)?;
        self.meta.committed = self.below.flush(Issue::new(AT, Cause::Meta).after(last))?;
        Ok(())
    }

    /// Zones go on as they were found.
    fn adopt(&mut self, zones: &[Zone]) -> Result<()> {
        for chunk in 0..self.shape.identity.chunks {
            self.adopt_chunk(chunk)?;
        }
        for (zone, described) in (0..).zip(zones) {
            let valid = self.zones.next_run(zone, 0, 1).is_some();
            let is_mapped = matches!(self.zones.of(zone).purpose, Use::Data | Use::Buffer);
            if valid && !is_mapped {
                return Err(start_error(format!("valid blocks of zone {zone}, which no chunk has")));
            }
            let adopted =
                if is_mapped { self.adopt_mapped(zone, described) } else { self.adopt_free(zone, described) };
            self.allow_read_only(adopted)?;
        }
        Ok(self.check_zones()?)
    }

    fn adopt_chunk(&mut self, chunk: u32) -> Result<()> {
        let found = self.chunks[chunk as usize];
        let wrong = |what: &str| Err(start_error(format!("chunk {chunk} with {found:?}: {what}")));
        if found == Chunk::UNMAPPED {
            return Ok(());
        }
        if found.data == NONE || (found.buffer != NONE && self.shape.is_random(found.data)) {
            return wrong("a buffer beside no sequential zone");
        }
        if found.buffer != NONE && !self.shape.is_random(found.buffer) {
            return wrong("a buffer that is not conventional");
        }
        for (zone, purpose) in [(found.data, Use::Data), (found.buffer, Use::Buffer)] {
            if zone == NONE {
                continue;
            }
            let Some(entry) = self.zones.all.get_mut(zone as usize) else { return wrong("no such zone") };
            if entry.purpose != Use::Free {
                return wrong("a zone that is something else's");
            }
            (entry.purpose, entry.chunk) = (purpose, chunk);
            self.recovery.map_entries += 1;
        }
        let zone_blocks = self.shape.identity.zone_blocks;
        let both = (0..zone_blocks).find(|block| {
            self.zones.is_valid(found.data, *block) && self.zones.is_valid(found.buffer, *block)
        });
        both.map_or(Ok(()), |block| wrong(&format!("block {block} is valid in both zones")))
    }

    fn adopt_mapped(&mut self, zone: u32, described: &Zone) -> Result<()> {
        let end = self.zones.valid_end(zone);
        let bits = (0..self.shape.identity.zone_blocks).filter(|block| self.zones.is_valid(zone, *block));
        let valid = bits.count() as u32;
        self.zones.all[zone as usize].valid = valid;
        if self.shape.is_random(zone) {
            self.zones.used.touch(zone);
            return Ok(());
        }
        self.recovery.scanned_blocks += u64::from(described.state.is_active());
        let block = self.shape.block_bytes;
        let (next, is_whole) = match described.write_pointer {
            Some(pointer) => {
                let written = pointer - described.start;
                ((written / block) as u32, written.is_multiple_of(block))
            }
            None => ((described.capacity / block) as u32, true),
        };
        if end > next {
            return Err(start_error(format!(
                "zone {zone} with valid blocks up to {end}, and {next} blocks that are written"
            )));
        }
        let limit = (described.capacity / block) as u32;
        let entry = &mut self.zones.all[zone as usize];
        (entry.next, entry.end, entry.limit) = (next, limit.max(next), limit);
        if described.write_pointer.is_none() {
            entry.end = next;
        } else if described.state.is_active() {
            self.zones.join_active(zone);
            if !is_whole {
                // A block that was written in part: the next one cannot be written at its place.
                self.finish(zone, AT)?;
            }
        }
        Ok(())
    }

    /// A zone that nothing is mapped to.
    fn adopt_free(&mut self, zone: u32, described: &Zone) -> Result<()> {
        if self.zones.of(zone).purpose == Use::Metadata {
            return Ok(());
        }
        let ready = self.meta.committed;
        let limit = (described.capacity / self.shape.block_bytes) as u32;
        let entry = &mut self.zones.all[zone as usize];
        (entry.end, entry.limit) = (limit, limit);
        match described.state {
            ZoneState::NotWritePointer | ZoneState::Empty => self.add_free(zone, ready),
            ZoneState::ReadOnly | ZoneState::Offline => entry.purpose = Use::Bad,
            _ if self.stopped.is_some() => entry.purpose = Use::Bad,
            _ => self.reset(zone, ready, AT)?,
        }
        Ok(())
    }
}

fn start_error(reason: String) -> HostFtlError {
    HostFtlError::Start { layer: INFO.name, reason }
}
