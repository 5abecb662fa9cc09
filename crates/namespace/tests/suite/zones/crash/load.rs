//! What the host of zones does: a seeded list of requests.

use nandscape_core::rng::{below, seeded};
use nandscape_core::zone::ZoneAction;

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Write {
        is_fua: bool,
    },
    Append {
        is_fua: bool,
    },
    Flush,
    Manage(ZoneAction),
    ManageAll(ZoneAction),
    FlushRandom,
    Describe,
    Read,
    /// Resets the zone if it is full, and writes it up to its capacity.
    Refill,
}

/// Before a request the host waits for earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    No,
    All,
    /// For the newest alone.
    Newest,
}

#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub act: Act,
    /// Modulo the number of zones.
    pub zone: u32,
    pub blocks: u64,
    /// Blocks behind the write pointer, in a random write area.
    pub ahead: u64,
    pub salt: u64,
    /// The next request is issued before this one is answered.
    pub overlaps: bool,
    pub waits: Waits,
}

/// Random requests. The habits (size, zones, depth, kinds) change from seed to seed.
pub fn steps(seed: u64, count: usize) -> Vec<Step> {
    let mut rng = seeded(seed ^ 0x2053);
    let mut of = |list: [u64; 3]| list[below(&mut rng, 3) as usize];
    let biggest = of([3, 9, 24]);
    let unit = of([1, 1, 4]);
    let hot = of([2, 3, 8]);
    let depth = of([1, 3, 6]);
    let manage = of([1, 2, 4]);
    let weights: [(Act, u64); 16] = [
        (Act::Write { is_fua: false }, 60),
        (Act::Write { is_fua: true }, of([0, 3, 8])),
        (Act::Append { is_fua: false }, of([0, 8, 20])),
        (Act::Append { is_fua: true }, of([0, 1, 3])),
        (Act::Flush, of([3, 8, 16])),
        (Act::Manage(ZoneAction::Reset), 4 * manage),
        (Act::Manage(ZoneAction::Finish), 3 * manage),
        (Act::Manage(ZoneAction::Close), manage),
        (Act::Manage(ZoneAction::Open), manage),
        (Act::Manage(ZoneAction::OpenRandom), 3 * manage),
        (Act::FlushRandom, 2 * manage),
        (Act::Describe, 2 * manage),
        (Act::ManageAll(ZoneAction::Reset), of([0, 0, 1])),
        (Act::ManageAll(ZoneAction::Finish), of([0, 0, 1])),
        (Act::ManageAll(ZoneAction::Close), of([0, 0, 1])),
        (Act::Read, 4),
    ];
    (0..count)
        .map(|number| {
            let mut draw = below(&mut rng, weights.iter().map(|(_, weight)| weight).sum());
            let chosen = weights.iter().find(|(_, weight)| {
                let is_here = draw < *weight;
                draw = draw.saturating_sub(*weight);
                is_here
            });
            let zone = if below(&mut rng, 4) == 0 { below(&mut rng, 64) } else { below(&mut rng, hot) };
            let waits = [Waits::No, Waits::No, Waits::All, Waits::Newest][below(&mut rng, 4) as usize];
            Step {
                act: chosen.expect("the draw is below the sum").0,
                zone: zone as u32,
                blocks: (below(&mut rng, biggest) + 1).next_multiple_of(unit),
                ahead: below(&mut rng, 16),
                salt: seed << 20 ^ number as u64,
                overlaps: below(&mut rng, depth) > 0,
                waits,
            }
        })
        .collect()
}

/// Writes all zones to their ends, and resets some of them again.
pub fn fill(seed: u64, zones: u32) -> Vec<Step> {
    let step = |act, zone| Step {
        act,
        zone,
        blocks: 7,
        ahead: 0,
        salt: seed << 20 ^ u64::from(zone) ^ 0xf111,
        overlaps: false,
        waits: Waits::No,
    };
    let mut rng = seeded(seed ^ 0xf1);
    let resets: Vec<u32> = (0..zones).filter(|_| below(&mut rng, 3) > 0).collect();
    let resets = resets.into_iter().map(|zone| step(Act::Manage(ZoneAction::Reset), zone));
    let refills = (0..zones).map(|zone| step(Act::Refill, zone));
    refills.chain([step(Act::Flush, 0)]).chain(resets).collect()
}
