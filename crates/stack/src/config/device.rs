//! `[device]`: its keys, and the flash that they describe.

use crate::keys::ConfigError;
use nandscape_core::{BlockId, Capabilities, Geometry, Info, Param, ParamError, Params, units};
use nandscape_media::{BadBlocks, NandOptions, Packing};

/// Keys of `[device]`.
pub static DEVICE: Info = Info {
    name: "device",
    summary: "shape and rules of the flash",
    source: "nandscape",
    params: &[
        Param::int("channels", 1, 4096, "8").means("channel buses"),
        Param::int("dies_per_channel", 1, 4096, "4").means("dies (LUNs) on each channel"),
        Param::int("planes_per_die", 1, 64, "2").means("planes in each die"),
        Param::int("blocks_per_plane", 1, 1 << 24, "512").means("erase blocks in each plane"),
        Param::int("pages_per_block", 1, 1 << 16, "256").means("pages in each block"),
        Param::size("page", 1, 1 << 24, "16KiB").means("data bytes of a page"),
        Param::size("sector", 1, 1 << 24, "4KiB")
            .means("smallest unit of validity and transfer inside a page"),
        Param::size("oob", 0, 1 << 20, "128B").means("spare bytes of a page"),
        Param::text("endurance", "3000").means("erases a block survives, or 'endless'"),
        Param::text("bad_blocks", "")
            .means("factory bad blocks: a share such as 0.5%, or block numbers such as 3,17"),
        Param::int("bad_blocks_seed", 0, u64::MAX, "1").means("seed of the draw when bad_blocks is a share"),
        Param::flag("out_of_order_program", "false")
            .means("pages of a block may be programmed in any order (the superblock strategies need it)"),
        Param::flag("partial_transfer", "false")
            .means("only the covered bytes of a page cross the bus, not the whole page"),
        Param::float("compression", 0.01, 1.0, "1").means(
            "share of its size that a page takes on flash after the device has compressed it; ftl.op \
             counts pages so compressed; 1: no compression",
        ),
        Param::text("preset", "").means("a shipped device, whose keys are laid down first"),
        Param::text("scale", "")
            .means("1/N: blocks_per_plane divided by N, but not below 16; sizes given in % follow"),
    ],
};

pub(super) fn geometry(device: &Params) -> Result<Geometry, ConfigError> {
    let bytes = |name: &str| device.size(name) as u32;
    let blocks = device.int32("blocks_per_plane");
    Ok(Geometry {
        channels: device.int32("channels"),
        dies_per_channel: device.int32("dies_per_channel"),
        planes_per_die: device.int32("planes_per_die"),
        blocks_per_plane: (blocks / scale(device)?).max(blocks.min(LEAST_SCALED_BLOCKS)),
        pages_per_block: device.int32("pages_per_block"),
        page_bytes: bytes("page"),
        sector_bytes: bytes("sector"),
        oob_bytes: bytes("oob"),
    }
    .checked()?)
}

/// Compression, if the device has it.
pub(super) fn packing(
    device: &Params,
    geometry: &Geometry,
    program_pages: u32,
) -> Result<Option<(Packing, Geometry)>, ConfigError> {
    let share = device.float("compression");
    if share >= 1.0 {
        return Ok(None);
    }
    let without = |what: &str| device.error("compression", format!("1 with {what}"));
    if device.flag("out_of_order_program") {
        return Err(without("device.out_of_order_program, since compressed pages lie end to end").into());
    }
    if program_pages > 1 {
        return Err(without("device.timing.program_pages").into());
    }
    Ok(Some(Packing::new(geometry, share)?))
}

/// A plane with fewer blocks says little about the device that it stands for.
const LEAST_SCALED_BLOCKS: u32 = 16;

/// The N of `device.scale = "1/N"`.
fn scale(device: &Params) -> Result<u32, ParamError> {
    let Some(text) = device.get("scale") else { return Ok(1) };
    let parts = text.split_once('/').filter(|(one, _)| one.trim() == "1");
    let divisor = parts.and_then(|(_, n)| n.trim().parse::<u32>().ok()).filter(|n| *n > 0);
    divisor.ok_or_else(|| device.error("scale", "1/N with N from 1, such as 1/16"))
}

pub(super) fn nand_options(device: &Params, program_pages: u32) -> Result<NandOptions, ConfigError> {
    let endurance = match device.text("endurance") {
        "endless" => None,
        text => Some(
            text.parse::<u32>()
                .ok()
                .filter(|n| *n > 0)
                .ok_or_else(|| device.error("endurance", "a number of erases from 1, or 'endless'"))?,
        ),
    };
    Ok(NandOptions {
        endurance,
        bad_blocks: bad_blocks(device)?,
        capabilities: Capabilities {
            out_of_order_program: device.flag("out_of_order_program"),
            stores_data: false,
            partial_transfer: device.flag("partial_transfer"),
            program_pages,
        },
        count_programs: false,
    })
}

fn bad_blocks(device: &Params) -> Result<BadBlocks, ConfigError> {
    let Some(text) = device.get("bad_blocks").filter(|t| !t.is_empty()) else {
        return Ok(BadBlocks::None);
    };
    let error = || device.error("bad_blocks", "a share such as 0.5%, or block numbers such as 3,17");
    if text.ends_with('%') {
        let share = units::parse_share(text).ok().filter(|s| *s < 1.0).ok_or_else(error)?;
        return Ok(BadBlocks::Share { share, seed: device.int("bad_blocks_seed") });
    }
    let list = text.split(',').map(|n| n.trim().parse().map(BlockId)).collect::<Result<Vec<_>, _>>();
    Ok(BadBlocks::List(list.map_err(|_| error())?))
}
