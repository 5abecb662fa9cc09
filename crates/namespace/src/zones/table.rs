//! The state machine of zones.
//!
//! What is refused changes nothing. The limits are never exceeded: the zone that was opened implicitly first
//! is closed for another one that is to be opened, by a write or by a command. Zones that were opened by a
//! command are never closed without one. Conventional zones take writes anywhere and no command that changes
//! a state.
#![expect(clippy::inline_always, reason = "measured: the path of every write")]

mod check;

use super::layout::{RandomAreas, ZoneLayout};
use nandscape_core::Splitter;
use nandscape_core::zone::{
    Zone, ZoneAction, ZoneAttributes, ZoneError, ZoneFilter, ZoneReport, ZoneResult, ZoneState,
};
use std::collections::{BTreeMap, VecDeque};

/// Zones of a namespace. Addresses are logical blocks of the namespace, places inside a zone count from its
/// first block.
#[derive(Clone, Debug)]
pub struct ZoneTable {
    layout: ZoneLayout,
    /// Addresses by zones.
    by_zone: Splitter,
    zones: Vec<Entry>,
    extensions: BTreeMap<u32, Box<[u8]>>,
    /// Zones that are open implicitly, that which was opened first in front.
    implicit: VecDeque<u32>,
    /// Zones that were opened by a command.
    explicit: u32,
    closed: u32,
    /// Zones with a random write area.
    random: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    capacity: u64,
    /// Where the write pointer is; the capacity in a full zone that was not finished before.
    written: u64,
    state: ZoneState,
    attributes: ZoneAttributes,
}

/// A zone that changed its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its number.
    pub zone: u32,
    /// Its state before.
    pub from: ZoneState,
    /// Its state now.
    pub to: ZoneState,
    /// Blocks below the write pointer before.
    pub written: u64,
}

/// A zone as a start finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// Its state: not an open one.
    pub state: ZoneState,
    /// Blocks below its write pointer.
    pub written: u64,
    /// Its descriptor extension.
    pub extension: Option<Box<[u8]>>,
}

/// Where a write goes, and what it changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// The zone.
    pub zone: u32,
    /// The first block in it.
    pub from: u64,
    /// Blocks below the write pointer now.
    pub written: u64,
    /// Nothing more can be written.
    pub is_full: bool,
    /// The zone that was closed for it.
    pub closed: Option<Change>,
}

impl ZoneTable {
    /// Memory of it.
    pub const fn bytes(&self) -> u64 {
        (self.zones.len() * size_of::<Entry>()) as u64
    }

    /// Empty zones. The layout was checked.
    pub fn new(layout: ZoneLayout) -> Self {
        assert_eq!(layout.check(), Ok(()), "{layout:?}");
        let entry = Entry {
            capacity: layout.capacity,
            written: 0,
            state: ZoneState::Empty,
            attributes: ZoneAttributes::default(),
        };
        let mut zones = vec![entry; layout.zones as usize];
        for zone in &mut zones[..layout.conventional as usize] {
            zone.state = ZoneState::NotWritePointer;
        }
        Self {
            layout,
            by_zone: Splitter::new(layout.size),
            zones,
            extensions: BTreeMap::new(),
            implicit: VecDeque::new(),
            explicit: 0,
            closed: 0,
            random: 0,
        }
    }

    /// What never changes.
    pub const fn layout(&self) -> &ZoneLayout {
        &self.layout
    }

    /// Open zones.
    pub fn open(&self) -> u32 {
        self.implicit.len() as u32 + self.explicit
    }

    /// Open and closed zones.
    pub fn active(&self) -> u32 {
        self.open() + self.closed
    }

    /// State of a zone.
    #[inline]
    pub fn state(&self, zone: u32) -> ZoneState {
        self.zones[zone as usize].state
    }

    /// Whether a zone is conventional.
    #[inline]
    pub const fn is_conventional(&self, zone: u32) -> bool {
        zone < self.layout.conventional
    }

    /// Blocks below the write pointer of a zone; what was written before a zone was finished or failed.
    pub fn written(&self, zone: u32) -> u64 {
        self.zones[zone as usize].written
    }

    /// A write of blocks at an address, if it goes on at the write pointer of an open zone and leaves room
    /// behind it, as most do: the zone, and the first block in it.
    #[inline(always)]
    pub fn write_on(&mut self, at: u64, blocks: u64) -> Option<(u32, u64)> {
        let (zone, from) = self.by_zone.split(at);
        let entry = self.zones.get_mut(zone as usize)?;
        let is_next = entry.state.is_open() && from == entry.written && blocks > 0;
        if !is_next || blocks >= entry.capacity - from || entry.attributes.has(ZoneAttributes::RANDOM_AREA) {
            return None;
        }
        entry.written += blocks;
        Some((zone as u32, from))
    }

    /// A write of blocks at an address. In a conventional zone it goes anywhere and moves nothing.
    pub fn write(&mut self, at: u64, blocks: u64) -> ZoneResult<Written> {
        self.check_range(at, blocks)?;
        let (zone, from) = self.by_zone.split(at);
        let zone = zone as u32;
        self.check_writable(zone)?;
        let entry = self.zones[zone as usize];
        let end = from + blocks;
        if self.is_conventional(zone) {
            return self.write_anywhere(zone, from, end);
        }
        let area = self.area_of(entry);
        let is_in_place = match area {
            Some(area) => from >= entry.written && end <= entry.written + 2 * area.size,
            None => from == entry.written,
        };
        if !is_in_place {
            return Err(ZoneError::InvalidWrite);
        }
        if end > entry.capacity {
            return Err(ZoneError::Boundary);
        }
        let closed = self.open_for_write(zone)?;
        let pointer = match area {
            // Beyond the area, as many whole units leave it in front as the write needs behind it.
            Some(area) => {
                let beyond = end.saturating_sub(entry.written + area.size);
                entry.written + beyond.next_multiple_of(area.granularity)
            }
            None => end,
        };
        Ok(self.advanced(zone, from, pointer, closed))
    }

    #[cold]
    fn write_anywhere(&self, zone: u32, from: u64, end: u64) -> ZoneResult<Written> {
        if end > self.capacity(zone) {
            return Err(ZoneError::Boundary);
        }
        Ok(Written { zone, from, written: 0, is_full: false, closed: None })
    }

    /// A write of blocks at the write pointer of the zone that begins at an address.
    #[inline]
    pub fn append(&mut self, start: u64, blocks: u64) -> ZoneResult<Written> {
        self.check_range(start, blocks)?;
        let zone = self.sequential_at(start)?;
        if self.zones[zone as usize].attributes.has(ZoneAttributes::RANDOM_AREA) {
            return Err(ZoneError::InvalidOperation);
        }
        self.check_writable(zone)?;
        let Entry { written, capacity, .. } = self.zones[zone as usize];
        if blocks > capacity - written {
            return Err(ZoneError::Boundary);
        }
        let closed = self.open_for_write(zone)?;
        Ok(self.advanced(zone, written, written + blocks, closed))
    }

    /// Changes the state of the zone that begins at an address, or of every zone that the action is for;
    /// appends what changed.
    pub fn manage(
        &mut self,
        action: ZoneAction,
        start: Option<u64>,
        changes: &mut Vec<Change>,
    ) -> ZoneResult<()> {
        if let Some(start) = start {
            let zone = self.sequential_at(start)?;
            return self.manage_one(action, zone, changes);
        }
        let is_meant = |state: ZoneState| match action {
            ZoneAction::Close => state.is_open(),
            ZoneAction::Finish => state.is_active(),
            ZoneAction::Open | ZoneAction::OpenRandom => state == ZoneState::Closed,
            ZoneAction::Reset => state.is_active() || state == ZoneState::Full,
            ZoneAction::Offline => state == ZoneState::ReadOnly,
        };
        // All of them or none.
        if action == ZoneAction::OpenRandom {
            return Err(ZoneError::InvalidField);
        }
        if action == ZoneAction::Open && self.active() > self.layout.open_limit() {
            return Err(ZoneError::TooManyOpen);
        }
        for zone in 0..self.layout.zones {
            if is_meant(self.state(zone)) {
                self.manage_one(action, zone, changes)?;
            }
        }
        Ok(())
    }

    fn manage_one(&mut self, action: ZoneAction, zone: u32, changes: &mut Vec<Change>) -> ZoneResult<()> {
        use ZoneState as S;
        let state = self.state(zone);
        match action {
            ZoneAction::Close if state.is_open() => changes.push(self.set(zone, S::Closed)),
            ZoneAction::Close if state == S::Closed => {}
            ZoneAction::Finish if state.is_active() || state == S::Empty => {
                changes.push(self.set(zone, S::Full));
            }
            ZoneAction::Finish if state == S::Full => {}
            ZoneAction::Open if state == S::ExplicitlyOpen => {}
            ZoneAction::Open if state.is_active() || state == S::Empty => {
                changes.extend(self.take_resources(state)?);
                changes.push(self.set(zone, S::ExplicitlyOpen));
            }
            ZoneAction::OpenRandom => return self.open_random(zone, changes),
            ZoneAction::Reset if state.is_active() || state == S::Full => {
                changes.push(self.set(zone, S::Empty));
                let entry = &mut self.zones[zone as usize];
                entry.written = 0;
                entry.attributes = ZoneAttributes::default();
                self.extensions.remove(&zone);
            }
            ZoneAction::Reset if state == S::Empty => {}
            ZoneAction::Offline if state == S::ReadOnly => changes.push(self.set(zone, S::Offline)),
            ZoneAction::Offline if state == S::Offline => {}
            _ => return Err(ZoneError::Transition),
        }
        Ok(())
    }

    fn open_random(&mut self, zone: u32, changes: &mut Vec<Change>) -> ZoneResult<()> {
        let area = self.layout.random.ok_or(ZoneError::InvalidOperation)?;
        let entry = self.zones[zone as usize];
        if !entry.state.has_write_pointer() {
            return Err(ZoneError::Transition);
        }
        if !entry.attributes.has(ZoneAttributes::RANDOM_AREA) {
            if !entry.written.is_multiple_of(area.granularity) {
                return Err(ZoneError::InvalidOperation);
            }
            if area.count.is_some_and(|count| self.random >= count) {
                return Err(ZoneError::RandomAreas);
            }
        }
        self.manage_one(ZoneAction::Open, zone, changes)?;
        let attributes = &mut self.zones[zone as usize].attributes;
        self.random += u32::from(!attributes.has(ZoneAttributes::RANDOM_AREA));
        *attributes = attributes.with(ZoneAttributes::RANDOM_AREA);
        Ok(())
    }

    /// Moves the write pointer of a zone with a random write area to behind a block.
    pub fn flush_random(&mut self, last: u64) -> ZoneResult<Written> {
        let area = self.layout.random.ok_or(ZoneError::InvalidOperation)?;
        self.check_range(last, 1)?;
        let zone = (last / self.layout.size) as u32;
        let entry = self.zones[zone as usize];
        // In every state: a flush is none of the write operations that a full zone refuses as full.
        if !entry.attributes.has(ZoneAttributes::RANDOM_AREA) {
            return Err(ZoneError::InvalidField);
        }
        let end = last % self.layout.size + 1;
        if end <= entry.written || end > (entry.written + area.size).min(entry.capacity) {
            return Err(ZoneError::Boundary);
        }
        if !(end - entry.written).is_multiple_of(area.granularity) {
            return Err(ZoneError::InvalidField);
        }
        let closed = self.open_for_write(zone)?;
        Ok(self.advanced(zone, entry.written, end, closed))
    }

    /// Keeps bytes of the host's with the empty zone that begins at an address, which becomes closed. Fewer
    /// bytes than an extension has are filled up with zeroes.
    pub fn describe(&mut self, start: u64, bytes: &[u8]) -> ZoneResult<Change> {
        let zone = self.sequential_at(start)?;
        let room = self.layout.extension_bytes as usize;
        if room == 0 || bytes.len() > room {
            return Err(ZoneError::InvalidField);
        }
        if self.state(zone) != ZoneState::Empty {
            return Err(ZoneError::Transition);
        }
        if self.active() >= self.layout.active_limit() {
            return Err(ZoneError::TooManyActive);
        }
        let change = self.set(zone, ZoneState::Closed);
        let mut extension = vec![0; room].into_boxed_slice();
        extension[..bytes.len()].copy_from_slice(bytes);
        self.extensions.insert(zone, extension);
        self.set_attribute(zone, ZoneAttributes::EXTENSION);
        Ok(change)
    }

    /// Describes zones from the one of an address on.
    pub fn report(&self, from: u64, filter: ZoneFilter, room: u64) -> ZoneResult<ZoneReport> {
        self.check_range(from, 1)?;
        let first = (from / self.layout.size) as u32;
        let mut report = ZoneReport::default();
        for zone in first..self.layout.zones {
            let entry = self.zones[zone as usize];
            let is_meant = match filter {
                ZoneFilter::All => true,
                ZoneFilter::State(state) => entry.state == state,
                ZoneFilter::Attention => entry.attributes.has(ZoneAttributes::ATTENTION),
            };
            if is_meant {
                report.matching += 1;
                if report.matching <= room {
                    report.zones.push(self.describe_zone(zone));
                }
            }
        }
        Ok(report)
    }

    /// What a report says of a zone.
    pub fn describe_zone(&self, zone: u32) -> Zone {
        let entry = self.zones[zone as usize];
        let block = u64::from(self.layout.block_bytes);
        let start = u64::from(zone) * self.layout.size * block;
        Zone {
            start,
            capacity: entry.capacity * block,
            write_pointer: entry.state.has_write_pointer().then_some(start + entry.written * block),
            state: entry.state,
            attributes: entry.attributes,
            extension: self.extensions.get(&zone).cloned(),
        }
    }

    /// The medium below a zone failed: it can be read and not written any more. Conventional zones do not
    /// fail one by one.
    pub fn fail_writes(&mut self, zone: u32) -> Option<Change> {
        let state = self.state(zone);
        let can = !matches!(state, ZoneState::ReadOnly | ZoneState::Offline | ZoneState::NotWritePointer);
        can.then(|| self.set(zone, ZoneState::ReadOnly))
    }

    /// The medium below a zone failed: nothing can be read.
    pub fn fail(&mut self, zone: u32) -> Option<Change> {
        let can = !matches!(self.state(zone), ZoneState::Offline | ZoneState::NotWritePointer);
        can.then(|| self.set(zone, ZoneState::Offline))
    }

    /// The device finishes an active zone, whether or not the host agrees.
    pub fn finish_by_device(&mut self, zone: u32) -> Option<Change> {
        if !self.state(zone).is_active() {
            return None;
        }
        let change = self.set(zone, ZoneState::Full);
        self.set_attribute(zone, ZoneAttributes::FINISHED_BY_DEVICE);
        Some(change)
    }

    /// The device recommends something of a zone: a finish, or a reset.
    pub fn recommend(&mut self, zone: u32, what: ZoneAttributes) {
        let known = ZoneAttributes::FINISH_RECOMMENDED.with(ZoneAttributes::RESET_RECOMMENDED);
        assert_eq!(what.without(known), ZoneAttributes::default(), "{what:?} is no recommendation");
        self.set_attribute(zone, what);
    }

    /// Changes what can be written of an empty zone.
    pub fn set_capacity(&mut self, zone: u32, capacity: u64) {
        let entry = &mut self.zones[zone as usize];
        assert!(entry.state == ZoneState::Empty, "zone {zone} is {:?}", entry.state);
        assert!(capacity > 0 && capacity <= self.layout.size, "{capacity} blocks of zone {zone}");
        entry.capacity = capacity;
    }

    /// The host's bytes with a zone, if it set any since the last reset.
    pub fn extension(&self, zone: u32) -> Option<&[u8]> {
        self.extensions.get(&zone).map(|bytes| &**bytes)
    }

    /// Whether a zone has a random write area.
    pub fn is_random(&self, zone: u32) -> bool {
        self.zones[zone as usize].attributes.has(ZoneAttributes::RANDOM_AREA)
    }

    /// Blocks of a zone that can be written.
    pub fn capacity(&self, zone: u32) -> u64 {
        self.zones[zone as usize].capacity
    }

    /// Sets a zone of a table that is being made as it was before the device started. An active zone too many
    /// becomes full.
    pub fn restore(&mut self, zone: u32, restored: Restored) {
        let Restored { mut state, written, extension } = restored;
        let is_one_too_many = state.is_active() && self.active() >= self.layout.active_limit();
        if is_one_too_many {
            state = ZoneState::Full;
        }
        self.zones[zone as usize].written = written;
        self.set(zone, state);
        if is_one_too_many {
            self.set_attribute(zone, ZoneAttributes::FINISHED_BY_DEVICE);
        }
        if let Some(extension) = extension {
            self.extensions.insert(zone, extension);
            self.set_attribute(zone, ZoneAttributes::EXTENSION);
        }
    }

    /// The device starts again: open zones come back closed, or empty if nothing was written and no
    /// extension set; random write areas are gone.
    pub fn restart(&mut self) {
        for zone in 0..self.layout.zones {
            let entry = self.zones[zone as usize];
            if entry.state.is_active() {
                let is_used = entry.written > 0 || entry.attributes.has(ZoneAttributes::EXTENSION);
                self.set(zone, if is_used { ZoneState::Closed } else { ZoneState::Empty });
                self.release_area(zone);
            }
        }
        self.check_invariants();
    }

    const fn check_range(&self, at: u64, blocks: u64) -> ZoneResult<()> {
        if blocks == 0 {
            return Err(ZoneError::InvalidField);
        }
        if at.saturating_add(blocks) > self.layout.blocks() {
            return Err(ZoneError::OutOfRange);
        }
        Ok(())
    }

    /// The zone that begins at an address.
    fn zone_at(&self, start: u64) -> ZoneResult<u32> {
        self.check_range(start, 1)?;
        let (zone, within) = self.by_zone.split(start);
        if within > 0 {
            return Err(ZoneError::InvalidField);
        }
        Ok(zone as u32)
    }

    /// The zone with a write pointer that begins at an address.
    fn sequential_at(&self, start: u64) -> ZoneResult<u32> {
        let zone = self.zone_at(start)?;
        if self.is_conventional(zone) { Err(ZoneError::InvalidField) } else { Ok(zone) }
    }

    fn check_writable(&self, zone: u32) -> ZoneResult<()> {
        match self.state(zone) {
            ZoneState::Full => Err(ZoneError::Full),
            ZoneState::ReadOnly => Err(ZoneError::ReadOnly),
            ZoneState::Offline => Err(ZoneError::Offline),
            _ => Ok(()),
        }
    }

    fn area_of(&self, entry: Entry) -> Option<RandomAreas> {
        self.layout.random.filter(|_| entry.attributes.has(ZoneAttributes::RANDOM_AREA))
    }

    /// Opens a zone that is not open, and gives that which was closed for it.
    #[inline(always)]
    fn open_for_write(&mut self, zone: u32) -> ZoneResult<Option<Change>> {
        let state = self.state(zone);
        if state.is_open() { Ok(None) } else { self.open_implicitly(zone, state) }
    }

    #[inline(never)]
    fn open_implicitly(&mut self, zone: u32, state: ZoneState) -> ZoneResult<Option<Change>> {
        let closed = self.take_resources(state)?;
        self.set(zone, ZoneState::ImplicitlyOpen);
        Ok(closed)
    }

    /// Makes sure that a zone in a state can be opened; gives the zone that was closed for it.
    fn take_resources(&mut self, state: ZoneState) -> ZoneResult<Option<Change>> {
        if state.is_open() {
            return Ok(None);
        }
        if state == ZoneState::Empty && self.active() >= self.layout.active_limit() {
            return Err(ZoneError::TooManyActive);
        }
        if self.open() < self.layout.open_limit() {
            return Ok(None);
        }
        match self.implicit.front() {
            Some(oldest) => Ok(Some(self.set(*oldest, ZoneState::Closed))),
            None => Err(ZoneError::TooManyOpen),
        }
    }

    /// Moves the write pointer of an open zone.
    #[inline(always)]
    fn advanced(&mut self, zone: u32, from: u64, pointer: u64, closed: Option<Change>) -> Written {
        let entry = &mut self.zones[zone as usize];
        debug_assert!(entry.state.is_open() && pointer >= entry.written, "zone {zone}: {entry:?}");
        assert!(pointer <= entry.capacity, "zone {zone}: {entry:?}, and a write up to {pointer}");
        entry.written = pointer;
        let is_full = pointer == entry.capacity;
        if is_full {
            self.set(zone, ZoneState::Full);
        }
        Written { zone, from, written: pointer, is_full, closed }
    }

    /// Changes the state of a zone and what is counted of states.
    fn set(&mut self, zone: u32, to: ZoneState) -> Change {
        let Entry { state: from, written, .. } = self.zones[zone as usize];
        match from {
            ZoneState::ImplicitlyOpen => {
                let at = self.implicit.iter().position(|open| *open == zone);
                self.implicit.remove(at.expect("every such zone is in the queue"));
            }
            ZoneState::ExplicitlyOpen => self.explicit -= 1,
            ZoneState::Closed => self.closed -= 1,
            _ => {}
        }
        match to {
            ZoneState::ImplicitlyOpen => self.implicit.push_back(zone),
            ZoneState::ExplicitlyOpen => self.explicit += 1,
            ZoneState::Closed => self.closed += 1,
            _ => {}
        }
        self.zones[zone as usize].state = to;
        if !to.is_active() {
            self.release_area(zone);
        }
        self.check_limits();
        Change { zone, from, to, written }
    }

    fn release_area(&mut self, zone: u32) {
        let attributes = &mut self.zones[zone as usize].attributes;
        self.random -= u32::from(attributes.has(ZoneAttributes::RANDOM_AREA));
        *attributes = attributes.without(ZoneAttributes::RANDOM_AREA);
    }

    fn set_attribute(&mut self, zone: u32, attribute: ZoneAttributes) {
        let attributes = &mut self.zones[zone as usize].attributes;
        *attributes = attributes.with(attribute);
    }
}
