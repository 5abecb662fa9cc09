//! The collection domains of a device, as the configuration asks for them.

use super::candidates::Candidates;
use super::config::{self, Config, SplitKind, Watermarks};
use super::domain::Domain;
use super::logs;
use super::marks::DomainShape;
use super::pieces::Pieces;
use super::split::Split;
use crate::placement::Placement;
use crate::victim::VictimSetup;
use nandscape_core::{BlockId, FlashDevice, ParamError, Params, SlcBlocks};

/// Pages that losses of power in a row may tear while collection is at its tightest: what is torn is only
/// gained back when its block is collected.
const TORN_PAGES: u32 = 8;

/// Program units of a die for which erased space is kept, if it is ample. From the choice of a victim to its
/// erase pass its reads, a program for each unit that it leaves, and what waits at those dies.
const AMPLE_UNITS: u32 = 32;

/// On a device that may lose power: erases that may be under way when a block is written that was free before
/// them. A cut undoes them, but not what was written in the meantime, so for each a block is kept in reserve.
/// Enough for erases to keep up, each of which waits for the programs before it: for a block's worth of
/// programs on all dies there is an erase.
fn erases_under_way(lanes: u32, blocks: u32, pages_per_block: u32) -> u32 {
    (lanes * 32 / pages_per_block).min(blocks / 64).clamp(1, 32)
}

/// The collection domains with their watermarks: one for each reclaim group, of which the device is one if
/// there are no others, or one for each plane. Blocks of the SLC cache are part of none.
pub(super) fn domains<D: FlashDevice>(
    device: &D,
    params: &Params,
    config: &Config,
    slc: Option<&SlcBlocks>,
) -> Result<Vec<Domain>, ParamError> {
    let geometry = *device.geometry();
    let pages_per_block = geometry.pages_per_block;
    let (count, lanes, blocks_per_lane, planes_per_lane, logical) = match &config.placement {
        Placement::Dynamic => {
            let logical = u64::from(config.mapped_pages()).div_ceil(config.groups.into());
            let dies = geometry.units() / config.groups;
            (config.groups, dies, geometry.blocks_per_unit(), geometry.planes_per_die, logical)
        }
        Placement::Static(stripe) => {
            let logical = stripe.pages_on_fullest_plane(u64::from(config.mapped_pages()));
            (geometry.planes(), 1, geometry.blocks_per_plane, 1, logical)
        }
    };
    let blocks = lanes * blocks_per_lane;
    let erases_under_way =
        if device.journal().is_some() { erases_under_way(lanes, blocks, pages_per_block) } else { 0 };
    let spare_blocks =
        if erases_under_way > 0 { erases_under_way + TORN_PAGES.div_ceil(pages_per_block) } else { 0 };
    let data_blocks = logical.div_ceil(u64::from(pages_per_block));
    let spare = u64::from(blocks).saturating_sub(data_blocks);
    let program_pages = device.capabilities().program_pages;
    let ample_on_lane = (AMPLE_UNITS * program_pages).div_ceil(pages_per_block).max(2);
    let ample = u64::from(ample_on_lane * lanes).min(spare / 16).max(2) as u32;
    let marks = Watermarks::new(params, blocks, ample, pages_per_block)?;
    let marks = marks.raised(u64::from(spare_blocks) * u64::from(pages_per_block));
    let migrates = (config.wear.build)(params, &mut std::iter::empty()).migrates();
    let logs = logs::plan(config, migrates);
    let open: u64 = logs.iter().map(|log| u64::from(log.slots)).sum();
    // A piece is striped over planes, and lies in one group.
    let blocks_per_piece = config.blocks_per_piece(params, &geometry, count / config.groups)?;
    let takes_pieces = config.split == SplitKind::Pieces;
    let erase_count = |block: u32| device.erase_count(BlockId(block));
    let is_good =
        |block: u32| !device.is_bad(BlockId(block)) && slc.is_none_or(|slc| !slc.contains(BlockId(block)));
    let is_erased = |block: u32| is_good(block).then(|| device.write_pointer(BlockId(block)) == 0);
    // One that was written before must open however many blocks have failed since.
    let is_new = device.journal().is_none_or(|journal| journal.recovery().checkpoint == 0);
    (0..count)
        .map(|index| {
            let base = index * blocks;
            let good_blocks = (base..base + blocks).filter(|block| is_good(*block)).count() as u64;
            let needed = data_blocks + open + marks.high.div_ceil(u64::from(pages_per_block));
            // Collection finds nothing in the pieces that logs are filling.
            let filling = if takes_pieces { logs.len() as u64 * u64::from(blocks_per_piece) } else { open };
            let missing = (needed + filling.saturating_sub(open)).saturating_sub(good_blocks);
            if needed <= good_blocks && missing > 0 && is_new {
                return Err(config::piece_too_large(params, blocks_per_piece, logs.len(), missing));
            }
            if needed > good_blocks && is_new {
                let place = match (count, config.groups) {
                    (1, _) => "the device".to_owned(),
                    (_, 1) => format!("plane {index}"),
                    _ => format!("reclaim group {index}"),
                };
                let open_blocks = logs.iter().map(|log| log.slots).collect::<Vec<_>>();
                return Err(config.too_small(params, &place, good_blocks, needed, data_blocks, &open_blocks));
            }
            let pieces = takes_pieces.then(|| Pieces::most(blocks, logs.len()));
            let setup = VictimSetup {
                blocks: pieces.unwrap_or(blocks),
                pages_per_block: pages_per_block * pieces.map_or(1, |_| blocks_per_piece),
                domain: index,
                params,
            };
            let pages = u64::from(blocks) * u64::from(pages_per_block);
            let split = Split::new(&config.split, pages, pages_per_block, || (config.victim.build)(&setup));
            let mut counts = (base..base + blocks).filter(|block| is_good(*block)).map(erase_count);
            let wear = (config.wear.build)(params, &mut counts);
            let shape = DomainShape {
                base,
                lanes,
                blocks_per_lane,
                planes_per_lane,
                pages_per_block,
                program_pages,
                blocks_per_piece,
                steps: config.gc_step > 0,
                data_blocks,
                marks,
                spare_blocks,
                erases_under_way,
            };
            let candidates = Candidates::new((config.victim.build)(&setup), split, blocks, pieces);
            let frontiers = config.frontiers.clone();
            Ok(Domain::new(&shape, &logs, frontiers, candidates, wear, is_erased, erase_count))
        })
        .collect()
}
