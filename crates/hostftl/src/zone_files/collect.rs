//! Reclaim of zones, in steps between the writes of the host.

use super::config::Config;
use super::files::{LOST, Piece};
use super::space::Owner;
use super::{Writer, ZoneFiles};
use nandscape_core::{Cause, Extent, Issue, NamespaceResult, SimTime, Subsystem, Token};
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
    next: u32,
    /// Free units when it was chosen.
    free: u64,
}

impl Victim {
    /// Units that hosts may write before all of `left` have to be moved: as many as the victim gives, less
    /// those that were written since it was chosen.
    fn spare(&self, left: u32, free: u64) -> u64 {
        let moved = u64::from(self.picked.saturating_sub(left));
        let written = self.free.saturating_sub(free + moved);
        u64::from(self.gain).saturating_sub(written)
    }
}

/// What reclaim is doing.
#[derive(Debug)]
pub(super) struct Collector {
    victim: Option<Victim>,
    /// Zones that turned read-only and still hold data.
    pub failed: Vec<u32>,
    /// Victims without anything to gain, one after the other.
    without_gain: u32,
    step: u32,
    /// Units that were read to be moved: whose they were, and where; and when they are read.
    moves: Vec<(Owner, u32)>,
    read: Token,
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
            moves: Vec::with_capacity(config.gc_step as usize),
            read: Token::NONE,
            buffer: vec![0; config.gc_step as usize * data_bytes as usize],
        }
    }

    pub const fn bytes(&self) -> u64 {
        self.buffer.len() as u64 + self.step as u64 * 12
    }

    pub const fn forget_tokens(&mut self) {
        self.read = Token::NONE;
    }
}

impl<S: Subsystem> ZoneFiles<S> {
    /// Before a host write of so many units: reclaims as much as is due. Returns how many can be written now.
    #[inline(always)]
    pub(super) fn make_room(&mut self, units: u32, at: SimTime) -> NamespaceResult<u32> {
        if self.space.free_units > self.space.start_units() + u64::from(units) {
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
            if !self.space.emptied.is_empty() {
                self.reclaim_emptied(at)?;
            }
            let free = self.space.free_units;
            let Some(victim) = self.collector.victim else {
                if free > self.space.start_units() {
                    return Ok(most(free - self.space.start_units()));
                }
                if !self.choose_victim() {
                    match free.saturating_sub(floor) {
                        // All that could be gained lies in zones that are still written.
                        0 => self.finish_for_gain(at)?,
                        spare => return Ok(most(spare)),
                    }
                }
                continue;
            };
            let left = self.space.infos[victim.zone as usize].valid;
            let spare = free.saturating_sub(floor + u64::from(left)).min(victim.spare(left, free));
            // What was read counts as moved: it is written with the next step.
            let unread = u64::from(left.saturating_sub(self.collector.moves.len() as u32));
            let is_in_time = unread * u64::from(victim.gain) <= u64::from(victim.picked) * spare;
            if is_in_time && spare > 0 && left > 0 {
                return Ok(most(spare));
            }
            let done = self.step(victim, at)?;
            self.pace = self.below.device.join(self.pace, done);
        }
    }

    /// Writes what was read of the victim and reads the next units, or releases it if there are none. So the
    /// reads are complete when their data is written, and hold up nothing.
    fn step(&mut self, victim: Victim, at: SimTime) -> NamespaceResult<Token> {
        let written = self.write_moves(at)?;
        if self.space.infos[victim.zone as usize].valid == 0 {
            self.release_victim(victim);
            return Ok(written);
        }
        let next = self.read_moves(victim.zone, victim.next, at);
        self.collector.victim = Some(Victim { next, ..victim });
        Ok(self.below.device.join(written, self.collector.read))
    }

    fn release_victim(&mut self, victim: Victim) {
        let zone = victim.zone;
        assert_eq!(self.space.infos[zone as usize].state, BlockState::Victim, "state of zone {zone}");
        self.collector.victim = None;
        self.space.emptied.push(zone);
    }

    /// Chooses a victim, unless no sealed zone has anything to gain.
    fn choose_victim(&mut self) -> bool {
        let facts = VictimFacts { blocks: &self.space.infos, now: self.now };
        let Some(mut zone) = self.victims.pick(&facts) else { return false };
        if self.gain(zone) == 0 {
            // Policies that do not look at live units may pick full zones; they are overruled long after
            // every zone had its turn.
            let Some(emptiest) = self.emptiest().filter(|zone| self.gain(*zone) > 0) else { return false };
            self.collector.without_gain += 1;
            if self.collector.without_gain > 2 * self.shape.config.identity.zones {
                zone = emptiest;
            }
        } else {
            self.collector.without_gain = 0;
        }
        let (gain, next, free) = (self.gain(zone), self.space.first_of(zone), self.space.free_units);
        let info = &mut self.space.infos[zone as usize];
        assert_eq!(info.state, BlockState::Sealed, "zone {zone}, which is a candidate");
        info.state = BlockState::Victim;
        self.collector.victim = Some(Victim { zone, picked: info.valid, gain, next, free });
        self.victims.removed(zone);
        true
    }

    /// Units that a zone has more than it holds.
    fn gain(&self, zone: u32) -> u32 {
        self.space.capacities[zone as usize].saturating_sub(self.space.infos[zone as usize].valid)
    }

    fn emptiest(&self) -> Option<u32> {
        let sealed = self.space.infos.iter().zip(0..).filter(|(info, _)| info.state == BlockState::Sealed);
        sealed.map(|(_, zone)| zone).max_by_key(|zone| (self.gain(*zone), std::cmp::Reverse(*zone)))
    }

    /// Finishes the open zone with most units that nobody needs, for it to become a victim.
    fn finish_for_gain(&mut self, at: SimTime) -> NamespaceResult<()> {
        let garbage = |index: &usize| {
            let frontier = self.space.frontiers[*index];
            let valid = self.space.infos.get(frontier.zone as usize).map_or(0, |info| info.valid);
            if frontier.is_open() { frontier.next - valid } else { 0 }
        };
        let most = (0..self.space.frontiers.len()).max_by_key(garbage).expect("there are frontiers");
        if garbage(&most) == 0 {
            return Err(self.no_room());
        }
        self.finish(most, at)
    }

    /// Reads the next live units of a zone, from a place on. Returns the place behind the last of them.
    fn read_moves(&mut self, zone: u32, from: u32, at: SimTime) -> u32 {
        let mut moves = std::mem::take(&mut self.collector.moves);
        assert!(moves.is_empty(), "{} units that were read are not written", moves.len());
        let start = self.space.first_of(zone);
        let end = start + self.space.zone_units;
        // Units that an error left behind are before the place.
        for place in (from..end).chain(start..from) {
            let owner = self.space.owners[place as usize];
            if owner != Owner::NONE {
                moves.push((owner, place));
                if moves.len() as u32 == self.collector.step {
                    break;
                }
            }
        }
        let next = moves.last().map_or(start, |(_, place)| place + 1);
        let mut buffer = std::mem::take(&mut self.collector.buffer);
        self.collector.read = self.read_all(&mut moves, &mut buffer, at);
        (self.collector.moves, self.collector.buffer) = (moves, buffer);
        // The last unit of a zone has no place of the zone behind it.
        if next == end { start } else { next }
    }

    /// Reads units, one command for neighbours. What cannot be read is dropped from the list.
    fn read_all(&mut self, moves: &mut Vec<(Owner, u32)>, buffer: &mut [u8], at: SimTime) -> Token {
        let mut done = Token::NONE;
        let mut first = 0;
        while first < moves.len() {
            let place = moves[first].1;
            let places = moves[first..].iter().map(|(_, place)| *place);
            let count = places.zip(place..).take_while(|(place, next)| place == next).count();
            if let Ok(read) = self.read_run(place, (first, count), buffer, at) {
                done = self.below.device.join(done, read);
                first += count;
                continue;
            }
            // One by one, to find out which of them it is.
            let (owner, place) = moves[first];
            let read = (0..READS).find_map(|_| self.read_run(place, (first, 1), buffer, at).ok());
            if let Some(read) = read {
                done = self.below.device.join(done, read);
                first += 1;
            } else {
                moves.remove(first);
                self.lose(owner, place);
            }
        }
        done
    }

    fn read_run(
        &mut self,
        place: u32,
        (first, count): (usize, usize),
        buffer: &mut [u8],
        at: SimTime,
    ) -> NamespaceResult<Token> {
        let unit = self.shape.unit as usize;
        let extent = Extent::new(self.offset(place), (count * unit) as u64);
        let data = (!buffer.is_empty()).then(|| &mut buffer[first * unit..(first + count) * unit]);
        self.below.read(extent, data, Issue::new(at, Cause::Gc))
    }

    /// The data of a unit is lost: reads fail until it is written again.
    #[cold]
    fn lose(&mut self, owner: Owner, place: u32) {
        assert_eq!(self.space.owners[place as usize], owner, "owner of place {place}");
        let (space, victims, now) = (&mut self.space, &mut *self.victims, self.now);
        self.files.place(owner.file, owner.unit, Piece { place: LOST, units: 1 }, |old| {
            space.invalidate(old, victims, now);
        });
    }

    /// Writes what was read, but for what the host has written or dropped since: runs of units of a file.
    fn write_moves(&mut self, at: SimTime) -> NamespaceResult<Token> {
        let mut moves = std::mem::take(&mut self.collector.moves);
        let buffer = std::mem::take(&mut self.collector.buffer);
        let mut done = Ok(Token::NONE);
        let mut first = 0;
        while first < moves.len() && done.is_ok() {
            let (Owner { file, unit }, place) = moves[first];
            let is_next = |((owner, at), index): &(&(Owner, u32), u32)| {
                let is_same = owner.file == file && owner.unit == unit + index && *at >= place;
                is_same && self.space.owners[*at as usize] == *owner
            };
            let count = moves[first..].iter().zip(0..).take_while(is_next).count();
            if count == 0 {
                first += 1;
                continue;
            }
            let bytes = if buffer.is_empty() { 0 } else { self.shape.unit as usize };
            let data = &buffer[first * bytes..(first + count) * bytes];
            let written = self.write_run((file, unit, count as u32), data, at);
            done = done.and_then(|done| Ok(self.below.device.join(done, written?)));
            first += count;
        }
        moves.clear();
        (self.collector.moves, self.collector.buffer) = (moves, buffer);
        done
    }

    /// Writes units of a file that were read.
    fn write_run(
        &mut self,
        (slot, unit, count): (u32, u32, u32),
        data: &[u8],
        at: SimTime,
    ) -> NamespaceResult<Token> {
        let writer = Writer { slot, hint: self.files.get(slot).hint, moves: true };
        let issue = Issue::new(at, Cause::Gc).after(self.collector.read);
        let mut done = Token::NONE;
        let mut written = 0;
        while written < count {
            let rest = (!data.is_empty()).then(|| &data[written as usize * self.shape.unit as usize..]);
            let (units, one) = self.append(writer, (unit + written, count - written), rest, issue)?;
            self.stats.moved_bytes += u64::from(units) * self.shape.unit;
            done = self.below.device.join(done, one);
            written += units;
        }
        Ok(done)
    }

    /// Moves all that a zone holds.
    pub(super) fn move_all(&mut self, zone: u32, at: SimTime) -> NamespaceResult<()> {
        let mut from = self.space.first_of(zone);
        self.write_moves(at)?;
        while self.space.infos[zone as usize].valid > 0 {
            from = self.read_moves(zone, from, at);
            self.write_moves(at)?;
        }
        Ok(())
    }

    /// Reclaim in the host's idle time, each step from the end of the one before. Where ends are not known at
    /// submission, one step.
    pub(super) fn collect_in_background(&mut self, at: SimTime, until: SimTime) -> NamespaceResult<()> {
        self.settle(at)?;
        if !self.shape.config.background_gc {
            return Ok(());
        }
        let goal = 2 * self.space.start_units() - self.space.floor_units;
        let mut now = at.max(self.below.device.idle_from());
        while now < until {
            if !self.space.emptied.is_empty() {
                self.reclaim_emptied(now)?;
            }
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
        self.settle(at)
    }
}
