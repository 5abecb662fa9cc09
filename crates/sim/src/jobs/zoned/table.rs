//! Zones of one namespace or file as the jobs on it know them: write pointers, which zones are open, which
//! job uses a zone at the moment. As in fio, nobody asks the device again once the jobs have begun.

use crate::jobs::planned::ZonesPlan;
use nandscape_core::zone::{Zone, ZoneState};
use nandscape_jobs::job::MAX_OPEN_ZONES;

#[derive(Clone, Copy, Debug)]
pub(crate) struct ZoneEntry {
    pub start: u64,
    pub capacity: u64,
    pub pointer: u64,
    pub is_offline: bool,
    /// Counted among the open zones, if there is a limit of them.
    pub is_open: bool,
    /// To be reset before the next write.
    pub is_due: bool,
    /// Requests under way and to come, all of the job `owner`.
    users: u32,
    owner: u32,
}

impl ZoneEntry {
    pub const fn written(&self) -> u64 {
        self.pointer - self.start
    }

    pub const fn end(&self) -> u64 {
        self.start + self.capacity
    }

    pub const fn has_room_for(&self, bytes: u64) -> bool {
        self.pointer + bytes <= self.end()
    }
}

#[derive(Clone, Debug)]
pub(crate) struct ZoneSet {
    pub plan: ZonesPlan,
    zones: Vec<ZoneEntry>,
    /// Open zones in the order in which they were opened; as in fio, what is behind `open_count` keeps its
    /// last value and may be looked at.
    open: Vec<u32>,
    open_count: u32,
    /// Bytes below write pointers, as the job that began last counted them.
    pub data: u64,
    /// Writes until the next early reset.
    pub writes_left: u32,
    /// Requests under way, all jobs together.
    pub inflight: u32,
    /// Zones that the device had open before the jobs.
    pub reported_open: Vec<u32>,
    /// Jobs that wait until another one leaves a zone.
    pub waiting: Vec<u32>,
    /// Those for which that has come.
    pub woken: Vec<u32>,
}

impl ZoneSet {
    pub fn new(plan: ZonesPlan) -> Self {
        let entry = |zone: u32| {
            let start = u64::from(zone) * plan.size;
            ZoneEntry {
                start,
                capacity: plan.capacity,
                pointer: start,
                is_offline: false,
                is_open: false,
                is_due: false,
                users: 0,
                owner: 0,
            }
        };
        Self {
            plan,
            zones: (0..plan.count).map(entry).collect(),
            open: vec![0; MAX_OPEN_ZONES as usize],
            open_count: 0,
            data: 0,
            writes_left: u32::MAX,
            inflight: 0,
            reported_open: Vec::new(),
            waiting: Vec::new(),
            woken: Vec::new(),
        }
    }

    /// Takes the state of the device's zones.
    pub fn adopt(&mut self, report: &[Zone]) {
        for zone in report {
            let number = (zone.start / self.plan.size) as u32;
            if zone.state.is_open() {
                self.reported_open.push(number);
            }
            let entry = &mut self.zones[number as usize];
            entry.capacity = zone.capacity;
            entry.pointer = match zone.state {
                ZoneState::Full => zone.start + zone.capacity,
                _ => zone.write_pointer.unwrap_or(zone.start),
            };
            entry.is_offline = zone.state == ZoneState::Offline;
        }
    }

    /// The zone of a byte; the number of zones for one behind the last.
    pub fn index_of(&self, offset: u64) -> u32 {
        u32::try_from(offset / self.plan.size).unwrap_or(u32::MAX).min(self.plan.count)
    }

    pub fn zone(&self, zone: u32) -> &ZoneEntry {
        &self.zones[zone as usize]
    }

    pub fn zone_mut(&mut self, zone: u32) -> &mut ZoneEntry {
        &mut self.zones[zone as usize]
    }

    /// First byte of a zone, or of what is behind the last.
    pub fn start_of(&self, zone: u32) -> u64 {
        u64::from(zone) * self.plan.size
    }

    pub fn open_zones(&self) -> &[u32] {
        &self.open[..self.open_count as usize]
    }

    pub const fn open_count(&self) -> u32 {
        self.open_count
    }

    /// An entry of the list of open zones, also behind its end.
    pub fn open_at(&self, index: u64) -> u32 {
        self.open.get(index as usize).copied().unwrap_or(0)
    }

    /// Opens a zone for a job that has `held` open zones and may have `most` (0: any number). Gives whether
    /// it may be written.
    pub fn open(&mut self, zone: u32, held: &mut u32, most: u32) -> bool {
        let entry = self.zones[zone as usize];
        if entry.is_offline {
            return false;
        }
        if self.plan.max_open == 0 {
            return true;
        }
        if entry.is_open {
            // One that requests under way fill counts as full.
            return entry.pointer < entry.end();
        }
        if !self.may_open(*held, most) {
            return false;
        }
        self.zones[zone as usize].is_open = true;
        self.open[self.open_count as usize] = zone;
        self.open_count += 1;
        *held = held.wrapping_add(1);
        true
    }

    /// Whether the limits allow one more open zone.
    pub const fn may_open(&self, held: u32, most: u32) -> bool {
        self.plan.max_open == 0 || (most == 0 || held < most) && self.open_count < self.plan.max_open
    }

    /// Takes a zone off the open ones. As in fio, the job that closes it has one less, whoever opened it.
    pub fn close(&mut self, zone: u32, held: &mut u32) {
        if !self.zones[zone as usize].is_open {
            return;
        }
        let at = self.open_zones().iter().position(|open| *open == zone).expect("an open zone is listed");
        self.open.copy_within(at + 1.., at);
        self.open_count -= 1;
        *held = held.wrapping_sub(1);
        self.zones[zone as usize].is_open = false;
    }

    /// A zone is empty again.
    pub fn reset(&mut self, zone: u32) {
        let entry = &mut self.zones[zone as usize];
        self.data = self.data.wrapping_sub(entry.written());
        entry.pointer = entry.start;
    }

    /// A write up to `end` was submitted.
    pub fn wrote(&mut self, zone: u32, end: u64) {
        let entry = &mut self.zones[zone as usize];
        let end = end.min(entry.end());
        if entry.pointer <= end {
            self.data = self.data.wrapping_add(end - entry.pointer);
        }
        entry.pointer = end;
    }

    /// Counts the bytes below the write pointers of zones `first` to before `last`.
    pub fn count_data(&mut self, first: u32, last: u32) {
        self.data = self.zones[first as usize..last as usize].iter().map(ZoneEntry::written).sum();
    }

    /// Whether another job keeps this one out of a zone.
    pub fn is_taken(&self, zone: u32, job: u32) -> bool {
        let entry = &self.zones[zone as usize];
        entry.users > 0 && entry.owner != job
    }

    /// A request of a job keeps others out of a zone.
    pub fn take(&mut self, zone: u32, job: u32) {
        let entry = &mut self.zones[zone as usize];
        assert!(entry.users == 0 || entry.owner == job, "zone {zone} of job {} taken by {job}", entry.owner);
        entry.owner = job;
        entry.users += 1;
    }

    /// A request is done.
    pub fn release(&mut self, zone: u32) {
        let entry = &mut self.zones[zone as usize];
        assert!(entry.users > 0, "zone {zone} was not taken");
        entry.users -= 1;
        self.woken.append(&mut self.waiting);
    }
}
