//! Object loads with the published counts of the traces that OFTL was measured with [OFTL table 2], whose
//! recordings are not public.
//!
//! The table has the number of writes, their bytes, the closes of files, and the share of writes that are not
//! aligned to pages: these are met exactly, or to a few bytes. Ours is what it does not say:
//!
//! * A close ends a run of writes to one file. Runs have as many writes as each other, to one. A file is an
//!   object, which is flushed at its close.
//! * Sizes are exponential: bytes of unaligned writes, and pages of aligned ones, of which each has one at
//!   least. Aligned writes have the mean of all, or a page if that is less; unaligned ones have the rest.
//! * A write overwrites with the chance `overwrites`, from any byte of the file on, or any page; others
//!   append, aligned ones at the first page border behind the end. The first write of a file appends.
//! * A write is unaligned if it begins or ends within a page of `page` bytes.

use super::common::{GAP, SEED, check_gap, info_of};
use super::{Context, Generator};
use crate::error::Result;
use crate::options::BoxReader;
use crate::wrappers::placed::Placed;
use nandscape_core::rng::{Xoshiro256PlusPlus, below, seeded, unit};
use nandscape_core::{
    Info, IoRecord, ParamError, Params, SimTime, TraceOp, TraceReader, WorkloadInfo, keys, words,
};
use nandscape_host::fs::Below;

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Load {
    IPhoto,
    IPages,
    Lasr1,
    Lasr2,
    Lasr3,
    TpcC,
}

words!(pub Load: IPhoto = "iphoto", IPages = "ipages", Lasr1 = "lasr-1", Lasr2 = "lasr-2", Lasr3 = "lasr-3",
    TpcC = "tpc-c");

/// A row of the published table.
struct Row {
    writes: u64,
    kib: u64,
    closes: u64,
    /// Thousandths of the writes.
    unaligned: u64,
}

impl Load {
    /// As the source writes it.
    pub const fn title(self) -> &'static str {
        match self {
            Self::IPhoto => "iPhoto",
            Self::IPages => "iPages",
            Self::Lasr1 => "LASR-1",
            Self::Lasr2 => "LASR-2",
            Self::Lasr3 => "LASR-3",
            Self::TpcC => "TPC-C",
        }
    }

    const fn row(self) -> Row {
        let (writes, kib, closes, unaligned) = match self {
            Self::IPhoto => (496_542, 6_651_962, 37_054, 512),
            Self::IPages => (75_661, 183_728, 565, 996),
            Self::Lasr1 => (32_249, 42_600, 1714, 933),
            Self::Lasr2 => (111_531, 216_114, 14_998, 990),
            Self::Lasr3 => (21_956, 24_426, 3056, 961),
            Self::TpcC => (26_144, 219_689, 489, 71),
        };
        Row { writes, kib, closes, unaligned }
    }

    /// Share of overwrites, which the table does not have: a database overwrites its pages.
    const fn overwrites(self) -> f64 {
        match self {
            Self::TpcC => 0.8,
            _ => 0.2,
        }
    }
}

keys! { PARAMS:
    LOAD: Load = word() or "ipages", "row of the table";
    SCALE: String = text() or "1", "writes, bytes and closes over those of the table: a number, or 1/10";
    OVERWRITES: Option<f64> = share(), "share of writes that overwrite; 80% of tpc-c, else 20%, if absent";
    FILES: Option<u64> = int(1, 1 << 31),
        "files, which are written by turns, a close each; a new one for each close if absent";
    PAGE: u64 = size(512, 1 << 20) or "4k", "bytes of a page, of which aligned writes have whole ones";
    GAP; SEED;
}

pub const ENTRY: Generator = Generator {
    info: Info {
        name: "fast13",
        summary: "objects written as in the loads of OFTL: iPhoto, iPages, three of LASR, and TPC-C",
        source: "[OFTL table 2]; sizes of single writes, overwrites and files are ours",
        params: PARAMS,
    },
    build,
};

/// Stores get objects, block devices the requests of a file system.
fn build(params: &Params, context: Context) -> Result<BoxReader, ParamError> {
    let objects: BoxReader = Box::new(Fast13::new(params, context)?);
    let target = context.target;
    if target.capacity_bytes == 0 || target.files == Below::Objects {
        return Ok(objects);
    }
    Ok(Box::new(Placed::new(objects, target)))
}

/// Most of the table that a load may have.
const SCALE_MAX: f64 = 100.0;

/// `1/10`, or a number.
fn scale(params: &Params) -> Result<f64, ParamError> {
    let text = params.get(SCALE);
    let value = match text.split_once('/') {
        Some((above, below)) => above.trim().parse::<f64>().ok().zip(below.trim().parse::<f64>().ok()),
        None => text.trim().parse::<f64>().ok().map(|value| (value, 1.0)),
    };
    value
        .map(|(above, below)| above / below)
        .filter(|value| *value > 0.0 && *value <= SCALE_MAX)
        .ok_or_else(|| params.error(SCALE, format!("a number above 0 and up to {SCALE_MAX}, such as 1/10")))
}

/// Draws exactly so many of a number of things, each with the same chance.
#[derive(Clone, Copy)]
struct Draw {
    wanted: u64,
    left: u64,
}

impl Draw {
    fn next(&mut self, rng: &mut Xoshiro256PlusPlus) -> bool {
        let is_drawn = below(rng, self.left) < self.wanted;
        self.left -= 1;
        self.wanted -= u64::from(is_drawn);
        is_drawn
    }
}

/// Divides a number of units among writes, in proportion to weights whose sum is known.
#[derive(Clone, Copy, Default)]
struct Division {
    units: u64,
    weights: u128,
    passed: u128,
    given: u64,
}

impl Division {
    /// The share of the next weight.
    fn next(&mut self, weight: u64) -> u64 {
        self.passed += u128::from(weight);
        let end = (u128::from(self.units) * self.passed / self.weights.max(1)) as u64;
        let share = end - self.given;
        self.given = end;
        share
    }
}

/// Whether each write is unaligned, and its weight: the same sequence whenever it is drawn.
#[derive(Clone)]
struct Kinds {
    rng: Xoshiro256PlusPlus,
    unaligned: Draw,
}

impl Kinds {
    fn next(&mut self) -> (bool, u64) {
        let is_unaligned = self.unaligned.next(&mut self.rng);
        // Exponential, in parts of 2^20.
        let weight = -(1.0 - unit(&mut self.rng)).ln() * f64::from(1 << 20);
        (is_unaligned, weight as u64)
    }
}

struct Fast13 {
    kinds: Kinds,
    /// Pages of aligned writes and bytes of unaligned ones, beyond the one that each has.
    pages: Division,
    bytes: Division,
    /// Bytes that the next unaligned write has more, since others would have been aligned with them.
    owed: u64,
    places: Xoshiro256PlusPlus,
    overwrites: Draw,
    page: u64,
    writes: u64,
    closes: u64,
    /// Bytes of each file, of those that there are.
    sizes: Vec<u64>,
    files: u64,
    /// Closes and writes so far.
    closed: u64,
    written: u64,
    gap_ns: u64,
    info: WorkloadInfo,
}

impl Fast13 {
    fn new(params: &Params, context: Context) -> Result<Self, ParamError> {
        let (load, scale, page) = (params.get(LOAD), scale(params)?, params.get(PAGE));
        let row = load.row();
        let scaled = |count: u64| ((count as f64 * scale).round() as u64).max(1);
        let writes = scaled(row.writes);
        let closes = scaled(row.closes).min(writes);
        let total = scaled(row.kib * 1024);
        let files = params.get(FILES).unwrap_or(closes).min(closes);
        let mut rng = seeded(params.get(SEED).unwrap_or(context.seed));
        let unaligned = (writes * row.unaligned + 500) / 1000;
        let draw = Draw { wanted: unaligned, left: writes };
        let kinds = Kinds { rng: seeded(below(&mut rng, u64::MAX)), unaligned: draw };
        let aligned = writes - unaligned;
        // The mean of all writes, as far as that is a page.
        let pages = (aligned as f64 * total as f64 / writes as f64 / page as f64).round() as u64;
        let pages = pages.max(aligned);
        let bytes = total.saturating_sub(pages * page);
        let mut of_pages = Division { units: pages - aligned, ..Division::default() };
        let mut of_bytes = Division { units: bytes.saturating_sub(unaligned), ..Division::default() };
        let mut again = kinds.clone();
        for _ in 0..writes {
            let (is_unaligned, weight) = again.next();
            let division = if is_unaligned { &mut of_bytes } else { &mut of_pages };
            division.weights += u128::from(weight);
        }
        let can_overwrite = writes - files;
        let share = params.get(OVERWRITES).unwrap_or_else(|| load.overwrites());
        let wanted = ((writes as f64 * share).round() as u64).min(can_overwrite);
        let gap = params.get(GAP);
        let records = writes + closes + files;
        check_gap(params, gap.unwrap_or(0), records, 0)?;
        Ok(Self {
            kinds,
            pages: of_pages,
            bytes: of_bytes,
            owed: 0,
            places: rng,
            overwrites: Draw { wanted, left: can_overwrite },
            page,
            writes,
            closes,
            sizes: Vec::new(),
            files,
            closed: 0,
            written: 0,
            gap_ns: gap.unwrap_or(0),
            info: info_of("fast13", records, gap.is_some()),
        })
    }

    /// First byte and bytes of the next write to a file of `size` bytes.
    fn write(&mut self, size: u64) -> (u64, u64) {
        let (is_unaligned, weight) = self.kinds.next();
        let is_overwrite = size > 0 && self.overwrites.next(&mut self.places);
        let at = if is_overwrite { below(&mut self.places, size) } else { size };
        if !is_unaligned {
            let first = if is_overwrite { at / self.page } else { at.div_ceil(self.page) };
            return (first * self.page, (1 + self.pages.next(weight)) * self.page);
        }
        let mut len = 1 + self.bytes.next(weight) + std::mem::take(&mut self.owed);
        if at.is_multiple_of(self.page) && len.is_multiple_of(self.page) {
            len -= 1;
            self.owed = 1;
        }
        (at, len)
    }
}

impl Iterator for Fast13 {
    type Item = Result<IoRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.closed == self.closes {
            return None;
        }
        let file = self.closed % self.files;
        let end = ((u128::from(self.writes) * u128::from(self.closed + 1)) / u128::from(self.closes)) as u64;
        let (op, offset, len) = if self.sizes.len() as u64 == file {
            self.sizes.push(0);
            (TraceOp::ObjectCreate, 0, 0)
        } else if self.written < end {
            let (offset, len) = self.write(self.sizes[file as usize]);
            let size = &mut self.sizes[file as usize];
            *size = (*size).max(offset + len);
            self.written += 1;
            (TraceOp::ObjectWrite, offset, len)
        } else {
            self.closed += 1;
            (TraceOp::ObjectFlush, 0, 0)
        };
        let at = SimTime(self.gap_ns * self.info.records);
        self.info.records += 1;
        Some(Ok(IoRecord { at, offset, len, volume: file as u32 + 1, hint: 0, op }))
    }
}

impl TraceReader for Fast13 {
    fn info(&self) -> WorkloadInfo {
        self.info.clone()
    }
}
