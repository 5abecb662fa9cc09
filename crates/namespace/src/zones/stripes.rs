//! Where the pages of a zone lie: in stripes over the dies of its group, a few blocks of each die.

use nandscape_core::{Divider, Geometry, ParamError};

/// How zones are laid over dies and blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneStripes {
    /// Dies that a zone spans; they are consecutive units, so that as many channels as possible take part.
    pub dies: u32,
    /// Blocks that a zone has in each of them.
    pub blocks_per_die: u32,
    /// Pages written to a die before the next die's turn comes.
    pub stripe_pages: u32,
}

/// The place of a page of a zone: which of its dies, which of its blocks there, which page of that block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub die: u32,
    pub slot: u32,
    pub page: u32,
}

impl ZoneStripes {
    /// Checks that the stripes fit a geometry. The error names the key below `zone.`.
    pub fn check(&self, geometry: &Geometry) -> Result<(), ParamError> {
        let error = |key: &str, value: u32, expected: String| {
            Err(ParamError::bad(format!("zone.{key}"), value.to_string(), &expected))
        };
        let (units, blocks) = (geometry.units(), geometry.blocks_per_unit());
        if self.dies == 0 || !units.is_multiple_of(self.dies) {
            return error("dies", self.dies, format!("a divisor of the {units} dies of the device"));
        }
        if self.blocks_per_die == 0 || self.blocks_per_die > blocks {
            return error("blocks_per_die", self.blocks_per_die, format!("from 1 to the {blocks} of a die"));
        }
        let pages = geometry.pages_per_block;
        if self.stripe_pages == 0 || !pages.is_multiple_of(self.stripe_pages) {
            return error("stripe", self.stripe_pages, format!("a divisor of the {pages} pages of a block"));
        }
        Ok(())
    }

    /// Blocks of a zone.
    pub const fn blocks(&self) -> u32 {
        self.dies * self.blocks_per_die
    }

    /// Groups of dies.
    pub const fn groups(&self, geometry: &Geometry) -> u32 {
        geometry.units() / self.dies
    }

    /// Pages of a zone's blocks.
    pub const fn pages(&self, geometry: &Geometry) -> u64 {
        self.blocks() as u64 * geometry.pages_per_block as u64
    }
}

/// The arithmetic of [`ZoneStripes`], without divisions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Striping {
    stripe: Divider,
    dies: Divider,
    pages_per_block: Divider,
    groups: Divider,
    pub blocks_per_die: u32,
}

impl Striping {
    pub fn new(stripes: &ZoneStripes, geometry: &Geometry) -> Self {
        Self {
            stripe: Divider::new(stripes.stripe_pages),
            dies: Divider::new(stripes.dies),
            pages_per_block: Divider::new(geometry.pages_per_block),
            groups: Divider::new(stripes.groups(geometry)),
            blocks_per_die: stripes.blocks_per_die,
        }
    }

    pub const fn dies(&self) -> u32 {
        self.dies.divisor()
    }

    /// Pages written to a die before the next die's turn comes.
    pub const fn stripe_pages(&self) -> u32 {
        self.stripe.divisor()
    }

    /// Blocks of a zone.
    pub const fn blocks(&self) -> u32 {
        self.dies.divisor() * self.blocks_per_die
    }

    /// Pages of a stripe over all dies of a zone.
    pub const fn row_pages(&self) -> u32 {
        self.stripe.divisor() * self.dies.divisor()
    }

    /// The place of a page of a zone.
    #[inline]
    pub const fn spot(&self, index: u32) -> Spot {
        let (chunk, within) = self.stripe.split(index);
        let (row, die) = self.dies.split(chunk);
        let (slot, page) = self.pages_per_block.split(row * self.stripe.divisor() + within);
        Spot { die, slot, page }
    }

    /// The page of a zone at a place.
    pub const fn index(&self, spot: Spot) -> u32 {
        let (row, within) = self.stripe.split(spot.slot * self.pages_per_block.divisor() + spot.page);
        (row * self.dies.divisor() + spot.die) * self.stripe.divisor() + within
    }

    /// Pages of the block of a place that come before a page of the zone.
    pub const fn pages_below(&self, spot: Spot, end: u32) -> u32 {
        let row = self.row_pages();
        let (rows, rest) = (end / row, end % row);
        let stripe = self.stripe.divisor();
        let own = rest.saturating_sub(spot.die * stripe);
        let pages = rows * stripe + if own < stripe { own } else { stripe };
        let before = spot.slot * self.pages_per_block.divisor();
        let inside = pages.saturating_sub(before);
        let most = self.pages_per_block.divisor();
        if inside < most { inside } else { most }
    }

    /// The unit of a die of a zone.
    #[inline]
    pub const fn unit(&self, zone: u32, die: u32) -> u32 {
        let (_, group) = self.groups.split(zone);
        group * self.dies.divisor() + die
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GEOMETRY: Geometry = Geometry {
        channels: 2,
        dies_per_channel: 3,
        planes_per_die: 1,
        blocks_per_plane: 9,
        pages_per_block: 6,
        page_bytes: 4096,
        sector_bytes: 4096,
        oob_bytes: 64,
    };

    #[test]
    fn pages_are_written_to_each_die_in_order_and_to_one_place_each() {
        for (dies, blocks_per_die, stripe_pages) in [(6, 2, 1), (3, 4, 3), (1, 2, 6), (2, 1, 2)] {
            let stripes = ZoneStripes { dies, blocks_per_die, stripe_pages };
            assert_eq!(stripes.check(&GEOMETRY), Ok(()));
            let striping = Striping::new(&stripes, &GEOMETRY);
            let mut next = vec![0; dies as usize];
            for index in 0..stripes.pages(&GEOMETRY) as u32 {
                let spot = striping.spot(index);
                assert_eq!(striping.index(spot), index);
                let place = &mut next[spot.die as usize];
                assert_eq!(spot.slot * 6 + spot.page, *place, "page {index} of {stripes:?}");
                *place += 1;
            }
            assert!(next.iter().all(|pages| *pages == blocks_per_die * 6));
            for end in 0..=stripes.pages(&GEOMETRY) as u32 {
                let mut count = vec![0; stripes.blocks() as usize];
                for index in 0..end {
                    let spot = striping.spot(index);
                    count[(spot.die * blocks_per_die + spot.slot) as usize] += 1;
                }
                for (place, count) in (0..).zip(count) {
                    let spot = Spot { die: place / blocks_per_die, slot: place % blocks_per_die, page: 0 };
                    assert_eq!(striping.pages_below(spot, end), count, "{spot:?} below {end}");
                }
            }
        }
    }

    #[test]
    fn impossible_stripes_name_the_key() {
        let stripes = ZoneStripes { dies: 3, blocks_per_die: 2, stripe_pages: 2 };
        for (wrong, key) in [
            (ZoneStripes { dies: 4, ..stripes }, "zone.dies"),
            (ZoneStripes { blocks_per_die: 10, ..stripes }, "zone.blocks_per_die"),
            (ZoneStripes { stripe_pages: 4, ..stripes }, "zone.stripe"),
        ] {
            let error = wrong.check(&GEOMETRY).unwrap_err().to_string();
            assert!(error.contains(key), "{error}");
        }
    }
}
