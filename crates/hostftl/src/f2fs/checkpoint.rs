//! Checkpoints: what changed goes to the main area, then the tables, then the checkpoint itself.

use super::config::Layout;
use super::nodes::DIRECTORY;
use super::{F2fs, Kind};
use nandscape_core::{Cause, Extent, Hint, Issue, NamespaceResult, Op, SimTime, Token};
use std::collections::BTreeSet;

/// Changes of tables that fit into the checkpoint itself.
const NAT_JOURNAL: usize = 38;
const SIT_JOURNAL: usize = 6;
/// Blocks of a checkpoint: head, three of summaries of data, foot.
const PACK: u64 = 5;

/// Which of the two copies of each block of a table is the present one.
pub(super) struct Copies {
    nat: Vec<bool>,
    sit: Vec<bool>,
    pack: bool,
}

impl Copies {
    pub fn new(layout: &Layout) -> Self {
        let (nat, sit) = ((layout.summaries - layout.nat) / 2, (layout.nat - layout.sit) / 2);
        Self { nat: vec![false; nat as usize], sit: vec![false; sit as usize], pack: false }
    }

    /// The other copy of a block of a table that begins at `first`.
    fn turn(copies: &mut [bool], first: u64, block: u64) -> u64 {
        let is_second = &mut copies[block as usize];
        *is_second = !*is_second;
        first + block + if *is_second { copies.len() as u64 } else { 0 }
    }
}

impl F2fs {
    /// Whether a checkpoint would write anything.
    pub(super) fn has_changed(&self) -> bool {
        self.nodes.dirty > 0
            || !self.nodes.names.is_empty()
            || !self.nodes.moved.is_empty()
            || !self.nodes.tails.is_empty()
            || !self.sections.touched.is_empty()
    }

    /// Writes a checkpoint; completes when it is durable.
    pub(super) fn checkpoint(&mut self, at: SimTime) -> NamespaceResult<Token> {
        self.next_checkpoint = SimTime(at.0.saturating_add(self.config.checkpoint_ns));
        if !self.has_changed() {
            return self.volume.flush(Issue::new(at, Cause::Host));
        }
        let was_busy = std::mem::replace(&mut self.is_busy, true);
        let done = self.write_checkpoint(at);
        self.is_busy = was_busy;
        done
    }

    fn write_checkpoint(&mut self, at: SimTime) -> NamespaceResult<Token> {
        let issue = Issue::new(at, Cause::Meta).by_host();
        for file in std::mem::take(&mut self.nodes.tails) {
            self.write_tail(file, at)?;
        }
        let hot = self.log(Kind::HotData);
        for block in std::mem::take(&mut self.nodes.names) {
            self.write_data(DIRECTORY, (block, block + 1), hot, issue)?;
        }
        for file in std::mem::take(&mut self.nodes.dirty_files) {
            self.write_nodes_of(file, issue)?;
        }
        let blocks = self.volume.flush(issue)?;
        let issue = issue.after(blocks).by_host();
        let mut done = self.write_tables(issue)?;
        self.copies.pack = !self.copies.pack;
        let pack = if self.copies.pack { u64::from(self.config.layout.segment_blocks) } else { 0 };
        let written = self.volume.meta(&self.config.layout, pack, PACK, issue.after(done).by_host())?;
        done = self.volume.device.join(done, written);
        let flushed = self.volume.flush(issue.after(done).by_host())?;
        done = self.volume.device.join(done, flushed);
        self.free(issue.after(done).by_host())?;
        Ok(done)
    }

    /// Writes the nodes of a file that changed.
    pub(super) fn write_nodes_of(&mut self, file: u32, issue: Issue) -> NamespaceResult<Token> {
        let mut done = Token::NONE;
        for node in std::mem::take(&mut self.nodes.file_mut(file).dirty) {
            // Cleaning may have written it since.
            if self.nodes.node(node).is_dirty {
                let written = self.write_node(node, issue)?;
                done = self.volume.device.join(done, written);
            }
        }
        Ok(done)
    }

    /// Writes the blocks of tables with changes, as far as these are too many for the checkpoint itself.
    fn write_tables(&mut self, issue: Issue) -> NamespaceResult<Token> {
        let layout = &self.config.layout;
        let moved = std::mem::take(&mut self.nodes.moved);
        let mut blocks = Vec::new();
        if moved.len() > NAT_JOURNAL {
            let of_nat: BTreeSet<u64> =
                moved.iter().map(|node| u64::from(node / layout.nat_entries())).collect();
            blocks.extend(
                of_nat.into_iter().map(|block| Copies::turn(&mut self.copies.nat, layout.nat, block)),
            );
        }
        let per_section = layout.section_blocks.div_ceil(layout.segment_blocks);
        if self.sections.touched.len() > SIT_JOURNAL {
            let entry = |section: &u32| u64::from(section * per_section / layout.sit_entries());
            let of_sit: BTreeSet<u64> = self.sections.touched.iter().map(entry).collect();
            blocks.extend(
                of_sit.into_iter().map(|block| Copies::turn(&mut self.copies.sit, layout.sit, block)),
            );
        }
        let mut done = Token::NONE;
        for block in blocks {
            let written = self.volume.meta(layout, block, 1, issue)?;
            done = self.volume.device.join(done, written);
        }
        Ok(done)
    }

    /// What was in use at the last checkpoint and is not any more can be written again.
    fn free(&mut self, issue: Issue) -> NamespaceResult<()> {
        let layout = &self.config.layout;
        let trims = self.config.discards && !layout.is_zoned();
        let mut freed = Vec::new();
        self.sections.checkpoint(|place, blocks| {
            if trims && u64::from(blocks) * layout.block >= self.config.discard_bytes {
                freed.push((place, blocks));
            }
        });
        for (place, blocks) in freed {
            let extent = Extent::new(layout.byte(place), u64::from(blocks) * layout.block);
            self.volume.bytes(Op::Trim, extent, Hint(0), issue)?;
        }
        for section in self.sections.take_prefree() {
            self.stats.resets += 1;
            self.volume.free(&self.config.layout, section, trims, issue)?;
        }
        Ok(())
    }
}
