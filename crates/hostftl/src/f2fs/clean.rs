//! Cleaning: valid blocks of sections are moved, so that these are free after the next checkpoint.

use super::sections::{NODE, NONE, Search, State};
use super::{F2fs, Kind, Sabotage};
use nandscape_core::{Cause, Hint, Issue, NamespaceResult, Op, SimTime, Token};

/// With so few free sections a checkpoint is written while cleaning goes on, so that those that were emptied
/// can be written.
const FREE_LEAST: u32 = 3;
/// Blocks that are read at a time.
const READ_MOST: u32 = 256;

impl F2fs {
    /// Sections that have to be free before something is written: those for what waits to be written, and
    /// those that are reserved.
    fn needed(&self) -> u32 {
        let waiting = self.nodes.dirty + self.nodes.names.len() as u64 + self.nodes.tails.len() as u64;
        let for_waiting = waiting.div_ceil(self.config.layout.section_blocks.into()) as u32;
        for_waiting + self.config.layout.reserved
    }

    /// Cleans until there is room for the next blocks.
    #[inline]
    pub(super) fn balance(&mut self, at: SimTime) -> NamespaceResult<()> {
        if self.is_busy || self.sections.free > self.needed() {
            return Ok(());
        }
        self.make_room(at)
    }

    #[cold]
    fn make_room(&mut self, at: SimTime) -> NamespaceResult<()> {
        self.is_busy = true;
        let made = self.clean_until(at);
        self.is_busy = false;
        self.pace = self.volume.device.join(self.pace, made?);
        Ok(())
    }

    fn clean_until(&mut self, at: SimTime) -> NamespaceResult<Token> {
        let mut done = Token::NONE;
        if !self.sections.prefree.is_empty() {
            done = self.checkpoint(at)?;
        }
        while self.sections.free + self.sections.prefree.len() as u32 <= self.needed() {
            let Some(victim) = self.victim(Search::Cleaning) else { break };
            let moved = self.clean(victim, at)?;
            done = self.volume.device.join(done, moved);
            if self.sections.free <= FREE_LEAST {
                let written = self.checkpoint(at)?;
                done = self.volume.device.join(done, written);
            }
        }
        if !self.sections.prefree.is_empty() {
            let written = self.checkpoint(at)?;
            done = self.volume.device.join(done, written);
        }
        Ok(done)
    }

    fn victim(&mut self, search: Search) -> Option<u32> {
        if self.sabotage == Sabotage::AnyVictim {
            let used: Vec<u32> = (0..)
                .zip(&self.sections.infos)
                .filter(|(_, info)| {
                    info.state == State::Used && info.valid < self.config.layout.section_blocks
                })
                .map(|(section, _)| section)
                .collect();
            return used.get(self.sections.now as usize % used.len().max(1)).copied();
        }
        self.sections.find(0..super::config::LOGS_MAX, search)
    }

    /// Moves the valid blocks of a section.
    fn clean(&mut self, section: u32, at: SimTime) -> NamespaceResult<Token> {
        self.sections.unlist(section, State::Victim);
        let mut done = Token::NONE;
        for (mut place, mut blocks) in self.sections.valid_runs(section) {
            while blocks > 0 {
                let part = blocks.min(READ_MOST);
                let moved = self.move_blocks((place, part), at)?;
                done = self.volume.device.join(done, moved);
                (place, blocks) = (place + part, blocks - part);
            }
        }
        self.sections.settle(section);
        Ok(done)
    }

    /// Moves blocks next to each other that are valid: nodes to their log, data to that of cold data.
    fn move_blocks(&mut self, (first, blocks): (u32, u32), at: SimTime) -> NamespaceResult<Token> {
        let issue = Issue::new(at, Cause::Clean).by_host();
        let read = self.volume.main(&self.config.layout, Op::Read, (first, blocks), Hint(0), issue)?;
        let issue = issue.after(read).by_host();
        self.stats.moved_bytes += u64::from(blocks) * self.config.layout.block;
        let cold = self.log(Kind::ColdData);
        let mut done = read;
        let mut place = first;
        while place < first + blocks {
            let owner = self.sections.owners[place as usize];
            if owner.slot == NODE {
                let written = self.write_node(owner.node, issue)?;
                done = self.volume.device.join(done, written);
                place += 1;
                continue;
            }
            let of_data = (place..first + blocks)
                .take_while(|at| self.sections.owners[*at as usize].slot != NODE)
                .count() as u32;
            let (to, moved, written) = self.put(cold, of_data, issue)?;
            done = self.volume.device.join(done, written);
            for offset in 0..moved {
                let owner = self.sections.owners[(place + offset) as usize];
                self.sections.owners[(to + offset) as usize] = owner;
                let pointer = &mut self.nodes.node_mut(owner.node).pointers[owner.slot as usize];
                debug_assert!(*pointer == place + offset && to != NONE, "the owner of a block has it");
                *pointer = to + offset;
                self.sections.invalidate(place + offset);
                self.nodes.touch(owner.node);
            }
            place += moved;
        }
        Ok(done)
    }

    /// Cleans a section at a time while no host asks for anything, and writes checkpoints that are due.
    pub(super) fn clean_in_background(&mut self, at: SimTime, until: SimTime) -> NamespaceResult<()> {
        let mut next = at.0.saturating_add(self.config.gc_interval_ns);
        while next < until.0 {
            self.checkpoint_in_time(SimTime(next))?;
            let Some(victim) = self.victim(Search::Background) else { break };
            self.is_busy = true;
            let cleaned = self.clean(victim, SimTime(next));
            self.is_busy = false;
            cleaned?;
            next = next.saturating_add(self.config.gc_interval_ns);
        }
        let due = self.next_checkpoint.max(at);
        if due < until { self.checkpoint_in_time(due) } else { Ok(()) }
    }

    /// Writes a checkpoint if one is due.
    pub(super) fn checkpoint_in_time(&mut self, at: SimTime) -> NamespaceResult<()> {
        if at >= self.next_checkpoint && self.has_changed() {
            self.checkpoint(at)?;
        }
        Ok(())
    }
}
