//! A log-structured layer as small as it can be that survives every cut: the harness is tested with it, and
//! with the ways in which it can be broken.
//!
//! Every page carries its logical page and a sequence number; a start reads them all, and the highest number
//! wins. Dropped pages are kept as records in pages of their own, written out before a flush is answered and
//! before any block is erased. An erase waits for everything before it, and for a barrier.
//!
//! Over a device with a journal ([`Log::over_journal`]) all of that is the journal's business, which is
//! tested so without any other layer.

mod ftl;
mod start;

use nandscape_core::journal::drop_pages;
use nandscape_core::{
    Barrier, BlockId, Cause, Extent, FlashDevice, FlashError, FlashResult, FtlError, FtlResult, FtlStats,
    Issue, Lpn, Oob, Ppn, SimTime, Token,
};
use std::collections::{BTreeMap, BTreeSet};

/// What the layer leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// Nothing.
    None,
    /// A flush does not wait for a barrier.
    NoBarrier,
    /// A write is answered before it is programmed.
    AnswersEarly,
    /// A start does not read the records of dropped pages.
    ForgetsDrops,
    /// An erase waits for nothing.
    ErasesAtOnce,
    /// Records of dropped pages are not written out before an erase.
    ErasesBeforeDrops,
    /// A start takes the oldest data of a page.
    OldestWins,
    /// A block is erased before its pages are copied.
    EraseFirst,
    /// Every start forgets about the blocks that are partly written.
    LeaksBlocks,
}

impl Sabotage {
    /// Every way to break it.
    pub const ALL: [Self; 8] = [
        Self::NoBarrier,
        Self::AnswersEarly,
        Self::ForgetsDrops,
        Self::ErasesAtOnce,
        Self::ErasesBeforeDrops,
        Self::OldestWins,
        Self::EraseFirst,
        Self::LeaksBlocks,
    ];
}

/// Where the newest data of a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    page: Ppn,
    seq: u64,
}

/// The layer.
#[derive(Debug)]
pub struct Log<D> {
    device: D,
    sabotage: Sabotage,
    /// The device finds the newest data, keeps drops and makes erases wait.
    has_journal: bool,
    map: Vec<Option<Place>>,
    /// Pages that were dropped after they held data, with the number of the drop.
    dropped: BTreeMap<u32, u64>,
    /// Pages that hold the records of drops.
    records: Vec<Ppn>,
    /// There are drops that are in no record.
    has_new_drops: bool,
    seq: u64,
    free: BTreeSet<u32>,
    open: Option<BlockId>,
    /// Blocks that [`Sabotage::LeaksBlocks`] forgot.
    leaked: BTreeSet<u32>,
    /// Completes with everything that was ever submitted.
    all: Token,
    stats: FtlStats,
}

/// Blocks that are not given to the host.
const SPARE_BLOCKS: u32 = 5;
/// Collection keeps so many blocks free.
const FREE_BLOCKS: usize = 3;
const RECORD_BYTES: usize = 12;

impl<D: FlashDevice> Log<D> {
    /// Starts from what the device holds.
    pub fn new(device: D, sabotage: Sabotage) -> FlashResult<Self> {
        Self::start(device, sabotage, false)
    }

    /// Starts from what a device with a journal knows.
    pub fn over_journal(device: D) -> FlashResult<Self> {
        Self::start(device, Sabotage::None, true)
    }

    fn start(device: D, sabotage: Sabotage, has_journal: bool) -> FlashResult<Self> {
        let geometry = *device.geometry();
        let good = (0..geometry.blocks()).filter(|block| !device.is_bad(BlockId(*block))).count() as u32;
        let logical = good.saturating_sub(SPARE_BLOCKS) * geometry.pages_per_block * 3 / 4;
        let mut log = Self {
            device,
            sabotage,
            has_journal,
            map: vec![None; logical as usize],
            dropped: BTreeMap::new(),
            records: Vec::new(),
            has_new_drops: false,
            seq: 0,
            free: BTreeSet::new(),
            open: None,
            leaked: BTreeSet::new(),
            all: Token::NONE,
            stats: FtlStats::default(),
        };
        log.recover()?;
        Ok(log)
    }

    /// Programs the next page of the log.
    fn append(&mut self, oob: Oob, data: &[u8], issue: Issue) -> FtlResult<(Ppn, Token)> {
        let geometry = *self.device.geometry();
        let is_full = |block| self.device.write_pointer(block) == geometry.pages_per_block;
        if self.open.is_none_or(is_full) {
            let next = self.free.pop_first().ok_or(FlashError::ReadOnly { reason: "the log is full" })?;
            self.open = Some(BlockId(next));
        }
        let block = self.open.expect("opened");
        let page = geometry.page(block, self.device.write_pointer(block));
        let token = self.device.program(page, oob, geometry.page_bytes, Some(data), issue)?;
        self.all = self.device.join(self.all, token);
        Ok((page, token))
    }

    /// Writes the records of all dropped pages anew.
    fn write_records(&mut self, at: SimTime) -> FtlResult<()> {
        let page_bytes = self.device.geometry().page_bytes as usize;
        let list: Vec<(u32, u64)> = self.dropped.iter().map(|(lpn, seq)| (*lpn, *seq)).collect();
        let mut pages = Vec::new();
        for part in list.chunks(page_bytes / RECORD_BYTES) {
            let mut data = vec![0; page_bytes];
            for (record, (lpn, seq)) in data.chunks_exact_mut(RECORD_BYTES).zip(part) {
                record.copy_from_slice(&record_bytes(*lpn, *seq));
            }
            let oob = Oob { lpn: Lpn::META, stream: 0, seq: self.seq };
            pages.push(self.append(oob, &data, Issue::new(at, Cause::Meta))?.0);
        }
        self.records = pages;
        self.has_new_drops = false;
        Ok(())
    }

    fn collect(&mut self, at: SimTime) -> FtlResult<()> {
        let geometry = *self.device.geometry();
        while self.free.len() < FREE_BLOCKS {
            let live = self.live();
            let victim = (0..geometry.blocks())
                .filter(|block| !self.device.is_bad(BlockId(*block)))
                .filter(|block| !self.free.contains(block) && !self.leaked.contains(block))
                .filter(|block| self.open != Some(BlockId(*block)))
                .min_by_key(|block| live[*block as usize])
                .filter(|block| live[*block as usize] < geometry.pages_per_block);
            let Some(victim) = victim else {
                return Err(FlashError::ReadOnly { reason: "nothing can be collected" }.into());
            };
            self.empty(BlockId(victim), at)?;
        }
        Ok(())
    }

    /// Moves what a block holds, and erases it.
    fn empty(&mut self, block: BlockId, at: SimTime) -> FtlResult<()> {
        let geometry = *self.device.geometry();
        let is_here = |page: Ppn| geometry.block_of(page) == block;
        let moving: Vec<usize> = (0..self.map.len())
            .filter(|lpn| self.map[*lpn].is_some_and(|place| is_here(place.page)))
            .collect();
        let mut copies = Vec::new();
        for lpn in &moving {
            let place = self.map[*lpn].expect("mapped");
            let mut data = vec![0; geometry.page_bytes as usize];
            let read = self.device.read(place.page, 0, Some(&mut data), Issue::new(at, Cause::Gc))?;
            copies.push((*lpn, read, data));
        }
        if self.sabotage == Sabotage::EraseFirst {
            let erased = self.device.erase(block, Issue::new(at, Cause::Gc))?;
            self.all = self.device.join(self.all, erased);
        }
        for (lpn, read, data) in copies {
            let (page, _) = self.append(read.oob, &data, Issue::new(at, Cause::Gc).after(read.done))?;
            self.map[lpn] = Some(Place { page, seq: read.oob.seq });
        }
        let has_records = self.records.iter().any(|page| is_here(*page));
        if (self.has_new_drops && self.sabotage != Sabotage::ErasesBeforeDrops) || has_records {
            self.write_records(at)?;
        }
        if self.has_journal {
            self.device.erase(block, Issue::new(at, Cause::Gc))?;
        } else if self.sabotage != Sabotage::EraseFirst {
            let barrier = self.device.barrier(Barrier::Durable, at)?;
            let mut after = self.device.join(self.all, barrier);
            if self.sabotage == Sabotage::ErasesAtOnce {
                after = Token::NONE;
            }
            let erased = self.device.erase(block, Issue::new(at, Cause::Gc).after(after))?;
            self.all = self.device.join(self.all, erased);
        }
        self.free.insert(block.0);
        self.stats.gc_runs += 1;
        Ok(())
    }

    /// Live pages of each block.
    fn live(&self) -> Vec<u32> {
        let geometry = self.device.geometry();
        let mut live = vec![0; geometry.blocks() as usize];
        let pages = self.map.iter().flatten().map(|place| place.page).chain(self.records.iter().copied());
        for page in pages {
            live[geometry.block_of(page).index()] += 1;
        }
        live
    }

    fn page_bytes(&self) -> u32 {
        self.device.geometry().page_bytes
    }

    fn check_range(&self, extent: Extent) -> FtlResult<()> {
        let capacity_bytes = self.map.len() as u64 * u64::from(self.page_bytes());
        if extent.end() > capacity_bytes {
            Err(FtlError::OutOfRange { extent, capacity_bytes })
        } else {
            Ok(())
        }
    }

    fn write_page(&mut self, lpn: Lpn, start: u32, bytes: &[u8], at: SimTime) -> FtlResult<Token> {
        self.collect(at)?;
        let mut data = vec![0; self.page_bytes() as usize];
        let mut issue = Issue::new(at, Cause::Host);
        if let Some(place) = self.map[lpn.index()].filter(|_| bytes.len() < data.len()) {
            issue = issue.after(self.device.read(place.page, 0, Some(&mut data), issue)?.done);
        }
        data[start as usize..start as usize + bytes.len()].copy_from_slice(bytes);
        let seq = self.seq;
        self.seq += 1;
        let (page, token) = self.append(Oob { lpn, stream: 0, seq }, &data, issue)?;
        self.map[lpn.index()] = Some(Place { page, seq });
        self.dropped.remove(&lpn.0);
        Ok(if self.sabotage == Sabotage::AnswersEarly { Token::NONE } else { token })
    }

    fn drop_one(&mut self, lpn: u32, at: SimTime) -> FtlResult<()> {
        if self.map[lpn as usize].take().is_none() {
            return Ok(());
        }
        if self.has_journal {
            drop_pages(&mut self.device, Lpn(lpn), 1, at)?;
        } else {
            self.dropped.insert(lpn, self.seq);
            self.seq += 1;
            self.has_new_drops = true;
        }
        Ok(())
    }
}

fn record_bytes(lpn: u32, seq: u64) -> [u8; RECORD_BYTES] {
    let mut bytes = [0; RECORD_BYTES];
    bytes[0] = 1;
    bytes[1..4].copy_from_slice(&lpn.to_le_bytes()[..3]);
    bytes[4..].copy_from_slice(&seq.to_le_bytes());
    bytes
}

fn record_of(bytes: &[u8]) -> (u32, u64) {
    let lpn = u32::from_le_bytes([bytes[1], bytes[2], bytes[3], 0]);
    (lpn, u64::from_le_bytes(bytes[4..].try_into().expect("eight bytes")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crash::{Effort, Setup, campaign, finds, nand};

    fn setup(sabotage: Sabotage) -> Setup<'static> {
        Setup {
            name: format!("log, {sabotage:?}"),
            nand: nand((2, 7, 8, 512), false),
            open: Box::new(move |device| match Log::new(device, sabotage) {
                Ok(log) => Ok(Box::new(log)),
                Err(error) => Err(error.to_string()),
            }),
            plan: nandscape_media::faults::FaultPlan::default(),
            needs_flush: false,
            damage: None,
            effort: Effort::default(),
        }
    }

    #[test]
    fn the_reference_layer_survives_every_cut() {
        let tally = campaign(
            "reference layer",
            &[setup(Sabotage::None)],
            20_000,
            "cargo test -p nandscape-testkit the_reference_layer",
        );
        assert!(tally.points >= 20_000 && tally.rows > 0 && tally.erases > 0, "{tally}");
    }

    #[test]
    fn every_broken_promise_is_found() {
        for sabotage in Sabotage::ALL {
            let (failure, tally) = finds(&setup(sabotage), 12);
            assert!(failure.is_some(), "{sabotage:?} went unnoticed in {tally}");
        }
    }
}
