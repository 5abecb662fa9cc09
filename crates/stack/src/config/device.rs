//! `[device]`: its keys, and the flash that they describe.

use crate::keys::Result;
use nandscape_core::{BlockId, Capabilities, Geometry, Info, ParamError, Params, keys, scaled_blocks, units};
use nandscape_ftl::page_map;
use nandscape_media::{BadBlocks, NandOptions, Options, Packing, WriteBuffer, unit_geometry};

keys! { PARAMS:
    CHANNELS: u32 = int(1, 4096) or "8", "channel buses";
    DIES_PER_CHANNEL: u32 = int(1, 4096) or "4", "dies (LUNs) on each channel";
    PLANES_PER_DIE: u32 = int(1, 64) or "2", "planes in each die";
    BLOCKS_PER_PLANE: u32 = int(1, 1 << 24) or "512", "erase blocks in each plane";
    PAGES_PER_BLOCK: u32 = int(1, 1 << 16) or "256", "pages in each block";
    PAGE: u32 = size(1, 1 << 24) or "16KiB", "data bytes of a page";
    SECTOR: u32 = size(1, 1 << 24) or "4KiB", "smallest unit of validity and transfer inside a page";
    OOB: u32 = size(0, 1 << 20) or "128B", "spare bytes of a page";
    ENDURANCE: String = text() or "3000",
        "erases a block survives, or 'endless'; slc, mlc, tlc and qlc stand for 100000, 1000, 100 and 100, the orders \
         of magnitude of the thesis, below those of today's flash";
    BAD_BLOCKS: Option<String> = text(),
        "factory bad blocks: a share such as 0.5%, or block numbers such as 3,17";
    BAD_BLOCKS_SEED: u64 = int(0, u64::MAX) or "1", "seed of the draw when bad_blocks is a share";
    OUT_OF_ORDER_PROGRAM: bool = flag() or "false",
        "pages of a block may be programmed in any order (the superblock strategies need it)";
    PARTIAL_TRANSFER: bool = flag() or "false",
        "only the covered bytes of a page cross the bus, not the whole page";
    COMPRESSION: f64 = float(0.01, 1.0) or "1",
        "share of its size that a page takes on flash after the device has compressed it; ftl.op counts \
         pages so compressed; 1: no compression";
    PRESET: Option<String> = text(), "a shipped device, whose keys are laid down first";
    SCALE: Option<String> = text(),
        "1/N: blocks_per_plane divided by N, but not below 16; sizes given in % follow";
}

/// Keys of `[device]`.
pub static DEVICE: Info =
    Info { name: "device", summary: "shape and rules of the flash", source: "nandscape", params: PARAMS };

pub(super) fn geometry(device: &Params) -> Result<Geometry> {
    Ok(Geometry {
        channels: device.get(CHANNELS),
        dies_per_channel: device.get(DIES_PER_CHANNEL),
        planes_per_die: device.get(PLANES_PER_DIE),
        blocks_per_plane: blocks_per_plane(device)?,
        pages_per_block: device.get(PAGES_PER_BLOCK),
        page_bytes: device.get(PAGE),
        sector_bytes: device.get(SECTOR),
        oob_bytes: device.get(OOB),
    }
    .checked()?)
}

/// Compression, if the device has it.
pub(super) fn packing(
    device: &Params,
    geometry: &Geometry,
    program_pages: u32,
) -> Result<Option<(Packing, Geometry)>> {
    let share = device.get(COMPRESSION);
    if share >= 1.0 {
        return Ok(None);
    }
    let without = |what: &str| device.error(COMPRESSION, format!("1 with {what}"));
    if device.get(OUT_OF_ORDER_PROGRAM) {
        return Err(without("device.out_of_order_program, since compressed pages lie end to end").into());
    }
    if program_pages > 1 {
        return Err(without("device.timing.program_pages").into());
    }
    Ok(Some(Packing::new(geometry, share)?))
}

/// Mapping units smaller than a page, if the layer asks for them: how many a page holds, and the shape that
/// the layer sees.
pub(super) fn units(
    ftl: &Params,
    device: &Params,
    geometry: &Geometry,
    buffer: &WriteBuffer,
) -> Result<Option<(u32, Geometry)>> {
    let page = geometry.page_bytes;
    let Some(unit) = page_map::unit_bytes(ftl)?.filter(|unit| *unit != page) else { return Ok(None) };
    let refused = |expected: String| Err(ftl.error(page_map::UNIT, expected).into());
    if !page.is_multiple_of(unit) || !unit.is_multiple_of(geometry.sector_bytes) {
        let sector = geometry.sector_bytes;
        return refused(format!(
            "page, or whole sectors (device.sector, {sector} bytes) that divide the page of {page} bytes"
        ));
    }
    let without = |what: &str| refused(format!("page with {what}"));
    if device.get(COMPRESSION) < 1.0 {
        return without("device.compression below 1");
    }
    if device.get(OUT_OF_ORDER_PROGRAM) {
        return without("device.out_of_order_program, since units fill a page in order");
    }
    if buffer.bytes > 0 && buffer.is_volatile {
        let expected = "page with a volatile write buffer, or device.timing.write_buffer_kind = protected: units wait in memory that survives a loss of power";
        return refused(expected.to_owned());
    }
    Ok(Some((page / unit, unit_geometry(geometry, unit)?)))
}

/// Refuses an SLC cache whose blocks have no times of their own.
pub(super) fn check_slc(ftl: &Params, options: &Options) -> Result<()> {
    let asked = ftl.find(page_map::SLC_BLOCKS).is_some_and(|text| !["0", "0%"].contains(&text.trim()));
    if asked && options.blocks.slc.is_none() {
        let expected = "0 without device.timing.slc_program and device.timing.slc_read";
        return Err(ftl.error(page_map::SLC_BLOCKS, expected).into());
    }
    Ok(())
}

/// Blocks of a plane, fewer with `device.scale`.
fn blocks_per_plane(device: &Params) -> Result<u32, ParamError> {
    let blocks = device.get(BLOCKS_PER_PLANE);
    let Some(scale) = device.get(SCALE) else { return Ok(blocks) };
    scaled_blocks(blocks, scale).ok_or_else(|| device.error(SCALE, "1/N with N from 1, such as 1/16"))
}

pub(super) fn nand_options(device: &Params, program_pages: u32) -> Result<NandOptions> {
    let endurance = match device.get(ENDURANCE) {
        "endless" => None,
        "slc" => Some(100_000),
        "mlc" => Some(1000),
        "tlc" | "qlc" => Some(100),
        text => Some(text.parse::<u32>().ok().filter(|n| *n > 0).ok_or_else(|| {
            device.error(ENDURANCE, "a number of erases from 1, slc, mlc, tlc, qlc or 'endless'")
        })?),
    };
    Ok(NandOptions {
        endurance,
        bad_blocks: bad_blocks(device)?,
        capabilities: Capabilities {
            out_of_order_program: device.get(OUT_OF_ORDER_PROGRAM),
            stores_data: false,
            partial_transfer: device.get(PARTIAL_TRANSFER),
            program_pages,
            units_per_page: 1,
            dram_below: None,
            lasting_programs: false,
        },
        count_programs: false,
        ages: Vec::new(),
    })
}

fn bad_blocks(device: &Params) -> Result<BadBlocks> {
    let Some(text) = device.get(BAD_BLOCKS).filter(|t| !t.is_empty()) else {
        return Ok(BadBlocks::None);
    };
    let error = || device.error(BAD_BLOCKS, "a share such as 0.5%, or block numbers such as 3,17");
    if text.ends_with('%') {
        let share = units::parse_share(text).ok().filter(|s| *s < 1.0).ok_or_else(error)?;
        return Ok(BadBlocks::Share { share, seed: device.get(BAD_BLOCKS_SEED) });
    }
    let list = text.split(',').map(|n| n.trim().parse().map(BlockId)).collect::<Result<Vec<_>, _>>();
    Ok(BadBlocks::List(list.map_err(|_| error())?))
}
