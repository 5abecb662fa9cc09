//! A map that lies on the flash, of which a controller with little memory keeps a part.
//!
//! Translation pages are logical pages behind those of the host. Each holds the entries of a run of host
//! pages, and is programmed, moved and collected as any page is; where they are stands in a directory that
//! is all in memory. In memory are also changes, which are entries that differ from their translation page,
//! and lines of entries that a read brought. When the changes fill their share, a translation page is read,
//! and programmed with all changes of its entries. When the lines fill theirs, the one that was used least
//! recently gives way.
//!
//! A read waits for its entries. A write does not need them: where the page was before is learned when its
//! translation page is written (`LazyFTL`). The counts of valid pages are always exact here; there they are
//! late.
//!
//! Where bytes are stored, translation pages hold their entries, but a start takes the map from the
//! journal.

use super::PageMap;
use super::map::Map;
use super::map_memory::{CHANGE_BYTES, Commit, ENTRY_BYTES, LINE, LINE_BYTES, MapMemory};
use crate::victim::lists::BlockLists;
use nandscape_core::addr::PageSpan;
use nandscape_core::journal::drop_pages;
use nandscape_core::{
    Cause, Extent, FlashDevice, FlashError, FtlResult, Hint, Issue, Lpn, MapCacheStats, Ppn, SimTime, Token,
    state,
};
use std::ops::Range;

/// Translation pages written for each page of a command, at most. If collection changes entries faster than
/// this, changes take more than their share of the memory.
const MOST_COMMITS: u64 = 4;

/// What of the map is in memory.
#[derive(Debug)]
pub(super) struct PagedMap {
    /// Pages of the host; the translation pages follow.
    host_pages: u32,
    /// Entries of a translation page.
    entries: u32,
    /// The entries of each translation page that changed since it was written, in order.
    changed: Vec<Vec<u16>>,
    /// Of all translation pages.
    changes: u64,
    most_changes: u64,
    /// Changes that have room.
    change_room: u64,
    commit: Commit,
    /// The log of translation pages, if they have one of their own.
    log: Option<usize>,
    /// Translation pages with changes: by the number of these, or in the order of the first one.
    order: BlockLists,
    /// No translation page has more changes.
    fullest: u32,
    /// Lines in memory in the order of use.
    lines: BlockLists,
    line_count: u32,
    line_room: u32,
    /// Translation pages on the flash.
    pub written: u64,
    stats: MapCacheStats,
}

state!(impl [] PagedMap {
    saved: changes, most_changes, order, fullest, lines, line_count, written, stats;
    tables: changed;
    fixed: host_pages, entries, change_room, commit, log, line_room;
});

impl PagedMap {
    /// Nothing is in memory, and nothing on the flash.
    pub fn new(host_pages: u32, memory: &MapMemory, log: Option<usize>) -> Self {
        let MapMemory { pages, entries, change_room, line_room, commit } = *memory;
        let lists = match commit {
            Commit::Largest => entries + 1,
            Commit::Lazy => 1,
        };
        Self {
            host_pages,
            entries,
            changed: vec![Vec::new(); pages as usize],
            changes: 0,
            most_changes: 0,
            change_room,
            commit,
            log,
            order: BlockLists::new(pages, lists),
            fullest: 0,
            lines: BlockLists::new(host_pages.div_ceil(LINE), 1),
            line_count: 0,
            line_room,
            written: 0,
            stats: MapCacheStats::default(),
        }
    }

    /// The logical page of a translation page.
    const fn lpn(&self, page: u32) -> Lpn {
        Lpn(self.host_pages + page)
    }

    /// Where a page that collection would move to `log` goes.
    pub fn log_of(&self, lpn: Lpn, log: usize) -> usize {
        if lpn.0 >= self.host_pages { self.log.unwrap_or(log) } else { log }
    }

    /// The host pages whose entries a translation page holds.
    fn host_range(&self, page: u32) -> Range<u32> {
        page * self.entries..((page + 1) * self.entries).min(self.host_pages)
    }

    /// The translation pages all of whose entries lie in a range of host pages.
    fn covered(&self, pages: Range<u32>) -> Range<u32> {
        let end =
            if pages.end == self.host_pages { self.changed.len() as u32 } else { pages.end / self.entries };
        let first = pages.start.div_ceil(self.entries);
        first..end.max(first)
    }

    /// A start found a page on the flash.
    pub fn added(&mut self, lpn: Lpn) {
        self.written += u64::from(lpn.0 >= self.host_pages);
        assert!(
            self.written <= self.changed.len() as u64,
            "{} translation pages, with {lpn:?}",
            self.written
        );
    }

    /// The entry of a page changed. Those of translation pages are in the directory. Out of line: most maps
    /// are in memory.
    #[inline(never)]
    pub fn note(&mut self, lpn: Lpn) {
        if lpn.0 >= self.host_pages {
            return;
        }
        let (page, entry) = (lpn.0 / self.entries, (lpn.0 % self.entries) as u16);
        let changed = &mut self.changed[page as usize];
        let Err(place) = changed.binary_search(&entry) else { return };
        changed.insert(place, entry);
        let count = changed.len() as u32;
        assert!(
            count <= self.entries,
            "translation page {page} of {} entries: {count} changes",
            self.entries
        );
        self.changes += 1;
        self.most_changes = self.most_changes.max(self.changes);
        match self.commit {
            Commit::Largest => {
                self.order.relink(count, page);
                self.fullest = self.fullest.max(count);
            }
            Commit::Lazy if count == 1 => self.order.append(0, page),
            Commit::Lazy => {}
        }
    }

    /// A page is one of a range that is unmapped. Translation pages in the middle of it need no changes,
    /// since they are dropped.
    pub fn note_unmapped(&mut self, lpn: Lpn, range: Range<u32>) {
        assert!(range.contains(&lpn.0), "{lpn:?} of {range:?}, which is unmapped");
        if !self.covered(range).contains(&(lpn.0 / self.entries)) {
            self.note(lpn);
        }
    }

    /// The translation page that is to be written, if the changes take more than their share.
    fn due(&mut self) -> Option<u32> {
        if self.changes <= self.change_room {
            return None;
        }
        let page = match self.commit {
            Commit::Lazy => self.order.first(0),
            Commit::Largest => loop {
                assert!(self.fullest > 0, "{} changes, and no translation page has any", self.changes);
                match self.order.first(self.fullest) {
                    None => self.fullest -= 1,
                    page => break page,
                }
            },
        };
        assert!(page.is_some(), "{} changes, and no translation page is listed", self.changes);
        page
    }

    /// The changes of a translation page are on the flash, or are those of nothing any more.
    fn settled(&mut self, page: u32) {
        let changed = &mut self.changed[page as usize];
        assert!(self.changes >= changed.len() as u64, "{} changes of {}", changed.len(), self.changes);
        self.changes -= changed.len() as u64;
        changed.clear();
        self.order.unlink(page);
    }

    /// Whether every entry of a translation page changed, so that it need not be read before it is written.
    fn all_changed(&self, page: u32) -> bool {
        self.changed[page as usize].len() == self.host_range(page).len()
    }

    /// Whether the entries of these pages of one line are in memory; a line that is has been used.
    fn has(&mut self, line: u32, mut pages: Range<u32>) -> bool {
        if self.lines.is_linked(line) {
            self.lines.relink(0, line);
            return true;
        }
        pages.all(|lpn| {
            let changed = &self.changed[(lpn / self.entries) as usize];
            changed.binary_search(&((lpn % self.entries) as u16)).is_ok()
        })
    }

    /// A read brought a line.
    fn keep(&mut self, line: u32) {
        assert!(!self.lines.is_linked(line), "line {line} is in memory, and is read");
        if self.line_count == self.line_room {
            let oldest = self.lines.first(0).expect("as many lines as there is room for");
            self.lines.unlink(oldest);
            self.line_count -= 1;
        }
        self.lines.append(0, line);
        self.line_count += 1;
    }

    /// Lookups so far, and the memory they had.
    pub fn stats(&self) -> MapCacheStats {
        MapCacheStats { most_bytes: self.most_changes * CHANGE_BYTES + self.line_bytes(), ..self.stats }
    }

    /// Lookups are counted anew.
    pub fn reset_stats(&mut self) {
        self.stats = MapCacheStats::default();
        self.most_changes = self.changes;
    }

    fn line_bytes(&self) -> u64 {
        u64::from(self.line_room) * LINE_BYTES
    }

    /// Memory: the directory and the two shares, of which changes may have taken more than theirs.
    pub fn bytes(&self) -> u64 {
        let changes = self.change_room.max(self.most_changes);
        self.changed.len() as u64 * ENTRY_BYTES + changes * CHANGE_BYTES + self.line_bytes()
    }

    /// Checks counts and lists; panics with the values.
    pub fn check(&self, map: &Map) {
        let count: usize = self.changed.iter().map(Vec::len).sum();
        assert_eq!(self.changes, count as u64, "changes");
        for (page, changed) in (0..).zip(&self.changed) {
            assert!(changed.is_sorted_by(|a, b| a < b), "translation page {page}: {changed:?}");
            assert_eq!(self.order.is_linked(page), !changed.is_empty(), "translation page {page} is listed");
        }
        let lines = (0..self.host_pages.div_ceil(LINE)).filter(|line| self.lines.is_linked(*line));
        assert_eq!(lines.count(), self.line_count as usize, "lines in memory");
        assert!(self.line_count <= self.line_room, "{} lines for {}", self.line_count, self.line_room);
        let written = &map.entries()[self.host_pages as usize..];
        let written = written.iter().filter(|page| page.is_some()).count();
        assert_eq!(self.written, written as u64, "translation pages on the flash");
    }
}

impl<D: FlashDevice> PageMap<D> {
    /// The entries of an extent are needed: once the token completes, if some have to be read.
    #[inline]
    pub(super) fn find_entries(&mut self, extent: Extent, at: SimTime) -> FtlResult<Token> {
        if self.paged.is_some() { self.read_entries(extent, at) } else { Ok(Token::NONE) }
    }

    #[inline(never)]
    fn read_entries(&mut self, extent: Extent, at: SimTime) -> FtlResult<Token> {
        let Some(paged) = &mut self.paged else { return Ok(Token::NONE) };
        let page_bytes = u64::from(self.page_bytes);
        let (first, end) = ((extent.offset / page_bytes) as u32, extent.end().div_ceil(page_bytes) as u32);
        assert!(end <= paged.host_pages, "{extent} ends at page {end} of {}", paged.host_pages);
        let mut done = Token::NONE;
        let mut read = None;
        for line in first / LINE..end.div_ceil(LINE) {
            let page = line * LINE / paged.entries;
            let place = self.map.get(paged.lpn(page));
            let pages = first.max(line * LINE)..end.min((line + 1) * LINE);
            if place == Ppn::NONE || paged.has(line, pages) {
                paged.stats.hits += 1;
                continue;
            }
            paged.stats.misses += 1;
            paged.keep(line);
            if read != Some(page) {
                read = Some(page);
                let entries = read_translation_page(&mut self.device, place, self.page_bytes, at)?;
                done = self.device.join(done, entries);
            }
        }
        Ok(done)
    }

    /// Writes translation pages until the changes have room again, after a command of so many pages.
    #[inline]
    pub(super) fn settle_changes(&mut self, pages: u64, at: SimTime) -> FtlResult<()> {
        if self.paged.is_some() { self.write_translation_pages(pages, at) } else { Ok(()) }
    }

    #[inline(never)]
    fn write_translation_pages(&mut self, pages: u64, at: SimTime) -> FtlResult<()> {
        for _ in 0..MOST_COMMITS * pages {
            let Some(page) = self.paged.as_deref_mut().and_then(PagedMap::due) else { break };
            let span = PageSpan { lpn: self.translation_lpn(page), start: 0, len: self.page_bytes, at: 0 };
            let own = self.paged.as_ref().and_then(|paged| paged.log);
            let log = own.unwrap_or_else(|| self.log_of(Hint::default()));
            let (domain, log) = match &self.groups {
                None => (self.placement.domain(span.lpn), log),
                Some(_) => self.place_in_group(span, log),
            };
            if self.domains[domain].counts.free_pages < self.domains[domain].marks.trigger_pages {
                self.make_room(domain, log, 1, at)?;
            }
            self.write_translation_page(domain, log, page, at).or_else(|error| {
                self.make_room_after(error, domain, log, at)?;
                self.write_translation_page(domain, log, page, at).map_err(|error| self.without_room(error))
            })?;
        }
        Ok(())
    }

    fn translation_lpn(&self, page: u32) -> Lpn {
        self.paged.as_ref().expect("a map on the flash").lpn(page)
    }

    fn write_translation_page(&mut self, domain: usize, log: usize, page: u32, at: SimTime) -> FtlResult<()> {
        let paged = self.paged.as_deref().expect("a map on the flash");
        let (lpn, hosts) = (paged.lpn(page), paged.host_range(page));
        assert!(!paged.changed[page as usize].is_empty(), "nothing changed of translation page {page}");
        // Collection may just have moved it.
        let old = self.map.get(lpn);
        let mut issue = Issue::new(at, Cause::Meta);
        if old.is_some() && !paged.all_changed(page) {
            issue = issue.after(read_translation_page(&mut self.device, old, self.page_bytes, at)?);
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut bytes = buffer.chunks_exact_mut(ENTRY_BYTES as usize);
        for (lpn, bytes) in hosts.zip(&mut bytes) {
            bytes.copy_from_slice(&self.map.get(Lpn(lpn)).0.to_le_bytes());
        }
        bytes.for_each(|bytes| bytes.fill(0xff));
        let data = (!buffer.is_empty()).then_some(&*buffer);
        let written = self.append(domain, log, lpn, None, self.page_bytes, data, issue);
        self.buffer = buffer;
        let (place, _) = written?;
        self.sectors.set(lpn, self.sectors.whole());
        self.remap(domain, lpn, place, old);
        let paged = self.paged.as_deref_mut().expect("a map on the flash");
        paged.written += u64::from(old == Ppn::NONE);
        paged.settled(page);
        Ok(())
    }

    /// Host pages were unmapped: translation pages without any other entry are no more.
    pub(super) fn drop_translation_pages(&mut self, host_pages: Range<u32>, at: SimTime) -> FtlResult<()> {
        let Some(paged) = self.paged.as_deref_mut() else { return Ok(()) };
        let covered = paged.covered(host_pages);
        if covered.is_empty() {
            return Ok(());
        }
        for page in
            covered.clone().filter(|page| !paged.changed[*page as usize].is_empty()).collect::<Vec<_>>()
        {
            paged.settled(page);
        }
        let (first, end) = (paged.lpn(covered.start), paged.lpn(covered.end));
        drop_pages(&mut self.device, first, covered.len() as u32, at).map_err(|error| self.refused(error))?;
        let mut next = first.0;
        while let Some(lpn) = self.map.next_mapped(next, end.0) {
            self.unmap_page(lpn);
            let paged = self.paged.as_deref_mut().expect("a map on the flash");
            assert!(paged.written > 0, "{lpn:?} is a translation page, and none is on the flash");
            paged.written -= 1;
            next = lpn.0 + 1;
        }
        Ok(())
    }
}

/// Reads a translation page; gives when it is there. What cannot be read is known by the pages it is about,
/// whose out-of-band data say whose they are; the time to gather those is not counted.
fn read_translation_page<D: FlashDevice>(
    device: &mut D,
    place: Ppn,
    bytes: u32,
    at: SimTime,
) -> FtlResult<Token> {
    match device.read(place, bytes, None, Issue::new(at, Cause::Meta)) {
        Ok(read) => Ok(read.done),
        Err(FlashError::Uncorrectable { .. }) => Ok(Token::NONE),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::INFO;
    use super::*;
    use nandscape_core::rng::{below, seeded};
    use nandscape_core::{Capabilities, Ftl, Geometry, Mapping, Params};
    use nandscape_media::{Nand, NandOptions, Scheduler, Serial, Timed, Timing};

    #[test]
    fn translation_pages_hold_the_entries_of_their_pages() {
        let geometry = Geometry {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks_per_plane: 60,
            pages_per_block: 128,
            page_bytes: 4096,
            sector_bytes: 4096,
            oob_bytes: 16,
        };
        let geometry = geometry.checked().unwrap();
        let (read_ns, program_ns, erase_ns, command_ns) = (1, 1, 1, 0);
        let timing = Timing { read_ns, program_ns, erase_ns, command_ns, channel_bytes_per_s: 1 << 30 };
        let capabilities = Capabilities { stores_data: true, ..Capabilities::default() };
        let nand = Nand::new(geometry, &NandOptions { capabilities, ..NandOptions::default() }).unwrap();
        let typed = [("capacity", "16MiB"), ("map_cache", "12.5%"), ("map_commit", "lazy")];
        let typed = typed.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let params = Params::check(&INFO, "ftl.", &typed).unwrap();
        let mut layer = PageMap::new(Timed::new(nand, Serial::new(&geometry, &timing)), &params).unwrap();
        let mut rng = seeded(5);
        for number in 0..13_000 {
            let page = if number < 4096 { number } else { below(&mut rng, 4096) };
            let extent = Extent::new(page * 4096, 4096);
            layer.write(extent, Some(&[page as u8; 4096]), Hint::default(), SimTime::ZERO).unwrap();
        }
        layer.check_invariants();
        let paged = layer.paged.as_deref().unwrap();
        let mut bytes = [0; 4096];
        let mut changes = 0;
        for page in 0..4 {
            let place = layer.map.get(paged.lpn(page));
            let issue = Issue::new(SimTime::ZERO, Cause::Meta);
            layer.device.read(place, 4096, Some(&mut bytes), issue).unwrap();
            for (entry, bytes) in bytes.chunks_exact(4).enumerate() {
                let is_changed = paged.changed[page as usize].contains(&(entry as u16));
                let held = Ppn(u32::from_le_bytes(bytes.try_into().unwrap()));
                let now = layer.map.get(Lpn(page * 1024 + entry as u32));
                assert_eq!(held != now, is_changed, "entry {entry} of translation page {page}");
                changes += u32::from(is_changed);
            }
        }
        assert!(changes > 0, "some wait in memory");
    }
}
