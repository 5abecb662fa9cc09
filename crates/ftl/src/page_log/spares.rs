//! Erased groups to copy into, after a loss of power in the middle of a collection.
//!
//! What a collection leaves on flash, whatever of it is done: a victim of which any block is erased has all
//! its copies elsewhere, and every block of it that is not erased yet is *dead* (it holds nothing newest), so
//! each unit has an erased or a dead block. If no block of the last victims is erased, the group that was
//! taken last to copy into holds copies and nothing else, of which the originals are all there: it can be
//! thrown away. Both follow from the order in which things are programmed: host data after the erase of the
//! victims (see [`super::space::Lane`]), erases after every program before them, copies when their originals
//! are safe, everything after the erases of a start.
//!
//! Both must not be mixed unit by unit: originals that are held to again may lie in the very block that was
//! dead, in another unit. So the blocks that were filled together carry a mark in the OOB of their copies,
//! they are thrown away together or not at all, and only if that leaves no unit worse off. Nor is the
//! original of a copy thrown away with it: a block whose pages were copied to elsewhere is not among those
//! that go.

use crate::parts::base::{Base, LOST, first_oob};
use crate::parts::page_table::PageTable;
use nandscape_core::journal::prefer;
use nandscape_core::{BlockId, Cause, FlashDevice, FtlResult, Issue, Lpn, Ppn, SimTime, Token};
use std::collections::{BTreeMap, BTreeSet};

pub(super) struct Found {
    pub(super) table: PageTable,
    pub(super) live_pages: u64,
    /// Newest pages of each block.
    pub(super) live: Vec<u32>,
}

/// Blocks of which some should be erased.
pub(super) struct Set {
    pub(super) blocks: Vec<BlockId>,
    pub(super) wanted: usize,
}

impl Set {
    fn missing<D: FlashDevice>(&self, base: &Base<D>) -> usize {
        let erased = self.blocks.iter().filter(|block| base.device.write_pointer(**block) == 0);
        self.wanted.saturating_sub(erased.count())
    }

    /// Written blocks without newest pages: copied victims, needless copies, erases that were cut short.
    fn dead<D: FlashDevice>(&self, base: &Base<D>, live: &[u32]) -> Vec<BlockId> {
        let is_dead = |block: &BlockId| {
            live[block.index()] == 0 && base.device.write_pointer(*block) > 0 && !base.device.is_bad(*block)
        };
        self.blocks.iter().copied().filter(is_dead).collect()
    }

    /// Blocks that would be missing if these were erased and every dead one.
    fn lack<D: FlashDevice>(&self, base: &Base<D>, live: &[u32], thrown: &[BlockId]) -> usize {
        let thrown_here = self.blocks.iter().filter(|block| thrown.contains(block)).count();
        let dead = self.dead(base, live).iter().filter(|block| !thrown.contains(block)).count();
        self.missing(base).saturating_sub(thrown_here + dead)
    }
}

fn lack<D: FlashDevice>(base: &Base<D>, sets: &[Set], live: &[u32], thrown: &[BlockId]) -> usize {
    sets.iter().map(|set| set.lack(base, live, thrown)).sum()
}

/// Makes sure that as many blocks of each set are erased as are wanted, as far as that is possible. The token
/// covers the erases: nothing may be programmed before.
pub(super) fn restore<D: FlashDevice>(
    base: &mut Base<D>,
    found: &mut Found,
    sets: &[Set],
) -> FtlResult<Token> {
    let mut done = Token::NONE;
    let mut left = lack(base, sets, &found.live, &[]);
    while left > 0 {
        let copies = Copies::read(base, found)?;
        let mut plans = copies.plans(base, found);
        let rated = plans.iter().map(|plan| lack(base, sets, &plan.live, &plan.blocks)).zip(0..);
        // More than one is needed only where blocks have failed, or where no copy has a mark.
        let Some((_, number)) = rated.min().filter(|(least, _)| *least < left) else { break };
        let thrown = plans.swap_remove(number).throw_away(base, found)?;
        done = base.device.join(done, thrown);
        left = lack(base, sets, &found.live, &[]);
    }
    for set in sets {
        for block in set.dead(base, &found.live) {
            if set.missing(base) == 0 {
                break;
            }
            if let Some(erased) = base.erase(block, Issue::new(SimTime::ZERO, Cause::Gc))? {
                done = base.device.join(done, erased);
            }
        }
    }
    Ok(done)
}

/// What can be thrown away together.
struct Plan {
    blocks: Vec<BlockId>,
    instead: Vec<(Lpn, Ppn)>,
    /// Newest pages of each block afterwards.
    live: Vec<u32>,
}

impl Plan {
    /// Prefers the originals before it erases, so that after a cut the remaining blocks can still go.
    fn throw_away<D: FlashDevice>(self, base: &mut Base<D>, found: &mut Found) -> FtlResult<Token> {
        for (lpn, page) in self.instead {
            prefer(&mut base.device, lpn, page)?;
            found.table.allocate_page(lpn, page);
        }
        found.live = self.live;
        let mut done = Token::NONE;
        for block in self.blocks {
            if let Some(erased) = base.erase(block, Issue::new(SimTime::ZERO, Cause::Gc))? {
                done = base.device.join(done, erased);
            }
        }
        Ok(done)
    }
}

/// Which newest pages are copies of others that are there.
struct Copies {
    /// For newest pages, the last of the older pages with the same data.
    older: BTreeMap<Ppn, Ppn>,
    /// Blocks with a page that was copied to elsewhere.
    sources: BTreeSet<BlockId>,
}

impl Copies {
    /// Reads the OOB of every page that is not newest; only after a cut in the middle of a collection.
    fn read<D: FlashDevice>(base: &mut Base<D>, found: &Found) -> FtlResult<Self> {
        let geometry = base.geometry;
        let mut older: BTreeMap<Ppn, (u64, Ppn)> = BTreeMap::new();
        let mut sources = BTreeSet::new();
        for block in (0..geometry.blocks())
            .map(BlockId)
            .filter(|block| !base.device.is_bad(*block))
            .collect::<Vec<_>>()
        {
            for index in 0..base.device.write_pointer(block) {
                let page = geometry.page(block, index);
                if found.table.logical(page).is_some() {
                    continue;
                }
                let Some(oob) = base.oob(page)? else { continue };
                if oob.lpn.index() >= found.table.len() {
                    continue;
                }
                let Some(newest) = found.table.physical(oob.lpn) else { continue };
                let Some(other) = base.oob(newest)? else { continue };
                if oob.seq >= other.seq || !Base::<D>::is_same_version(&other, &oob) {
                    continue;
                }
                sources.insert(block);
                let known = older.entry(newest).or_insert((oob.seq, page));
                *known = (*known).max((oob.seq, page));
            }
        }
        Ok(Self { older: older.into_iter().map(|(newest, (_, page))| (newest, page)).collect(), sources })
    }

    /// For each mark, the blocks that can be thrown away; each of those without a mark by itself.
    fn plans<D: FlashDevice>(&self, base: &mut Base<D>, found: &Found) -> Vec<Plan> {
        let mut plans: BTreeMap<(u16, Option<BlockId>), Plan> = BTreeMap::new();
        let holders: BTreeSet<BlockId> =
            self.older.keys().map(|page| base.geometry.block_of(*page)).collect();
        for block in holders {
            let Some(pages) = self.instead_of(base, found, block) else { continue };
            let mark = first_mark(base, block);
            let alone = (mark == 0).then_some(block);
            let plan = plans.entry((mark, alone)).or_insert_with(|| Plan {
                blocks: Vec::new(),
                instead: Vec::new(),
                live: found.live.clone(),
            });
            plan.live[block.index()] = 0;
            for (_, page) in &pages {
                plan.live[base.geometry.block_of(*page).index()] += 1;
            }
            plan.blocks.push(block);
            plan.instead.extend(pages);
        }
        plans.into_values().collect()
    }

    /// What to hold to if a block is thrown away; `None` where it must not be. Since sources stay, no two
    /// blocks need each other.
    fn instead_of<D: FlashDevice>(
        &self,
        base: &mut Base<D>,
        found: &Found,
        block: BlockId,
    ) -> Option<Vec<(Lpn, Ppn)>> {
        if self.sources.contains(&block) {
            return None;
        }
        let mut pages = Vec::new();
        for index in 0..base.device.write_pointer(block) {
            let page = base.geometry.page(block, index);
            let Some(lpn) = found.table.logical(page) else { continue };
            let older = *self.older.get(&page)?;
            // What rotted since it was copied stays where it is whole.
            if !base.is_readable(older) && base.is_readable(page) {
                return None;
            }
            pages.push((lpn, older));
        }
        Some(pages)
    }
}

/// The mark of a block: that of its first readable page, since copies come first in a spare.
fn first_mark<D: FlashDevice>(base: &mut Base<D>, block: BlockId) -> u16 {
    first_oob(&mut base.device, block).ok().flatten().map_or(0, |oob| oob.stream & !LOST)
}

#[cfg(test)]
mod tests {
    use super::super::space::mark;
    use super::super::{Collection, PageLog};
    use super::*;
    use crate::parts::layer::Layer;
    use crate::{Journal, JournalOptions};
    use nandscape_core::{BlockState, Capabilities, Extent, Ftl as _, Geometry, Mapping, Oob, Params};
    use nandscape_media::{Nand, NandOptions, Scheduler as _, Serial, Timed, Timing};

    /// The journal keeps blocks 9 to 12 and 23 to 25: a row of each of blocks 0 to 8, and block 22 belongs to
    /// none.
    const GEOMETRY: Geometry = Geometry {
        channels: 2,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: 13,
        pages_per_block: 4,
        page_bytes: 512,
        sector_bytes: 512,
        oob_bytes: 16,
    };
    const TIMING: Timing =
        Timing { read_ns: 1, program_ns: 1, erase_ns: 1, channel_bytes_per_s: 1_000_000_000, command_ns: 0 };
    const RESERVE: u32 = 2;

    type Flash = Journal<Timed<Nand, Serial>>;

    fn flash(nand: Nand) -> Flash {
        let device = Timed::new(nand, Serial::new(&GEOMETRY, &TIMING));
        Journal::open(device, JournalOptions::default()).unwrap()
    }

    fn new_nand() -> Nand {
        let capabilities = Capabilities { stores_data: true, ..Capabilities::default() };
        Nand::new(GEOMETRY, &NandOptions { capabilities, ..NandOptions::default() }).unwrap()
    }

    fn put(flash: &mut Flash, block: u32, oob: Oob, cause: Cause) -> Ppn {
        let block = BlockId(block);
        let page = GEOMETRY.page(block, flash.write_pointer(block));
        let data = [oob.lpn.0 as u8 + 1; 512];
        flash.program(page, oob, 512, Some(&data), Issue::new(SimTime::ZERO, cause)).unwrap();
        page
    }

    fn write(flash: &mut Flash, block: u32, lpn: u32) -> Ppn {
        put(flash, block, Oob { lpn: Lpn(lpn), stream: 0, seq: 0 }, Cause::Host)
    }

    fn copy(flash: &mut Flash, from: Ppn, block: u32, stream: u16) -> Ppn {
        let read = flash.read(from, 0, None, Issue::new(SimTime::ZERO, Cause::Gc)).unwrap();
        put(flash, block, Oob { stream, ..read.oob }, Cause::Gc)
    }

    /// Writes logical pages from this one on, something to every block that is still erased, and pads what is
    /// left of the rows.
    fn fill(flash: &mut Flash, mut lpn: u32) -> u32 {
        for _ in 0..4 {
            for block in (2..9).chain(15..22) {
                if lpn < 14 * 4 {
                    write(flash, block, lpn);
                    lpn += 1;
                }
            }
        }
        for block in (0..9).chain(13..22) {
            while flash.write_pointer(BlockId(block)) < 4 {
                put(flash, block, Oob { lpn: Lpn::PADDING, stream: 0, seq: 0 }, Cause::Gc);
            }
        }
        lpn
    }

    fn start(flash: &Flash) -> Layer<PageLog<Flash>> {
        let info = &crate::pm_gcc::INFO;
        let typed = [("reserve".to_owned(), RESERVE.to_string())].into();
        let params = Params::check(info, "ftl.", &typed).unwrap();
        let nand = flash.inner().medium().clone();
        Layer(PageLog::new(self::flash(nand), info, &params, Collection::Everything).unwrap())
    }

    /// Unit 0 can erase only block 0, which is dead. Unit 1 can throw away block 13 or block 14, but the
    /// original of the page in block 13 is in block 0.
    #[test]
    fn a_dead_block_that_one_unit_needs_is_not_brought_back_for_another() {
        let mut flash = flash(new_nand());
        let original = write(&mut flash, 0, 0);
        copy(&mut flash, original, 13, mark(13, 0));
        let original = write(&mut flash, 1, 1);
        copy(&mut flash, original, 14, mark(1, 0));
        for lpn in 2..5 {
            write(&mut flash, 1, lpn);
        }
        let lpn = fill(&mut flash, 5);
        let mut log = start(&flash);
        log.check_invariants();
        assert_eq!(log.0.space.spares.len(), 1, "an erased row to copy into");
        let is_erased = |block| log.0.base.device.write_pointer(BlockId(block)) == 0;
        assert!(is_erased(0) && is_erased(14) && !is_erased(13));
        for lpn in 0..lpn {
            let mut data = [0; 512];
            log.read(Extent::new(u64::from(lpn) * 512, 512), Some(&mut data), SimTime::ZERO).unwrap();
            assert_eq!(data, [lpn as u8 + 1; 512], "page {lpn}");
        }
    }

    /// Of both units the last group filled by a collection goes, though each could do with something else.
    #[test]
    fn what_was_filled_together_is_thrown_away_together() {
        let mut flash = flash(new_nand());
        let originals = [write(&mut flash, 0, 0), write(&mut flash, 13, 1)];
        copy(&mut flash, originals[0], 14, mark(1, 0));
        copy(&mut flash, originals[1], 1, mark(1, 0));
        write(&mut flash, 0, 2);
        write(&mut flash, 13, 3);
        fill(&mut flash, 4);
        let log = start(&flash);
        log.check_invariants();
        assert_eq!(log.0.space.spares.len(), 1, "an erased row to copy into");
        let is_erased = |block| log.0.base.device.write_pointer(BlockId(block)) == 0;
        assert!(is_erased(1) && is_erased(14));
    }

    #[test]
    fn groups_of_other_times_have_other_marks() {
        let mut marks = BTreeSet::new();
        for first in 0..100 {
            marks.extend((0..10).map(|erases| mark(first, erases)));
        }
        assert!(marks.iter().all(|mark| (1..LOST).contains(mark)));
        assert!(marks.len() > 950, "{} of 1000", marks.len());
    }
}
