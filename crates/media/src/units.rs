//! Pages as a translation layer sees them ("units") that are smaller than a flash page (`ftl.unit`).
//!
//! A flash page holds a fixed number of units. The units of a page that is not full yet wait in the
//! controller, whose memory is protected against loss of power: what was programmed counts as durable, as
//! with a protected write buffer. The last unit of a page starts the program of the whole page. Memory of
//! these open pages is apart from the write buffer: a page takes room in the buffer from its program on.
//!
//! State, rules, OOB and counts are those of units; only time knows flash pages. So a read counts for each
//! unit also where one array read serves several of them.

use nandscape_core::{Cause, Divider, Geometry, GeometryError, Issue, Ppn, SimTime, Token, state};

/// The shape that a layer sees of a flash whose pages hold several units.
pub fn unit_geometry(flash: &Geometry, unit_bytes: u32) -> Result<Geometry, GeometryError> {
    let units = flash.page_bytes / unit_bytes;
    Geometry {
        page_bytes: unit_bytes,
        pages_per_block: flash.pages_per_block.saturating_mul(units),
        oob_bytes: flash.oob_bytes / units,
        ..*flash
    }
    .checked()
}

/// How units lie in flash pages, and what the controller holds of pages that are not full.
#[derive(Clone, Debug)]
pub(crate) struct UnitPages {
    pub per_page: Divider,
    pub per_block: Divider,
    pub unit_bytes: u32,
    /// Of each block: completes when those units of its open page that come from flash are in the controller.
    arrivals: Vec<Token>,
    taken: Taken,
}

/// Units that the last array read brings along, for reads that follow.
#[derive(Clone, Copy, Debug)]
struct Taken {
    page: u32,
    bytes: u32,
    at: SimTime,
    after: Token,
    cause: Cause,
    done: Token,
}

state!(impl [] UnitPages { saved: taken; tables: arrivals; fixed: per_page, per_block, unit_bytes; });
state!(impl [] Taken { saved: page, bytes, at, after, cause, done; });

impl UnitPages {
    /// `units` of them in each flash page, for the shape that a layer sees.
    pub fn new(seen: &Geometry, units: u32) -> Self {
        assert!(seen.pages_per_block.is_multiple_of(units), "{units} units a page: {seen:?}");
        Self {
            per_page: Divider::new(units),
            per_block: Divider::new(seen.pages_per_block),
            unit_bytes: seen.page_bytes,
            arrivals: vec![Token::NONE; seen.blocks() as usize],
            taken: Taken {
                page: u32::MAX,
                bytes: 0,
                at: SimTime::ZERO,
                after: Token::NONE,
                cause: Cause::Host,
                done: Token::NONE,
            },
        }
    }

    /// The flash page in which a unit lies.
    pub fn page(&self, unit: Ppn) -> Ppn {
        Ppn(self.per_page.quotient(unit.0))
    }

    /// What units of the open page of a block wait for.
    pub fn arrivals(&mut self, block: u32) -> &mut Token {
        &mut self.arrivals[block as usize]
    }

    /// Whether all units of the page of this one are programmed where the block has so many programmed.
    pub const fn is_full_page(&self, index: u32, write_pointer: u32) -> bool {
        let (page, _) = self.per_page.split(index);
        (page + 1) * self.per_page.divisor() <= write_pointer
    }

    /// When the last array read brings this unit, if it does.
    pub fn take(&mut self, page: Ppn, bytes: u32, issue: &Issue) -> Option<Token> {
        let Taken { page: taken, bytes: left, at, after, cause, done } = self.taken;
        let is_along = left > 0
            && left >= bytes
            && taken == page.0
            && (at, after, cause) == (issue.at, issue.after, issue.cause);
        if is_along {
            self.taken.bytes = left - bytes;
        }
        is_along.then_some(done)
    }

    /// An array read brings further units of its page.
    pub fn brings(&mut self, page: Ppn, issue: &Issue, done: Token) {
        let &Issue { at, after, cause, held, .. } = issue;
        self.taken = Taken { page: page.0, bytes: held, at, after, cause, done };
    }

    /// Nothing is under way any more.
    pub fn reset(&mut self) {
        self.arrivals.fill(Token::NONE);
        self.taken.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLASH: Geometry = Geometry {
        channels: 1,
        dies_per_channel: 2,
        planes_per_die: 1,
        blocks_per_plane: 4,
        pages_per_block: 8,
        page_bytes: 16 << 10,
        sector_bytes: 4096,
        oob_bytes: 128,
    };

    #[test]
    fn a_layer_sees_as_many_bytes_in_smaller_pages() {
        let seen = unit_geometry(&FLASH, 4096).unwrap();
        assert_eq!((seen.page_bytes, seen.pages_per_block, seen.oob_bytes), (4096, 32, 32));
        assert_eq!(seen.capacity_bytes(), FLASH.capacity_bytes());
        let units = UnitPages::new(&seen, 4);
        assert_eq!((units.page(Ppn(31)), units.page(Ppn(32))), (Ppn(7), Ppn(8)));
        assert!(units.is_full_page(3, 4) && units.is_full_page(0, 4) && !units.is_full_page(4, 7));
    }

    #[test]
    fn a_unit_comes_along_once_and_only_with_a_read_of_the_same_command() {
        let mut units = UnitPages::new(&unit_geometry(&FLASH, 4096).unwrap(), 4);
        let first = Issue { held: 4096, ..Issue::new(SimTime(5), Cause::Host) };
        units.brings(Ppn(2), &first, Token(99));
        let next = Issue::new(SimTime(5), Cause::Host);
        assert_eq!(units.take(Ppn(3), 4096, &next), None, "another page");
        assert_eq!(units.take(Ppn(2), 4096, &Issue::new(SimTime(6), Cause::Host)), None, "another time");
        assert_eq!(units.take(Ppn(2), 4096, &Issue::new(SimTime(5), Cause::Gc)), None, "another cause");
        assert_eq!(units.take(Ppn(2), 4096, &next), Some(Token(99)));
        assert_eq!(units.take(Ppn(2), 4096, &next), None, "taken");
    }
}
