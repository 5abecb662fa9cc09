//! Taking a device over: erased, or as a loss of power left it.
//!
//! The journal tells where the newest data of each page is. What is left to do: groups from blocks, the written ones that have room going on
//! where they stopped, and an erased group to copy into. If the power went between the copies of a victim and its erase, there may be
//! none: then a block is erased that holds nothing newest, or only copies of which the equal original is still there.

use super::space::Space;
use super::{Collection, PageLog};
use crate::error::FtlBuildError;
use crate::parts::base::Base;
use crate::parts::order;
use crate::parts::page_table::PageTable;
use nandscape_core::{BlockId, Cause, FlashDevice, FtlError, Geometry, Info, Params, Ppn, SimTime, Token};
use std::collections::BTreeMap;

/// Groups that must be held back: one to copy into, and one that makes sure that a victim has an invalid page.
const LEAST_RESERVE: u32 = 2;

/// What is found on the flash.
struct Found {
    table: PageTable,
    live_pages: u64,
    /// Newest pages of each block.
    live: Vec<u32>,
}

pub(super) fn open<D: FlashDevice>(
    device: D,
    info: &'static Info,
    params: &Params,
    collection: Collection,
) -> Result<PageLog<D>, FtlBuildError> {
    let geometry = *device.geometry();
    let slots = match collection {
        Collection::Blocks => geometry.pages_per_block,
        Collection::Everything => geometry.pages_per_block * geometry.units(),
    };
    let mut base = Base::new(device, info, params, slots as usize)?;
    let nominal = blocks_by_unit(&geometry, |block| base.is_nominal(block));
    let (what, width, total) = match collection {
        Collection::Blocks => ("blocks", 1, nominal.iter().map(|blocks| blocks.len() as u32).sum()),
        Collection::Everything => {
            let used = nominal.iter().filter(|blocks| !blocks.is_empty());
            let rows = used.clone().map(|blocks| blocks.len() as u32).min().unwrap_or(0);
            ("rows", used.count() as u32, rows)
        }
    };
    let reserve = order::reserve(params, LEAST_RESERVE, total, what)?;
    base.logical_pages = u64::from(total - reserve) * u64::from(width) * u64::from(geometry.pages_per_block);
    base.count_grown_bad();
    let mut found = find(&base, info)?;
    let good = blocks_by_unit(&geometry, |block| !base.device.is_bad(block));
    let (sets, mut space) = match collection {
        Collection::Blocks => {
            let any = Set { blocks: good.concat(), wanted: 1 };
            (vec![any], Space::new(geometry, geometry.units(), geometry.blocks_per_unit(), 1))
        }
        Collection::Everything => {
            let rows = good.iter().map(Vec::len).filter(|blocks| *blocks > 0).min().unwrap_or(0);
            let units = good.into_iter().filter(|blocks| !blocks.is_empty());
            // Those that belong to no row were erased before and say nothing.
            let sets = units.map(|blocks| Set { wanted: blocks.len() - rows + 1, blocks });
            (sets.collect(), Space::new(geometry, 1, geometry.blocks_per_unit(), width))
        }
    };
    restore_spares(&mut base, &mut found, &sets).map_err(|error| refused(info, &error))?;
    space.wanted_spares = if reserve > LEAST_RESERVE { 2 } else { 1 };
    match collection {
        Collection::Blocks => form_blocks(&base, &found, &mut space),
        Collection::Everything => form_rows(&base, &found, &mut space, &nominal),
    }
    while space.spares.len() < space.wanted_spares && space.hold_back(0) {}
    base.stats.live_pages = found.live_pages;
    Ok(PageLog {
        table: found.table,
        space,
        collection,
        moves: Vec::with_capacity(slots as usize),
        failed_blocks: Vec::new(),
        was_taken_over: found.live_pages > 0,
        base,
    })
}

fn refused(info: &'static Info, error: &FtlError) -> FtlBuildError {
    FtlBuildError::Device { ftl: info.name, reason: format!("its start from flash failed: {error}") }
}

/// The blocks of each unit that satisfy a condition.
fn blocks_by_unit(geometry: &Geometry, is_meant: impl Fn(BlockId) -> bool) -> Vec<Vec<BlockId>> {
    let unit_of = |unit| {
        let all = (0..geometry.blocks_per_unit()).map(move |block| geometry.block(unit, block));
        all.filter(|block| is_meant(*block)).collect()
    };
    (0..geometry.units()).map(|unit| unit_of(nandscape_core::UnitId(unit))).collect()
}

/// The newest data of each logical page, from the journal.
fn find<D: FlashDevice>(base: &Base<D>, info: &'static Info) -> Result<Found, FtlBuildError> {
    let geometry = &base.geometry;
    let mut found = Found {
        table: PageTable::new(base.logical_pages as u32, geometry.pages()),
        live_pages: 0,
        live: vec![0; geometry.blocks() as usize],
    };
    base.each_newest(info, |lpn, page| {
        found.table.allocate_page(lpn, page);
        found.live[geometry.block_of(page).index()] += 1;
        found.live_pages += 1;
    })?;
    Ok(found)
}

/// Blocks of which some should be erased.
struct Set {
    blocks: Vec<BlockId>,
    wanted: usize,
}

impl Set {
    /// Erased blocks that are missing.
    fn missing<D: FlashDevice>(&self, base: &Base<D>) -> usize {
        let erased = self.blocks.iter().filter(|block| base.device.write_pointer(**block) == 0);
        self.wanted.saturating_sub(erased.count())
    }

    /// Written blocks without newest pages: a victim whose copies are complete, copies that were never needed, an erase that was cut short.
    fn dead<D: FlashDevice>(&self, base: &Base<D>, found: &Found) -> Vec<BlockId> {
        let is_dead = |block: &BlockId| {
            found.live[block.index()] == 0
                && base.device.write_pointer(*block) > 0
                && !base.device.is_bad(*block)
        };
        self.blocks.iter().copied().filter(is_dead).collect()
    }
}

/// Makes sure that as many blocks of each set are erased as are wanted, as far as that is possible.
///
/// A dead block is erased, but only once every set that misses one has one: until then its pages may be what lets copies be thrown
/// away. So a victim that was copied in full goes, and the copies of one that was not.
fn restore_spares<D: FlashDevice>(
    base: &mut Base<D>,
    found: &mut Found,
    sets: &[Set],
) -> Result<(), FtlError> {
    let mut copies = None;
    loop {
        let lacks = |set: &&Set| set.missing(base) > set.dead(base, found).len();
        let lacking: Vec<&Set> = sets.iter().filter(lacks).collect();
        if lacking.is_empty() {
            break;
        }
        let mut known = match copies.take() {
            Some(known) => known,
            None => equal_copies(base, found)?,
        };
        let mut is_done = true;
        for set in lacking {
            if throw_copies_away(base, found, &mut known, set)? {
                is_done = false;
                break;
            }
        }
        copies = Some(known);
        if is_done {
            break;
        }
    }
    for set in sets {
        for block in set.dead(base, found) {
            if set.missing(base) == 0 {
                break;
            }
            base.erase(block, Cause::Gc, SimTime::ZERO, Token::NONE)?;
        }
    }
    Ok(())
}

/// Erases the block of a set with the fewest newest pages of which there is another copy elsewhere of each; whether there was one.
fn throw_copies_away<D: FlashDevice>(
    base: &mut Base<D>,
    found: &mut Found,
    copies: &mut BTreeMap<Ppn, Ppn>,
    set: &Set,
) -> Result<bool, FtlError> {
    let geometry = base.geometry;
    let is_written = |block: &BlockId| base.device.write_pointer(*block) > 0 && !base.device.is_bad(*block);
    let mut by_live: Vec<BlockId> = set.blocks.iter().copied().filter(is_written).collect();
    by_live.sort_by_key(|block| found.live[block.index()]);
    for block in by_live {
        let pages = (0..geometry.pages_per_block).map(|index| geometry.page(block, index));
        let live: Vec<Ppn> = pages.filter(|page| found.table.logical(*page).is_some()).collect();
        let elsewhere = |page: &Ppn| copies.get(page).is_some_and(|copy| geometry.block_of(*copy) != block);
        if live.is_empty() || !live.iter().all(elsewhere) {
            continue;
        }
        for page in live {
            let lpn = found.table.logical(page).expect("a live page");
            let copy = copies.remove(&page).expect("a page with a copy");
            base.device.prefer(lpn, copy)?;
            found.table.allocate_page(lpn, copy);
            found.live[block.index()] -= 1;
            found.live[geometry.block_of(copy).index()] += 1;
        }
        copies.retain(|_, copy| geometry.block_of(*copy) != block);
        if base.erase(block, Cause::Gc, SimTime::ZERO, Token::NONE)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// For newest pages, another page with the same data. Reads the OOB of every page that is not newest: as much as the device holds, but only
/// where the power went in the middle of a collection.
fn equal_copies<D: FlashDevice>(base: &mut Base<D>, found: &Found) -> Result<BTreeMap<Ppn, Ppn>, FtlError> {
    let geometry = base.geometry;
    let mut copies = BTreeMap::new();
    for block in (0..geometry.blocks()).map(BlockId) {
        if base.device.is_bad(block) {
            continue;
        }
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
            if base.oob(newest)?.is_some_and(|other| Base::<D>::is_same_version(&other, &oob)) {
                copies.insert(newest, page);
            }
        }
    }
    Ok(copies)
}

/// Every good block is a group of its own; those that are partly written go on first.
fn form_blocks<D: FlashDevice>(base: &Base<D>, found: &Found, space: &mut Space) {
    let good = (0..base.geometry.blocks()).map(BlockId).filter(|block| !base.device.is_bad(*block));
    let (begun, rest): (Vec<BlockId>, Vec<BlockId>) =
        good.partition(|block| base.device.write_pointer(*block) > 0);
    for block in begun.into_iter().chain(rest) {
        space.form(block.0, std::iter::once(block), found.live[block.index()]);
        space.place(base, block.0);
    }
}

/// Rows of one block of every unit: the first written ones of each, then the first erased ones.
fn form_rows<D: FlashDevice>(base: &Base<D>, found: &Found, space: &mut Space, nominal: &[Vec<BlockId>]) {
    let is_erased = |block: &BlockId| base.device.write_pointer(*block) == 0;
    let used = nominal.iter().filter(|blocks| !blocks.is_empty());
    let columns: Vec<Vec<BlockId>> = used
        .map(|blocks| {
            let mut good: Vec<BlockId> =
                blocks.iter().copied().filter(|block| !base.device.is_bad(*block)).collect();
            good.sort_by_key(is_erased);
            good
        })
        .collect();
    let rows = columns.iter().map(Vec::len).min().unwrap_or(0);
    for row in 0..rows {
        let live = columns.iter().map(|column| found.live[column[row].index()]).sum();
        space.form(row as u32, columns.iter().map(|column| column[row]), live);
        space.place(base, row as u32);
    }
    for block in columns.iter().flat_map(|column| &column[rows..]).filter(|block| is_erased(block)) {
        space.surplus[base.geometry.unit_of(*block).index()].push_back(block.0);
    }
}
