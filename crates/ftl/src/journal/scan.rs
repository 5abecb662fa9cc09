//! What happened since a checkpoint: pages programmed, pages dropped.

use super::error::Sabotage;
use super::newest::Newest;
use super::records::Record;
use super::shape::Table;
use nandscape_core::recovery::RecoveryReport;
use nandscape_core::{BlockId, Cause, FlashDevice, FlashError, FlashResult, Issue, Lpn, Oob, Ppn, SimTime};
use std::collections::BTreeMap;

/// What a page read during a start gives: its OOB, or `None` if that cannot be had.
pub(super) fn read_oob<D: FlashDevice>(
    device: &mut D,
    page: Ppn,
    data: Option<&mut [u8]>,
) -> FlashResult<Option<Oob>> {
    match read_known(device, page, data) {
        Err(FlashError::Damaged { .. }) => Ok(None),
        read => read,
    }
}

/// As [`read_oob`], but [`FlashError::Damaged`] is an error: whatever the page holds may be the newest data
/// of any logical page. `None` is a page whose program or erase was cut short.
fn read_known<D: FlashDevice>(
    device: &mut D,
    page: Ppn,
    data: Option<&mut [u8]>,
) -> FlashResult<Option<Oob>> {
    let transfer = data.as_ref().map_or(0, |data| data.len() as u32);
    match device.read(page, transfer, data, Issue::new(SimTime::ZERO, Cause::Meta)) {
        Ok(read) => Ok(Some(read.oob)),
        Err(FlashError::Uncorrectable { .. } | FlashError::BadBlock { .. } | FlashError::Erased { .. }) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// A version of a logical page, ordered by age; of equal copies the one that was read last is newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Version {
    lpn: Lpn,
    seq: u64,
    page: Ppn,
}

#[derive(Debug, Default)]
pub(super) struct Scan {
    /// Host writes since the checkpoint began have at least this number.
    start_seq: u64,
    sabotage: Sabotage,
    versions: Vec<Version>,
    places: Vec<Ppn>,
    drops: Dropped,
    last_seq: u64,
}

impl Scan {
    pub fn new(start_seq: u64, sabotage: Sabotage) -> Self {
        Self { start_seq, sabotage, ..Self::default() }
    }

    /// Records must come in the order in which they were written.
    pub fn add_record(&mut self, record: &Record) {
        match *record {
            Record::Drop { first, count, seq } => {
                self.last_seq = self.last_seq.max(seq);
                if self.sabotage != Sabotage::IgnoreDrops {
                    self.drops.add(first, first.saturating_add(count), seq);
                }
            }
            Record::Place { page } => self.places.push(Ppn(page)),
            Record::Retire { .. } => {}
        }
    }

    /// Gives whether anybody but the device below wrote the page, which pads what it cannot give back yet.
    fn read<D: FlashDevice>(
        &mut self,
        device: &mut D,
        page: Ppn,
        report: &mut RecoveryReport,
    ) -> FlashResult<bool> {
        report.scanned_pages += 1;
        let Some(oob) = read_known(device, page, None)? else {
            report.torn_pages += 1;
            return Ok(true);
        };
        self.last_seq = self.last_seq.max(oob.seq);
        if oob.lpn.index() < device.geometry().pages() as usize {
            self.versions.push(Version { lpn: oob.lpn, seq: oob.seq, page });
        }
        Ok(oob.lpn != Lpn::PADDING)
    }

    /// Reads the OOB of every page programmed since, in blocks that are neither bad nor the journal's.
    pub fn read_blocks<D: FlashDevice>(
        &mut self,
        device: &mut D,
        table: &Table,
        flags: &[u8],
        report: &mut RecoveryReport,
    ) -> FlashResult<()> {
        let geometry = *device.geometry();
        for block in (0..geometry.blocks()).map(BlockId) {
            if flags[block.index()] != 0 || device.is_bad(block) {
                continue;
            }
            let record = table.get(block);
            let is_same = record.erase_count == device.erase_count(block);
            let mut is_written = !is_same;
            for index in 0..device.write_pointer(block) {
                let page = geometry.page(block, index);
                if (!is_same || !record.is_programmed(index)) && device.is_programmed(page) {
                    is_written |= self.read(device, page, report)?;
                }
            }
            report.scanned_blocks += u64::from(is_written);
        }
        Ok(())
    }

    /// Reads the OOB of the pages that records name.
    pub fn read_places<D: FlashDevice>(
        &mut self,
        device: &mut D,
        flags: &[u8],
        report: &mut RecoveryReport,
    ) -> FlashResult<()> {
        let geometry = *device.geometry();
        for page in std::mem::take(&mut self.places) {
            let block = geometry.block_of(page);
            let is_readable = page.0 < geometry.pages()
                && flags[block.index()] == 0
                && !device.is_bad(block)
                && device.is_programmed(page);
            if is_readable {
                self.read(device, page, report)?;
            }
        }
        Ok(())
    }

    /// Maps the newest version of each page and unmaps what was dropped; gives the highest number seen.
    pub fn apply<D: FlashDevice>(mut self, device: &mut D, newest: &mut Newest) -> FlashResult<u64> {
        // Drops are younger than everything the checkpoint's map tells.
        for (first, end, _) in self.drops.ranges() {
            newest.unset_range(first, end - first);
        }
        self.versions.sort_unstable();
        for of_page in self.versions.chunk_by(|a, b| a.lpn == b.lpn) {
            let chosen =
                if self.sabotage == Sabotage::OldestVersion { of_page.first() } else { of_page.last() };
            let Some(version) = chosen.copied() else { continue };
            if self.drops.last(version.lpn.0).is_some_and(|drop| version.seq < drop) {
                continue;
            }
            if version.seq < self.start_seq && is_older(device, &version, newest)? {
                continue;
            }
            newest.set(version.lpn, version.page);
        }
        Ok(self.last_seq)
    }
}

/// Whether the checkpoint's map knows newer data than this copy, programmed after it began.
fn is_older<D: FlashDevice>(device: &mut D, copy: &Version, newest: &Newest) -> FlashResult<bool> {
    let Some(known) = newest.get(copy.lpn) else { return Ok(false) };
    let oob = match read_known(device, known, None) {
        // It cannot be told from the copy, so it stays, and reading it is an error.
        Err(FlashError::Damaged { .. }) => return Ok(true),
        oob => oob?,
    };
    Ok(oob.is_some_and(|oob| oob.lpn == copy.lpn && oob.seq > copy.seq))
}

/// Which logical pages were dropped, and when last.
#[derive(Debug, Default)]
struct Dropped {
    /// First page to one past the last and the sequence number; ranges do not overlap.
    ranges: BTreeMap<u32, (u32, u64)>,
}

impl Dropped {
    /// Later drops must come later.
    fn add(&mut self, first: u32, end: u32, seq: u64) {
        if first >= end {
            return;
        }
        // What begins before and reaches in keeps its part before, and what it has after.
        let before = self.ranges.range(..first).next_back().map(|(start, range)| (*start, *range));
        if let Some((start, (old_end, old_seq))) = before.filter(|(_, (old_end, _))| *old_end > first) {
            self.ranges.insert(start, (first, old_seq));
            if old_end > end {
                self.ranges.insert(end, (old_end, old_seq));
            }
        }
        let inside: Vec<u32> = self.ranges.range(first..end).map(|(start, _)| *start).collect();
        for start in inside {
            if let Some((old_end, old_seq)) = self.ranges.remove(&start).filter(|(old_end, _)| *old_end > end)
            {
                self.ranges.insert(end, (old_end, old_seq));
            }
        }
        self.ranges.insert(first, (end, seq));
        debug_assert_eq!(self.last(end - 1), Some(seq), "when page {} was dropped", end - 1);
    }

    /// When a page was last dropped.
    fn last(&self, lpn: u32) -> Option<u64> {
        let (_, (end, seq)) = self.ranges.range(..=lpn).next_back()?;
        (lpn < *end).then_some(*seq)
    }

    fn ranges(&self) -> impl Iterator<Item = (u32, u32, u64)> + '_ {
        self.ranges.iter().map(|(first, (end, seq))| (*first, *end, *seq))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_core::rng::{below, seeded};

    #[test]
    fn overlapping_drops_keep_the_last_of_each_page() {
        let mut rng = seeded(7);
        for _ in 0..200 {
            let mut plain = [None; 40];
            let mut drops = Dropped::default();
            for seq in 0..12 {
                let first = below(&mut rng, 40) as u32;
                let end = first + below(&mut rng, u64::from(41 - first)) as u32;
                drops.add(first, end, seq);
                plain[first as usize..end as usize].fill(Some(seq));
            }
            for (lpn, expected) in (0..).zip(plain) {
                assert_eq!(drops.last(lpn), expected, "page {lpn} of {drops:?}");
            }
            let covered: u32 = drops.ranges().map(|(first, end, _)| end - first).sum();
            assert_eq!(covered as usize, plain.iter().flatten().count());
        }
    }
}
