//! What an image holds, and whether all of it can be read.

use crate::error::{ImageError, Result};
use crate::flash::Flash;
use crate::flash::copies::Copies;
use crate::layout::Layout;
use crate::medium::ImageFlash;
use crate::record::{Entry, Kind, Record};
use crate::store::Store;
use nandscape_core::{BlockId, OutOfBand, Ppn};
use serde::Serialize;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Problems that are listed one by one; further ones are counted.
const MOST_LISTED: usize = 10_000;

/// What an image holds, from its tables.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Contents {
    /// Closed by its last process.
    pub is_clean: bool,
    pub opens: u32,
    /// Bytes of the file, holes included.
    pub file_bytes: u64,
    /// Bytes that the file takes on disk.
    pub disk_bytes: u64,
    pub blocks: u64,
    /// Bad ones, by number.
    pub bad_blocks: Vec<u32>,
    /// Blocks in which some page is programmed.
    pub used_blocks: u64,
    pub programmed_pages: u64,
    /// Of these, pages that hold zeroes and take no space.
    pub blank_pages: u64,
    /// Of these, pages whose program or the erase of whose block was cut short.
    pub torn_pages: u64,
    /// Bytes of the data in programmed pages.
    pub data_bytes: u64,
    /// Fewest erases of a good block.
    pub erases_min: u32,
    pub erases_max: u32,
    pub erases_mean: f64,
}

/// Something that is wrong in an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Block, where it is the problem of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<u32>,
    /// Page of the device, where it is the problem of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<u32>,
    /// Byte of the file.
    pub offset: u64,
    /// What is wrong there.
    pub what: &'static str,
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Findings {
    /// What the image holds.
    pub contents: Contents,
    /// Pages whose bytes were read and verified.
    pub verified_pages: u64,
    /// How many problems there are.
    pub problem_count: u64,
    /// The first ten thousand of them.
    pub problems: Vec<Problem>,
}

impl<O: OutOfBand> ImageFlash<O> {
    /// What the image holds; `path` is where it was opened from.
    pub fn contents(&self, path: &Path) -> Result<Contents> {
        let metadata = std::fs::metadata(path).map_err(ImageError::io(path, "stat"))?;
        let mut contents = self.listed(&mut |_, _, _| {});
        contents.file_bytes = metadata.len();
        contents.disk_bytes = metadata.blocks() * 512;
        Ok(contents)
    }

    /// Verifies every programmed page and compares the tables. `progress` hears of pages done and in all.
    pub fn check(&mut self, path: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<Findings> {
        let mut findings = self.verify_all(progress);
        findings.contents = self.contents(path)?;
        self.check_whole(path)?;
        Ok(findings)
    }
}

impl<S: Store, O: OutOfBand> Flash<S, O> {
    /// An error if what was read from the tables so far may be wrong.
    pub(crate) fn check_whole(&self, path: &Path) -> Result<()> {
        let what = "a part of the tables could not be read or written: the file was truncated, or its file system is full or failed";
        if self.store.is_lost() { Err(ImageError::unsuited(path, what)) } else { Ok(()) }
    }

    /// Sums up the tables, and shows every entry that is not empty.
    fn listed(&self, see: &mut dyn FnMut(BlockId, Ppn, Entry)) -> Contents {
        let good = || self.blocks.iter().filter(|block| !block.is_bad);
        let mut contents = Contents {
            is_clean: self.was_clean,
            opens: self.state.opens.saturating_sub(1),
            blocks: self.blocks.len() as u64,
            erases_min: good().map(|block| block.erases).min().unwrap_or(0),
            erases_max: good().map(|block| block.erases).max().unwrap_or(0),
            erases_mean: good().map(|block| f64::from(block.erases)).sum::<f64>()
                / good().count().max(1) as f64,
            ..Contents::default()
        };
        let geometry = self.layout.geometry;
        for (block, state) in (0..).map(BlockId).zip(&self.blocks) {
            if state.is_bad {
                contents.bad_blocks.push(block.0);
            }
            contents.used_blocks += u64::from(state.write_pointer > 0);
            for page in (0..state.write_pointer).map(|index| geometry.page(block, index)) {
                let entry = match self.entry(page, state.erases) {
                    Entry::Empty if self.header.capabilities.out_of_order_program => continue,
                    // Images of version 1 have gaps that a failure of the machine left.
                    Entry::Empty if self.layout.has_copies() => Entry::Broken,
                    entry => entry,
                };
                contents.programmed_pages += 1;
                match entry {
                    Entry::Record(Record { kind: Kind::Data, .. }) => {
                        contents.data_bytes += u64::from(geometry.page_bytes);
                    }
                    Entry::Record(Record { kind: Kind::Blank, .. }) => contents.blank_pages += 1,
                    Entry::Record(Record { kind: Kind::Torn, .. }) | Entry::Empty => contents.torn_pages += 1,
                    Entry::Broken => {}
                }
                see(block, page, entry);
            }
        }
        contents
    }

    pub(crate) fn verify_all(&mut self, progress: &mut dyn FnMut(u64, u64)) -> Findings {
        let mut findings = Findings::default();
        let layout = self.layout;
        if self.mended.is_state {
            findings.add(None, layout.states()[0], "a copy of the state did not match its checksum");
        }
        for block in &self.mended.blocks {
            let what = "a copy of the block's entry did not match its checksum";
            findings.add(Some((*block, None)), layout.block(*block), what);
        }
        let mut data = Vec::new();
        self.listed(&mut |block, page, entry| match entry {
            Entry::Record(Record { kind: Kind::Data, .. }) => data.push((block, page)),
            Entry::Broken => {
                let what = "the record of the page does not match its checksum";
                findings.add(Some((block, Some(page))), layout.record(page), what);
            }
            _ => {}
        });
        self.verify_copies(&layout, &mut findings);
        self.verify_unused(&layout, &mut findings);
        let mut bytes = vec![0; layout.geometry.page_bytes as usize];
        for (done, (block, page)) in (0..).zip(&data) {
            if done % 4096 == 0 {
                progress(done, data.len() as u64);
            }
            let found = self.find(*page, self.blocks[block.index()].erases);
            if found.is_ok_and(|found| self.read_bytes(*page, found.at, 0, &mut bytes)) {
                findings.verified_pages += 1;
            } else {
                let what = "the bytes of the page do not match their checksum";
                findings.add(Some((*block, Some(*page))), layout.page(*page), what);
            }
        }
        findings
    }

    /// Records of which one copy is damaged.
    fn verify_copies(&self, layout: &Layout, findings: &mut Findings) {
        for (block, state) in (0..).map(BlockId).zip(&self.blocks) {
            for index in 0..layout.geometry.pages_per_block {
                let page = layout.geometry.page(block, index);
                let is_second = match self.copies(page, state.erases) {
                    Copies::Same(_) => continue,
                    Copies::First(_) | Copies::HalfBroken { is_first: false } => true,
                    Copies::Second(_) | Copies::HalfBroken { is_first: true } => false,
                };
                let offset = layout.record(page) + u64::from(is_second) * layout.to_second_record;
                let what = "one copy of the record of the page is damaged";
                findings.add(Some((block, Some(page))), offset, what);
            }
        }
    }

    /// Records where nothing is programmed: there must be none of this generation or a later one.
    fn verify_unused(&self, layout: &Layout, findings: &mut Findings) {
        for (block, state) in (0..).map(BlockId).zip(&self.blocks) {
            for index in state.write_pointer..layout.geometry.pages_per_block {
                let page = layout.geometry.page(block, index);
                let what = match self.entry(page, state.erases) {
                    Entry::Empty => continue,
                    Entry::Record(_) => "the page is programmed although its block is marked as erased",
                    Entry::Broken => "the record of an erased page is neither empty nor an old one",
                };
                findings.add(Some((block, Some(page))), layout.record(page), what);
            }
        }
    }
}

impl Findings {
    fn add(&mut self, place: Option<(BlockId, Option<Ppn>)>, offset: u64, what: &'static str) {
        self.problem_count += 1;
        if self.problems.len() < MOST_LISTED {
            let block = place.map(|(block, _)| block.0);
            let page = place.and_then(|(_, page)| page).map(|page| page.0);
            self.problems.push(Problem { block, page, offset, what });
        }
    }
}
