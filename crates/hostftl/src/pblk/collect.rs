//! Who may write: the rate limiter, and collection of lines.
//!
//! With at least an eighth of the lines free, users have the whole ring. With fewer they have windows of 64
//! pages in proportion to the free lines, and collection the others: for each page of a user it moves as many
//! as its share of the ring is larger. With `gc_low` free lines or fewer users wait until collection has
//! freed more.

use super::config::Config;
use super::ring::{Ring, WINDOW, slot_of};
use super::sabotage::Sabotage;
use super::{Kind, Pblk};
use nandscape_core::{Cause, Issue, Lpn, NamespaceResult, Ppn, SimTime, Subsystem, Token};
use nandscape_ftl::victim::{BlockState, VictimFacts};

/// Reads of a page before its data counts as lost.
const READS: u32 = 3;

/// What collection is doing.
#[derive(Debug)]
pub(super) struct Collector {
    /// The line that is being emptied.
    victim: Option<u32>,
    /// Sealed lines in which a program failed.
    pub failed: Vec<u32>,
    step: u32,
    in_background: bool,
    /// Pages that collection may move, in parts of a page of a user.
    debt: u64,
    buffer: Vec<u8>,
}

impl Collector {
    pub fn new(config: &Config) -> Self {
        Self {
            victim: None,
            failed: Vec::new(),
            step: config.gc_step,
            in_background: config.background_gc,
            debt: 0,
            buffer: Vec::new(),
        }
    }
}

impl<S: Subsystem> Pblk<S> {
    /// Lines from which on users have the whole ring.
    fn high(&self) -> u32 {
        (self.shape.identity.lines / 8).max(self.lines.low + 2)
    }

    /// Free lines, and those that are as soon as they are erased.
    fn free_lines(&self) -> u32 {
        (self.lines.free.len() + self.lines.emptied.len()) as u32
    }

    /// A page of a user comes: collects as much as is due. It enters the ring once the token completes.
    pub(super) fn admit(&mut self, at: SimTime) -> NamespaceResult<Token> {
        if !self.lines.emptied.is_empty() {
            self.erase_in_time(at)?;
        }
        let (entries, high) = (self.ring.entries(), self.high());
        if self.free_lines() >= high {
            self.collector.debt = 0;
            return Ok(self.ring.admit(entries));
        }
        let mut waits = Token::NONE;
        while self.is_short_of(self.lines.low + 1) {
            // Lines wait for pages of the ring: more of these come with the next victims. With one free
            // line left the ring is filled up instead.
            let is_urgent = self.is_short_of(2) && !self.lines.emptied.is_empty();
            if self.is_next_written() || is_urgent || !self.step(at)? {
                if self.lines.emptied.is_empty() {
                    break;
                }
                self.erase_next(at)?;
                waits = self.lines.erasing;
            }
        }
        let window = WINDOW.min(entries / 2);
        let share = u64::from(entries) * u64::from(self.free_lines()) / u64::from(high);
        let most = (share as u32 / window * window).clamp(window, entries);
        self.collector.debt += u64::from(entries - most) * 1024 / u64::from(most);
        let step = u64::from(self.collector.step) * 1024;
        while self.collector.debt >= step {
            self.collector.debt -= step;
            if !self.step(at)? {
                break;
            }
        }
        let admitted = self.ring.admit(most);
        Ok(self.below.device.join(admitted, waits))
    }

    /// Moves the next pages of a victim; whether there is anything to collect.
    fn step(&mut self, at: SimTime) -> NamespaceResult<bool> {
        let Some(line) = self.collector.victim.or_else(|| self.choose_victim()) else { return Ok(false) };
        self.collector.victim = Some(line);
        let mut moves: Vec<Ppn> = Vec::with_capacity(self.collector.step as usize);
        let mut places = self.blocks.valid_pages(line);
        while (moves.len() as u32) < self.collector.step
            && let Some(place) = self.blocks.next_valid(&mut places)
        {
            moves.push(place);
        }
        self.move_pages(&moves, at)?;
        if self.blocks.infos[line as usize].valid == 0 {
            self.collector.victim = None;
            self.stats.gc_runs += 1;
            self.emptied(line, at)?;
        }
        Ok(true)
    }

    fn move_pages(&mut self, moves: &[Ppn], at: SimTime) -> NamespaceResult<()> {
        let bytes = self.buffer.len();
        let mut buffer = std::mem::take(&mut self.collector.buffer);
        buffer.resize(moves.len() * bytes, 0);
        let mut result = Ok(());
        // All reads come first: writes would hold them up.
        let mut reads = Vec::with_capacity(moves.len());
        for (place, page) in moves.iter().zip(0..) {
            let data = &mut buffer[page * bytes..(page + 1) * bytes];
            let read = if self.owners[place.index()] == Lpn::META {
                Ok(Some(Token::NONE))
            } else {
                self.read_move(*place, data, at)
            };
            match read {
                Ok(read) => reads.push(read),
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        for ((place, read), page) in moves.iter().zip(reads).zip(0..) {
            if result.is_ok() {
                result = self.move_page(*place, read, &buffer[page * bytes..(page + 1) * bytes], at);
            }
        }
        self.collector.buffer = buffer;
        result
    }

    /// Reads a page that is to be moved; `None` if its data is lost.
    fn read_move(&mut self, place: Ppn, data: &mut [u8], at: SimTime) -> NamespaceResult<Option<Token>> {
        let lpn = self.owners[place.index()];
        if self.lost.contains(&lpn.0) {
            return Ok(None);
        }
        if let Some(slot) = slot_of(self.map.get(lpn)) {
            if !data.is_empty() {
                data.copy_from_slice(self.ring.data(slot));
            }
            return Ok(Some(Token::NONE));
        }
        let list = self.sectors_of(place);
        for _ in 0..READS {
            let part = (!data.is_empty()).then_some(&mut *data);
            if let Ok(read) = self.read_sectors(&list, part, Issue::new(at, Cause::Gc))? {
                return Ok(Some(read));
            }
        }
        Ok(None)
    }

    fn move_page(
        &mut self,
        place: Ppn,
        read: Option<Token>,
        data: &[u8],
        at: SimTime,
    ) -> NamespaceResult<()> {
        let lpn = self.owners[place.index()];
        if lpn == Lpn::META {
            if self.sabotage == Sabotage::ForgetDrops {
                self.drops.kept.remove(&place.0);
                self.clear(place);
            } else {
                self.move_drops(place);
            }
            return Ok(());
        }
        let kind = if read.is_some() { Kind::Gc } else { Kind::Lost };
        if read.is_none() {
            self.lost.insert(lpn.0);
        }
        let (entry, _) =
            self.enter(lpn, kind, (!data.is_empty()).then_some(data), read.unwrap_or(Token::NONE));
        let old = self.map.get(lpn);
        assert_eq!(self.place_of(old), Some(place), "where page {} is", lpn.0);
        self.invalidate_but(old, entry);
        self.map.redirect(lpn, entry);
        self.stats.map_updates += 1;
        self.stats.gc_moved_pages += 1;
        self.write_ring(false, at)
    }

    /// Chooses a victim: a line in which a program failed, or that of the policy, unless no line has
    /// anything to gain.
    fn choose_victim(&mut self) -> Option<u32> {
        let is_sealed = |line: &u32| self.blocks.infos[*line as usize].state == BlockState::Sealed;
        let failed = std::iter::from_fn(|| self.collector.failed.pop()).find(is_sealed);
        let line = if let Some(line) = failed {
            line
        } else {
            let facts = VictimFacts { blocks: &self.blocks.infos, now: self.now };
            let line = self.victims.pick(&facts)?;
            let gain =
                |line: u32| self.data_pages(line).saturating_sub(self.blocks.infos[line as usize].valid);
            // Policies that do not look at valid pages may pick full lines. They are overruled, and where
            // lines are short always: each victim then has to make room.
            if gain(line) == 0 || self.is_short_of(2) {
                let sealed = (0..self.shape.identity.lines).filter(|line| {
                    let info = self.blocks.infos[*line as usize];
                    info.state == BlockState::Sealed && gain(*line) > 0
                });
                sealed.max_by_key(|line| (gain(*line), std::cmp::Reverse(*line)))?
            } else {
                line
            }
        };
        self.victims.removed(line);
        self.blocks.infos[line as usize].state = BlockState::Victim;
        Some(line)
    }

    /// In the host's idle time: writes what has waited for a second, and collects, each step from the end of
    /// the one before.
    pub(super) fn work_in_background(&mut self, at: SimTime, until: SimTime) -> NamespaceResult<()> {
        const KICK_NS: u64 = 1_000_000_000;
        self.erase_in_time(at)?;
        if until.0.saturating_sub(at.0) >= KICK_NS {
            self.write_ring(true, at)?;
        }
        let mut now = at.max(self.below.device.idle_from());
        while self.collector.in_background && now < until && self.free_lines() < self.high() {
            if !self.step(now)? {
                break;
            }
            match self.below.device.completion(self.lines.done) {
                Some(end) if end > now => now = end,
                _ => break,
            }
        }
        Ok(())
    }

    /// Slots of the ring that the map points to, for checks.
    pub(super) fn is_current(&self, slot: usize, lpn: Lpn) -> bool {
        self.map.get(lpn) == Ring::entry(slot)
    }
}
