//! What each zone is for, which of its blocks are valid, and which zones are free.

use super::format::{Identity, NONE};
use super::lru::Lru;
use super::sabotage::Sabotage;
use super::{Chunk, DmZoned};
use nandscape_core::zone::{ZoneAction, ZoneState};
use nandscape_core::{Cause, FtlError, Issue, NamespaceError, NamespaceResult, SimTime, Subsystem, Token};
use std::collections::VecDeque;

const TOO_FEW_ZONES: &str = "too few zones are left for the chunks";

/// What a zone is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Metadata,
    Free,
    /// Data of a chunk.
    Data,
    /// Buffer of a chunk.
    Buffer,
    /// Reclaim copies to it.
    Target,
    /// Nothing is mapped to it any more, which is not durable yet.
    Released,
    /// It failed.
    Bad,
}

/// A zone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Zone {
    pub purpose: Use,
    /// Its chunk, or [`NONE`].
    pub chunk: u32,
    /// Valid blocks.
    pub valid: u32,
    /// Of a sequential zone, the next block to be written, and the one behind the last that can be.
    pub next: u32,
    pub end: u32,
    /// `end` after a reset.
    pub limit: u32,
    /// It is in [`Zones::active`].
    is_active: bool,
    /// Some of it cannot be copied: reclaim leaves it alone.
    pub is_stuck: bool,
    /// Writes to it wait for this.
    pub ready: Token,
}

/// All zones.
#[derive(Debug)]
pub(super) struct Zones {
    pub all: Vec<Zone>,
    /// A bit for each block of each zone, in whole words.
    pub bits: Vec<u64>,
    words: usize,
    zone_blocks: u32,
    pub free_random: VecDeque<u32>,
    pub free_sequential: VecDeque<u32>,
    pub released: Vec<u32>,
    /// Conventional zones with data.
    pub used: Lru,
    /// Sequential zones that are written in part, first written first.
    pub active: VecDeque<u32>,
    most_active: usize,
    /// Conventional zones that are no metadata.
    pub random: u32,
}

impl Zones {
    pub fn new(identity: &Identity, meta_zones: u32, most_active: u32) -> Self {
        let zone = |number: u32| Zone {
            purpose: if number < meta_zones { Use::Metadata } else { Use::Free },
            chunk: NONE,
            valid: 0,
            next: 0,
            end: identity.zone_blocks,
            limit: identity.zone_blocks,
            is_active: false,
            is_stuck: false,
            ready: Token::NONE,
        };
        let words = identity.words() as usize;
        Self {
            all: (0..identity.zones).map(zone).collect(),
            bits: vec![0; identity.zones as usize * words],
            words,
            zone_blocks: identity.zone_blocks,
            free_random: VecDeque::new(),
            free_sequential: VecDeque::new(),
            released: Vec::new(),
            used: Lru::new(identity.zones),
            active: VecDeque::new(),
            most_active: most_active as usize,
            random: identity.conventional - meta_zones,
        }
    }

    #[inline]
    pub fn of(&self, zone: u32) -> &Zone {
        &self.all[zone as usize]
    }

    /// Whether a block of a zone is valid; none is where there is no zone.
    #[inline]
    pub fn is_valid(&self, zone: u32, block: u32) -> bool {
        zone != NONE && self.bits[zone as usize * self.words + block as usize / 64] >> (block % 64) & 1 == 1
    }

    /// Makes blocks valid or invalid; gives the first and last word that changed.
    pub fn mark(&mut self, zone: u32, (first, count): (u32, u32), is_valid: bool) -> Option<(usize, usize)> {
        assert!(first + count <= self.zone_blocks, "{count} blocks from {first} on of zone {zone}");
        let (mut block, end) = (first, first + count);
        let mut changed: Option<(usize, usize)> = None;
        while block < end {
            let place = zone as usize * self.words + block as usize / 64;
            let len = (64 - block % 64).min(end - block);
            let mask = (u64::MAX >> (64 - len)) << (block % 64);
            let old = self.bits[place];
            let new = if is_valid { old | mask } else { old & !mask };
            if old != new {
                self.bits[place] = new;
                let valid = &mut self.all[zone as usize].valid;
                *valid = *valid + new.count_ones() - old.count_ones();
                changed = Some((changed.map_or(place, |(first, _)| first), place));
            }
            block += len;
        }
        changed
    }

    /// The next run of valid blocks of a zone: the first from a block on, and at most so many.
    pub fn next_run(&self, zone: u32, from: u32, most: u32) -> Option<(u32, u32)> {
        let first = self.find(zone, from, self.zone_blocks, true)?;
        let limit = self.zone_blocks.min(first.saturating_add(most));
        Some((first, self.find(zone, first, limit, false).unwrap_or(limit) - first))
    }

    /// The first block of a range of a zone that is valid or is not.
    fn find(&self, zone: u32, from: u32, end: u32, is_valid: bool) -> Option<u32> {
        let words = &self.bits[zone as usize * self.words..][..self.words];
        let mut block = from;
        while block < end {
            let word = words[block as usize / 64];
            let left = if is_valid { word } else { !word } >> (block % 64);
            if left != 0 {
                return Some(block + left.trailing_zeros()).filter(|block| *block < end);
            }
            block += 64 - block % 64;
        }
        None
    }

    /// The block behind the last valid one of a zone.
    pub fn valid_end(&self, zone: u32) -> u32 {
        let words = &self.bits[zone as usize * self.words..][..self.words];
        let last = words.iter().rposition(|word| *word != 0);
        last.map_or(0, |word| word as u32 * 64 + 64 - words[word].leading_zeros())
    }

    /// Free zones of both kinds.
    pub fn free(&self) -> u64 {
        (self.free_random.len() + self.free_sequential.len()) as u64
    }

    pub fn valid_blocks(&self) -> u64 {
        self.all.iter().map(|zone| u64::from(zone.valid)).sum()
    }

    pub fn bytes(&self) -> u64 {
        (self.all.len() * size_of::<Zone>() + self.bits.len() * 8) as u64 + self.used.bytes()
    }

    /// A free sequential zone with room for so many blocks.
    fn take_sequential(&mut self, blocks: u32) -> Option<u32> {
        let at = self.free_sequential.iter().position(|zone| self.of(*zone).end >= blocks)?;
        self.free_sequential.remove(at)
    }

    /// A sequential zone is written in part.
    pub fn join_active(&mut self, zone: u32) {
        self.all[zone as usize].is_active = true;
        self.active.push_back(zone);
    }

    /// A sequential zone is no longer written in part.
    fn leave_active(&mut self, zone: u32) {
        if std::mem::take(&mut self.all[zone as usize].is_active) {
            self.active.retain(|active| *active != zone);
        }
    }
}

impl<S: Subsystem> DmZoned<S> {
    /// Makes blocks of a zone valid or not, which the next commit writes.
    pub(super) fn mark(&mut self, zone: u32, blocks: (u32, u32), is_valid: bool) {
        if let Some((first, last)) = self.zones.mark(zone, blocks, is_valid) {
            self.meta.bits_changed(first, last, self.shape.block_bytes);
            self.stats.map_updates += 1;
        }
    }

    /// Maps a chunk.
    pub(super) fn map(&mut self, chunk: u32, to: Chunk) {
        self.chunks[chunk as usize] = to;
        self.meta.chunk_changed(chunk, self.shape.block_bytes);
        self.stats.map_updates += 1;
        for (zone, purpose) in [(to.data, Use::Data), (to.buffer, Use::Buffer)] {
            if zone != NONE {
                let entry = &mut self.zones.all[zone as usize];
                (entry.purpose, entry.chunk) = (purpose, chunk);
                if self.shape.is_random(zone) {
                    self.zones.used.touch(zone);
                }
            }
        }
    }

    /// Nothing is mapped to a zone any more: it can be used again after the next commit.
    pub(super) fn release(&mut self, zone: u32) {
        let blocks = (0, self.shape.identity.zone_blocks);
        self.mark(zone, blocks, false);
        self.zones.used.remove(zone);
        let entry = &mut self.zones.all[zone as usize];
        (entry.purpose, entry.chunk, entry.is_stuck) = (Use::Released, NONE, false);
        self.zones.released.push(zone);
    }

    /// A commit after which released zones are free is durable with a token.
    pub(super) fn free_released(&mut self, committed: Token, at: SimTime) -> NamespaceResult<()> {
        while let Some(zone) = self.zones.released.pop() {
            if self.shape.is_random(zone) {
                let is_early = self.sabotage == Sabotage::ReuseWithoutCommit;
                self.add_free(zone, if is_early { Token::NONE } else { committed });
                continue;
            }
            let after = if self.sabotage == Sabotage::ResetWithoutCommit { Token::NONE } else { committed };
            self.reset(zone, after, at)?;
        }
        Ok(())
    }

    /// Resets a sequential zone that nothing is mapped to.
    pub(super) fn reset(&mut self, zone: u32, after: Token, at: SimTime) -> NamespaceResult<()> {
        let issue = Issue::new(at, Cause::Gc).after(after);
        match self.below.manage(ZoneAction::Reset, self.shape.offset(zone, 0), issue) {
            Ok(done) => {
                self.zones.leave_active(zone);
                let entry = &mut self.zones.all[zone as usize];
                (entry.next, entry.end) = (0, entry.limit);
                let ready = self.below.device.join(after, done);
                self.add_free(zone, ready);
                Ok(())
            }
            Err(NamespaceError::Zone(_)) => {
                self.zones.leave_active(zone);
                self.zones.all[zone as usize].purpose = Use::Bad;
                self.check_zones()
            }
            Err(NamespaceError::Ftl(FtlError::ReadOnly { .. })) => {
                self.zones.all[zone as usize].purpose = Use::Bad;
                Err(self.stopped_below())
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn add_free(&mut self, zone: u32, ready: Token) {
        let entry = &mut self.zones.all[zone as usize];
        (entry.purpose, entry.ready) = (Use::Free, ready);
        if self.shape.is_random(zone) {
            self.zones.free_random.push_back(zone);
        } else {
            self.zones.free_sequential.push_back(zone);
        }
    }

    /// A free conventional zone. Where there is none, the host waits until reclaim has freed one.
    pub(super) fn take_random(&mut self, at: SimTime) -> NamespaceResult<u32> {
        loop {
            if let Some(zone) = self.zones.free_random.pop_front() {
                return Ok(zone);
            }
            if self.zones.released.is_empty() {
                self.reclaim_now(at)?;
            }
            self.commit(at)?;
        }
    }

    /// A free sequential zone with room for so many blocks, for reclaim.
    pub(super) fn take_sequential(&mut self, blocks: u32, at: SimTime) -> NamespaceResult<Option<u32>> {
        let mut zone = self.zones.take_sequential(blocks);
        if zone.is_none() && !self.zones.released.is_empty() {
            self.commit(at)?;
            zone = self.zones.take_sequential(blocks);
        }
        if let Some(zone) = zone {
            self.zones.all[zone as usize].purpose = Use::Target;
        }
        Ok(zone)
    }

    /// A sequential zone is about to be written. The one that is written in part longest, but for that of
    /// reclaim, is finished if the device allows no more of them.
    pub(super) fn activate(&mut self, zone: u32, at: SimTime) -> NamespaceResult<()> {
        if self.zones.of(zone).is_active {
            return Ok(());
        }
        while self.zones.active.len() >= self.zones.most_active {
            // Released zones are reset with a commit.
            if !self.zones.released.is_empty() {
                self.commit(at)?;
                continue;
            }
            let target = self.reclaim.target();
            let oldest = *self.zones.active.iter().find(|zone| **zone != target).expect("at least two");
            self.finish(oldest, at)?;
        }
        self.zones.join_active(zone);
        Ok(())
    }

    /// A sequential zone takes no more writes: later ones go to the buffer of its chunk.
    pub(super) fn finish(&mut self, zone: u32, at: SimTime) -> NamespaceResult<()> {
        let issue = Issue::new(at, Cause::Meta).after(self.zones.of(zone).ready);
        match self.below.manage(ZoneAction::Finish, self.shape.offset(zone, 0), issue) {
            Ok(_) | Err(NamespaceError::Zone(_)) => {
                self.zones.leave_active(zone);
                let entry = &mut self.zones.all[zone as usize];
                entry.end = entry.next;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Blocks were written to a sequential zone.
    pub(super) fn advance(&mut self, zone: u32, blocks: u32) {
        let entry = &mut self.zones.all[zone as usize];
        entry.next += blocks;
        assert!(entry.next <= entry.end, "zone {zone}: {entry:?}");
        if entry.next == self.shape.identity.zone_blocks {
            self.zones.leave_active(zone);
        }
    }

    /// A write to a sequential zone failed: it takes no more of them, or fewer. Errors that are not the
    /// zone's are passed on.
    #[cold]
    pub(super) fn zone_failed(
        &mut self,
        zone: u32,
        error: NamespaceError,
        at: SimTime,
    ) -> NamespaceResult<()> {
        if self.stopped.is_some() {
            return Err(error);
        }
        let described = self.below.report(self.shape.offset(zone, 0), 1, at)?;
        let Some(described) = described.first() else { return Err(error) };
        let capacity = (described.capacity / self.shape.block_bytes) as u32;
        let entry = &mut self.zones.all[zone as usize];
        match described.state {
            ZoneState::ReadOnly | ZoneState::Offline => {
                entry.end = entry.next;
                self.zones.leave_active(zone);
            }
            _ if capacity < entry.end => {
                (entry.end, entry.limit) = (capacity.max(entry.next), capacity);
            }
            _ => return Err(error),
        }
        Ok(())
    }

    /// Stops if too few zones are left for the chunks and for reclaim.
    pub(super) fn check_zones(&mut self) -> NamespaceResult<()> {
        let good = |zone: &&Zone| !matches!(zone.purpose, Use::Bad | Use::Metadata);
        let good = self.zones.all.iter().filter(good).count();
        if good < self.chunks.len() + 1 { Err(self.stop(TOO_FEW_ZONES)) } else { Ok(()) }
    }

    /// The zoned namespace is read-only.
    #[cold]
    pub(super) fn stopped_below(&mut self) -> NamespaceError {
        self.stop("the zoned namespace takes no more writes")
    }

    /// Checks the zones of all chunks; panics with the values.
    pub(super) fn check_chunks(&self) {
        let identity = &self.shape.identity;
        for (number, chunk) in (0..).zip(&self.chunks) {
            for (zone, purpose) in [(chunk.data, Use::Data), (chunk.buffer, Use::Buffer)] {
                if zone == NONE {
                    continue;
                }
                let entry = self.zones.of(zone);
                assert_eq!((entry.purpose, entry.chunk), (purpose, number), "zone {zone} of {chunk:?}");
            }
            assert!(chunk.buffer == NONE || chunk.data != NONE && !self.shape.is_random(chunk.data));
            assert!(chunk.buffer == NONE || self.shape.is_random(chunk.buffer), "{chunk:?}");
            for block in 0..identity.zone_blocks {
                let both = self.zones.is_valid(chunk.data, block) && self.zones.is_valid(chunk.buffer, block);
                assert!(!both, "block {block} of chunk {number} is valid in both of {chunk:?}");
            }
        }
    }

    /// Checks what each zone is for and which of its blocks are valid; panics with the values.
    pub(super) fn check_each_zone(&self) {
        let identity = &self.shape.identity;
        for (number, zone) in (0..).zip(&self.zones.all) {
            let is_mapped = matches!(zone.purpose, Use::Data | Use::Buffer);
            let chunk = self.chunks.get(zone.chunk as usize).filter(|_| is_mapped);
            let is_its = chunk.is_some_and(|chunk| chunk.data == number || chunk.buffer == number);
            assert_eq!(is_mapped, is_its, "zone {number}: {zone:?}");
            let valid = (0..identity.zone_blocks).filter(|block| self.zones.is_valid(number, *block));
            assert_eq!(valid.count() as u32, zone.valid, "valid blocks of zone {number}");
            assert!(is_mapped || zone.valid == 0, "zone {number}: {zone:?}");
            let is_random = self.shape.is_random(number);
            assert!(is_random || self.zones.valid_end(number) <= zone.next, "zone {number}: {zone:?}");
            let free = if is_random { &self.zones.free_random } else { &self.zones.free_sequential };
            assert_eq!(zone.purpose == Use::Free, free.contains(&number), "zone {number}: {zone:?}");
            let is_used = self.zones.used.iter().any(|used| used == number);
            assert_eq!(is_mapped && is_random, is_used, "zone {number}: {zone:?}");
            assert_eq!(zone.is_active, self.zones.active.contains(&number), "zone {number}: {zone:?}");
        }
        assert!(self.zones.active.len() <= self.zones.most_active, "{:?}", self.zones.active);
    }
}
