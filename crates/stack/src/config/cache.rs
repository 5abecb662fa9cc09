//! `[cache]` and `[disk]`: a disk, and what is put in front of it.
//!
//! Without either there is the flash of `[device]` and nothing else. `[disk]` alone is the disk alone. With
//! `[cache]` the flash of `[device]`, or what `cache.device` names instead, is the fast side of a cache, and
//! the disk its slow side.

use super::{ConfigError, Result, StackConfig, Typed};
use crate::keys::{flat, shape, table_of, take_table};
use nandscape_cache::Design;
use nandscape_core::{Info, ParamError, Params, keys, units};
use nandscape_disk::Keep;
use nandscape_disk::registry::DiskSpec;
use nandscape_sim::result::CacheResult;
use std::collections::BTreeMap;

keys! { CACHE_KEYS:
    DEVICE: Option<String> = text(),
        "fast side: flash (that of [device]), or a kind or preset of [disk], whose parameters are in \
         [cache.fast]; absent: flash, and ram for rapidcache";
    pub(crate) DEVICES: u32 = int(1, 64) or "1",
        "how many such devices there are, which blocks are striped over; 1 with flash";
    QUOTA: Option<String> = text(),
        "what volumes may hold of the cache at most, such as ns1=25%,ns2=64MiB,ns3=10000b; absent: as much \
         as they get";
}

/// Keys of `[cache]` beside those of the design ([`nandscape_cache::compose::KEYS`]) and of its policies.
pub static CACHE: Info = Info {
    name: "cache",
    summary: "flash or memory in front of the disk; more keys: those of the policies that are named ('nandscape list caches --detail')",
    source: "docs/cache-replay.md",
    params: CACHE_KEYS,
};

keys! { DISK_KEYS:
    PRESET: String = text() or "article-hdd",
        "kind or preset: disk, rated, ram, article-ssd, article-hdd; or flash, whose configuration is in \
         [disk.stack]";
    SIZE: u64 = size(512, 1 << 60) or "500GB", "capacity; of flash: that of its device";
    COUNT: u32 = int(1, 64) or "1", "volumes, each over a disk of its own: namespaces ns1, ns2 ...";
}

/// Keys of `[disk]` beside the parameters of its kind.
pub static DISK: Info = Info {
    name: "disk",
    summary: "what the cache stands in front of; more keys: the parameters of its kind (docs/disks.md)",
    source: "docs/disks.md",
    params: DISK_KEYS,
};

/// The name of no cache at all.
pub const NO_CACHE: &str = "none";

/// Cached bytes of a fast side that is no flash, where no size was asked for.
const DEFAULT_BYTES: u64 = 1 << 30;

#[derive(Clone, Debug)]
pub(crate) enum Side {
    /// A flash stack: that of the configuration, or one of its own.
    Flash(Option<Box<StackConfig>>),
    Other(DiskSpec),
}

/// A checked `[cache]` and `[disk]`.
#[derive(Clone, Debug)]
pub struct CacheConfig {
    /// The design; `None` for the disk alone.
    pub design: Option<Design>,
    pub(crate) fast: Side,
    pub(crate) disk: Side,
    pub(crate) disk_bytes: u64,
    pub(crate) disks: u32,
    disk_own: Params,
    /// Keys of [`CACHE`].
    pub(crate) own: Params,
}

impl CacheConfig {
    /// Checks the tables. `None` where neither says anything.
    pub(crate) fn check(mut cache: toml::Table, mut disk: toml::Table) -> Result<Option<Self>> {
        if cache.is_empty() && disk.is_empty() {
            return Ok(None);
        }
        let fast = take_table(&mut cache, "fast", "cache.fast")?;
        let stack = take_table(&mut disk, "stack", "disk.stack")?;
        let mut typed = flat("cache.", &cache)?;
        let is_bare = cache.is_empty() || typed.get("preset").is_some_and(|preset| preset == NO_CACHE);
        let all: Vec<String> = typed.keys().filter(|key| *key != "preset").cloned().collect();
        let own = Params::check(&CACHE, "cache.", &CACHE.take(&mut typed))?;
        let (design, fast) = if is_bare {
            let first = all.into_iter().next();
            if let Some(key) = first.or_else(|| fast.keys().next().map(|key| format!("fast.{key}"))) {
                let message = format!("expected no other key with preset {NO_CACHE}: there is no cache");
                return Err(shape(format!("cache.{key}"), message));
            }
            (None, Side::Other(DiskSpec::new("ram", "cache.fast.", &BTreeMap::new())?))
        } else {
            let mut design = Design::parse("cache.", &typed).map_err(|error| with_own(error, &CACHE))?;
            let device = own.get(DEVICE).unwrap_or(design.preset.device);
            let fast = side(device, "cache.", "cache.fast.", &flat("cache.fast.", &fast)?)?;
            let devices = own.get(DEVICES);
            if matches!(fast, Side::Flash(_)) && devices > 1 {
                let expected = "1 with cache.device = flash";
                return Err(own.error(DEVICES, expected).into());
            }
            if matches!(fast, Side::Other(_)) {
                design.slots.get_or_insert(
                    u32::try_from(DEFAULT_BYTES / u64::from(design.block_bytes)).expect("small"),
                );
            }
            (Some(design), fast)
        };
        let config = Self::with_disk(design, fast, &disk, &stack, own)?;
        if let Some(design) = &config.design {
            config.quotas(design, u32::MAX)?;
        }
        Ok(Some(config))
    }

    fn with_disk(
        design: Option<Design>,
        fast: Side,
        disk: &toml::Table,
        stack: &toml::Table,
        own: Params,
    ) -> Result<Self> {
        let mut others = flat("disk.", disk)?;
        let of_disk = DISK.take(&mut others);
        let disk_own = Params::check(&DISK, "disk.", &of_disk)?;
        let mut disk_bytes = disk_own.get(SIZE);
        let disk = match side(disk_own.get(PRESET), "disk.", "disk.", &others)? {
            Side::Flash(_) => {
                if of_disk.contains_key("size") {
                    let expected = "no size with preset flash: the device of [disk.stack] has one";
                    return Err(disk_own.error(SIZE, expected).into());
                }
                Side::Flash(Some(Box::new(nested(stack)?)))
            }
            other @ Side::Other(_) => {
                if let Some(key) = stack.keys().next() {
                    return Err(shape(format!("disk.stack.{key}"), "expected disk.preset = flash beside it"));
                }
                other
            }
        };
        if let Side::Other(spec) = &disk {
            if !of_disk.contains_key("size") {
                disk_bytes -= disk_bytes % spec.block_bytes();
            }
            // What is in range by itself and wrong together shows when it is built.
            spec.build(disk_bytes, Keep::Nothing)?;
        }
        Ok(Self { design, fast, disk, disk_bytes, disks: disk_own.get(COUNT), disk_own, own })
    }

    /// Slots that volumes may hold at most, of a cache with so many, by number.
    pub(crate) fn quotas(&self, design: &Design, slots: u32) -> Result<Vec<(u16, u32)>> {
        let text = self.own.get(QUOTA).unwrap_or_default();
        let quota = |part: &str| {
            let number = |name: &str| name.strip_prefix("ns")?.parse::<u32>().ok();
            let (volume, share) = part.split_once('=').unwrap_or_default();
            let number = number(volume.trim()).filter(|number| (1..=self.disks).contains(number));
            let number = number.ok_or_else(|| {
                let expected = format!("volumes ns1 to ns{} and shares, such as ns1=25%", self.disks);
                self.own.error(QUOTA, expected)
            })?;
            let share = design.slots("quota", share, slots)?;
            Ok(share.map(|slots| ((number - 1) as u16, slots)))
        };
        let parts = text.split(',').filter(|part| !part.trim().is_empty());
        parts.filter_map(|part| quota(part).transpose()).collect()
    }

    /// What a run of it is called: the preset, or [`NO_CACHE`].
    pub fn name(&self) -> &'static str {
        self.design.as_ref().map_or(NO_CACHE, |design| design.preset.info.name)
    }

    /// What it holds at most, in bytes, if that was said.
    pub(crate) fn size_said(&self) -> Option<u64> {
        let design = self.design.as_ref()?;
        let bytes = u64::from(design.slots?) * u64::from(design.block_bytes);
        Some(bytes).filter(|bytes| self.is_over_flash() || *bytes != DEFAULT_BYTES)
    }

    /// Whether the fast side is the flash of `[device]`.
    pub const fn is_over_flash(&self) -> bool {
        matches!(self.fast, Side::Flash(_))
    }

    pub(crate) fn describe(&self, result: &mut CacheResult) {
        let Some(design) = &self.design else {
            result.disk = self.disk_name();
            return;
        };
        design.preset.info.name.clone_into(&mut result.preset);
        result.device = match &self.fast {
            Side::Flash(_) => "flash".to_owned(),
            Side::Other(spec) => match self.own.get(DEVICES) {
                1 => spec.name().to_owned(),
                devices => format!("{devices} x {}", spec.name()),
            },
        };
        result.disk = self.disk_name();
    }

    fn disk_name(&self) -> String {
        let many = if self.disks > 1 { format!("{} x ", self.disks) } else { String::new() };
        match &self.disk {
            Side::Flash(_) => format!("{many}flash"),
            Side::Other(spec) => format!("{many}{} of {}", spec.name(), units::format_bytes(self.disk_bytes)),
        }
    }

    /// Both tables, for printing: `cache` and `disk`.
    pub(crate) fn to_tables(&self) -> (toml::Table, toml::Table) {
        let mut cache = toml::Table::new();
        match &self.design {
            None => drop(cache.insert("preset".into(), NO_CACHE.into())),
            Some(design) => {
                for (key, value) in design.settings().into_iter().chain(design.typed().clone()) {
                    if (key.as_str(), value.as_str()) != ("size", "all") {
                        cache.insert(key, value.into());
                    }
                }
                cache.extend(
                    self.own
                        .iter()
                        .filter(|(param, text)| (param.name, *text) != (DEVICES.param.name, "1"))
                        .map(|(param, text)| (param.name.to_owned(), toml::Value::from(text))),
                );
                match &self.fast {
                    Side::Flash(_) => drop(cache.insert("device".into(), "flash".into())),
                    Side::Other(spec) => {
                        cache.insert("device".into(), spec.name().into());
                        cache.insert("fast".into(), table_of(spec.params()).into());
                    }
                }
            }
        }
        let mut disk = table_of(&self.disk_own);
        match &self.disk {
            Side::Flash(stack) => {
                disk.remove("size");
                disk.insert("stack".into(), stack.as_ref().expect("of its own").to_stack_table().into());
            }
            Side::Other(spec) => disk.extend(table_of(spec.params())),
        }
        (cache, disk)
    }
}

/// The keys of a table that are not of what is named in it are known as well.
fn with_own(error: ParamError, own: &Info) -> ParamError {
    match error {
        ParamError::UnknownKey { key, owner, known } => {
            let own = own.params.iter().filter(|param| !known.split(", ").any(|name| name == param.name));
            let own = own.map(|param| param.name).collect::<Vec<_>>().join(", ");
            ParamError::UnknownKey { key, owner, known: [own, known].join(", ") }
        }
        error => error,
    }
}

/// What a side is made of. `owner` is the table that names it, `prefix` the one that its parameters stand in.
fn side(name: &str, owner: &str, prefix: &str, typed: &BTreeMap<String, String>) -> Result<Side> {
    if name != "flash" {
        return DiskSpec::new(name, prefix, typed).map(Side::Other).map_err(|error| match error {
            ParamError::UnknownName { name, known, .. } => {
                let key = format!("{owner}{}", if owner == "disk." { "preset" } else { "device" });
                ParamError::bad(key, name, format!("one of flash, {known}")).into()
            }
            error if prefix == "disk." => with_own(error, &DISK).into(),
            error => error.into(),
        });
    }
    match typed.keys().next() {
        None => Ok(Side::Flash(None)),
        Some(key) => Err(shape(
            format!("{prefix}{key}"),
            "unknown key: flash has its keys in tables of its own ([device] and [ftl])",
        )),
    }
}

/// The configuration of a flash stack inside another.
fn nested(table: &toml::Table) -> Result<StackConfig> {
    let mut typed = Typed::new();
    let text = toml::to_string(table).expect("a table that was read");
    let inside = |error: ConfigError| match error {
        ConfigError::Shape { key, message } => shape(format!("disk.stack.{key}"), message),
        error => error,
    };
    typed.merge_text("disk.stack", &text).map_err(inside)?;
    let config = typed.check().map_err(inside)?;
    if config.cache.is_some() {
        return Err(shape("disk.stack", "a cache or a disk inside a disk: expected a flash stack"));
    }
    Ok(config)
}

/// Whether a cache of this preset may have a key of `[cache]`, whatever its value, beside these others; for
/// settings that are meant for some of several caches.
pub fn knows(preset: &str, key: &str, others: &[(&str, &str)]) -> bool {
    if preset == NO_CACHE {
        return false;
    }
    if key.starts_with("fast.") || CACHE.has(key) {
        return true;
    }
    // What names a policy decides which keys there are.
    let choosing = others.iter().filter(|(key, _)| ["eviction", "admission", "cleaning"].contains(key));
    let typed =
        choosing.copied().chain([("preset", preset)]).map(|(key, value)| (key.to_owned(), value.to_owned()));
    let mut typed: BTreeMap<String, String> = typed.collect();
    typed.entry(key.to_owned()).or_default();
    !matches!(Design::parse("cache.", &typed), Err(ParamError::UnknownKey { .. }))
}
