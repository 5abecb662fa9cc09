//! Taking a device over: erased, or, where copies come first, as a loss of power left it.
//!
//! The journal tells where the newest data of each page is. What is left to do: groups from blocks, the
//! written ones that have room going on where they stopped, and an erased group to copy into
//! ([`super::spares`]).

use super::space::{Space, State};
use super::spares::{self, Found, Set};
use super::{Collection, PageLog};
use crate::error::FtlBuildError;
use crate::parts::base::Base;
use crate::parts::order::{self, Order};
use crate::parts::page_table::PageTable;
use nandscape_core::{BlockId, FlashDevice, FlashError, FtlError, Geometry, Info, Params, Token, UnitId};

/// Groups held back: one to copy into, and one so that some victim has an invalid page.
const LEAST_RESERVE: u32 = 2;

impl<D: FlashDevice> PageLog<D> {
    /// Takes a device over, erased or with data that its journal knows.
    pub(crate) fn new(
        device: D,
        info: &'static Info,
        params: &Params,
        collection: Collection,
    ) -> Result<Self, FtlBuildError> {
        let geometry = device.geometry();
        let slots = match collection {
            Collection::Blocks => geometry.pages_per_block,
            Collection::Everything => geometry.pages_per_block * geometry.units(),
        };
        let mut base = Base::new(device, info, params, slots as usize)?;
        let (found, space, erased) = match base.order {
            Order::EraseFirst => (find(&base, info)?, whole_space(&base, collection), Token::NONE),
            Order::CopyFirst => take_over(&mut base, info, params, collection)?,
        };
        base.stats.live_pages = found.live_pages;
        Ok(Self {
            table: found.table,
            space,
            collection,
            moves: Vec::with_capacity(slots as usize),
            failed_blocks: Vec::new(),
            before_copies: erased,
            // What is there may be there for as long as this machine runs.
            safe_before: 0,
            was_taken_over: found.live_pages > 0,
            base,
        })
    }
}

/// The space of an erased device without spares: every block at its own place, where bad ones leave holes.
fn whole_space<D: FlashDevice>(base: &Base<D>, collection: Collection) -> Space {
    let geometry = base.geometry;
    let (lanes, width) = match collection {
        Collection::Blocks => (geometry.units(), 1),
        Collection::Everything => (1, geometry.units()),
    };
    let mut space = Space::new(geometry, lanes, geometry.blocks_per_unit(), width);
    for group in 0..space.groups.len() as u32 {
        let units = (0..width).map(|slot| UnitId(space.lane_of(group) * width + slot));
        let blocks: Vec<BlockId> =
            units.map(|unit| geometry.block(unit, group % geometry.blocks_per_unit())).collect();
        space.form(group, blocks.iter().copied(), 0);
        for block in blocks.into_iter().filter(|block| base.device.is_bad(*block)) {
            space.remove(block);
        }
        if space.group(group).state != State::Gone {
            space.place(base, group);
        }
    }
    space
}

/// Finds what the flash holds and forms groups, one of them erased. The token covers the erases.
fn take_over<D: FlashDevice>(
    base: &mut Base<D>,
    info: &'static Info,
    params: &Params,
    collection: Collection,
) -> Result<(Found, Space, Token), FtlBuildError> {
    let geometry = base.geometry;
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
    let mut found = find(base, info)?;
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
    let erased = match spares::restore(base, &mut found, &sets) {
        // Nothing can be written any more; what is there can be read.
        Err(FtlError::Flash(FlashError::ReadOnly { reason })) => {
            base.read_only = Some(reason);
            Token::NONE
        }
        restored => restored.map_err(|error| FtlBuildError::start_failed(info.name, &error))?,
    };
    space.wanted_spares = if reserve > LEAST_RESERVE { 2 } else { 1 };
    match collection {
        Collection::Blocks => form_blocks(base, &found, &mut space),
        Collection::Everything => form_rows(base, &found, &mut space, &nominal),
    }
    while space.spares.len() < space.wanted_spares && space.hold_back(0) {}
    if space.spares.is_empty() {
        // A cut leaves one; a program that failed in it before the cut need not be known any more.
        base.count_failure();
    }
    for lane in &mut space.lanes {
        lane.gate = erased;
    }
    Ok((found, space, erased))
}

/// The blocks of each unit that satisfy a condition.
fn blocks_by_unit(geometry: &Geometry, is_meant: impl Fn(BlockId) -> bool) -> Vec<Vec<BlockId>> {
    let unit_of = |unit| {
        let all = (0..geometry.blocks_per_unit()).map(move |block| geometry.block(unit, block));
        all.filter(|block| is_meant(*block)).collect()
    };
    (0..geometry.units()).map(|unit| unit_of(UnitId(unit))).collect()
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
