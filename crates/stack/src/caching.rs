//! A cache and its disk, built from their configuration.

use crate::config::cache::{CacheConfig, DEVICES, Side};
use crate::config::{ConfigError, Result, StackConfig};
use crate::flash::BuildOptions;
use crate::stacks::{build_in_memory, refuse_block_only, stack_of};
use nandscape_cache::engine::{BoxedStore, Disk};
use nandscape_cache::metadata::Volume;
use nandscape_cache::{Cache, ComposeError, Design};
use nandscape_core::{SimTime, Subsystem};
use nandscape_disk::{Joined, Keep, Layout};
use nandscape_namespace::NamespaceStore;
use nandscape_policies::eviction::AnyEviction;

/// Bytes of a stripe over several fast devices.
const STRIPE: u32 = 64 << 10;

/// Of caches that are gone with the process.
const CACHE_UUID: [u8; 16] = [0xca; 16];

/// Builds both sides and the cache, empty, at the beginning of time.
pub(crate) fn build(
    keys: &CacheConfig,
    config: &StackConfig,
    options: BuildOptions,
    keep: Keep,
) -> Result<Cache<AnyEviction>> {
    // Also where no side is flash, and the stack would not be built.
    refuse_block_only(config)?;
    let disks = (0..keys.disks).map(|number| {
        let store = slow(keys, options, keep)?;
        let mut uuid = [0; 16];
        uuid[..4].copy_from_slice(&(number + 1).to_le_bytes());
        Ok(Disk { store, uuid })
    });
    let disks: Vec<Disk> = disks.collect::<Result<_>>()?;
    let design = &keys.design.clone().unwrap_or_else(nothing_cached);
    let fast = fast_side(keys, config, design, &disks, options, keep)?;
    let started = design.create(fast, disks, CACHE_UUID, SimTime::ZERO).map_err(|error| match error {
        ComposeError::Param(error) => error.into(),
        error => ConfigError::Unsuited(format!("cache: {error}")),
    })?;
    let mut cache = started.cache;
    for volume in 0..keys.disks as u16 {
        cache.rename(volume, &format!("ns{}", volume + 1));
    }
    for (volume, slots) in keys.quotas(design, cache.slots())? {
        let refused = |error| ConfigError::Unsuited(format!("cache.quota: {error}"));
        cache.set_quota(volume, Some(slots)).map_err(refused)?;
    }
    // What it took to make it is over before the first request.
    cache.reset_counters(SimTime::ZERO);
    Ok(cache)
}

fn slow(keys: &CacheConfig, options: BuildOptions, keep: Keep) -> Result<BoxedStore> {
    match &keys.disk {
        Side::Flash(stack) => over_flash(stack.as_ref().expect("of its own"), "disk.stack", options, keep),
        Side::Other(spec) => Ok(spec.build(keys.disk_bytes, keep)?),
    }
}

fn fast_side(
    keys: &CacheConfig,
    config: &StackConfig,
    design: &Design,
    disks: &[Disk],
    options: BuildOptions,
    keep: Keep,
) -> Result<BoxedStore> {
    let spec = match &keys.fast {
        Side::Flash(_) => return over_flash(config, "cache.device = flash", options, keep),
        Side::Other(spec) => spec,
    };
    let volumes = (0..).zip(disks).map(|(id, disk)| Volume {
        id,
        uuid: disk.uuid,
        bytes: disk.store.capacity_bytes(),
        stamp: [0; 16],
    });
    let setup = design.metadata_setup(u64::MAX >> 1, 512, CACHE_UUID, volumes.collect());
    let setup = setup.map_err(|error| ConfigError::Unsuited(format!("cache: {error}")))?;
    let devices = keys.own.get(DEVICES);
    if devices == 1 {
        return Ok(spec.build(setup.capacity_bytes.next_multiple_of(STRIPE.into()), keep)?);
    }
    let each = setup.capacity_bytes.div_ceil(devices.into()).next_multiple_of(STRIPE.into());
    let stores = (0..devices).map(|_| spec.build(each, keep)).collect::<Result<_, _>>()?;
    Ok(Box::new(Joined::new(stores, Layout::Striped(STRIPE))?))
}

/// A cache that nothing is let into, of the least size.
fn nothing_cached() -> Design {
    let keys = [
        ("mode", "pass-through"),
        ("metadata", "none"),
        ("admission", "all"),
        ("cleaning", "none"),
        ("eviction", "fifo"),
        ("size", "1b"),
    ];
    let typed = keys.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    Design::parse("cache.", &typed).expect("keys that go together")
}

/// The only namespace of a flash stack.
fn over_flash(config: &StackConfig, place: &str, options: BuildOptions, keep: Keep) -> Result<BoxedStore> {
    if config.partition.namespaces() != 1 {
        return Err(ConfigError::Unsuited(format!(
            "{place}: expected a device with one namespace, but there are {}",
            config.partition.namespaces()
        )));
    }
    let below: Box<dyn Subsystem + Send> = if keep == Keep::Bytes {
        build_in_memory(config)?
    } else {
        (stack_of(config).plain)(config, options)?
    };
    let Some(zones) = below.namespaces()[0].zones.filter(|_| config.stack.needs_cache()) else {
        return Ok(Box::new(NamespaceStore::new(below, 0, 512)));
    };
    if zones.conventional == 0 || zones.conventional == zones.zones {
        return Err(ConfigError::Unsuited(format!(
            "zone.conventional: {} of {} zones: expected some, for the metadata of the cache, and others",
            zones.conventional, zones.zones
        )));
    }
    let store = NamespaceStore::over_zones(below, 0, 512);
    Ok(Box::new(store.map_err(|error| ConfigError::Build(error.to_string()))?))
}
