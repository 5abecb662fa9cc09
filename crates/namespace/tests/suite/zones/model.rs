//! Zones as the standard describes them, without counters: everything is found by looking at all zones. It
//! shares no code with the table (NVMe ZNS 1.1, section 2.1.1).

use nandscape_core::zone::{ZoneAction, ZoneState};
use nandscape_namespace::zones::ZoneLayout;

/// Words of the standard's statuses.
pub type Status = &'static str;

#[derive(Clone, Copy, PartialEq)]
enum S {
    /// Of a conventional zone (ZBC-2, section 4.4.2), for good.
    NotWritePointer,
    Empty,
    Implicit,
    Explicit,
    Closed,
    Full,
    ReadOnly,
    Offline,
}

struct Zone {
    state: S,
    pointer: u64,
    /// When it became implicitly open.
    opened: u64,
    has_area: bool,
    host_bytes: Option<Vec<u8>>,
    finished_by_device: bool,
}

pub struct Model {
    layout: ZoneLayout,
    zones: Vec<Zone>,
    clock: u64,
}

/// What a write is answered with: its first block in its zone, the pointer behind it, and the zone that was
/// closed for it.
pub type Place = (u64, u64, Option<u32>);

impl Model {
    pub fn new(layout: ZoneLayout) -> Self {
        let zone = |number: u32| Zone {
            state: if number < layout.conventional { S::NotWritePointer } else { S::Empty },
            pointer: 0,
            opened: 0,
            has_area: false,
            host_bytes: None,
            finished_by_device: false,
        };
        Self { layout, zones: (0..layout.zones).map(zone).collect(), clock: 0 }
    }

    fn is_open(&self, zone: usize) -> bool {
        [S::Implicit, S::Explicit].contains(&self.zones[zone].state)
    }

    fn is_active(&self, zone: usize) -> bool {
        self.is_open(zone) || self.zones[zone].state == S::Closed
    }

    pub fn open(&self) -> usize {
        (0..self.zones.len()).filter(|zone| self.is_open(*zone)).count()
    }

    pub fn active(&self) -> usize {
        (0..self.zones.len()).filter(|zone| self.is_active(*zone)).count()
    }

    /// The zone and the block in it, of a run that lies in the namespace.
    fn locate(&self, at: u64, blocks: u64) -> Result<(usize, u64), Status> {
        let total = u128::from(self.layout.size) * self.zones.len() as u128;
        match () {
            () if blocks == 0 => Err("invalid-field"),
            () if u128::from(at) + u128::from(blocks) > total => Err("out-of-range"),
            () => Ok(((at / self.layout.size) as usize, at % self.layout.size)),
        }
    }

    fn starting_at(&self, at: u64) -> Result<usize, Status> {
        match self.locate(at, 1)? {
            (zone, 0) => Ok(zone),
            _ => Err("invalid-field"),
        }
    }

    fn refuse_unwritable(&self, zone: usize) -> Result<(), Status> {
        match self.zones[zone].state {
            S::Full => Err("full"),
            S::ReadOnly => Err("read-only"),
            S::Offline => Err("offline"),
            S::NotWritePointer | S::Empty | S::Implicit | S::Explicit | S::Closed => Ok(()),
        }
    }

    /// Refuses a zone that no command of the zoned command set is for.
    fn with_pointer(&self, zone: usize) -> Result<usize, Status> {
        if self.zones[zone].state == S::NotWritePointer { Err("invalid-field") } else { Ok(zone) }
    }

    /// Opens a zone; gives the zone that had to be closed.
    fn make_open(&mut self, zone: usize, to: S) -> Result<Option<u32>, Status> {
        let mut made_room = None;
        if !self.is_open(zone) {
            let (open, active) = (self.open(), self.active());
            if !self.is_active(zone) && self.layout.max_active.is_some_and(|most| active >= most as usize) {
                return Err("too-many-active");
            }
            let most = self.layout.max_open.or(self.layout.max_active);
            if most.is_some_and(|most| open >= most as usize) {
                let implicit = (0..self.zones.len()).filter(|zone| self.zones[*zone].state == S::Implicit);
                let oldest = implicit.min_by_key(|zone| self.zones[*zone].opened).ok_or("too-many-open")?;
                self.zones[oldest].state = S::Closed;
                made_room = Some(oldest as u32);
            }
        }
        self.clock += 1;
        if self.zones[zone].state != to {
            self.zones[zone].opened = self.clock;
            self.zones[zone].state = to;
        }
        Ok(made_room)
    }

    fn make_writable(&mut self, zone: usize) -> Result<Option<u32>, Status> {
        if self.is_open(zone) { Ok(None) } else { self.make_open(zone, S::Implicit) }
    }

    fn move_pointer(&mut self, zone: usize, to: u64) {
        self.zones[zone].pointer = to;
        if to == self.layout.capacity {
            self.zones[zone].state = S::Full;
            self.zones[zone].has_area = false;
        }
    }

    pub fn write(&mut self, at: u64, blocks: u64) -> Result<Place, Status> {
        let (zone, from) = self.locate(at, blocks)?;
        self.refuse_unwritable(zone)?;
        let pointer = self.zones[zone].pointer;
        let mut next = from + blocks;
        if self.zones[zone].state == S::NotWritePointer {
            return if next > self.layout.capacity { Err("boundary") } else { Ok((from, 0, None)) };
        }
        if self.zones[zone].has_area {
            let area = self.layout.random.unwrap();
            if from < pointer || next > pointer + area.size + area.size {
                return Err("invalid-write");
            }
        } else if from != pointer {
            return Err("invalid-write");
        }
        if next > self.layout.capacity {
            return Err("boundary");
        }
        if self.zones[zone].has_area {
            let area = self.layout.random.unwrap();
            let written = next;
            next = pointer;
            // One unit after the other leaves the area until the write lies in it.
            while written > next + area.size {
                next += area.granularity;
            }
        }
        let made_room = self.make_writable(zone)?;
        self.move_pointer(zone, next);
        Ok((from, next, made_room))
    }

    pub fn append(&mut self, at: u64, blocks: u64) -> Result<Place, Status> {
        self.locate(at, blocks)?;
        let zone = self.starting_at(at).and_then(|zone| self.with_pointer(zone))?;
        if self.zones[zone].has_area {
            return Err("invalid-operation");
        }
        self.refuse_unwritable(zone)?;
        let from = self.zones[zone].pointer;
        if from + blocks > self.layout.capacity {
            return Err("boundary");
        }
        let made_room = self.make_writable(zone)?;
        self.move_pointer(zone, from + blocks);
        Ok((from, from + blocks, made_room))
    }

    pub fn read(&self, at: u64, blocks: u64) -> Result<(), Status> {
        self.locate(at, blocks)?;
        let zones = at / self.layout.size..(at + blocks).div_ceil(self.layout.size);
        if zones.clone().count() > 1 && !self.layout.reads_across {
            return Err("boundary");
        }
        for zone in zones {
            if self.zones[zone as usize].state == S::Offline {
                return Err("offline");
            }
        }
        Ok(())
    }

    pub fn manage(&mut self, action: ZoneAction, at: Option<u64>) -> Result<(), Status> {
        if let Some(at) = at {
            let zone = self.starting_at(at).and_then(|zone| self.with_pointer(zone))?;
            return self.manage_one(action, zone);
        }
        let of: &[S] = match action {
            ZoneAction::Close => &[S::Implicit, S::Explicit],
            ZoneAction::Finish => &[S::Implicit, S::Explicit, S::Closed],
            ZoneAction::Open => &[S::Closed],
            ZoneAction::Reset => &[S::Implicit, S::Explicit, S::Closed, S::Full],
            ZoneAction::Offline => &[S::ReadOnly],
            ZoneAction::OpenRandom => return Err("invalid-field"),
        };
        let most = self.layout.max_open.or(self.layout.max_active);
        if action == ZoneAction::Open && most.is_some_and(|most| self.active() > most as usize) {
            return Err("too-many-open");
        }
        let meant: Vec<usize> =
            (0..self.zones.len()).filter(|at| of.contains(&self.zones[*at].state)).collect();
        meant.into_iter().try_for_each(|zone| self.manage_one(action, zone))
    }

    fn manage_one(&mut self, action: ZoneAction, zone: usize) -> Result<(), Status> {
        let state = self.zones[zone].state;
        let next = match (action, state) {
            (ZoneAction::Close, S::Implicit | S::Explicit | S::Closed) => S::Closed,
            (ZoneAction::Finish | ZoneAction::Reset, S::ReadOnly | S::Offline) => return Err("transition"),
            (ZoneAction::Finish, _) => S::Full,
            (ZoneAction::Reset, _) => S::Empty,
            (ZoneAction::Offline, S::ReadOnly | S::Offline) => S::Offline,
            (ZoneAction::Open | ZoneAction::OpenRandom, _) => return self.open_by_command(action, zone),
            (ZoneAction::Close | ZoneAction::Offline, _) => return Err("transition"),
        };
        let zone = &mut self.zones[zone];
        zone.state = next;
        zone.has_area &= next == S::Closed;
        if next == S::Empty {
            (zone.pointer, zone.host_bytes, zone.finished_by_device) = (0, None, false);
        }
        Ok(())
    }

    fn open_by_command(&mut self, action: ZoneAction, zone: usize) -> Result<(), Status> {
        let is_random = action == ZoneAction::OpenRandom;
        if is_random && self.layout.random.is_none() {
            return Err("invalid-operation");
        }
        if self.refuse_unwritable(zone).is_err() {
            return Err("transition");
        }
        let is_new = is_random && !self.zones[zone].has_area;
        if is_new {
            let area = self.layout.random.unwrap();
            if !self.zones[zone].pointer.is_multiple_of(area.granularity) {
                return Err("invalid-operation");
            }
            let taken = self.zones.iter().filter(|zone| zone.has_area).count();
            if area.count.is_some_and(|most| taken >= most as usize) {
                return Err("random-areas");
            }
        }
        self.make_open(zone, S::Explicit)?;
        self.zones[zone].has_area |= is_new;
        Ok(())
    }

    pub fn flush_random(&mut self, last: u64) -> Result<Place, Status> {
        let area = self.layout.random.ok_or("invalid-operation")?;
        let (zone, block) = self.locate(last, 1)?;
        if !self.zones[zone].has_area {
            return Err("invalid-field");
        }
        let pointer = self.zones[zone].pointer;
        if !(pointer..pointer + area.size).contains(&block) || block >= self.layout.capacity {
            return Err("boundary");
        }
        if !(block + 1 - pointer).is_multiple_of(area.granularity) {
            return Err("invalid-field");
        }
        let made_room = self.make_writable(zone)?;
        self.move_pointer(zone, block + 1);
        Ok((pointer, block + 1, made_room))
    }

    pub fn describe(&mut self, at: u64, bytes: &[u8]) -> Result<(), Status> {
        let zone = self.starting_at(at).and_then(|zone| self.with_pointer(zone))?;
        let room = self.layout.extension_bytes as usize;
        if room == 0 || bytes.len() > room {
            return Err("invalid-field");
        }
        if self.zones[zone].state != S::Empty {
            return Err("transition");
        }
        if self.layout.max_active.is_some_and(|most| self.active() >= most as usize) {
            return Err("too-many-active");
        }
        let filled = bytes.iter().copied().chain(std::iter::repeat(0)).take(room).collect();
        self.zones[zone].host_bytes = Some(filled);
        self.zones[zone].state = S::Closed;
        Ok(())
    }

    pub fn fail(&mut self, zone: usize, is_readable: bool) {
        let zone = &mut self.zones[zone];
        if ![S::Offline, S::NotWritePointer].contains(&zone.state) {
            zone.state = if is_readable { S::ReadOnly } else { S::Offline };
            zone.has_area = false;
        }
    }

    pub fn finish_by_device(&mut self, zone: usize) {
        if self.is_active(zone) {
            let zone = &mut self.zones[zone];
            (zone.state, zone.has_area, zone.finished_by_device) = (S::Full, false, true);
        }
    }

    pub fn restart(&mut self) {
        for zone in 0..self.zones.len() {
            if self.is_active(zone) {
                let zone = &mut self.zones[zone];
                let is_used = zone.pointer > 0 || zone.host_bytes.is_some();
                zone.state = if is_used { S::Closed } else { S::Empty };
                zone.has_area = false;
            }
        }
    }

    /// A zone as a report describes it: state, write pointer, attributes, extension.
    pub fn shown(&self, zone: usize) -> (ZoneState, Option<u64>, u8, Option<&[u8]>) {
        let Zone { state, pointer, has_area, host_bytes, finished_by_device, .. } = &self.zones[zone];
        let state = match state {
            S::NotWritePointer => ZoneState::NotWritePointer,
            S::Empty => ZoneState::Empty,
            S::Implicit => ZoneState::ImplicitlyOpen,
            S::Explicit => ZoneState::ExplicitlyOpen,
            S::Closed => ZoneState::Closed,
            S::Full => ZoneState::Full,
            S::ReadOnly => ZoneState::ReadOnly,
            S::Offline => ZoneState::Offline,
        };
        let has_pointer = self.refuse_unwritable(zone).is_ok() && self.with_pointer(zone).is_ok();
        let attributes =
            u8::from(*finished_by_device) | u8::from(*has_area) << 3 | u8::from(host_bytes.is_some()) << 7;
        (state, has_pointer.then_some(*pointer), attributes, host_bytes.as_deref())
    }
}
