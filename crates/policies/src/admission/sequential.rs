//! Long sequential streams go past the cache.

use super::streams::Streams;
use super::{Admission, Ask, Bypass, Entry};
use nandscape_core::{Extent, Info, Op, keys, words};

keys! { PARAMS:
    pub SEQUENTIAL_READ: u64 = size(0, 1 << 50) or "1MiB",
        "bytes of a stream of reads that are cached at most; 0: no limit";
    SEQUENTIAL_WRITE: u64 = size(0, 1 << 50) or "1MiB",
        "bytes of a stream of writes that are cached at most; 0: no limit";
    SEQUENTIAL_STREAMS: u32 = int(1, 1 << 20) or "128", "streams that are followed at a time";
    SEQUENTIAL_EXPIRE: u64 = time() or "0s", "pause after which a stream is over; 0s: never";
    SEQUENTIAL_HEAD: Head = word() or "late",
        "what becomes of a long stream's beginning: kept, not inserted if it turns out in time (late), or \
         also dropped from the cache again (drop)";
}

/// Registry entry.
pub const ENTRY: Entry = Entry {
    info: Info {
        name: "sequential",
        summary: "what a sequential stream reads or writes beyond a length is not cached",
        source: "FlashCache's skip_seq_thresh_kb and Open-CAS's sequential cutoff, with separate lengths and no overshoot",
        params: PARAMS,
    },
    build: |setup| {
        let params = setup.params;
        Ok(Box::new(Sequential {
            thresholds: [params.get(SEQUENTIAL_READ), params.get(SEQUENTIAL_WRITE)],
            head: params.get(SEQUENTIAL_HEAD),
            streams: Streams::new(params.get(SEQUENTIAL_STREAMS), params.get(SEQUENTIAL_EXPIRE)),
            retracted: Vec::new(),
            long: 0,
            late: 0,
        }))
    },
};

/// What becomes of the beginning of a stream that was cached before it became long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Head {
    Keep,
    Late,
    Drop,
}

words!(Head: Keep = "keep", Late = "late", Drop = "drop");

/// The request that takes a stream beyond the threshold bypasses as a whole, and so does every later one: of
/// no stream more than the threshold enters the cache. A single request longer than the threshold bypasses at
/// once.
///
/// A request belongs to a stream if it begins exactly where the stream ended, on the same volume and in the
/// same direction.
#[derive(Debug)]
struct Sequential {
    /// Of reads, of writes; 0 means none.
    thresholds: [u64; 2],
    head: Head,
    streams: Streams,
    retracted: Vec<(u16, Extent)>,
    long: u64,
    /// Reads that were let in and not confirmed.
    late: u64,
}

/// Reads and writes count apart; nothing else is cached.
fn side(op: Op) -> Option<u8> {
    match op {
        Op::Read => Some(0),
        Op::Write => Some(1),
        Op::Trim | Op::WriteZeroes | Op::Flush => None,
    }
}

/// Retracted ranges that nobody fetched are kept up to so many; the rest stays cached, which is harmless.
const RETRACTED: usize = 1024;

impl Admission for Sequential {
    fn request(&mut self, ask: &Ask) -> Result<(), Bypass> {
        let Some(side) = side(ask.op).filter(|_| ask.extent.len > 0) else { return Ok(()) };
        let (stream, _) = self.streams.note((ask.volume, side), ask.extent, ask.at);
        let threshold = self.thresholds[usize::from(side)];
        if threshold == 0 || (stream.bytes() <= threshold && !stream.is_long) {
            return Ok(());
        }
        if !stream.is_long {
            stream.is_long = true;
            self.long += 1;
            let head = Extent::new(stream.start, ask.extent.offset - stream.start);
            if self.head == Head::Drop && head.len > 0 && self.retracted.len() < RETRACTED {
                self.retracted.push((ask.volume, head));
            }
        }
        Err(Bypass::Sequential)
    }

    fn confirm(&mut self, ask: &Ask) -> Result<(), Bypass> {
        let Some(side) = side(ask.op).filter(|_| self.head != Head::Keep) else { return Ok(()) };
        if self.long > 0 && self.streams.long_over((ask.volume, side), ask.extent).is_some() {
            self.late += 1;
            return Err(Bypass::Sequential);
        }
        Ok(())
    }

    fn retract(&mut self, out: &mut Vec<(u16, Extent)>) {
        out.append(&mut self.retracted);
    }

    fn counts(&self, out: &mut Vec<(&'static str, u64)>) {
        out.extend([
            ("sequential_streams", self.streams.begun),
            ("sequential_streams_forgotten", self.streams.forgotten),
            ("sequential_streams_long", self.long),
            ("sequential_reads_late", self.late),
        ]);
    }

    fn memory_bytes(&self) -> u64 {
        self.streams.memory_bytes() + (self.retracted.capacity() * size_of::<(u16, Extent)>()) as u64
    }
}
