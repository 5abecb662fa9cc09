//! Collection of zones, in steps between the writes of the host.

use super::ZoneMap;
use super::config::Config;
use super::format::LOST;
use nandscape_core::{Cause, Extent, Issue, Lpn, NamespaceResult, Ppn, SimTime, Subsystem, Token};
use nandscape_ftl::victim::{BlockState, VictimFacts};

/// Reads of a unit before its data counts as lost.
const READS: u32 = 3;

/// The victim that is being emptied.
#[derive(Clone, Copy, Debug)]
struct Victim {
    zone: u32,
    /// Units that it held when it was chosen, and how many more it has.
    picked: u32,
    gain: u32,
    /// Places before this were moved.
    next: Ppn,
}

/// What collection is doing.
#[derive(Debug)]
pub(super) struct Collector {
    victim: Option<Victim>,
    /// Zones that turned read-only and still hold data.
    pub failed: Vec<u32>,
    /// Victims without anything to gain, one after the other.
    without_gain: u32,
    step: u32,
    in_background: bool,
    /// Zones that background collection frees beyond those of [`super::Space::start_units`].
    low: u32,
    /// Units that were read to be moved, with their old places, and when they are read.
    moves: Vec<(Lpn, Ppn)>,
    pub read: Token,
    /// Their data; empty where the device stores none.
    buffer: Vec<u8>,
}

impl Collector {
    pub fn new(config: &Config, data_bytes: u32) -> Self {
        Self {
            victim: None,
            failed: Vec::new(),
            without_gain: 0,
            step: config.gc_step,
            in_background: config.background_gc,
            low: config.gc_low,
            moves: Vec::with_capacity(config.gc_step as usize),
            read: Token::NONE,
            buffer: vec![0; config.gc_step as usize * data_bytes as usize],
        }
    }

    pub const fn bytes(&self) -> u64 {
        self.buffer.len() as u64 + self.step as u64 * 8
    }
}

impl<S: Subsystem> ZoneMap<S> {
    /// Before a host write of so many units: collects as much as is due. Returns how many can be written now.
    #[inline(always)]
    pub(super) fn make_room(&mut self, units: u32, at: SimTime) -> NamespaceResult<u32> {
        if self.space.free_units > self.space.start_units + u64::from(units) {
            return Ok(units);
        }
        self.collect(units, at)
    }

    #[inline(never)]
    fn collect(&mut self, units: u32, at: SimTime) -> NamespaceResult<u32> {
        let floor = self.space.floor_units;
        if !self.space.collected.is_empty() || !self.log.stale.is_empty() {
            self.reset_in_time(at)?;
        }
        // Long writes are divided, so that moves take place in between.
        let units = units.min(self.collector.step);
        let most = |spare: u64| u64::from(units).min(spare) as u32;
        loop {
            let free = self.space.free_units;
            let Some(victim) = self.collector.victim else {
                if free > self.space.start_units {
                    return Ok(most(free - self.space.start_units));
                }
                if !self.choose_victim() {
                    return match free.saturating_sub(floor) {
                        0 => Err(self.full("no zone can be collected with a gain", units.into())),
                        spare => Ok(most(spare)),
                    };
                }
                continue;
            };
            let left = self.zones.infos[victim.zone as usize].valid;
            let spare = free.saturating_sub(floor + u64::from(left));
            // What was read counts as moved: it is written with the next step.
            let unread = u64::from(left.saturating_sub(self.collector.moves.len() as u32));
            let is_in_time = unread * u64::from(victim.gain) <= u64::from(victim.picked) * spare;
            if is_in_time && spare > 0 && left > 0 {
                return Ok(most(spare));
            }
            self.step(victim, at)?;
        }
    }

    /// Writes what was read of the victim and reads the next units, or releases it if there are none. So the
    /// reads are complete when their data is written, and hold up nothing.
    fn step(&mut self, victim: Victim, at: SimTime) -> NamespaceResult<Token> {
        let written = self.write_moves(at)?;
        if self.zones.infos[victim.zone as usize].valid == 0 {
            return self.release_victim(victim, at);
        }
        let next = self.read_moves(victim.zone, victim.next, at)?;
        self.collector.victim = Some(Victim { next, ..victim });
        Ok(self.below.device.join(written, self.collector.read))
    }

    fn release_victim(&mut self, victim: Victim, at: SimTime) -> NamespaceResult<Token> {
        let zone = victim.zone;
        assert_eq!(self.zones.infos[zone as usize].state, BlockState::Victim, "state of zone {zone}");
        self.collector.victim = None;
        self.stats.gc_runs += 1;
        self.emptied(zone, at)
    }

    /// Chooses a victim, unless no sealed zone has anything to gain.
    fn choose_victim(&mut self) -> bool {
        let facts = VictimFacts { blocks: &self.zones.infos, now: self.now };
        let Some(mut zone) = self.victims.pick(&facts) else { return false };
        if self.gain(zone) == 0 {
            // Policies that do not look at valid units may pick full zones; they are overruled long after
            // every zone had its turn.
            let Some(emptiest) = self.emptiest().filter(|zone| self.gain(*zone) > 0) else { return false };
            self.collector.without_gain += 1;
            if self.collector.without_gain > 2 * self.shape.identity.zones {
                zone = emptiest;
            }
        } else {
            self.collector.without_gain = 0;
        }
        let gain = self.gain(zone);
        let info = &mut self.zones.infos[zone as usize];
        assert_eq!(info.state, BlockState::Sealed, "zone {zone}, which is a candidate");
        info.state = BlockState::Victim;
        let next = Ppn(zone * self.space.zone_units);
        self.collector.victim = Some(Victim { zone, picked: info.valid, gain, next });
        self.victims.removed(zone);
        true
    }

    /// Units that a zone has more than it holds.
    fn gain(&self, zone: u32) -> u32 {
        self.space.capacities[zone as usize] - self.zones.infos[zone as usize].valid
    }

    fn emptiest(&self) -> Option<u32> {
        let sealed = self.zones.infos.iter().zip(0..).filter(|(info, _)| info.state == BlockState::Sealed);
        sealed.map(|(_, zone)| zone).max_by_key(|zone| (self.gain(*zone), std::cmp::Reverse(*zone)))
    }

    /// Reads the next valid units of a zone, from a place on. Returns the place behind the last of them.
    fn read_moves(&mut self, zone: u32, from: Ppn, at: SimTime) -> NamespaceResult<Ppn> {
        let mut moves = std::mem::take(&mut self.collector.moves);
        assert!(moves.is_empty(), "{} units that were read are not written", moves.len());
        let mut places = self.zones.valid_pages_from(zone, from);
        while (moves.len() as u32) < self.collector.step
            && let Some(place) = self.zones.next_valid(&mut places)
        {
            let lpn = self.owners[place.index()];
            // Looked up when the unit is written, a step later.
            self.map.prefetch(lpn.0.into());
            moves.push((lpn, place));
        }
        // Units that an error left behind are before the place.
        let next = moves.last().map_or(Ppn(zone * self.space.zone_units), |(_, place)| Ppn(place.0 + 1));
        let mut buffer = std::mem::take(&mut self.collector.buffer);
        let read = self.read_all(&mut moves, &mut buffer, at);
        (self.collector.moves, self.collector.buffer) = (moves, buffer);
        self.collector.read = read?;
        // The last unit of a zone has no place of the zone behind it.
        let end = (zone + 1) * self.space.zone_units;
        Ok(if next.0 == end { Ppn(zone * self.space.zone_units) } else { next })
    }

    /// Reads units, one command for neighbours. What cannot be read is dropped from the list.
    fn read_all(
        &mut self,
        moves: &mut Vec<(Lpn, Ppn)>,
        buffer: &mut [u8],
        at: SimTime,
    ) -> NamespaceResult<Token> {
        let mut done = Token::NONE;
        let mut first = 0;
        while first < moves.len() {
            let place = moves[first].1.0;
            let places = moves[first..].iter().map(|(_, place)| place.0);
            let count = places.zip(place..).take_while(|(place, next)| place == next).count();
            if let Ok(read) = self.read_run(Ppn(place), (first, count), buffer, at) {
                done = self.below.device.join(done, read);
                first += count;
                continue;
            }
            // One by one, to find out which of them it is.
            let (lpn, place) = moves[first];
            let read = (0..READS).find_map(|_| self.read_run(place, (first, 1), buffer, at).ok());
            if let Some(read) = read {
                done = self.below.device.join(done, read);
                first += 1;
            } else {
                moves.remove(first);
                self.lose(lpn, at)?;
            }
        }
        Ok(done)
    }

    fn read_run(
        &mut self,
        place: Ppn,
        (first, count): (usize, usize),
        buffer: &mut [u8],
        at: SimTime,
    ) -> NamespaceResult<Token> {
        let unit = self.shape.unit_bytes as usize;
        let extent = Extent::new(self.offset(place), (count * unit) as u64);
        let data = (!buffer.is_empty()).then(|| &mut buffer[first * unit..(first + count) * unit]);
        self.below.read(extent, data, Issue::new(at, Cause::Gc))
    }

    /// The data of a unit is lost: reads fail until it is written again.
    #[cold]
    fn lose(&mut self, lpn: Lpn, at: SimTime) -> NamespaceResult<()> {
        let old = self.map.get(lpn);
        assert!(old.0 < LOST.0, "{lpn:?} is at {old:?}");
        self.map.redirect(lpn, LOST);
        self.invalidate(old);
        self.record(lpn, LOST, at)
    }

    /// Writes what was read, but for what the host has written or dropped since, and redirects the map.
    fn write_moves(&mut self, at: SimTime) -> NamespaceResult<Token> {
        if self.collector.moves.is_empty() {
            return Ok(Token::NONE);
        }
        let mut moves = std::mem::take(&mut self.collector.moves);
        let buffer = std::mem::take(&mut self.collector.buffer);
        let mut done = Ok(Token::NONE);
        let mut first = 0;
        while first < moves.len() && done.is_ok() {
            let is_current = |(lpn, place): &&(Lpn, Ppn)| self.map.get(*lpn) == *place;
            let count = moves[first..].iter().take_while(is_current).count();
            if count == 0 {
                first += 1;
                continue;
            }
            let bytes = if buffer.is_empty() { 0 } else { self.shape.unit_bytes as usize };
            let data = &buffer[first * bytes..(first + count) * bytes];
            let written = self.write_run(&moves[first..first + count], data, at);
            done = done.and_then(|done| Ok(self.below.device.join(done, written?)));
            first += count;
        }
        moves.clear();
        (self.collector.moves, self.collector.buffer) = (moves, buffer);
        done
    }

    /// Writes units of a zone that were read, and redirects the map.
    fn write_run(&mut self, moves: &[(Lpn, Ppn)], data: &[u8], at: SimTime) -> NamespaceResult<Token> {
        let unit = self.shape.unit_bytes as usize;
        let log = self.space.gc_log();
        let issue = Issue::new(at, Cause::Gc).after(self.collector.read);
        let mut done = Token::NONE;
        let mut left = moves;
        let victim = self.zones.block_of(moves[0].1);
        while !left.is_empty() {
            let written = moves.len() - left.len();
            let data = (!data.is_empty()).then(|| &data[written * unit..]);
            let (target, count, programmed) = self.append(log, left.len() as u32, data, issue)?;
            let (now, later) = left.split_at(count as usize);
            for ((lpn, source), target) in now.iter().zip(target.0..) {
                self.zones.clear(*source, victim);
                self.owners[target as usize] = *lpn;
                self.map.redirect(*lpn, Ppn(target));
                self.record(*lpn, Ppn(target), at)?;
            }
            self.stats.map_updates += u64::from(count);
            self.stats.gc_moved_pages += u64::from(count);
            done = self.below.device.join(done, programmed);
            left = later;
        }
        Ok(done)
    }

    /// Moves all that a zone holds.
    pub(super) fn move_all(&mut self, zone: u32, at: SimTime) -> NamespaceResult<()> {
        let mut from = Ppn(zone * self.space.zone_units);
        self.write_moves(at)?;
        while self.zones.infos[zone as usize].valid > 0 {
            from = self.read_moves(zone, from, at)?;
            self.write_moves(at)?;
        }
        Ok(())
    }

    /// Collection in the host's idle time, each step from the end of the one before. Where ends are not known
    /// at submission, one step.
    pub(super) fn collect_in_background(&mut self, at: SimTime, until: SimTime) -> NamespaceResult<()> {
        self.reset_in_time(at)?;
        if !self.collector.in_background {
            return Ok(());
        }
        let goal = self.space.start_units + u64::from(self.collector.low) * u64::from(self.space.zone_units);
        let mut now = at.max(self.below.device.idle_from());
        while now < until {
            let is_chosen =
                self.collector.victim.is_some() || (self.space.free_units < goal && self.choose_victim());
            let Some(victim) = self.collector.victim.filter(|victim| is_chosen && victim.gain > 0) else {
                break;
            };
            let done = self.step(victim, now)?;
            match self.below.device.completion(done) {
                Some(end) => now = now.max(end),
                None => break,
            }
        }
        Ok(())
    }
}
