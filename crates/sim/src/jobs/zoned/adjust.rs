//! A request moves to where zones allow it: writes to write pointers of open zones, reads below write
//! pointers. Which zones are open and when one is reset follows fio 3.33.
//!
//! What waits for requests under way goes on from the same stage, so nothing is drawn or counted twice.

use super::pending::{Adjusted, Pending, Stage};
use super::table::ZoneSet;
use super::walker::Walker;
use nandscape_jobs::Direction;

impl Walker {
    pub(super) fn adjust(&mut self, inflight: u32, sets: &mut [ZoneSet]) -> Adjusted {
        let Some(mut pending) = self.pending else { return Adjusted::Nowhere };
        let Some(set) = self.files[pending.file].plan.set else { return Adjusted::Accepted };
        let set = &mut sets[set as usize];
        let adjusted = match pending.direction {
            Direction::Read => self.adjust_read(&mut pending, set),
            Direction::Write => self.adjust_write(&mut pending, inflight, set),
            Direction::Trim => self.adjust_trim(&mut pending, set),
        };
        self.pending = Some(pending);
        adjusted
    }

    /// The device has reset the zone that was asked for.
    pub fn was_reset(&mut self, sets: &mut [ZoneSet]) {
        let Some(pending) = &mut self.pending else { return };
        let (Stage::Resetting(zone), Some(set)) = (pending.stage, self.files[pending.file].plan.set) else {
            unreachable!("only a job that resets a zone is told so")
        };
        pending.stage = Stage::Ready(zone);
        sets[set as usize].reset(zone);
    }

    /// Waits for a request of another job.
    fn wait(&self, set: &mut ZoneSet) -> Adjusted {
        if !set.waiting.contains(&self.job.number) {
            set.waiting.push(self.job.number);
        }
        Adjusted::Wait
    }

    /// Keeps others out of a zone.
    fn hold(&self, pending: &mut Pending, set: &mut ZoneSet, zone: u32) {
        set.take(zone, self.job.number);
        pending.zone = Some(zone);
    }

    fn adjust_read(&self, pending: &mut Pending, set: &mut ZoneSet) -> Adjusted {
        let is_random = self.job.pattern.is_random;
        let smallest = self.job.block_size[Direction::Read as usize].min;
        let first = set.index_of(pending.first_offset);
        if self.job.zoning.reads_beyond && !set.zone(first).is_offline {
            return Adjusted::Accepted;
        }
        let readable = |zone: u32| if set.zone(zone).is_offline { 0 } else { set.zone(zone).written() };
        let mut zone = first;
        let mut offset = pending.first_offset;
        if readable(zone) < smallest || !is_random && offset + smallest > set.zone(zone).pointer {
            let Some(found) = self.find_data(pending, set, zone, smallest) else { return Adjusted::Nowhere };
            zone = found;
            if !is_random {
                offset = set.start_of(zone);
            }
        }
        if set.is_taken(zone, self.job.number) {
            return self.wait(set);
        }
        let range = readable(zone);
        if range <= pending.len {
            offset = set.start_of(zone);
        } else if is_random {
            let within = (offset - set.start_of(first)) % (range - pending.len);
            offset = set.start_of(zone) + within / smallest * smallest;
        }
        let room = set.zone(zone).pointer - offset;
        pending.len = pending.len.min(room) / smallest * smallest;
        pending.offset = offset;
        self.hold(pending, set, zone);
        debug_assert!(pending.len > 0, "{pending:?}");
        Adjusted::Accepted
    }

    /// The next zone with so many bytes below its write pointer; a random job also looks before the zone.
    fn find_data(&self, pending: &Pending, set: &ZoneSet, from: u32, bytes: u64) -> Option<u32> {
        let (first, last) = self.files[pending.file].zones(set);
        let is_random = self.job.pattern.is_random;
        let has = |zone: u32| !set.zone(zone).is_offline && set.zone(zone).written() >= bytes;
        let (mut above, mut below) = (from + 1, from.checked_sub(1));
        while above < last || below.is_some_and(|zone| zone >= first) {
            if above < last && !set.zone(above).is_offline {
                if has(above) {
                    return Some(above);
                }
            } else if !is_random {
                return None;
            }
            if is_random && let Some(zone) = below.filter(|zone| *zone >= first && has(*zone)) {
                return Some(zone);
            }
            above += 1;
            below = below.and_then(|zone| zone.checked_sub(1));
        }
        None
    }

    fn adjust_trim(&self, pending: &mut Pending, set: &mut ZoneSet) -> Adjusted {
        let mut zone = set.index_of(pending.first_offset);
        if self.job.pattern.is_random && set.zone(zone).written() == 0 {
            let Some(found) = self.find_data(pending, set, zone, 1) else { return Adjusted::Nowhere };
            zone = found;
            pending.offset = set.start_of(zone);
        }
        if set.is_taken(zone, self.job.number) {
            return self.wait(set);
        }
        self.hold(pending, set, zone);
        Adjusted::Accepted
    }

    fn adjust_write(&mut self, pending: &mut Pending, inflight: u32, set: &mut ZoneSet) -> Adjusted {
        let smallest = self.job.block_size[Direction::Write as usize].min;
        let zoning = self.job.zoning;
        loop {
            match pending.stage {
                Stage::New => {
                    let zone = set.index_of(pending.first_offset);
                    if set.is_taken(zone, self.job.number) {
                        return self.wait(set);
                    }
                    pending.stage = if set.open(zone, &mut self.held, zoning.job_max_open) {
                        Stage::Opened(zone)
                    } else {
                        Stage::Convert
                    };
                }
                Stage::Convert => match self.convert(pending, set, smallest) {
                    Some(Stage::Opened(zone)) if set.is_taken(zone, self.job.number) => {
                        return self.wait(set);
                    }
                    Some(stage) => pending.stage = stage,
                    None => return Adjusted::Nowhere,
                },
                Stage::Search { zone, quiesces, again } => {
                    if quiesces && inflight > 0 {
                        return Adjusted::Wait;
                    }
                    match self.search(pending, set, zone, smallest) {
                        Found::Zone(found) => pending.stage = Stage::Opened(found),
                        Found::Taken => return self.wait(set),
                        Found::Nothing { last } => {
                            let is_busy = set.inflight > 0;
                            if !is_busy && !again {
                                return Adjusted::Nowhere;
                            }
                            pending.stage = Stage::Search { zone: last, quiesces: true, again: is_busy };
                            if set.inflight > inflight {
                                return self.wait(set);
                            }
                        }
                    }
                }
                Stage::Opened(zone) => {
                    self.hold(pending, set, zone);
                    if zoning.reset_frequency > 0.0 && self.is_early_reset(pending, set) {
                        set.zone_mut(zone).is_due = true;
                    }
                    pending.stage = Stage::Checked(zone);
                }
                Stage::Checked(zone) => {
                    if !set.zone(zone).is_due && set.zone(zone).has_room_for(smallest) {
                        pending.stage = Stage::Ready(zone);
                        continue;
                    }
                    if inflight > 0 {
                        return Adjusted::Wait;
                    }
                    set.zone_mut(zone).is_due = false;
                    pending.stage = Stage::Ready(zone);
                    if set.zone(zone).written() == 0 {
                        continue;
                    }
                    if !set.plan.is_device {
                        set.reset(zone);
                        continue;
                    }
                    pending.stage = Stage::Resetting(zone);
                    let zone = set.plan.start + set.start_of(zone);
                    return Adjusted::Reset { namespace: set.plan.namespace, zone };
                }
                Stage::Resetting(_) => return Adjusted::Wait,
                Stage::Ready(zone) => {
                    let entry = set.zone(zone);
                    let len = pending.len.min(entry.end() - entry.pointer) / smallest * smallest;
                    if !self.files[pending.file].has(entry.pointer) || len == 0 {
                        return Adjusted::Nowhere;
                    }
                    (pending.offset, pending.len) = (entry.pointer, len);
                    return Adjusted::Accepted;
                }
            }
        }
    }

    /// Whether the next write resets its zone, although it has room.
    fn is_early_reset(&self, pending: &Pending, set: &mut ZoneSet) -> bool {
        let zoning = self.job.zoning;
        let threshold = self.files[pending.file].plan.len as f64 * zoning.reset_threshold;
        if (set.data as f64) < threshold {
            return false;
        }
        set.writes_left -= 1;
        let is_due = set.writes_left == 0;
        if is_due {
            set.writes_left = zoning.writes_until_reset();
        }
        is_due
    }

    /// What to do with a write whose zone may not be opened; `None` if the job has no zone to write at all.
    fn convert(&self, pending: &Pending, set: &ZoneSet, smallest: u64) -> Option<Stage> {
        let file = &self.files[pending.file];
        let (first, last) = file.zones(set);
        let zoning = self.job.zoning;
        let has_limit = set.plan.max_open > 0 || zoning.job_max_open > 0;
        let pick = pending.offset.wrapping_sub(file.offset).wrapping_mul(u64::from(set.open_count()))
            / file.plan.len;
        let zone = if has_limit { set.open_at(pick) } else { set.index_of(pending.offset) };
        let mut zone = zone.clamp(first, last - 1);
        if !has_limit && !set.zone(zone).is_offline {
            if set.zone(zone).has_room_for(smallest) {
                return Some(Stage::Opened(zone));
            }
        } else if set.open_count() > 0 {
            // The open zone at the picked place of the list, or the next one in this job's region.
            let open = set.open_zones();
            let from = usize::try_from(pick).ok().filter(|from| *from < open.len()).unwrap_or(0);
            let order = open[from..].iter().chain(&open[..from]);
            zone = *order.into_iter().find(|zone| (first..last).contains(*zone))?;
            if set.zone(zone).has_room_for(smallest) {
                return Some(Stage::Opened(zone));
            }
        }
        let quiesces = set.open_count() == last - first
            || set.plan.max_open > 0 && set.open_count() == set.plan.max_open
            || zoning.job_max_open > 0 && self.held == zoning.job_max_open;
        Some(Stage::Search { zone, quiesces, again: true })
    }

    /// Opens another zone behind one, or finds an open one with room.
    fn search(&mut self, pending: &Pending, set: &mut ZoneSet, from: u32, smallest: u64) -> Found {
        let file = &self.files[pending.file];
        let (first, last) = file.zones(set);
        let (number, most) = (self.job.number, self.job.zoning.job_max_open);
        let mut zone = from;
        for _ in 0..file.plan.len / set.plan.size {
            zone += 1;
            if !file.has(set.start_of(zone)) {
                zone = first;
            }
            if set.zone(zone).is_open || !set.may_open(self.held, most) {
                continue;
            }
            if set.is_taken(zone, number) {
                return Found::Taken;
            }
            if set.open(zone, &mut self.held, most) {
                return Found::Zone(zone);
            }
        }
        for open in set.open_zones().iter().copied().filter(|zone| (first..last).contains(zone)) {
            zone = open;
            if set.zone(zone).has_room_for(smallest) {
                return if set.is_taken(zone, number) { Found::Taken } else { Found::Zone(zone) };
            }
        }
        Found::Nothing { last: zone }
    }
}

/// What a search for a zone to write gives.
#[derive(Clone, Copy, Debug)]
enum Found {
    Zone(u32),
    /// There is one that another job uses.
    Taken,
    /// The last zone that was looked at.
    Nothing {
        last: u32,
    },
}
