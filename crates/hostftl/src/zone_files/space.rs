//! Zones with data: who owns which place, and which zones can be written.

use super::files::Piece;
use super::placement::Lifetime;
use nandscape_core::Token;
use nandscape_core::zone::{ZoneContents, ZoneOwner};
use nandscape_ftl::victim::{BlockInfo, BlockState, VictimPolicy};
use std::collections::VecDeque;

/// No zone.
pub(super) const NO_ZONE: u32 = u32::MAX;
/// No file.
pub(super) const NO_FILE: u32 = u32::MAX;

/// Whose unit a place has: the slot of a file, and the unit in it. [`NO_FILE`]: a place without live data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub file: u32,
    pub unit: u32,
}

impl Owner {
    pub const NONE: Self = Self { file: NO_FILE, unit: 0 };
}

/// An open zone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frontier {
    /// The zone, or [`NO_ZONE`].
    pub zone: u32,
    /// Its next unit, and the one behind its last.
    pub next: u32,
    pub end: u32,
    /// The next write waits for this: the reset of the zone.
    pub after: Token,
    /// Completes when the writes to the zone do.
    pub done: Token,
    /// Of the data that it was opened for.
    pub lifetime: Lifetime,
    /// The file that chose it last.
    pub user: User,
}

/// A file that writes to an open zone.
#[derive(Clone, Copy, Debug)]
pub(super) struct User {
    pub slot: u32,
    /// Units that it has written there.
    pub units: u32,
    /// When it wrote last.
    pub at: u64,
    /// It is expected to fill half a zone or more.
    pub is_large: bool,
}

impl User {
    pub const NOBODY: Self = Self { slot: u32::MAX, units: 0, at: 0, is_large: false };

    /// Whether another large file is being written there. One that takes a zone comes back even after several
    /// others have written.
    pub const fn is_busy(&self, slot: u32, now: u64, zone_units: u32) -> bool {
        let pause = if self.is_large { 4 * zone_units as u64 } else { zone_units as u64 / 4 };
        self.slot != slot && self.units >= zone_units / 32 && now - self.at < pause
    }
}

/// What a zone was opened for, as reports tell it.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    lifetime: Option<u8>,
    /// The slot of a file that wrote to it, behind 0 for none.
    file: u32,
    is_shared: bool,
    is_moved: bool,
}

impl Frontier {
    pub const CLOSED: Self = Self {
        zone: NO_ZONE,
        next: 0,
        end: 0,
        after: Token::NONE,
        done: Token::NONE,
        lifetime: Lifetime { hint: nandscape_core::Hint(0), death: 0 },
        user: User::NOBODY,
    };

    #[inline]
    pub const fn room(&self) -> u32 {
        self.end - self.next
    }

    pub const fn is_open(&self) -> bool {
        self.zone != NO_ZONE
    }
}

/// Zones with data, free zones, and the number of units that can still be written.
#[derive(Debug)]
pub(super) struct Space {
    /// Units of a zone.
    pub zone_units: u32,
    /// The first zone that may have data.
    pub first: u32,
    /// By zone: live units and state, units that can be written.
    pub infos: Vec<BlockInfo>,
    pub capacities: Vec<u32>,
    /// By place.
    pub owners: Vec<Owner>,
    /// Empty zones with what their first write waits for, that which is empty longest in front.
    pub free: VecDeque<(u32, Token)>,
    /// Full zones without live data, of which the journal may still say otherwise.
    pub emptied: Vec<u32>,
    /// The same, with what their reset waits for: the records that say so.
    pub collected: VecDeque<(u32, Token)>,
    /// Completes when the last reset does.
    pub resetting: Token,
    /// Open zones of hosts, then that of moved data.
    pub frontiers: Vec<Frontier>,
    /// Units that can be written: of frontiers, free zones and collected zones.
    pub free_units: u64,
    /// Live units.
    pub live: u64,
    /// A victim has to be empty before there are fewer units than these that can be written.
    pub floor_units: u64,
    /// So many more are kept free where data leaves enough of all.
    low_units: u64,
    all_units: u64,
    /// By zone, for reports.
    marks: Vec<Mark>,
}

impl Space {
    pub fn new((zones, first, zone_units): (u32, u32, u32), frontiers: usize, floor: u64, low: u32) -> Self {
        assert!(frontiers >= 2 && first < zones, "{frontiers} open zones, {first} of {zones} for metadata");
        Self {
            zone_units,
            first,
            infos: vec![BlockInfo::default(); zones as usize],
            capacities: vec![zone_units; zones as usize],
            owners: vec![Owner::NONE; zones as usize * (zone_units as usize + 1)],
            free: VecDeque::new(),
            emptied: Vec::new(),
            collected: VecDeque::new(),
            resetting: Token::NONE,
            frontiers: vec![Frontier::CLOSED; frontiers],
            free_units: 0,
            live: 0,
            floor_units: floor,
            low_units: u64::from(low) * u64::from(zone_units),
            all_units: u64::from(zones - first) * u64::from(zone_units),
            marks: vec![Mark::default(); zones as usize],
        }
    }

    /// With fewer units that can be written, a victim is chosen: `gc_low` zones above the floor, but at most
    /// an eighth of what live data leaves, since what is kept free cannot wait for its neighbours to die.
    #[inline]
    pub fn start_units(&self) -> u64 {
        let eighth = self.all_units.saturating_sub(self.live) / 8;
        self.floor_units + self.low_units.min(eighth.max(self.zone_units.into()))
    }

    /// The frontier of moved data.
    pub const fn gc(&self) -> usize {
        self.frontiers.len() - 1
    }

    /// The zone of a place. Zones have one place more than units, so that no two places in different zones
    /// follow each other.
    #[inline]
    pub const fn zone_of(&self, place: u32) -> u32 {
        place / (self.zone_units + 1)
    }

    /// The first place of a zone.
    #[inline]
    pub const fn first_of(&self, zone: u32) -> u32 {
        zone * (self.zone_units + 1)
    }

    /// Places of the units of a zone.
    pub const fn places_of(&self, zone: u32) -> std::ops::Range<usize> {
        let first = self.first_of(zone) as usize;
        first..first + self.zone_units as usize
    }

    /// Units of zones with data that are not given up.
    pub fn total(&self) -> u64 {
        let zones = self.infos.iter().zip(&self.capacities).skip(self.first as usize);
        let good = zones.filter(|(info, _)| !matches!(info.state, BlockState::Bad | BlockState::Failed));
        good.map(|(_, capacity)| u64::from(*capacity)).sum()
    }

    /// Units were written to a frontier for a file, from one of its units on: they are live. Returns where
    /// they are.
    #[inline]
    pub fn written(&mut self, index: usize, units: u32, owner: Owner, (done, now): (Token, u64)) -> u32 {
        let frontier = &mut self.frontiers[index];
        assert!(units <= frontier.room(), "{units} units are written to {frontier:?}");
        let place = frontier.zone * (self.zone_units + 1) + frontier.next;
        frontier.next += units;
        (frontier.after, frontier.done) = (Token::NONE, done);
        if frontier.user.slot == owner.file {
            (frontier.user.units, frontier.user.at) = (frontier.user.units + units, now);
        }
        let zone = frontier.zone;
        self.free_units -= u64::from(units);
        self.take(zone, Piece { place, units }, owner);
        place
    }

    /// Places of a zone are those of a file from now on.
    #[inline]
    pub fn take(&mut self, zone: u32, piece: Piece, owner: Owner) {
        let owners = &mut self.owners[piece.place as usize..][..piece.units as usize];
        for (own, unit) in owners.iter_mut().zip(owner.unit..) {
            *own = Owner { file: owner.file, unit };
        }
        self.infos[zone as usize].valid += piece.units;
        self.live += u64::from(piece.units);
        let mark = &mut self.marks[zone as usize];
        mark.is_shared |= mark.file != 0 && mark.file != owner.file + 1;
        mark.file = owner.file + 1;
    }

    /// What a zone holds.
    pub fn contents(&self, zone: u32, unit: u64) -> ZoneContents {
        let Some(info) = self.infos.get(zone as usize) else { return ZoneContents::default() };
        if zone < self.first {
            // Of metadata nothing is counted.
            return ZoneContents { owner: Some(ZoneOwner::Metadata), ..ZoneContents::default() };
        }
        let valid_bytes = Some(u64::from(info.valid) * unit);
        let mark = self.marks[zone as usize];
        if info.state == BlockState::Free || mark.file == 0 {
            return ZoneContents { valid_bytes, ..ZoneContents::default() };
        }
        let owner = match mark {
            Mark { is_moved: true, .. } => ZoneOwner::Moved,
            Mark { is_shared: true, .. } => ZoneOwner::Files,
            _ => ZoneOwner::File,
        };
        ZoneContents { valid_bytes, owner: Some(owner), lifetime: mark.lifetime }
    }

    /// Places are nobody's any more. A full zone without live data is emptied.
    pub fn invalidate(&mut self, piece: Piece, victims: &mut dyn VictimPolicy, now: u64) {
        self.owners[piece.place as usize..][..piece.units as usize].fill(Owner::NONE);
        let zone = self.zone_of(piece.place);
        let info = &mut self.infos[zone as usize];
        assert!(info.valid >= piece.units, "{piece:?} is dropped of zone {zone}, {info:?}");
        info.valid -= piece.units;
        self.live -= u64::from(piece.units);
        if info.state != BlockState::Sealed {
            return;
        }
        if info.valid > 0 {
            victims.invalidated(zone, info.valid, now);
        } else {
            victims.removed(zone);
            info.state = BlockState::Victim;
            self.emptied.push(zone);
        }
    }

    /// A zone takes no more writes: a candidate, or emptied, if nothing in it is live.
    pub fn seal(&mut self, zone: u32, victims: &mut dyn VictimPolicy, now: u64) {
        let info = &mut self.infos[zone as usize];
        assert!(zone >= self.first && info.state != BlockState::Sealed, "zone {zone}: {info:?}");
        if info.valid == 0 {
            info.state = BlockState::Victim;
            self.emptied.push(zone);
        } else {
            info.state = BlockState::Sealed;
            victims.sealed(zone, info.valid, now);
        }
    }

    /// A zone becomes free once `ready` completes.
    pub fn release(&mut self, zone: u32, ready: Token) {
        let info = &mut self.infos[zone as usize];
        assert_eq!(info.valid, 0, "live units of zone {zone}, which is free");
        info.state = BlockState::Free;
        self.free.push_back((zone, ready));
    }

    /// A frontier is closed; what it has left cannot be written.
    pub fn close(&mut self, index: usize) -> u32 {
        let frontier = std::mem::replace(&mut self.frontiers[index], Frontier::CLOSED);
        assert!(frontier.is_open(), "frontier {index} has no zone");
        self.free_units -= u64::from(frontier.room());
        frontier.zone
    }

    /// Opens the zone that is free longest.
    pub fn open(&mut self, index: usize, lifetime: Lifetime) -> bool {
        assert!(!self.frontiers[index].is_open(), "frontier {index} has {:?}", self.frontiers[index]);
        let Some((zone, after)) = self.free.pop_front() else { return false };
        let info = &mut self.infos[zone as usize];
        assert_eq!((info.state, info.valid), (BlockState::Free, 0), "zone {zone}, which was free");
        info.state = BlockState::Open;
        let end = self.capacities[zone as usize];
        let is_moved = index == self.gc();
        let known = Some(ZoneContents::lifetime_of(lifetime.hint));
        self.marks[zone as usize] = Mark { lifetime: known, is_moved, ..Mark::default() };
        self.frontiers[index] = Frontier { zone, end, after, lifetime, ..Frontier::CLOSED };
        true
    }

    /// A zone that is written can take fewer units from now on.
    pub fn shrink(&mut self, zone: u32, capacity: u32) {
        let old = std::mem::replace(&mut self.capacities[zone as usize], capacity);
        assert!(capacity <= old, "zone {zone} grows from {old} to {capacity} units");
        for frontier in self.frontiers.iter_mut().filter(|frontier| frontier.zone == zone) {
            let end = capacity.max(frontier.next);
            self.free_units -= u64::from(frontier.end - end);
            frontier.end = end;
        }
    }

    /// Units of zones that hold data: of open ones, those that were written.
    pub fn used(&self) -> u64 {
        let zones = self.infos.iter().zip(&self.capacities).skip(self.first as usize);
        let full = zones.filter(|(info, _)| matches!(info.state, BlockState::Sealed | BlockState::Victim));
        let full: u64 = full.map(|(_, capacity)| u64::from(*capacity)).sum();
        let collected: u64 =
            self.collected.iter().map(|(zone, _)| u64::from(self.capacities[*zone as usize])).sum();
        let open: u64 = self.frontiers.iter().map(|frontier| u64::from(frontier.next)).sum();
        full - collected + open
    }

    /// Memory of it.
    pub const fn bytes(&self) -> u64 {
        let zones = self.infos.len() * (size_of::<BlockInfo>() + size_of::<u32>());
        (zones + self.owners.len() * size_of::<Owner>()) as u64
    }

    /// What [`Space::free_units`] must be.
    pub fn count_free(&self) -> u64 {
        let of = |zone: u32| u64::from(self.capacities[zone as usize]);
        let free: u64 = self.free.iter().chain(&self.collected).map(|(zone, _)| of(*zone)).sum();
        free + self.frontiers.iter().map(|frontier| u64::from(frontier.room())).sum::<u64>()
    }

    /// Nothing that was submitted so far has to be waited for.
    pub fn forget_tokens(&mut self) {
        self.resetting = Token::NONE;
        self.free.iter_mut().chain(&mut self.collected).for_each(|(_, ready)| *ready = Token::NONE);
        for frontier in &mut self.frontiers {
            (frontier.after, frontier.done) = (Token::NONE, Token::NONE);
        }
    }
}
