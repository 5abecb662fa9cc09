//! What is counted while commands are served: the counters of each volume and of the cache, from which every
//! design's fields follow.
//!
//! A piece is counted once, with what became of it, so the identities of [`Counters::check`] hold whatever
//! fails. Nothing here allocates, but for a volume that is attached and for more answers under way than there
//! ever were.

use crate::counters::{CacheCounters, Counters};
use nandscape_core::{BlockCommand, Op, SimTime};
use nandscape_policies::admission::Bypass;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// A read: all of it was there. A write: its block was cached.
    Hit,
    /// A read: its block was cached, and of the piece so many bytes.
    Partial(u64),
    /// Its block was taken in.
    Miss,
    Past(Bypass),
    /// A write went past the cache, and its block was cached.
    PastCached(Bypass),
}

/// The request under way.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    pieces: u32,
    hits: u32,
    is_partial: bool,
    is_past: bool,
}

/// An answer whose time is not known yet.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    volume: u16,
    is_write: bool,
    arrival: SimTime,
}

#[derive(Debug, Default)]
pub(super) struct Meter {
    pub counters: CacheCounters,
    /// Whose command is under way.
    volume: usize,
    is_write: bool,
    tally: Tally,
    waiting: Vec<Waiting>,
    free: Vec<u32>,
}

impl Meter {
    /// A volume was added.
    pub fn attach(&mut self) {
        self.counters.volumes.push(Counters::default());
    }

    /// Of the volume whose command is under way.
    #[inline]
    pub fn own(&mut self) -> &mut Counters {
        &mut self.counters.volumes[self.volume]
    }

    #[inline]
    pub fn of(&mut self, volume: u16) -> &mut Counters {
        &mut self.counters.volumes[usize::from(volume)]
    }

    pub const fn shared(&mut self) -> &mut Counters {
        &mut self.counters.shared
    }

    /// A command comes.
    #[inline]
    pub fn begin(&mut self, volume: u16, command: BlockCommand) {
        self.volume = usize::from(volume);
        self.is_write = command.op != Op::Read;
        self.tally = Tally::default();
        let len = command.extent.len;
        let own = &mut self.counters.volumes[self.volume];
        match command.op {
            Op::Read => {
                own.reads += 1;
                own.read_bytes += len;
                own.request_sizes.record(len);
            }
            Op::Write => {
                own.writes += 1;
                own.write_bytes += len;
                own.request_sizes.record(len);
            }
            Op::Trim | Op::WriteZeroes => {
                own.trims += 1;
                own.trim_bytes += len;
            }
            Op::Flush => own.flushes += 1,
        }
    }

    /// The command under way begins anew, since something had failed.
    #[cold]
    pub fn try_again(&mut self) {
        self.tally = Tally::default();
    }

    /// The request under way is to go past the cache.
    #[inline]
    pub const fn goes_past(&mut self) {
        self.tally.is_past = true;
    }

    /// A piece of the read under way, of so many bytes.
    #[inline]
    pub fn read(&mut self, piece: Piece, bytes: u64) {
        self.tally.pieces += 1;
        let own = &mut self.counters.volumes[self.volume];
        own.read_pieces += 1;
        own.piece_sizes.record(bytes);
        match piece {
            Piece::Hit => {
                own.read_piece_hits += 1;
                own.read_hit_bytes += bytes;
                self.tally.hits += 1;
            }
            Piece::Partial(cached) => {
                own.read_piece_partial_hits += 1;
                own.read_hit_bytes += cached;
                self.tally.is_partial = true;
            }
            Piece::Miss => own.read_piece_misses += 1,
            Piece::Past(why) | Piece::PastCached(why) => {
                own.bypass.read(why, bytes);
                self.tally.is_past = true;
            }
        }
    }

    /// A piece of the write under way, of so many bytes; whether its block was dirty.
    #[inline]
    pub fn write(&mut self, piece: Piece, bytes: u64, was_dirty: bool) {
        self.tally.pieces += 1;
        let own = &mut self.counters.volumes[self.volume];
        own.write_pieces += 1;
        own.piece_sizes.record(bytes);
        match piece {
            Piece::Hit | Piece::Partial(_) => {
                own.write_piece_hits += 1;
                own.dirty_write_piece_hits += u64::from(was_dirty);
                own.write_hit_bytes += bytes;
                own.dirty_write_hit_bytes += if was_dirty { bytes } else { 0 };
                self.tally.hits += 1;
            }
            Piece::Miss => own.write_piece_misses += 1,
            Piece::PastCached(why) => {
                own.bypass.write(why, bytes);
                own.write_hit_bytes += bytes;
                self.tally.hits += 1;
                self.tally.is_past = true;
            }
            Piece::Past(why) => {
                own.bypass.write(why, bytes);
                self.tally.is_past = true;
            }
        }
    }

    /// The command under way has been done, or given up.
    #[inline]
    pub fn end(&mut self, op: Op) {
        let Tally { pieces, hits, is_partial, is_past } = self.tally;
        let own = &mut self.counters.volumes[self.volume];
        let is_whole = pieces > 0 && pieces == hits;
        let is_part = hits > 0 || is_partial;
        let place = match (op, is_past, is_whole, is_part) {
            (Op::Read, false, true, _) => &mut own.read_hits,
            (Op::Read, false, false, true) => &mut own.read_partial_hits,
            (Op::Read, false, false, false) => &mut own.read_misses,
            (Op::Read, true, true, _) => &mut own.bypassed_read_hits,
            (Op::Read, true, false, _) => &mut own.bypassed_read_misses,
            (Op::Write, false, true, _) => &mut own.write_hits,
            (Op::Write, false, false, true) => &mut own.write_partial_hits,
            (Op::Write, false, false, false) => &mut own.write_misses,
            (Op::Write, true, true, _) => &mut own.bypassed_write_hits,
            (Op::Write, true, false, _) => &mut own.bypassed_write_misses,
            (Op::Trim | Op::WriteZeroes | Op::Flush, ..) => return,
        };
        *place += 1;
    }

    /// A block was taken in for the command under way.
    pub fn inserted(&mut self) {
        let is_write = self.is_write;
        let own = self.own();
        *(if is_write { &mut own.write_insertions } else { &mut own.read_insertions }) += 1;
    }

    /// A block left to make room for the command under way.
    pub fn replaced(&mut self, was_dirty: bool) {
        let is_write = self.is_write;
        let own = self.own();
        *(if is_write { &mut own.write_replacements } else { &mut own.read_replacements }) += 1;
        own.dirty_replacements += u64::from(was_dirty);
    }

    /// A command with data went to the fast store on behalf of a volume.
    #[inline]
    pub fn fast(&mut self, volume: u16, op: Op, bytes: u64) {
        let of = self.of(volume);
        match op {
            Op::Read => {
                of.fast_reads += 1;
                of.fast_read_bytes += bytes;
            }
            Op::Write => {
                of.fast_writes += 1;
                of.fast_write_bytes += bytes;
            }
            Op::Trim | Op::WriteZeroes | Op::Flush => {}
        }
    }

    /// A command went to the disk of a volume.
    #[inline]
    pub fn disk(&mut self, volume: u16, op: Op, bytes: u64) {
        let of = self.of(volume);
        match op {
            Op::Read => {
                of.disk_reads += 1;
                of.disk_read_bytes += bytes;
            }
            Op::Write => {
                of.disk_writes += 1;
                of.disk_write_bytes += bytes;
            }
            // Flushes are counted where they are made (`Side::flushes`).
            Op::Trim | Op::WriteZeroes | Op::Flush => {}
        }
    }

    /// What a read had missed is written to the fast store.
    pub fn filled(&mut self, volume: u16, bytes: u64) {
        self.fast(volume, Op::Write, bytes);
        let of = self.of(volume);
        of.fill_writes += 1;
        of.fill_bytes += bytes;
    }

    /// A block became dirty, or was dirty and became clean.
    #[inline]
    pub fn turned(&mut self, volume: u16, is_dirty: bool) {
        let of = self.of(volume);
        *(if is_dirty { &mut of.dirtied } else { &mut of.cleaned }) += 1;
    }

    /// A block was written to the disk since something else could not go on without, and leaves.
    pub fn forced(&mut self, volume: u16) {
        let of = self.of(volume);
        of.cleanings += 1;
        of.forced_cleanings += 1;
        of.cleaned += 1;
    }

    /// A write to the disk, of so many bytes, that cleaning makes.
    pub fn cleaning_write(&mut self, volume: u16, bytes: u64) {
        let of = self.of(volume);
        of.cleaning_writes += 1;
        of.cleaning_bytes += bytes;
    }

    /// The disk of a volume has failed a command.
    #[cold]
    pub fn disk_failed(&mut self, volume: u16, op: Op) {
        let of = self.of(volume);
        *(if op == Op::Read { &mut of.disk_read_errors } else { &mut of.disk_write_errors }) += 1;
    }

    /// The fast store has failed a command.
    #[cold]
    pub fn fast_failed(&mut self, op: Op) {
        let shared = self.shared();
        *(if op == Op::Read { &mut shared.fast_read_errors } else { &mut shared.fast_write_errors }) += 1;
    }

    /// A commit of so many changes, with writes of so many bytes in all.
    pub fn committed(&mut self, changes: u64, writes: u64, bytes: u64) {
        let shared = self.shared();
        shared.metadata_commits += 1;
        shared.metadata_writes += writes;
        shared.metadata_bytes += bytes;
        shared.metadata_batched += changes.saturating_sub(writes);
    }

    /// The answer to the command under way, which came at `arrival`, is given at this time.
    #[inline]
    pub fn answered(&mut self, arrival: SimTime, answer: SimTime) {
        let is_write = self.is_write;
        self.own().answered(is_write, arrival, answer);
    }

    /// The answer's time is not known yet: gives a number for [`Meter::late_answer`].
    pub fn answer_later(&mut self, arrival: SimTime) -> u32 {
        let waiting = Waiting { volume: self.volume as u16, is_write: self.is_write, arrival };
        if let Some(number) = self.free.pop() {
            self.waiting[number as usize] = waiting;
            return number;
        }
        self.waiting.push(waiting);
        self.waiting.len() as u32 - 1
    }

    /// The answer with this number is given now.
    pub fn late_answer(&mut self, number: u32, answer: SimTime) {
        let Waiting { volume, is_write, arrival } = self.waiting[number as usize];
        self.free.push(number);
        self.of(volume).answered(is_write, arrival, answer);
    }

    /// Counts from zero.
    pub fn reset(&mut self) {
        self.counters = CacheCounters::new(self.counters.volumes.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_core::{Extent, Hint};

    fn request(meter: &mut Meter, op: Op, pieces: &[Piece], is_past: bool) {
        let extent = Extent::new(0, 4096 * pieces.len() as u64);
        meter.begin(0, BlockCommand::new(op, extent, Hint::default()));
        if is_past {
            meter.goes_past();
        }
        for piece in pieces {
            if op == Op::Read { meter.read(*piece, 4096) } else { meter.write(*piece, 4096, false) }
        }
        meter.end(op);
        assert_eq!(meter.counters.volumes[0].check(), Ok(()), "{op:?} {pieces:?}");
    }

    #[test]
    fn every_mixture_of_pieces_is_one_kind_of_request() {
        let kinds = [
            Piece::Hit,
            Piece::Partial(512),
            Piece::Miss,
            Piece::Past(Bypass::NoRoom),
            Piece::PastCached(Bypass::Mode),
        ];
        let mut meter = Meter::default();
        meter.attach();
        for op in [Op::Read, Op::Write] {
            for is_past in [false, true] {
                request(&mut meter, op, &[], is_past);
                for first in kinds {
                    request(&mut meter, op, &[first], is_past);
                    for second in kinds {
                        request(&mut meter, op, &[first, second], is_past);
                    }
                }
            }
        }
        let counters = &meter.counters.volumes[0];
        assert_eq!((counters.reads, counters.writes), (62, 62));
    }

    #[test]
    fn a_request_is_named_by_the_worst_of_its_pieces() {
        let past = Piece::Past(Bypass::TooFewHits);
        let mut meter = Meter::default();
        meter.attach();
        let mut fields = |op, pieces: &[Piece], is_past| {
            let before = meter.counters.volumes[0].clone();
            request(&mut meter, op, pieces, is_past);
            let since = meter.counters.volumes[0].since(&before);
            let names = since.fields().filter(|(name, count)| {
                *count == 1
                    && (name.ends_with("_hits") || name.ends_with("_misses"))
                    && !name.contains("piece")
            });
            names.map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(fields(Op::Read, &[Piece::Hit, Piece::Hit], false), ["read_hits"]);
        assert_eq!(fields(Op::Read, &[Piece::Hit, Piece::Miss], false), ["read_partial_hits"]);
        assert_eq!(fields(Op::Read, &[Piece::Partial(512)], false), ["read_partial_hits"]);
        assert_eq!(fields(Op::Read, &[Piece::Miss, Piece::Miss], false), ["read_misses"]);
        assert_eq!(fields(Op::Read, &[Piece::Hit, past], false), ["bypassed_read_misses"]);
        assert_eq!(fields(Op::Read, &[Piece::Hit], true), ["bypassed_read_hits"]);
        assert_eq!(fields(Op::Write, &[Piece::Hit, Piece::Miss], false), ["write_partial_hits"]);
        assert_eq!(fields(Op::Write, &[Piece::PastCached(Bypass::Mode)], false), ["bypassed_write_hits"]);
        assert_eq!(fields(Op::Write, &[past, Piece::Hit], false), ["bypassed_write_misses"]);
    }

    #[test]
    fn an_answer_that_is_known_later_counts_for_its_own_volume() {
        let mut meter = Meter::default();
        meter.attach();
        meter.attach();
        let command = |op| BlockCommand::new(op, Extent::new(0, 4096), Hint::default());
        meter.begin(1, command(Op::Write));
        let write = meter.answer_later(SimTime(100));
        meter.begin(0, command(Op::Read));
        let read = meter.answer_later(SimTime(200));
        meter.late_answer(write, SimTime(400));
        meter.late_answer(read, SimTime(250));
        let [first, second] = &meter.counters.volumes[..] else { panic!("two volumes") };
        assert_eq!((first.read_ns, first.write_ns), (50, 0));
        assert_eq!((second.read_ns, second.write_ns), (0, 300));
        assert_eq!(meter.answer_later(SimTime(0)), read, "numbers are used again");
    }
}
