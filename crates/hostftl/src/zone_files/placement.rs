//! Which open zone takes data: policies that look at lifetimes. A policy does no I/O and moves nothing.

use nandscape_core::Hint;

/// Below this, data goes with a zone; from here on only where no other zone can be opened.
pub(super) const GOOD: u32 = 50;
/// Data never goes with the zone, unless nothing else is left.
pub(super) const NEVER: u32 = 100;

/// How long data is expected to live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lifetime {
    /// What the host says.
    pub hint: Hint,
    /// When it dies, in units written by the layer; 0 if nothing was learned.
    pub death: u64,
}

/// What a policy may look at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    pub data: Lifetime,
    pub zone: Lifetime,
    /// Another file is being written to the zone, and is large.
    pub is_shared: bool,
    /// Units that the file is expected to write from here on, at most a zone, and those that the zone has
    /// room for.
    pub rest: u32,
    pub room: u32,
    /// Units written by the layer so far, and units of a zone.
    pub now: u64,
    pub zone_units: u32,
}

/// How well data goes with a zone: 0 is best, see [`GOOD`] and [`NEVER`].
pub(super) type Fit = fn(&Facts) -> u32;

/// A registered policy.
pub(super) struct Placement {
    pub name: &'static str,
    pub fit: Fit,
}

/// Every policy.
pub(super) static PLACEMENTS: [Placement; 3] = [
    Placement { name: "learned", fit: learned },
    Placement { name: "zenfs", fit: zenfs },
    Placement { name: "none", fit: |_| 0 },
];

/// Their names, in the same order.
pub(super) static NAMES: [&str; PLACEMENTS.len()] = {
    let mut names = [""; PLACEMENTS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = PLACEMENTS[at].name;
        at += 1;
    }
    names
};

/// The rule of `ZenFS` (`GetLifeTimeDiff`): data without a lifetime goes with its like alone, other data with
/// zones that live longer, the nearest first. Equal lifetimes are not preferred.
fn zenfs(facts: &Facts) -> u32 {
    let (data, zone) = (facts.data.hint, facts.zone.hint);
    if data.0 <= Hint::NONE.0 {
        return if data == zone { 0 } else { NEVER };
    }
    match zone.0.cmp(&data.0) {
        std::cmp::Ordering::Greater => u32::from(zone.0 - data.0).min(GOOD - 1),
        std::cmp::Ordering::Equal => GOOD,
        std::cmp::Ordering::Less => NEVER,
    }
}

/// Data goes with the zone that dies nearest to it ([`nearest`]). Two kinds of zones it goes to only where no
/// other can be opened: those that are too short for the rest of a large file, the emptiest first, and those
/// to which a large file is being written. Of files side by side, or cut in two, none leaves a zone to
/// itself.
fn learned(facts: &Facts) -> u32 {
    const ALONE: u32 = GOOD.midpoint(NEVER);
    const SPLIT: u32 = ALONE - 10;
    let is_large = facts.rest >= facts.zone_units / 2;
    match nearest(facts) {
        fit if facts.is_shared => ALONE + fit / 4,
        _ if is_large && facts.rest > facts.room => {
            SPLIT + (facts.zone_units - facts.room) * 9 / facts.zone_units
        }
        fit if fit < GOOD => fit,
        fit => GOOD + (fit - GOOD) * (SPLIT - GOOD) / (NEVER - GOOD),
    }
}

/// How near two deaths are: within half of what the data has left to live, or within the time in which a zone
/// is written. Without anything learned as [`zenfs`].
fn nearest(facts: &Facts) -> u32 {
    let (data, zone) = (facts.data.death, facts.zone.death);
    if data == 0 || zone == 0 {
        // Equal hints are all that is known of their lifetimes.
        return if facts.data.hint == facts.zone.hint { 0 } else { zenfs(facts).clamp(GOOD, NEVER - 1) };
    }
    let tolerance = (data.saturating_sub(facts.now) / 2).max(facts.zone_units.into());
    let distance = u128::from(data.abs_diff(zone)) * u128::from(GOOD) / u128::from(tolerance);
    distance.min(u128::from(NEVER - 1)) as u32
}

/// Classes that are told apart; hints above share the last one.
const CLASSES: usize = 64;

/// Means by class: units that the layer writes between the creation of a file and its deletion, and units
/// that a file takes.
#[derive(Debug)]
pub(super) struct Learned {
    means: [u64; CLASSES],
    /// Not in the journal: a start learns them from the files that there are.
    sizes: [u64; CLASSES],
}

impl Default for Learned {
    fn default() -> Self {
        Self { means: [0; CLASSES], sizes: [0; CLASSES] }
    }
}

/// A moving mean over some sixteen values.
const fn learn(mean: &mut u64, value: u64) {
    *mean = if *mean == 0 { value } else { (*mean * 15 + value).div_ceil(16) };
}

impl Learned {
    /// Bytes of its record.
    pub const RECORD: u64 = 16 + 8 * CLASSES as u64;

    const fn class(hint: Hint) -> usize {
        let class = hint.0 as usize;
        if class < CLASSES { class } else { CLASSES - 1 }
    }

    /// A file with this hint was deleted that long after its creation.
    pub fn deleted(&mut self, hint: Hint, lifetime: u64) {
        learn(&mut self.means[Self::class(hint)], if lifetime > 0 { lifetime } else { 1 });
    }

    /// A file with this hint takes, or took, so many units.
    pub const fn sized(&mut self, hint: Hint, units: u64) {
        learn(&mut self.sizes[Self::class(hint)], units);
    }

    /// Units that a file with this hint is expected to write still, if it has so many.
    #[inline]
    pub const fn rest(&self, hint: Hint, units: u64) -> u64 {
        self.sizes[Self::class(hint)].saturating_sub(units)
    }

    /// When a file dies that was created at `born`. One that has outlived the mean lives as long again.
    #[inline]
    pub fn lifetime(&self, hint: Hint, born: u64, now: u64) -> Lifetime {
        let mean = self.means[Self::class(hint)];
        let death = match mean {
            0 => 0,
            mean if born + mean > now => born + mean,
            mean => now + mean,
        };
        Lifetime { hint, death }
    }

    pub const fn means(&self) -> &[u64] {
        &self.means
    }

    pub fn set(&mut self, means: impl Iterator<Item = u64>) {
        self.means.iter_mut().zip(means).for_each(|(own, mean)| *own = mean);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(data: (u16, u64), zone: (u16, u64)) -> Facts {
        let of = |(hint, death)| Lifetime { hint: Hint(hint), death };
        let (data, zone) = (of(data), of(zone));
        Facts { data, zone, is_shared: false, rest: 1, room: 50, now: 1_000, zone_units: 100 }
    }

    #[test]
    fn lifetimes_go_together_by_the_published_rule() {
        for (data, zone, expected) in
            [(0, 0, 0), (1, 1, 0), (0, 1, 100), (1, 4, 100), (2, 3, 1), (2, 5, 3), (3, 3, 50), (4, 2, 100)]
        {
            assert_eq!(zenfs(&facts((data, 0), (zone, 0))), expected, "data {data}, zone {zone}");
        }
    }

    #[test]
    fn learned_lifetimes_go_with_the_nearest_death() {
        assert_eq!(learned(&facts((0, 1_500), (4, 1_500))), 0);
        assert!(learned(&facts((0, 1_500), (4, 1_600))) < GOOD);
        assert!(learned(&facts((0, 1_100), (4, 1_300))) >= GOOD, "a zone's worth of writes apart");
        assert_eq!(learned(&facts((0, 1_100), (4, 90_000))), 64);
        assert_eq!(learned(&facts((3, 0), (3, 500))), 0, "equal hints where nothing was learned");
        assert!(learned(&facts((3, 0), (4, 0))) >= GOOD);
        let shared = |zone| learned(&Facts { is_shared: true, ..facts((0, 1_100), zone) });
        assert!(shared((4, 1_100)) == 75 && shared((4, 1_150)) > 75 && shared((4, 90_000)) < NEVER);
        let split = |rest, room| learned(&Facts { rest, room, ..facts((0, 1_100), (4, 1_100)) });
        assert_eq!([split(40, 10), split(90, 95), split(90, 5), split(90, 80)], [0, 0, 73, 66]);
    }

    #[test]
    fn means_follow_what_is_deleted() {
        let mut learned = Learned::default();
        assert_eq!(learned.lifetime(Hint::SHORT, 10, 20).death, 0);
        for _ in 0..100 {
            learned.deleted(Hint::SHORT, 50);
            learned.deleted(Hint(200), 9_000);
        }
        assert_eq!(learned.lifetime(Hint::SHORT, 10, 20).death, 60);
        assert_eq!(learned.lifetime(Hint::SHORT, 10, 200).death, 250);
        assert_eq!(learned.lifetime(Hint(63), 0, 1).death, 9_000);
        assert_eq!(learned.means().len(), CLASSES);
    }
}
