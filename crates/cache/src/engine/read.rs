//! Reads: from the cache what is there, the rest from the disk in as few commands as possible, and into the
//! cache what may enter.

use super::directory::Piece;
use super::timeline::{Bytes, Moment, Place};
use super::{Cache, CacheError, Mode, Result, counting};
use nandscape_core::{BlockCommand, Extent, Op};
use nandscape_policies::BlockKey;
use nandscape_policies::admission::Bypass;
use nandscape_policies::eviction::Eviction;

/// Bytes of one disk read at most, so that the memory it passes through is bounded.
const RUN_MAX: u64 = 1 << 20;

/// Sub-blocks that a disk read brings, and their slot, which is pinned meanwhile.
#[derive(Clone, Copy)]
pub(super) struct Fill {
    slot: u32,
    mask: u16,
}

/// A disk read that is being put together.
#[derive(Default)]
struct Run {
    start: u64,
    end: u64,
    fills: Vec<Fill>,
}

/// What a read needs all the way down.
struct Reading<'a> {
    volume: u16,
    extent: Extent,
    out: Option<&'a mut [u8]>,
    run: Run,
}

impl Reading<'_> {
    /// Where a range of the volume, which lies in the request, goes.
    fn out(&mut self, start: u64, end: u64) -> Bytes<'_> {
        let first = self.extent.offset;
        self.out.as_mut().map_or(Bytes::None, |out| {
            Bytes::Read(&mut out[(start - first) as usize..(end - first) as usize])
        })
    }
}

impl<E: Eviction> Cache<E> {
    pub(super) fn read(&mut self, volume: u16, command: BlockCommand, out: Option<&mut [u8]>) -> Result<()> {
        let asked = self.ask(volume, command)?;
        let asked = if self.active_mode().caches_reads() { asked } else { Err(Bypass::Mode) };
        if asked.is_err() {
            self.meter.goes_past();
        }
        let mut reading = Reading {
            volume,
            extent: command.extent,
            out,
            run: Run { fills: std::mem::take(&mut self.fills), ..Run::default() },
        };
        let mut done = Ok(());
        let (first, end) = self.directory.shape.blocks(command.extent);
        for block in first..end {
            let piece = self.directory.piece(volume, command.extent, block);
            done = self.read_piece(&mut reading, piece, asked);
            if done.is_err() {
                self.drop_run(&mut reading.run);
                break;
            }
        }
        let done = done.and_then(|()| self.end_run(&mut reading));
        self.fills = reading.run.fills;
        done
    }

    fn read_piece(
        &mut self,
        reading: &mut Reading<'_>,
        piece: Piece,
        asked: Result<(), Bypass>,
    ) -> Result<()> {
        let key = BlockKey::new(reading.volume, piece.block);
        let touched = self.directory.shape.touched(piece);
        let bytes = u64::from(piece.end - piece.start);
        let found = self.directory.find(key);
        if let Some(why) = self.shuns(found, key, piece) {
            if let Some(slot) = found {
                self.throw_out(slot)?;
                self.meter.own().read_invalidates += 1;
            }
            self.meter.read(counting::Piece::Past(why), bytes);
            return self.add_run(reading, piece, piece.start, piece.end);
        }
        if let Some(slot) = found {
            self.directory.hit(slot);
            let there = if self.active_mode() == Mode::PassThrough {
                self.directory.slots.dirty_bits(slot)
            } else {
                self.directory.slots.valid(slot)
            };
            if touched & !there == 0 {
                self.meter.read(counting::Piece::Hit, bytes);
                return self.read_slot(reading, slot, piece);
            }
            return self.read_partial(reading, slot, piece, there);
        }
        let mut slot = self.insert(key, Op::Read, asked)?;
        if slot == Err(Bypass::NoRoom) && !reading.run.fills.is_empty() {
            // The request itself holds the slots; with its first part done they may leave.
            self.end_run(reading)?;
            slot = self.insert_somewhere(key)?;
        }
        match slot {
            Ok(slot) => {
                self.meter.read(counting::Piece::Miss, bytes);
                let mask = if self.fills_blocks() { self.directory.shape.whole(piece) } else { touched };
                self.add_fill(reading, slot, mask, piece)
            }
            Err(why) => {
                self.meter.read(counting::Piece::Past(why), bytes);
                self.add_run(reading, piece, piece.start, piece.end)
            }
        }
    }

    fn read_slot(&mut self, reading: &mut Reading<'_>, slot: u32, piece: Piece) -> Result<()> {
        let first = self.directory.shape.offset(piece.block);
        let bytes = reading.out(first + u64::from(piece.start), first + u64::from(piece.end));
        let read = self.at_slot(Op::Read, slot, piece.start, piece.end, bytes, Moment::PAST)?;
        self.wait(read);
        self.watch_device(Op::Read, read);
        Ok(())
    }

    /// Reads sub-blocks that are there from the slot, and the others from the disk.
    fn read_partial(&mut self, reading: &mut Reading<'_>, slot: u32, piece: Piece, there: u16) -> Result<()> {
        let mut rest = self.directory.shape.touched(piece);
        let mut cached = 0;
        while rest != 0 {
            let is_there = there >> rest.trailing_zeros() & 1 == 1;
            let alike = rest & if is_there { there } else { !there };
            let Some((start, end, others)) = self.directory.shape.run(alike, piece.limit) else { break };
            let mask = alike & !others;
            rest &= !mask;
            let cut = Piece { start: start.max(piece.start), end: end.min(piece.end), ..piece };
            if is_there {
                cached += u64::from(cut.end - cut.start);
                self.read_slot(reading, slot, cut)?;
            } else if self.active_mode().caches_reads() {
                self.add_fill(reading, slot, mask, cut)?;
            } else {
                self.add_run(reading, piece, cut.start, cut.end)?;
            }
        }
        self.meter.read(counting::Piece::Partial(cached), u64::from(piece.end - piece.start));
        Ok(())
    }

    /// The disk read is to bring these sub-blocks into the slot.
    fn add_fill(&mut self, reading: &mut Reading<'_>, slot: u32, mask: u16, piece: Piece) -> Result<()> {
        let Some((start, end, _)) = self.directory.shape.run(mask, piece.limit) else { return Ok(()) };
        let done = self.add_run(reading, piece, start, end);
        if done.is_err() {
            self.drop_fill(Fill { slot, mask });
        } else {
            self.directory.pinned.set(slot);
            reading.run.fills.push(Fill { slot, mask });
        }
        done
    }

    /// The disk read is to bring these bytes of a block.
    fn add_run(&mut self, reading: &mut Reading<'_>, piece: Piece, start: u32, end: u32) -> Result<()> {
        let first = self.directory.shape.offset(piece.block);
        let (start, end) = (first + u64::from(start), first + u64::from(end));
        let run = &mut reading.run;
        if run.start == run.end {
            (run.start, run.end) = (start, end);
        } else if run.end == start && end - run.start <= RUN_MAX {
            run.end = end;
        } else {
            self.end_run(reading)?;
            (reading.run.start, reading.run.end) = (start, end);
        }
        Ok(())
    }

    /// Reads from the disk what was put together, gives the host its part and fills the slots.
    fn end_run(&mut self, reading: &mut Reading<'_>) -> Result<()> {
        let (start, end) = (reading.run.start, reading.run.end);
        if start == end {
            return Ok(());
        }
        let run = Extent::new(start, end - start);
        let volume = reading.volume;
        let inside = (start.max(reading.extent.offset), end.min(reading.extent.end()));
        let is_direct = reading.out.is_some() && inside == (start, end);
        let mut memory = self.buffers.take(if is_direct { 0 } else { run.len });
        let target = if is_direct { reading.out(start, end) } else { Bytes::into(&mut memory) };
        let read = self.at_disk(Op::Read, volume, run, target, Moment::PAST);
        if let Ok(read) = read {
            self.wait(read);
            if !is_direct && let Bytes::Read(out) = reading.out(inside.0, inside.1) {
                out.copy_from_slice(&memory[(inside.0 - start) as usize..(inside.1 - start) as usize]);
            }
        }
        reading.run.start = end;
        let mut fills = std::mem::take(&mut reading.run.fills);
        let mut done = read;
        for fill in fills.drain(..) {
            if let Ok(read) = done
                && (!self.timeline.is_past(read) || self.is_worth(fill.slot, fill.mask))
            {
                let bytes = if is_direct { reading.out(start, end) } else { Bytes::into(&mut memory) };
                done = self.fill(fill, start, &bytes, read).map(|()| read);
            }
            self.drop_fill(fill);
        }
        reading.run.fills = fills;
        self.buffers.give(memory);
        done.map(drop)
    }

    /// Writes what a disk read brings, from `start` of the volume on, into a slot.
    fn fill(&mut self, fill: Fill, start: u64, bytes: &Bytes<'_>, read: Moment) -> Result<()> {
        self.make_note_room()?;
        let entry = self.directory.slots.entry(fill.slot);
        let limit = self.directory.limit(entry.key);
        let Some((from, to, _)) = self.directory.shape.run(fill.mask, limit) else { return Ok(()) };
        let first = (self.directory.shape.offset(entry.key.block()) + u64::from(from) - start) as usize;
        let bytes = match bytes {
            Bytes::Read(bytes) => Bytes::Write(&bytes[first..first + (to - from) as usize]),
            _ => Bytes::None,
        };
        let extent = self.directory.place(fill.slot, from, to);
        self.meter.filled(entry.key.volume(), extent.len);
        let place = Place::slot(fill.slot);
        let free_at = self.timeline.free_at(place);
        let after = self.timeline.join(free_at, read);
        let has_begun =
            self.timeline.submit_fill(fill.slot, extent, bytes, after).map_err(CacheError::Fast)?;
        self.timeline.hold(place, read);
        if has_begun {
            self.record(fill.slot, entry.valid | fill.mask, entry.dirty);
            self.rely_on_disk(fill.slot, fill.mask & !entry.valid, 0);
        } else {
            self.durability.record_later(&mut self.directory.slots, fill.slot, entry.valid | fill.mask);
        }
        Ok(())
    }

    /// A fill has ended, or did not take place.
    fn drop_fill(&mut self, fill: Fill) {
        self.directory.pinned.clear(fill.slot);
        if self.directory.slots.valid(fill.slot) == 0 {
            self.directory.unsettle(fill.slot);
        }
    }

    fn drop_run(&mut self, run: &mut Run) {
        for fill in run.fills.drain(..) {
            self.drop_fill(fill);
        }
    }
}
