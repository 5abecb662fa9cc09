//! The options as the event loop wants them: nanoseconds, tables, one flag for each question it asks often.

use super::slab::Place;
use crate::scheduler::{Options, SlcTiming, Timing};
use nandscape_core::{BlockId, Geometry, SlcBlocks};

#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub timing: Timing,
    /// As given, but for what cannot have an effect, which is off, and [`Options::reads_ns`], which is never
    /// empty.
    pub options: Options,
    pub burst_ns: u64,
    /// Time in which the controller takes a buffer full in the long run.
    pub intake_ahead_ns: u64,
    /// Programs pass through the buffer: a program operation is made of page operations.
    pub gathers: bool,
    /// With less room in the buffer reads do not go first.
    pub drain_room: i64,
    pub page_bytes: u32,
    page_transfer_ns: u64,
    pub pages_per_block: u32,
    pub blocks_per_unit: u32,
    blocks_per_plane: u32,
    /// By program unit in the block, in rotation.
    programs_ns: Vec<u64>,
    /// Blocks with one bit a cell, and their times.
    pub slc: Option<(SlcBlocks, SlcTiming)>,
}

impl Rules {
    pub fn new(geometry: &Geometry, timing: &Timing, options: &Options) -> Self {
        let mut options = options.clone();
        options.program_pages = options.program_pages.max(1);
        options.read_pages = options.read_pages.max(1);
        options.multi_plane &= geometry.planes_per_die > 1;
        assert!(
            options.read_pages == 1 || !options.multi_plane,
            "pages of a block lie on one plane or on several"
        );
        if !options.contention {
            // Waiting for reads is contention too.
            options.hold_off_ns = 0;
        }
        if options.reads_ns.is_empty() {
            options.reads_ns.push(timing.read_ns);
        }
        let units = geometry.pages_per_block.div_ceil(options.program_pages);
        let off = |unit: u32| options.program_spread * signed(mix(u64::from(unit)));
        let programs_ns = if options.program_spread > 0.0 {
            (0..units).map(|unit| stretch(timing.program_ns, off(unit))).collect()
        } else {
            vec![timing.program_ns]
        };
        Self {
            timing: *timing,
            burst_ns: if options.burst_bytes == 0 { 0 } else { timing.transfer_ns(options.burst_bytes) },
            intake_ahead_ns: (u128::from(options.buffer.bytes) * 1_000_000_000)
                .checked_div(u128::from(options.intake.bytes_per_s))
                .unwrap_or(0) as u64,
            gathers: options.program_pages > 1 || options.buffer.bytes > 0,
            drain_room: match options.buffer.drain_above {
                0 => i64::MIN,
                above => options.buffer.bytes.saturating_sub(above).cast_signed(),
            },
            page_bytes: geometry.page_bytes,
            page_transfer_ns: timing.transfer_ns(geometry.page_bytes),
            pages_per_block: geometry.pages_per_block,
            blocks_per_unit: geometry.blocks_per_unit(),
            blocks_per_plane: geometry.blocks_per_plane,
            programs_ns,
            slc: None,
            options,
        }
    }

    /// The times of a block, if it has one bit a cell.
    #[inline]
    fn slc_times(&self, block: u32) -> Option<SlcTiming> {
        self.slc.filter(|(blocks, _)| blocks.contains(BlockId(block))).map(|(_, times)| times)
    }

    /// Pages that one array operation programs in a block.
    #[inline]
    pub fn program_pages(&self, block: u32) -> u32 {
        let pages = self.options.program_pages;
        match self.slc {
            Some((blocks, _)) if blocks.contains(BlockId(block)) => blocks.program_pages(pages),
            _ => pages,
        }
    }

    #[inline]
    pub fn transfer_ns(&self, bytes: u32) -> u64 {
        if bytes == self.page_bytes { self.page_transfer_ns } else { self.timing.transfer_ns(bytes) }
    }

    #[inline]
    pub fn data_out_ns(&self, bytes: u32) -> u64 {
        self.options.data_out_ns + self.transfer_ns(bytes)
    }

    /// What must be equal for pages to take part in one operation of a die, and the plane, as a bit.
    pub const fn row_and_plane(&self, place: Place) -> (u32, u64) {
        let Place { page, block, .. } = place;
        let planes = self.options.read_pages;
        if planes > 1 {
            return (page / planes, 1 << (page % planes));
        }
        (page % self.pages_per_block, 1 << (block % self.blocks_per_unit / self.blocks_per_plane))
    }

    #[inline]
    pub fn read_ns(&self, place: Place) -> u64 {
        if let Some(slc) = self.slc_times(place.block) {
            slc.read_ns
        } else if self.options.reads_ns.len() == 1 {
            self.options.reads_ns[0]
        } else {
            self.options.reads_ns[(place.page % self.pages_per_block) as usize % self.options.reads_ns.len()]
        }
    }

    /// The time of a program whose first page is at `place`, in a block that was erased `erases` times.
    #[inline]
    pub fn program_ns(&self, place: Place, erases: u32) -> u64 {
        let line = if let Some(slc) = self.slc_times(place.block) {
            slc.program_ns
        } else if self.programs_ns.len() == 1 {
            self.programs_ns[0]
        } else {
            self.programs_ns[(place.page % self.pages_per_block / self.options.program_pages) as usize]
        };
        if self.options.program_jitter > 0.0 {
            let key = u64::from(erases) << 32 | u64::from(place.page);
            stretch(line, self.options.program_jitter * signed(mix(key)))
        } else {
            line
        }
    }
}

/// `ns` longer by a share, which may be negative.
fn stretch(ns: u64, share: f64) -> u64 {
    (ns as f64 * (1.0 + share)).round() as u64
}

/// A number in [-1, 1) from 64 random bits.
fn signed(bits: u64) -> f64 {
    (bits >> 11) as f64 * (2.0 / (1u64 << 53) as f64) - 1.0
}

/// Random bits that depend on `key` alone: the output function of `SplitMix64` (Steele, Lea and Flood, OOPSLA
/// 2014). No state, so that the time of a program does not depend on what else runs.
const fn mix(key: u64) -> u64 {
    let mut z = key.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
