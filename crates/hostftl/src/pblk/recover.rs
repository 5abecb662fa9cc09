//! What a start makes of what the lines hold.

use super::format::{self, Drop};
use super::lines::{Chunk, Frontier};
use super::sabotage::Sabotage;
use super::{INFO, Kind, Pblk};
use crate::error::HostFtlError;
use nandscape_core::command::Payload;
use nandscape_core::recovery::RecoverySource;
use nandscape_core::vector::{ChunkState, MOST_ADDRESSES, SectorAddress, VectorCommand};
use nandscape_core::{Cause, Issue, Lpn, Oob, OutOfBand, Ppn, RecoveryReport, SimTime, Subsystem, Token};
use nandscape_ftl::victim::BlockState;

type Result<T> = std::result::Result<T, HostFtlError>;

const AT: SimTime = SimTime::ZERO;
const META: Issue = Issue::new(AT, Cause::Meta);

/// A page that a start found.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Number of the page in its line.
    index: u32,
    place: Ppn,
    kind: Kind,
    lpn: Lpn,
}

/// A line that a start found.
#[derive(Debug)]
struct Found {
    seq: u32,
    line: u32,
    entries: Vec<Entry>,
}

impl<S: Subsystem> Pblk<S> {
    /// Makes the map of what the lines hold.
    pub(super) fn start(&mut self) -> Result<()> {
        self.find_chunks()?;
        let mut found = Vec::new();
        let mut was_clean = true;
        for line in 0..self.shape.identity.lines {
            if !self.shape.stores_data || self.lines.of(line).iter().all(|chunk| chunk.written == 0) {
                continue;
            }
            self.recovery.scanned_blocks += 1;
            let listed = self.read_end(line)?;
            was_clean &= listed.is_some();
            let one = match listed {
                Some(listed) => Some(listed),
                None => self.scan(line)?,
            };
            if let Some(one) = one {
                self.lines.seqs[line as usize] = one.seq;
                self.lines.next_seq = self.lines.next_seq.max(one.seq + 1);
                found.push(one);
            }
        }
        if self.sabotage != Sabotage::IgnoreSequence {
            found.sort_by_key(|found| found.seq);
        }
        for one in &found {
            self.replay(one)?;
        }
        self.count_valid();
        let last = found.iter().max_by_key(|found| found.seq);
        let next_index = last.and_then(|last| last.entries.last()).map_or(0, |entry| entry.index + 1);
        self.adopt_lines(last.map(|last| (last.line, last.seq, next_index)));
        self.recovery.was_clean = was_clean;
        self.recovery.live_pages = self.map.live;
        self.recovery.source = RecoverySource::Scan;
        if found.is_empty() {
            self.recovery = RecoveryReport { was_clean: true, ..RecoveryReport::default() };
        }
        // What there is can be read.
        let _ = self.check_lines();
        Ok(())
    }

    /// What the device says of the chunks. Pages that an open one does not give back yet are made readable.
    fn find_chunks(&mut self) -> Result<()> {
        let (sectors, geometry) = (self.shape.page_sectors(), self.shape.geometry);
        if geometry.cached > 0 {
            for found in self.below.chunks()?.iter().filter(|found| found.state == ChunkState::Open) {
                let range =
                    (found.write_pointer, (found.write_pointer + geometry.cached).min(geometry.sectors));
                let padded = self.below.pad_chunk(found.start, range, &geometry, META)?;
                self.lines.done = self.below.device.join(self.lines.done, padded);
            }
        }
        let reports = self.below.chunks()?;
        for line in 0..self.shape.identity.lines {
            for unit in 0..self.lines.units {
                let address = self.chunk(line, unit);
                let found = &reports[geometry.chunk_number(address) as usize];
                let number = self.lines.number(line, unit);
                self.lines.chunks[number] = Chunk {
                    written: found.write_pointer / sectors,
                    is_closed: found.state == ChunkState::Closed,
                    is_offline: found.state == ChunkState::Offline,
                };
            }
        }
        Ok(())
    }

    /// The pages of a line that was written as it should be, by its end metadata.
    fn read_end(&mut self, line: u32) -> Result<Option<Found>> {
        let chunk_pages = self.shape.chunk_pages;
        let good: Vec<u32> = (0..self.lines.units)
            .filter(|unit| !self.lines.chunks[self.lines.number(line, *unit)].is_offline)
            .collect();
        let is_full =
            good.iter().all(|unit| self.lines.chunks[self.lines.number(line, *unit)].written == chunk_pages);
        if !is_full || good.is_empty() {
            return Ok(None);
        }
        let stripes = self.shape.stripes(good.len() as u32);
        let place = |index: u64| {
            let (chunk, page) = stripes.place(index);
            self.place(line, good[chunk as usize], page)
        };
        let first = stripes.all() - u64::from(self.shape.end_pages);
        let rows = self.shape.end_pages / self.shape.row;
        let places: Vec<Ppn> = (0..rows).map(|row| place(first + u64::from(row * self.shape.row))).collect();
        let all: Vec<Ppn> = (0..first).map(place).collect();
        let (mut list, mut seq) = (Vec::new(), None);
        for (part, place) in (0..).zip(places) {
            let Some(mut page) = self.read_metadata(place)? else { return Ok(None) };
            let Some(decoded) = format::decode(&self.shape.identity, &mut page) else { return Ok(None) };
            let (header, numbers) = decoded.map_err(start_error)?;
            let is_next = header.kind == Kind::End && header.line == line && header.part == part;
            if !is_next || *seq.get_or_insert(header.seq) != header.seq {
                return Ok(None);
            }
            list.extend_from_slice(numbers.get(..header.count as usize).unwrap_or_default());
        }
        // A chunk that could not be erased may hold all of a use before, with its end metadata.
        let firsts: Vec<Ppn> = good.iter().map(|unit| self.place(line, *unit, 0)).collect();
        let beside = self.read_beside(&firsts)?;
        let is_of_use = |oob: &Oob| format::place_of(oob).map(|(_, found, _)| found) == seq;
        if list.len() != all.len() || !beside.iter().all(is_of_use) {
            return Ok(None);
        }
        self.recovery.map_entries += list.len() as u64;
        let entries = (0..).zip(list).zip(all).filter_map(|((index, entry), place)| {
            let (kind, lpn) = format::entry_of(entry)?;
            Some(Entry { index, place, kind, lpn })
        });
        // Not the number of the last page: a full line takes no more.
        Ok(Some(Found { seq: seq.unwrap_or(0), line, entries: entries.collect() }))
    }

    /// The bytes of a page; `None` if it cannot be read.
    fn read_metadata(&mut self, place: Ppn) -> Result<Option<Vec<u8>>> {
        let list = self.sectors_of(place);
        let mut page = vec![0; self.shape.identity.page_bytes as usize];
        self.recovery.metadata_pages += 1;
        Ok(self.read_sectors(&list, Some(&mut page), META)?.ok().map(|_| page))
    }

    /// What lies beside pages; as beside padding where it cannot be read.
    fn read_beside(&mut self, places: &[Ppn]) -> Result<Vec<Oob>> {
        let mut found = vec![Oob::TORN; places.len()];
        for (places, oob) in places.chunks(MOST_ADDRESSES).zip(found.chunks_mut(MOST_ADDRESSES)) {
            let list: Box<[SectorAddress]> = places.iter().map(|place| self.address(*place)).collect();
            let read = VectorCommand::Read(list);
            let (_, errors) = self.below.vector(read, Payload::ReadOob(None, oob), META)?;
            self.recovery.scanned_pages += places.len() as u64;
            self.recovery.torn_pages += errors.0.len() as u64;
        }
        Ok(found)
    }

    /// The pages of a line by what lies beside them; `None` if it holds nothing of a line.
    fn scan(&mut self, line: u32) -> Result<Option<Found>> {
        let mut pages: Vec<(Ppn, Oob)> = Vec::new();
        for unit in 0..self.lines.units {
            let written = self.lines.chunks[self.lines.number(line, unit)].written;
            let places: Vec<Ppn> = (0..written).map(|page| self.place(line, unit, page)).collect();
            let beside = self.read_beside(&places)?;
            pages.extend(places.into_iter().zip(beside));
        }
        let known = pages.iter().filter_map(|(place, oob)| Some((*place, format::place_of(oob)?, oob.lpn)));
        let known: Vec<_> = known.collect();
        let Some(seq) = known.iter().map(|(_, (_, seq, _), _)| *seq).max() else { return Ok(None) };
        // Others are left of a use before: chunks of which not all were erased.
        let entries = known.iter().filter(|(_, (_, found, _), _)| *found == seq);
        let mut entries: Vec<Entry> = entries
            .map(|(place, (kind, _, index), lpn)| Entry {
                index: *index,
                place: *place,
                kind: *kind,
                lpn: *lpn,
            })
            .collect();
        entries.sort_by_key(|entry| entry.index);
        if let Some(start) = entries.iter().find(|entry| entry.kind == Kind::Start).copied()
            && let Some(mut page) = self.read_metadata(start.place)?
            && let Some(decoded) = format::decode(&self.shape.identity, &mut page)
        {
            decoded.map_err(start_error)?;
        }
        Ok(Some(Found { seq, line, entries }))
    }

    fn replay(&mut self, found: &Found) -> Result<()> {
        let logical = self.shape.identity.logical_pages;
        for entry in &found.entries {
            let lpn = entry.lpn;
            match entry.kind {
                Kind::User | Kind::Gc | Kind::Lost => {
                    if lpn.0 >= logical {
                        let reason = format!("page {} behind the last one in line {}", lpn.0, found.line);
                        return Err(start_error(reason));
                    }
                    let old = self.map.get(lpn);
                    self.map.set(lpn, entry.place, old);
                    self.owners[entry.place.index()] = lpn;
                    if entry.kind == Kind::Lost {
                        self.lost.insert(lpn.0);
                    } else {
                        self.lost.remove(&lpn.0);
                    }
                }
                Kind::Drops => {
                    let Some(mut page) = self.read_metadata(entry.place)? else { continue };
                    let Some(Ok((header, numbers))) = format::decode(&self.shape.identity, &mut page) else {
                        continue;
                    };
                    let drops = format::drops_of(&numbers, header.count);
                    self.recovery.drop_records += drops.len() as u64;
                    for Drop { first, count, .. } in &drops {
                        let end = first.saturating_add(*count).min(logical);
                        let mut next = *first;
                        while let Some(lpn) = self.map.next_mapped(next, end) {
                            self.map.unset(lpn);
                            self.lost.remove(&lpn.0);
                            next = lpn.0 + 1;
                        }
                    }
                    self.keep_drops(drops, entry.place);
                }
                Kind::Pad | Kind::Start | Kind::End => {}
            }
        }
        Ok(())
    }

    /// Valid pages, of the map; those of drops were counted.
    fn count_valid(&mut self) {
        for lpn in 0..self.shape.identity.logical_pages {
            let place = self.map.get(Lpn(lpn));
            if place.is_some() {
                self.blocks.set(place, self.blocks.block_of(place));
            }
        }
        self.now = self.map.live;
    }

    /// Lines go on as they were found: the last one takes more pages if it can.
    fn adopt_lines(&mut self, last: Option<(u32, u32, u32)>) {
        for line in 0..self.shape.identity.lines {
            let chunks = self.lines.of(line);
            let is_free = chunks.iter().all(|chunk| chunk.written == 0 && !chunk.is_closed);
            let can_go_on = chunks.iter().any(|chunk| !chunk.is_closed && !chunk.is_offline);
            let data_pages = self.data_pages(line);
            let info = &mut self.blocks.infos[line as usize];
            let valid = info.valid;
            if data_pages == 0 && valid == 0 {
                info.state = BlockState::Bad;
            } else if is_free {
                self.release(line, Token::NONE);
            } else if valid == 0 {
                info.state = BlockState::Victim;
                self.lines.emptied.push_back((line, 0));
            } else if let Some((_, seq, index)) = last.filter(|(last, ..)| *last == line && can_go_on) {
                info.state = BlockState::Open;
                self.lines.open = Some(Frontier {
                    line,
                    seq,
                    index: if self.sabotage == Sabotage::RestartIndex { 0 } else { index },
                    unit: 0,
                    turn: 0,
                    data_left: 0,
                    is_regular: false,
                    list: Vec::new(),
                    after: Token::NONE,
                    done: Token::NONE,
                });
            } else {
                info.state = BlockState::Sealed;
                self.victims.sealed(line, valid, self.now);
            }
        }
    }
}

fn start_error(reason: String) -> HostFtlError {
    HostFtlError::Start { layer: INFO.name, reason }
}
