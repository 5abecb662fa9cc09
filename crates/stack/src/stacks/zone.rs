//! Zones, and the stack that gives hosts nothing else.

use super::plain::{Base, plain};
use super::vector::Chunks;
use super::{Boxed, Over, StackEntry, host_ftl, refuse_block_only};
use crate::config::{ConfigError, Result, StackConfig};
use crate::flash::BuildOptions;
use crate::kinds::zone::{
    APPEND_TIME, BLOCKS_PER_DIE, CAPACITY, CONVENTIONAL, CONVENTIONAL_OP, COUNT, DESCRIPTOR_BYTES, DIES,
    FINISH, KIND, MANAGE_TIME, MAX_ACTIVE, MAX_OPEN, ON, OPEN_TIME, READ_TIME, READS_ACROSS, RESET,
    RESET_STRIPE, RESET_TIME, SIZE, SPARE, STRIPE, TIME_SPREAD, TIME_UNIT, WRITE_TIME, ZRWA_COUNT,
    ZRWA_GRANULARITY, ZRWA_SIZE,
};
use crate::kinds::{dm_zoned, f2fs, zone_cache};
use nandscape_core::{AnyDevice, FlashDevice, FlashState, Ftl, Geometry, Oob, ParamError, Params, SimTime};
use nandscape_ftl::{Journal, PageMap, page_map};
use nandscape_namespace::SharedDevice;
use nandscape_namespace::sets::share;
use nandscape_namespace::vector::VectorOob;
use nandscape_namespace::zones::{
    BlockPart, CommandTimes, FlashRules, RandomAreas, Sabotage, ZoneLayout, ZoneOob, ZoneSetup,
    ZoneStartError, ZoneStripes, ZonedNamespace, with_conventional,
};
use std::collections::BTreeMap;

pub const ENTRY: StackEntry =
    StackEntry { kind: &KIND, plain: plain::<Zones>, over: Over::Pages(Zones::on_any) };

/// Zones for a file system in front of the stack.
pub const F2FS: StackEntry = StackEntry { kind: &f2fs::ON_ZONES, ..ENTRY };

/// Zones for a cache.
pub const CACHE: StackEntry = StackEntry { kind: &zone_cache::KIND, ..ENTRY };

/// Zones of the device or of chunks, as asked for, over a device that keeps no bytes.
pub(super) fn plain_zones(config: &StackConfig, options: BuildOptions) -> Result<Boxed> {
    let plain = if config.is_on_vector() { plain::<Chunks> } else { plain::<Zones> };
    plain(config, options)
}

/// The same over a device of any type, which `lasts` longer than the process or not.
pub(super) fn zones(config: &StackConfig, device: AnyDevice, lasts: bool) -> Result<Boxed> {
    let on_any = if config.is_on_vector() { Chunks::on_any } else { Zones::on_any };
    on_any(config, device, lasts)
}

/// Zones of the device.
pub(super) struct Zones;

impl Base for Zones {
    fn on<D: FlashDevice<O> + Send + 'static, O: ZoneOob + VectorOob>(
        config: &StackConfig,
        device: D,
    ) -> Result<Boxed> {
        let zoned = ZonedNamespace::<_, O>::new(device, &setup(config)?);
        Ok(Box::new(zoned.map_err(|error| build_error(config, &error))?))
    }

    fn needs_oob(config: &StackConfig) -> bool {
        conventional(config) > 0 || config.is_on_vector()
    }

    fn on_any(config: &StackConfig, device: AnyDevice, lasts: bool) -> Result<Boxed> {
        let device = if config.is_on_vector() { host_ftl::flash(config, device)? } else { device };
        let setup = setup(config)?;
        if setup.layout.conventional == 0 {
            return Self::on::<AnyDevice, Oob>(config, device);
        }
        let layer = |part: BlockPart| conventional_layer(config, &setup, part, lasts);
        let shared: SharedDevice = share(device);
        let zoned = with_conventional(shared, &setup, layer, Sabotage::None);
        Ok(Box::new(zoned.map_err(|error| match error {
            Failed::Zones(error) => build_error(config, &error),
            Failed::Layer(error) => error,
        })?))
    }
}

/// An error of either part of zones that are built.
enum Failed {
    Zones(ZoneStartError),
    Layer(ConfigError),
}

impl From<ZoneStartError> for Failed {
    fn from(error: ZoneStartError) -> Self {
        Self::Zones(error)
    }
}

fn build_error(config: &StackConfig, error: &ZoneStartError) -> ConfigError {
    match error {
        ZoneStartError::NoRoom { .. } => ConfigError::Build(error.to_string()),
        _ => ConfigError::Start { stack: config.stack.info.name, message: error.to_string() },
    }
}

/// The page map of conventional zones.
fn conventional_layer(
    config: &StackConfig,
    setup: &ZoneSetup,
    part: BlockPart,
    lasts: bool,
) -> std::result::Result<Box<dyn Ftl + Send>, Failed> {
    let layout = &setup.layout;
    let bytes = u64::from(layout.conventional) * layout.capacity * u64::from(layout.block_bytes);
    let typed = BTreeMap::from([("capacity".to_owned(), bytes.to_string())]);
    let params = Params::check(&page_map::INFO, "ftl.", &typed).expect("a size is a capacity");
    let wrong = |error: &dyn std::fmt::Display| {
        let expected = format!("room for the page map of conventional zones ({error})");
        Failed::Layer(config.zone.error(CONVENTIONAL_OP, expected).into())
    };
    if !lasts {
        return Ok(Box::new(PageMap::new(part, &params).map_err(|error| wrong(&error))?));
    }
    let opened = Journal::open(part, config.journal.options());
    let mut journal = opened.map_err(|error| Failed::Layer(ConfigError::Build(error.to_string())))?;
    // What the start read and wrote is over before the first request.
    journal.reset_time(SimTime::ZERO);
    Ok(Box::new(PageMap::new(journal, &params).map_err(|error| wrong(&error))?))
}

/// Blocks of each plane for so many pages of conventional zones: with over-provisioning, and with what their
/// journal keeps to itself, so that a device has the same room whether or not it keeps bytes.
fn conventional_blocks(config: &StackConfig, pages: u64) -> u32 {
    if pages == 0 {
        return 0;
    }
    let geometry = &config.geometry;
    let (planes, per_block) = (u64::from(geometry.planes()), u64::from(geometry.pages_per_block));
    let physical = (pages as f64 * (1.0 + config.zone.get(CONVENTIONAL_OP))).ceil() as u64;
    // What the page map keeps open and free at least, also for erases and pages that a loss of power tears.
    let least = pages.div_ceil(per_block);
    let least = least + 4 + 8u64.div_ceil(per_block) + (least / 32).clamp(1, 32);
    let data = physical.div_ceil(per_block).max(least).div_ceil(planes);
    let data = u32::try_from(data).unwrap_or(u32::MAX).min(geometry.blocks_per_plane);
    let mut blocks = data;
    loop {
        let part = Geometry { blocks_per_plane: blocks, ..*geometry };
        if blocks >= geometry.blocks_per_plane {
            return geometry.blocks_per_plane;
        }
        let has_bits = config.nand.capabilities.out_of_order_program;
        let own = config.journal.options().blocks(&part, has_bits);
        let needed = data + own.div_ceil(geometry.planes());
        if needed <= blocks {
            return blocks;
        }
        blocks = needed;
    }
}

/// Conventional zones: as many as asked for, or as a layer over them needs.
fn conventional(config: &StackConfig) -> u32 {
    let kind = config.stack.info.name;
    config.zone.get(CONVENTIONAL).unwrap_or_else(|| {
        let geometry = &config.geometry;
        let dies = config.zone.get(DIES).unwrap_or(geometry.units());
        let blocks = u64::from(dies) * u64::from(config.zone.get(BLOCKS_PER_DIE));
        let zones = u64::from(geometry.blocks()) / blocks.max(1);
        if config.stack.needs_cache() {
            let whole = blocks * u64::from(geometry.pages_per_block) * u64::from(geometry.page_bytes);
            let capacity = config.zone.get(CAPACITY).unwrap_or(whole);
            cache_metadata(config).div_ceil(capacity.max(1)).max(1) as u32
        } else if kind == dm_zoned::KIND.info.name || config.has_file_system() {
            (zones / 64).max(4) as u32
        } else {
            0
        }
    })
}

/// Bytes that the metadata of the cache over the zones take, were all of the flash for its blocks.
fn cache_metadata(config: &StackConfig) -> u64 {
    let Some(design) = config.cache.as_ref().and_then(|cache| cache.design.as_ref()) else { return 0 };
    let slots = config.geometry.capacity_bytes() / u64::from(design.block_bytes);
    // What is wrong with it shows when the cache is built.
    let slots = u32::try_from(slots).unwrap_or(u32::MAX);
    let (_, bytes) = design.metadata_bytes(slots, 512).unwrap_or_default();
    bytes
}

/// Zones as the keys describe them, checked against the device.
pub(crate) fn setup(config: &StackConfig) -> Result<ZoneSetup> {
    refuse_block_only(config)?;
    if config.is_on_vector() && config.stack.info.name == KIND.info.name {
        let expected = "zones of the device; zones of chunks alone are --stack vector";
        return Err(config.zone.error(ON, expected).into());
    }
    let (keys, geometry) = (&config.zone, &config.geometry);
    let page = u64::from(geometry.page_bytes);
    let program = page * u64::from(config.timing_options.program_pages);
    let dies = keys.get(DIES).unwrap_or(geometry.units());
    let stripe = keys.get(STRIPE).unwrap_or(program);
    if !stripe.is_multiple_of(program) {
        return Err(keys.error(STRIPE, format!("whole program units of {program} bytes")).into());
    }
    let conventional = conventional(config);
    let stripes = ZoneStripes {
        dies,
        blocks_per_die: keys.get(BLOCKS_PER_DIE),
        stripe_pages: u32::try_from(stripe / page).unwrap_or(u32::MAX),
    };
    stripes.check(geometry)?;
    let capacity = keys.get(CAPACITY).unwrap_or_else(|| stripes.pages(geometry) * page);
    let size = keys.get(SIZE).unwrap_or_else(|| capacity.next_power_of_two());
    // The size follows from it.
    let capacity_blocks = blocks("capacity", capacity, geometry.sector_bytes)?;
    let random = random(keys, geometry.sector_bytes, page)?;
    let layout = ZoneLayout {
        zones: keys.get(COUNT).unwrap_or(0),
        conventional,
        size: blocks("size", size, geometry.sector_bytes)?,
        capacity: capacity_blocks,
        block_bytes: geometry.sector_bytes,
        max_active: keys.get(MAX_ACTIVE),
        max_open: keys.get(MAX_OPEN),
        extension_bytes: keys.get(DESCRIPTOR_BYTES),
        random,
        reads_across: keys.get(READS_ACROSS),
    };
    let buffer = config.timing_options.buffer;
    let setup = ZoneSetup {
        name: "ns1".to_owned(),
        layout,
        stripes,
        rules: FlashRules {
            erases_at_reset: keys.get(RESET) == "now",
            completes_stripe: keys.get(RESET_STRIPE),
            pads: keys.get(FINISH) == "pad",
            is_volatile: buffer.bytes == 0 || buffer.is_volatile,
        },
        conventional_blocks: conventional_blocks(config, u64::from(conventional) * (capacity / page)),
        spare_blocks: keys.get(SPARE).unwrap_or_else(|| (geometry.blocks_per_unit().div_ceil(50)).max(3)),
        times: CommandTimes {
            read_ns: keys.get(READ_TIME).unwrap_or(0),
            write_ns: keys.get(WRITE_TIME).unwrap_or(0),
            append_ns: keys.get(APPEND_TIME).unwrap_or(0),
            manage_ns: keys.get(MANAGE_TIME).unwrap_or(0),
            open_ns: keys.get(OPEN_TIME).unwrap_or(0),
            reset_ns: keys.get(RESET_TIME).unwrap_or(0),
            spread: keys.get(TIME_SPREAD),
            unit_bytes: keys.get(TIME_UNIT).unwrap_or(0),
        },
    };
    setup.check(&setup.sequential(geometry)?)?;
    Ok(setup)
}

fn random(keys: &Params, block: u32, page: u64) -> Result<Option<RandomAreas>> {
    let Some(size) = keys.get(ZRWA_SIZE) else {
        if keys.get(ZRWA_GRANULARITY).is_some() || keys.get(ZRWA_COUNT).is_some() {
            return Err(keys
                .error(ZRWA_SIZE, "the size of random write areas beside the other keys of them")
                .into());
        }
        return Ok(None);
    };
    Ok(Some(RandomAreas {
        size: blocks("zrwa_size", size, block)?,
        granularity: blocks("zrwa_granularity", keys.get(ZRWA_GRANULARITY).unwrap_or(page), block)?,
        count: keys.get(ZRWA_COUNT),
    }))
}

/// Logical blocks of so many bytes.
fn blocks(key: &str, bytes: u64, block: u32) -> Result<u64, ParamError> {
    if bytes.is_multiple_of(u64::from(block)) {
        return Ok(bytes / u64::from(block));
    }
    let expected = format!("whole logical blocks of {block} bytes (device.sector)");
    Err(ParamError::bad(format!("zone.{key}"), bytes.to_string(), &expected))
}
