//! From the ring to the open line.

use super::format;
use super::ring::Ring;
use super::{Kind, Pblk};
use nandscape_core::command::Payload;
use nandscape_core::vector::{MOST_ADDRESSES, SectorAddress, VectorCommand};
use nandscape_core::{Cause, Issue, Lpn, NamespaceResult, Oob, Ppn, SimTime, Subsystem, Token};

impl<S: Subsystem> Pblk<S> {
    /// Writes pages of the ring: whole turns of a chunk, or with `pads` all of them, filled up to the
    /// smallest write.
    pub(super) fn write_ring(&mut self, pads: bool, at: SimTime) -> NamespaceResult<()> {
        while self.ring.waiting() > 0 {
            self.ready_line(at)?;
            let (unit, room) = self.next_turn().expect("the open line takes pages");
            let take = self.ring.waiting().min(room);
            if take < room && !pads {
                break;
            }
            self.write_turn(unit, take, at)?;
        }
        Ok(())
    }

    /// Writes so many pages of the ring to a chunk.
    fn write_turn(&mut self, unit: u32, take: u32, at: SimTime) -> NamespaceResult<()> {
        let pages = take.next_multiple_of(self.shape.row);
        let first = self.ring.written;
        let mut kinds = vec![(Kind::Pad, Lpn::PADDING); pages as usize];
        let bytes = self.buffer.len();
        let mut data = vec![0; pages as usize * bytes];
        let (mut after, mut has_user) = (Token::NONE, false);
        for offset in 0..take as usize {
            let slot = self.ring.index(first + offset as u64);
            let held = self.ring.slots[slot];
            kinds[offset] = (held.kind, held.lpn);
            data[offset * bytes..(offset + 1) * bytes].copy_from_slice(self.ring.data(slot));
            after = self.below.device.join(after, held.after);
            has_user |= held.kind == Kind::User;
        }
        let cause = match kinds[0].0 {
            _ if has_user => Cause::Host,
            Kind::Drops => Cause::Meta,
            _ => Cause::Gc,
        };
        let line = self.lines.open.as_ref().expect("a line is open").line;
        let page = self.lines.chunks[self.lines.number(line, unit)].written;
        let issue = Issue::new(at, cause).after(after);
        let (done, written) = self.program(unit, &kinds, &data, issue)?;
        for offset in 0..take.min(written) {
            let place = self.place(line, unit, page + offset);
            self.settle(first + u64::from(offset), place, done);
        }
        Ok(())
    }

    /// A page of the ring is at a place now.
    fn settle(&mut self, position: u64, place: Ppn, done: Token) {
        let index = self.ring.index(position);
        let slot = &mut self.ring.slots[index];
        (slot.place, slot.done) = (place, done);
        let (lpn, kind) = (slot.lpn, slot.kind);
        self.ring.written = position + 1;
        self.now += 1;
        if kind == Kind::Drops {
            self.drops_written(position, place);
        } else {
            self.owners[place.index()] = lpn;
            if self.map.get(lpn) == Ring::entry(index) {
                self.blocks.set(place, self.blocks.block_of(place));
            }
        }
        if kind == Kind::User {
            self.ring.user_written(done);
        }
    }

    /// Programs whole rows in a chunk of the open line, in commands that are as long as they can be. Returns
    /// how many pages are written; with fewer than asked for, the chunk takes no more.
    pub(super) fn program(
        &mut self,
        unit: u32,
        kinds: &[(Kind, Lpn)],
        data: &[u8],
        issue: Issue,
    ) -> NamespaceResult<(Token, u32)> {
        let open = self.lines.open.as_ref().expect("a line is open");
        let (line, seq, index) = (open.line, open.seq, open.index);
        let number = self.lines.number(line, unit);
        let sectors = self.shape.page_sectors();
        let after = self.below.device.join(issue.after, open.after);
        let issue = issue.after(after);
        let oob: Vec<Oob> =
            (index..).zip(kinds).map(|(index, (kind, lpn))| format::oob(*kind, *lpn, seq, index)).collect();
        let most = (MOST_ADDRESSES as u32 / sectors / self.shape.row * self.shape.row) as usize;
        let (mut done, mut written) = (Token::NONE, 0);
        for oob in oob.chunks(most) {
            let from = (self.lines.chunks[number].written) * sectors;
            let list: Box<[SectorAddress]> = (from..from + oob.len() as u32 * sectors)
                .map(|sector| self.chunk(line, unit).at(sector))
                .collect();
            let bytes = self.buffer.len();
            let part = &data[written as usize * bytes..][..oob.len() * bytes];
            let payload = Payload::WriteOob((bytes > 0).then_some(part), oob);
            let (token, errors) = self.below.vector(VectorCommand::Write(list), payload, issue)?;
            done = self.below.device.join(done, token);
            let failed = errors.0.iter().map(|(index, _)| u32::from(*index) / sectors).min();
            let good = failed.unwrap_or(oob.len() as u32);
            written += good;
            let chunk = &mut self.lines.chunks[number];
            chunk.written += good;
            chunk.is_closed = failed.is_some() || chunk.written == self.shape.chunk_pages;
            if failed.is_some() {
                break;
            }
        }
        let open = self.lines.open.as_mut().expect("a line is open");
        let taken = kinds.len() as u32;
        open.index += taken;
        open.turn -= taken.min(open.turn);
        open.data_left = open.data_left.saturating_sub(taken);
        open.is_regular &= written == taken;
        open.list.extend(kinds.iter().map(|(kind, lpn)| format::entry(*kind, *lpn)));
        let both = open.done;
        let both = self.below.device.join(both, done);
        self.lines.done = self.below.device.join(self.lines.done, done);
        let open = self.lines.open.as_mut().expect("a line is open");
        open.done = both;
        Ok((done, written))
    }
}
