//! Lines and their chunks: which take pages, and which are free.

use super::format::{self, Header};
use super::sabotage::Sabotage;
use super::{Kind, Pblk, Shape};
use nandscape_core::vector::SectorAddress;
use nandscape_core::{Cause, Issue, Lpn, NamespaceError, NamespaceResult, Ppn, SimTime, Subsystem, Token};
use nandscape_ftl::victim::BlockState;
use std::collections::VecDeque;

const TOO_FEW_LINES: &str = "too few lines are left for the data";

/// What is known of a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Chunk {
    /// Pages written.
    pub written: u32,
    /// It takes no more: it is full, or a program failed.
    pub is_closed: bool,
    pub is_offline: bool,
}

/// The line that is being written.
#[derive(Clone, Debug)]
pub(super) struct Frontier {
    pub line: u32,
    /// Number of the line's use, and of its next page.
    pub seq: u32,
    pub index: u32,
    /// The chunk whose turn it is, and pages that it gets before the next one.
    pub unit: u32,
    pub turn: u32,
    /// Pages before the end metadata, while the line is written as it should.
    pub data_left: u32,
    pub is_regular: bool,
    /// What its pages hold, for the end metadata.
    pub list: Vec<u32>,
    /// Its first write waits for this: its chunks are erased.
    pub after: Token,
    /// Completes when its pages are written.
    pub done: Token,
}

/// Lines that are free or wait to be, and the open one.
#[derive(Debug)]
pub(super) struct Lines {
    /// By line, then parallel unit.
    pub chunks: Vec<Chunk>,
    pub units: u32,
    /// The use of each line; 0 for a free one.
    pub seqs: Vec<u32>,
    /// Free lines with what their first write waits for.
    pub free: VecDeque<(u32, Token)>,
    /// Pages of data in them.
    pub free_pages: u64,
    /// Lines without valid pages: what has to be written of the ring before they are erased.
    pub emptied: VecDeque<(u32, u64)>,
    /// The first of them waits for this, once that is written.
    pub durable: Option<Token>,
    /// Completes when the last erase does.
    pub erasing: Token,
    pub open: Option<Frontier>,
    pub next_seq: u32,
    /// Completes when all pages so far are written.
    pub done: Token,
    pub low: u32,
}

impl Lines {
    pub fn new(shape: &Shape, low: u32) -> Self {
        let lines = shape.identity.lines as usize;
        Self {
            chunks: vec![Chunk::default(); lines * shape.units() as usize],
            units: shape.units(),
            seqs: vec![0; lines],
            free: VecDeque::new(),
            free_pages: 0,
            emptied: VecDeque::new(),
            durable: None,
            erasing: Token::NONE,
            open: None,
            next_seq: 1,
            done: Token::NONE,
            low,
        }
    }

    pub const fn number(&self, line: u32, unit: u32) -> usize {
        (line * self.units + unit) as usize
    }

    pub fn of(&self, line: u32) -> &[Chunk] {
        &self.chunks[self.number(line, 0)..self.number(line + 1, 0)]
    }

    /// Chunks of a line that can be used.
    pub fn good(&self, line: u32) -> u32 {
        self.of(line).iter().filter(|chunk| !chunk.is_offline).count() as u32
    }

    pub const fn bytes(&self) -> u64 {
        (self.chunks.len() * size_of::<Chunk>() + self.seqs.len() * 4) as u64
    }
}

impl<S: Subsystem> Pblk<S> {
    /// The chunk of a line in a parallel unit.
    pub(super) const fn chunk(&self, line: u32, unit: u32) -> SectorAddress {
        self.shape.geometry.chunk_in(unit, line)
    }

    /// The place of a page of a chunk.
    pub(super) const fn place(&self, line: u32, unit: u32, page: u32) -> Ppn {
        Ppn(line * self.shape.identity.line_pages + unit * self.shape.chunk_pages + page)
    }

    /// The first sector of a place.
    pub(super) fn address(&self, place: Ppn) -> SectorAddress {
        let (line, within) =
            (place.0 / self.shape.identity.line_pages, place.0 % self.shape.identity.line_pages);
        let (unit, page) = (within / self.shape.chunk_pages, within % self.shape.chunk_pages);
        self.chunk(line, unit).at(page * self.shape.page_sectors())
    }

    /// The sectors of a place.
    pub(super) fn sectors_of(&self, place: Ppn) -> Vec<SectorAddress> {
        let first = self.address(place);
        (0..self.shape.page_sectors()).map(|sector| first.at(first.sector + sector)).collect()
    }

    /// Pages of users and of collection in a line.
    pub(super) fn data_pages(&self, line: u32) -> u32 {
        let pages = self.lines.good(line) * self.shape.chunk_pages;
        pages.saturating_sub(self.shape.row + self.shape.end_pages)
    }

    /// Opens a line, unless one is open that takes pages of data.
    pub(super) fn ready_line(&mut self, at: SimTime) -> NamespaceResult<()> {
        while self.next_turn().is_none() {
            if let Some(open) = self.lines.open.take() {
                self.seal(open, at)?;
                continue;
            }
            while self.lines.free.is_empty() {
                if !self.is_next_written() && self.sabotage != Sabotage::ResetWithoutWait {
                    return Err(self.no_line());
                }
                self.erase_next(at)?;
            }
            let (line, after) = self.lines.free.pop_front().expect("one is free");
            self.lines.free_pages -= u64::from(self.data_pages(line));
            self.open_line(line, after, at)?;
        }
        Ok(())
    }

    /// Whose turn it is in the open line, with how many pages; `None` if it takes no more data.
    pub(super) fn next_turn(&mut self) -> Option<(u32, u32)> {
        let stripe = self.shape.stripes(1).stripe;
        let (units, chunk_pages) = (self.lines.units, self.shape.chunk_pages);
        let open = self.lines.open.as_mut()?;
        if open.is_regular && open.data_left == 0 {
            return None;
        }
        for _ in 0..=units {
            let chunk = self.lines.chunks[(open.line * units + open.unit) as usize];
            let room = if chunk.is_closed || chunk.is_offline { 0 } else { chunk_pages - chunk.written };
            if open.turn > 0 && room > 0 {
                let left = if open.is_regular { open.data_left } else { u32::MAX };
                return Some((open.unit, open.turn.min(room).min(left)));
            }
            (open.unit, open.turn) = ((open.unit + 1) % units, stripe);
        }
        None
    }

    fn open_line(&mut self, line: u32, after: Token, at: SimTime) -> NamespaceResult<()> {
        let seq = self.lines.next_seq;
        self.lines.next_seq += 1;
        self.lines.seqs[line as usize] = seq;
        self.blocks.infos[line as usize].state = BlockState::Open;
        let after = if self.sabotage == Sabotage::WriteBeforeReset { Token::NONE } else { after };
        self.lines.open = Some(Frontier {
            line,
            seq,
            index: 0,
            unit: 0,
            turn: self.shape.stripes(1).stripe,
            data_left: self.data_pages(line) + self.shape.row,
            is_regular: true,
            list: Vec::new(),
            after,
            done: Token::NONE,
        });
        let header = Header { kind: Kind::Start, line, seq, part: 0, count: 0 };
        self.write_metadata(&header, &[], Issue::new(at, Cause::Meta))
    }

    /// Writes a row with a page of metadata, in the turn of the open line.
    fn write_metadata(&mut self, header: &Header, payload: &[u32], issue: Issue) -> NamespaceResult<()> {
        while let Some((unit, _)) = self.next_turn() {
            let bytes = self.buffer.len();
            let mut row = vec![0; bytes * self.shape.row as usize];
            if bytes > 0 {
                format::encode(&self.shape.identity, header, payload, &mut row[..bytes]);
            }
            let mut kinds = vec![(Kind::Pad, Lpn::PADDING); self.shape.row as usize];
            kinds[0] = (header.kind, Lpn::META);
            if self.program(unit, &kinds, &row, issue)?.1 == self.shape.row {
                break;
            }
        }
        Ok(())
    }

    /// The open line takes no more data: writes its end metadata, if it was written as it should.
    fn seal(&mut self, mut open: Frontier, at: SimTime) -> NamespaceResult<()> {
        let (line, seq) = (open.line, open.seq);
        if open.is_regular {
            let mut issue = Issue::new(at, Cause::Meta);
            if self.sabotage != Sabotage::EndWithoutWait {
                issue.after = self.below.flush(issue.after(open.done))?;
            }
            let list = std::mem::take(&mut open.list);
            open.data_left = self.shape.end_pages;
            self.lines.open = Some(open);
            let per_page = format::entries_per_page(self.shape.identity.page_bytes) as usize;
            let rows = self.shape.end_pages / self.shape.row;
            for part in 0..rows {
                // The rest of a row is padding, and so are rows that no entry is left for.
                let from = (part as usize * per_page).min(list.len());
                let entries = &list[from..(from + per_page).min(list.len())];
                let header = Header { kind: Kind::End, line, seq, part, count: entries.len() as u32 };
                self.write_metadata(&header, entries, issue)?;
                if self.lines.open.as_ref().is_none_or(|open| !open.is_regular) {
                    break;
                }
            }
            if let Some(open) = self.lines.open.take().filter(|open| !open.is_regular) {
                // A program failed: what is left takes data.
                self.lines.open = Some(open);
                return Ok(());
            }
        }
        let info = &mut self.blocks.infos[line as usize];
        info.state = BlockState::Sealed;
        if self.lines.of(line).iter().any(|chunk| chunk.is_closed && chunk.written < self.shape.chunk_pages) {
            self.collector.failed.push(line);
        }
        self.victims.sealed(line, info.valid, self.now);
        Ok(())
    }

    /// A line has no valid pages: it is erased once whatever made them superfluous is durable.
    pub(super) fn emptied(&mut self, line: u32, at: SimTime) -> NamespaceResult<()> {
        self.blocks.infos[line as usize].state = BlockState::Victim;
        self.queue_drops(at)?;
        self.lines.emptied.push_back((line, self.ring.head));
        Ok(())
    }

    /// Erases the next line without valid pages if what it waits for is known to be complete.
    pub(super) fn erase_in_time(&mut self, at: SimTime) -> NamespaceResult<()> {
        let Some(durable) = self.durable_of_next(at)? else { return Ok(()) };
        let both = self.below.device.join(durable, self.lines.erasing);
        if self.below.device.completion(both).is_some_and(|end| end > at) {
            return Ok(());
        }
        self.erase_next(at)
    }

    /// No line is free. Where chunks have failed there will be none again.
    #[cold]
    fn no_line(&mut self) -> NamespaceError {
        let pages = self.shape.chunk_pages;
        let failed = |chunk: &Chunk| chunk.is_offline || chunk.is_closed && chunk.written < pages;
        if self.lines.chunks.iter().any(failed) {
            self.stop(TOO_FEW_LINES)
        } else {
            self.full("no line is free")
        }
    }

    /// A line is free once `ready` completes.
    pub(super) fn release(&mut self, line: u32, ready: Token) {
        self.blocks.infos[line as usize].state = BlockState::Free;
        self.lines.free.push_back((line, ready));
        self.lines.free_pages += u64::from(self.data_pages(line));
    }

    /// Whether free lines have less data than so many whole ones: chunks that are offline count.
    pub(super) fn is_short_of(&self, lines: u32) -> bool {
        let whole = self.shape.identity.line_pages - self.shape.row - self.shape.end_pages;
        self.lines.free_pages < u64::from(lines) * u64::from(whole)
    }

    /// Whether there is a line without valid pages, and what made its pages superfluous is written.
    pub(super) fn is_next_written(&self) -> bool {
        self.lines.emptied.front().is_some_and(|(_, position)| self.ring.written >= *position)
    }

    fn durable_of_next(&mut self, at: SimTime) -> NamespaceResult<Option<Token>> {
        let Some((_, position)) = self.lines.emptied.front().copied() else { return Ok(None) };
        if self.lines.durable.is_none() && self.ring.written >= position {
            let after = Issue::new(at, Cause::Meta).after(self.lines.done);
            self.lines.durable = Some(self.below.flush(after)?);
        }
        Ok(self.lines.durable)
    }

    /// Erases the next line without valid pages; what it waits for of the ring is written first.
    pub(super) fn erase_next(&mut self, at: SimTime) -> NamespaceResult<()> {
        let Some((_, position)) = self.lines.emptied.front().copied() else { return Ok(()) };
        if self.ring.written < position && self.sabotage != Sabotage::ResetWithoutWait {
            self.write_ring(true, at)?;
        }
        let durable = self.durable_of_next(at)?.unwrap_or(Token::NONE);
        // Writing may have taken it for the next line.
        let Some((line, _)) = self.lines.emptied.pop_front() else { return Ok(()) };
        self.lines.durable = None;
        let mut after = self.below.device.join(durable, self.lines.erasing);
        if self.sabotage == Sabotage::ResetWithoutWait {
            after = Token::NONE;
        }
        let issue = Issue::new(at, Cause::Gc).after(after);
        let mut done = after;
        for unit in 0..self.lines.units {
            let number = self.lines.number(line, unit);
            let chunk = self.lines.chunks[number];
            if chunk.is_offline {
                continue;
            }
            let pages = if chunk.is_closed { self.shape.chunk_pages } else { chunk.written };
            let sectors = pages * self.shape.page_sectors();
            let address = self.chunk(line, unit);
            let erased = self.below.erase_chunk(address, sectors, &self.shape.geometry, issue)?;
            self.lines.chunks[number] = Chunk { is_offline: erased.is_err(), ..Chunk::default() };
            if let Ok(erased) = erased {
                done = self.below.device.join(done, erased);
            }
        }
        self.lines.erasing = done;
        self.lines.seqs[line as usize] = 0;
        if self.data_pages(line) == 0 {
            self.blocks.infos[line as usize].state = BlockState::Bad;
        } else {
            self.release(line, done);
        }
        self.check_lines()
    }

    /// Stops if too few lines are left for the logical capacity and what is kept free.
    pub(super) fn check_lines(&mut self) -> NamespaceResult<()> {
        let lines = 0..self.shape.identity.lines;
        let good = lines.filter(|line| self.blocks.infos[*line as usize].state != BlockState::Bad);
        let (pages, most) = good.fold((0, 0), |(pages, most), line| {
            let data = u64::from(self.data_pages(line));
            (pages + data, data.max(most))
        });
        let needed = u64::from(self.shape.identity.logical_pages) + (u64::from(self.lines.low) + 2) * most;
        if pages < needed { Err(self.stop(TOO_FEW_LINES)) } else { Ok(()) }
    }
}
