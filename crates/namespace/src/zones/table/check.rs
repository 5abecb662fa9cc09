//! What may be read, and the counts and limits of a table of zones.

use super::ZoneTable;
use nandscape_core::zone::{ZoneAttributes, ZoneError, ZoneResult, ZoneState};

impl ZoneTable {
    /// Whether blocks may be read. Those that no write has reached read as zeroes.
    pub fn check_read(&self, at: u64, blocks: u64) -> ZoneResult<()> {
        self.check_range(at, blocks)?;
        let (first, last) = (self.by_zone.quotient(at), self.by_zone.quotient(at + blocks - 1));
        if first != last && !self.layout.reads_across {
            return Err(ZoneError::Boundary);
        }
        let zones = &self.zones[first as usize..=last as usize];
        if zones.iter().any(|zone| zone.state == ZoneState::Offline) {
            return Err(ZoneError::Offline);
        }
        Ok(())
    }

    /// Checks the counts and limits; panics with the values. For tests.
    pub fn check_invariants(&self) {
        let count = |is: fn(ZoneState) -> bool| self.zones.iter().filter(|zone| is(zone.state)).count();
        assert_eq!(self.implicit.len(), count(|state| state == ZoneState::ImplicitlyOpen));
        assert!(self.implicit.iter().all(|zone| self.state(*zone) == ZoneState::ImplicitlyOpen));
        assert_eq!(self.explicit as usize, count(|state| state == ZoneState::ExplicitlyOpen));
        assert_eq!(self.closed as usize, count(|state| state == ZoneState::Closed));
        let random = self.zones.iter().filter(|zone| zone.attributes.has(ZoneAttributes::RANDOM_AREA));
        assert_eq!(self.random as usize, random.count());
        self.check_limits();
        for (number, zone) in (0..).zip(&self.zones) {
            assert!(zone.written <= zone.capacity, "zone {number}: {zone:?}");
            let is_before_end = zone.written < zone.capacity || !zone.state.has_write_pointer();
            assert!(is_before_end, "zone {number}: {zone:?}");
            assert!(zone.state != ZoneState::Empty || zone.written == 0, "zone {number}: {zone:?}");
            let is_conventional = zone.state == ZoneState::NotWritePointer;
            assert_eq!(is_conventional, self.is_conventional(number), "zone {number}: {zone:?}");
            assert!(!is_conventional || zone.written == 0, "zone {number}: {zone:?}");
            let has_extension = zone.attributes.has(ZoneAttributes::EXTENSION);
            assert_eq!(has_extension, self.extensions.contains_key(&number), "zone {number}: {zone:?}");
            let has_area = zone.attributes.has(ZoneAttributes::RANDOM_AREA);
            assert!(!has_area || zone.state.is_active(), "zone {number}: {zone:?}");
        }
    }

    pub(super) fn check_limits(&self) {
        assert!(self.open() <= self.layout.open_limit(), "{} zones are open", self.open());
        assert!(self.active() <= self.layout.active_limit(), "{} zones are active", self.active());
        let areas = self.layout.random.and_then(|areas| areas.count);
        assert!(areas.is_none_or(|most| self.random <= most), "{} random write areas", self.random);
    }
}
