//! What the host does: a seeded list of requests.

use nandscape_core::Extent;
use nandscape_core::rng::{Xoshiro256PlusPlus, below, seeded};

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Read,
    /// Writes; with forced unit access the answer waits for a flush.
    Write {
        /// Forced unit access.
        is_fua: bool,
    },
    /// Drops whole pages.
    Trim,
    WriteZeroes,
    /// Makes what was answered durable.
    Flush,
    /// Leaves the device alone for a while.
    Idle,
}

#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub act: Act,
    /// First byte, in 2^-32 of the capacity.
    pub place: u32,
    pub len: u64,
    /// First byte and length are multiples of this.
    pub align: u64,
    /// What is written is a function of this and of the place.
    pub salt: u32,
    /// Log that the write goes to, if the layer has so many.
    pub hint: u16,
    /// The next request is issued before this one is answered.
    pub overlaps: bool,
    /// Before this request the host waits for all that are under way.
    pub waits: bool,
}

impl Step {
    /// Where, on a device of so many bytes.
    pub fn extent(&self, capacity: u64) -> Extent {
        let round = |bytes: u64| bytes / self.align * self.align;
        let offset = round(((u128::from(self.place) * u128::from(capacity)) >> 32) as u64);
        let len = round(self.len).max(self.align.min(self.len)).min(capacity - offset);
        Extent::new(offset, len)
    }

    pub fn bytes(&self, extent: Extent) -> Vec<u8> {
        (extent.offset..extent.end())
            .map(|offset| {
                let mixed = (offset ^ (u64::from(self.salt) << 40))
                    .wrapping_add(u64::from(self.salt) + 1)
                    .wrapping_mul(0x9E37_79B9_7F4A_7C15);
                // Never zero, so that what was written and what was not are told apart.
                (mixed >> 56) as u8 | 1
            })
            .collect()
    }
}

/// One of the choices; each is as likely as its weight says.
pub fn pick<T>(rng: &mut Xoshiro256PlusPlus, mut choices: impl Iterator<Item = (T, u64)> + Clone) -> T {
    let mut draw = below(rng, choices.clone().map(|(_, weight)| weight).sum());
    let chosen = choices.find(|(_, weight)| draw.checked_sub(*weight).map(|left| draw = left).is_none());
    chosen.expect("the draw is below the sum").0
}

/// Random requests. The habits (alignment, size, places, depth) change from seed to seed.
pub fn steps(seed: u64, count: usize, page_bytes: u32) -> Vec<Step> {
    let mut rng = seeded(seed ^ 0xC4A5);
    let page = u64::from(page_bytes);
    let align = [1, 512, page, page][below(&mut rng, 4) as usize];
    let biggest = page * [1, 2, 4, 10][below(&mut rng, 4) as usize];
    let hot = [1, 8, 16][below(&mut rng, 3) as usize];
    let depth = [1, 3, 6][below(&mut rng, 3) as usize];
    let weights: [(Act, u64); 7] = [
        (Act::Read, 4),
        (Act::Write { is_fua: false }, 60),
        (Act::Write { is_fua: true }, [0, 4, 12][below(&mut rng, 3) as usize]),
        (Act::Trim, [0, 6, 20][below(&mut rng, 3) as usize]),
        (Act::WriteZeroes, [0, 4, 8][below(&mut rng, 3) as usize]),
        (Act::Flush, [3, 8, 20][below(&mut rng, 3) as usize]),
        (Act::Idle, [0, 2][below(&mut rng, 2) as usize]),
    ];
    let mut cursor = 0u32;
    (0..count)
        .map(|number| {
            let act = pick(&mut rng, weights.into_iter());
            let longest = below(&mut rng, biggest) + 1;
            let len = below(&mut rng, longest) + 1;
            cursor = cursor.wrapping_add(1 << 26);
            let anywhere = below(&mut rng, 1 << 32) as u32;
            let place = match below(&mut rng, 4) {
                0 => cursor,
                1 => anywhere,
                _ => anywhere / hot,
            };
            let hint = below(&mut rng, 4) as u16;
            let overlaps = below(&mut rng, depth) > 0;
            let waits = below(&mut rng, 3) == 0;
            Step { act, place, len, align, salt: seed as u32 ^ number as u32, hint, overlaps, waits }
        })
        .collect()
}

/// Writes the whole device once, in large pieces, with a flush at the end.
pub fn fill(seed: u64, page_bytes: u32, pages: usize) -> Vec<Step> {
    let pieces = pages.div_ceil(8).max(1) as u64;
    let step = |act, number: u64| Step {
        act,
        place: ((number << 32).div_ceil(pieces)).min(u64::from(u32::MAX)) as u32,
        len: u64::from(page_bytes) * 9,
        align: u64::from(page_bytes),
        salt: (seed as u32).wrapping_mul(31) ^ number as u32 ^ 0x8000_0000,
        hint: 0,
        overlaps: false,
        waits: false,
    };
    let writes = (0..pieces).map(|number| step(Act::Write { is_fua: false }, number));
    writes.chain([step(Act::Flush, 0)]).collect()
}
