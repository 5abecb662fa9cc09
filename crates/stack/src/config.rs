//! Configuration: what was typed ([`Typed`]), then what is meant ([`StackConfig`]).
//!
//! Text is merged table by table, later over earlier: preset, file, flags. Every table is then checked
//! against the same [`Info`] that `list --detail` prints, so unknown keys and values out of range are refused
//! by name in one place.

pub mod cache;
mod device;
pub(crate) mod labels;
mod typed;

use crate::faults::FaultsConfig;
use crate::host::HostConfig;
use crate::interfaces::{INTERFACES, Interfaces, Lower, Place, f2fs};
use crate::journal::JournalKeys;
pub use crate::keys::{ConfigError, Result};
use crate::keys::{flat, shape, table_of, take_table, text_of};
use crate::kinds::{
    KINDS, STACK, StackKind, VECTOR, ZONE, ext, f2fs as f2fs_kind, host_ftl, kind_of, oftl, pblk, vector,
    xfs, zone, zone_files,
};
use crate::partition::Partition;
pub use crate::timing::TIMING;
use crate::timing::{options_of, scheduler_of, timing_of};
use cache::CacheConfig;
pub use device::DEVICE;
use device::{check_slc, geometry, nand_options, packing, units};
use nandscape_core::registry;
use nandscape_core::{Geometry, Info, Params, Subsystem, keys};
use nandscape_ftl::page_map;
use nandscape_host::PolicySetup;
use nandscape_host::fs::Below;
use nandscape_media::scheduler::SchedulerEntry;
use nandscape_media::{NandOptions, Options, Packing, Timing};
use nandscape_sim::{Pacing, Precondition};
pub use typed::{Sources, Typed};
use xxhash_rust::xxh3::xxh3_64;

const U32: u64 = u32::MAX as u64;

const DEFAULT_FTL: &str = "page-map";

keys! { PARAMS:
    DEPTH: Option<u32> = int(0, 1 << 20),
        "requests outstanding (closed loop); 0 follows the time stamps; absent: the stamps if real, else 32";
    pub(crate) PRECONDITION: String = text() or "none", "writes before the counted part, such as fill+uniform:2x";
    pub(crate) UNTIL: Option<String> = choice(&["steady"]),
        "writes of the workload, again and again, until write amplification is steady; then the counted part";
    SEED: u64 = int(0, u64::MAX) or "42", "seed of generators and preconditioning";
    pub(crate) FORMAT: Option<String> = text(), "trace format, instead of detection";
    pub(crate) COLUMNS: Option<String> = text(), "column map of an odd CSV";
    pub(crate) VOLUMES: Option<String> = text(), "only these volumes, separated by ';', such as 0;3 or hm_0";
    pub(crate) REMAP: String = choice(&["none", "dense"]) or "none",
        "dense: touched 4 KiB pages moved together in order";
    pub(crate) REPEAT: u64 = int(1, U32) or "1", "replay the workload so many times";
    pub(crate) TIME_SCALE: f64 = float(0.0, 1e9) or "1", "multiplies the gaps between requests";
    pub(crate) LIMIT: Option<u64> = count(), "only the first so many requests";
}

/// Keys of `[workload]`.
pub static WORKLOAD: Info = Info {
    name: "workload",
    summary: "how the workload is read and paced",
    source: "nandscape",
    params: PARAMS,
};

/// The keys of the layer of a stack, which a kind that was typed must be one of.
fn layer_info(stack: &StackKind, kind: Option<&str>) -> Result<&'static Info> {
    let infos = nandscape_ftl::registry::infos();
    let Some(own) = stack.layer else {
        let kind = kind.unwrap_or(DEFAULT_FTL);
        if let Some(other) = KINDS.iter().find(|other| other.layer.is_some_and(|info| info.name == kind)) {
            let name = other.info.name;
            return Err(shape(
                "ftl.kind",
                format!("{kind} belongs to stack.kind = {name}: expected --stack {name} beside it"),
            ));
        }
        return Ok(*registry::find("ftl", kind, &infos, |info| info)?);
    };
    match kind {
        Some(kind) if kind != own.name => {
            let message = format!(
                "{kind} with stack.kind = {}: expected {}, or no such key",
                stack.info.name, own.name
            );
            Err(shape("ftl.kind", message))
        }
        _ => Ok(own),
    }
}

/// The shape that translation layers see.
fn seen<'a>(
    flash: &'a Geometry,
    packing: Option<&'a (Packing, Geometry)>,
    units: Option<&'a (u32, Geometry)>,
) -> &'a Geometry {
    packing.map(|(_, seen)| seen).or(units.map(|(_, seen)| seen)).unwrap_or(flash)
}

/// A checked configuration: every key known, every value in range.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct StackConfig {
    /// Shape of the flash.
    pub geometry: Geometry,
    /// Compression by the device, and the shape that translation layers then see.
    pub packing: Option<(Packing, Geometry)>,
    /// Mapping units of a page where there are several, and the shape that the translation layer then sees.
    pub units: Option<(u32, Geometry)>,
    /// Rules of the medium.
    pub nand: NandOptions,
    pub timing: Timing,
    /// What else the scheduler models.
    pub timing_options: Options,
    /// How time passes.
    pub scheduler: &'static SchedulerEntry,
    /// The interface of the flash and the host software over it.
    pub stack: &'static StackKind,
    /// Zones, for stacks over them.
    pub zone: Params,
    /// Vector access, for stacks over it.
    pub vector: Params,
    /// Name of the translation layer.
    pub ftl: &'static str,
    pub ftl_params: Params,
    /// Queue depth: `None` follows the workload's own rule.
    pub depth: Option<u32>,
    /// Writes before the counted part.
    pub precondition: Precondition,
    pub seed: u64,
    pub workload: Params,
    /// What stands between the workload and the device.
    pub host: HostConfig,
    /// How the device is divided into sets and namespaces.
    pub partition: Partition,
    /// How a device that keeps bytes finds back what it held.
    pub journal: JournalKeys,
    pub(crate) interfaces: Interfaces,
    /// What goes wrong with the flash.
    pub faults: FaultsConfig,
    /// The disk, and what is in front of it; `None` where the flash is the device.
    pub cache: Option<CacheConfig>,
    device: Params,
    timing_params: Params,
}

/// A stack that is named after its directives has no others.
fn check_directives(stack: &StackKind, merged: &toml::Table) -> Result<()> {
    let kind = |table| typed::text(table, "directives", "kind");
    match kind(&stack.preset_table()) {
        Some(own) if kind(merged).as_ref() != Some(&own) => {
            let name = stack.info.name;
            let message = format!("with stack.kind = {name}: expected {own}, or stack.kind = block");
            Err(shape("directives.kind", message))
        }
        _ => Ok(()),
    }
}

impl StackConfig {
    fn check(typed: &toml::Table) -> Result<Self> {
        let stack = take_table(&mut typed.clone(), "stack", "stack")?;
        let stack = kind_of(&Params::check(&STACK, "stack.", &flat("stack.", &stack)?)?);
        let mut table = stack.preset_table();
        typed::merge(&mut table, typed.clone());
        check_directives(stack, &table)?;
        table.remove("stack");
        let mut device = take_table(&mut table, "device", "device")?;
        let timing = take_table(&mut device, "timing", "device.timing")?;
        let zone = take_table(&mut table, "zone", "zone")?;
        let zone = Params::check(&ZONE, "zone.", &flat("zone.", &zone)?)?;
        let vector = take_table(&mut table, "vector", "vector")?;
        let vector = Params::check(&VECTOR, "vector.", &flat("vector.", &vector)?)?;
        let mut ftl = take_table(&mut table, "ftl", "ftl")?;
        let workload = take_table(&mut table, "workload", "workload")?;
        let sets = take_table(&mut table, "sets", "sets")?;
        let namespaces = take_table(&mut table, "namespaces", "namespaces")?;
        let journal = JournalKeys::check(&take_table(&mut table, "journal", "journal")?)?;
        let interfaces = Interfaces::take(&mut table)?;
        let faults = take_table(&mut table, "faults", "faults")?;
        let cache = take_table(&mut table, "cache", "cache")?;
        let cache = CacheConfig::check(cache, take_table(&mut table, "disk", "disk")?)?;
        let host = HostConfig::check(&take_table(&mut table, "host", "host")?)?;
        if let Some(key) = table.keys().next() {
            const OWN: &str = "cache, device, device.timing, disk, ftl, host, journal, sets, namespaces, faults, stack, vector, workload, zone";
            let interfaces = INTERFACES.iter().map(|entry| entry.info.name);
            let known = interfaces.fold(OWN.to_owned(), |known, name| format!("{known}, {name}"));
            let near = registry::suggestion(key, &known);
            let message = format!("unknown table; known: {known}{near}");
            return Err(shape(key, message));
        }
        let is_below_files = stack.is_drive()
            || [zone::KIND, f2fs_kind::ON_ZONES].iter().any(|kind| kind.info.name == stack.info.name);
        if interfaces.has(f2fs::ENTRY.info.name) && !is_below_files {
            let message = format!(
                "with stack.kind = {}: expected off, or stack.kind = f2fs or f2fs-zones",
                stack.info.name
            );
            return Err(shape("f2fs.mode", message));
        }
        let device = Params::check(&DEVICE, "device.", &flat("device.", &device)?)?;
        let timing_params = Params::check(&TIMING, "device.timing.", &flat("device.timing.", &timing)?)?;
        let workload = Params::check(&WORKLOAD, "workload.", &flat("workload.", &workload)?)?;
        let kind = ftl.remove("kind").map(|kind| text_of("ftl.kind", &kind)).transpose()?;
        let info = layer_info(stack, kind.as_deref())?;
        let ftl_params = Params::check(info, "ftl.", &flat("ftl.", &ftl)?)?;
        let geometry = geometry(&device)?;
        let timing_options = options_of(&geometry, &timing_params)?;
        let packing = packing(&device, &geometry, timing_options.program_pages)?;
        let units = units(&ftl_params, &device, &geometry, &timing_options.buffer)?;
        check_slc(&ftl_params, &timing_options)?;
        let seen = seen(&geometry, packing.as_ref(), units.as_ref());
        let mut nand = nand_options(&device, timing_options.program_pages)?;
        // Objects are programmed in order, on every device.
        nand.capabilities.out_of_order_program &= stack.info.name != oftl::KIND.info.name;
        let partition = Partition::check(&geometry, &sets, &namespaces)?;
        nand.ages = partition.ages_of_dies(&geometry, nand.endurance)?;
        Ok(Self {
            faults: FaultsConfig::check(&faults, seen, packing.is_some())?,
            stack,
            zone,
            vector,
            cache,
            geometry,
            packing,
            units,
            host,
            partition,
            nand,
            interfaces,
            journal,
            timing: timing_of(&timing_params)?,
            timing_options,
            scheduler: scheduler_of(&timing_params),
            ftl: info.name,
            ftl_params,
            depth: workload.get(DEPTH),
            precondition: Precondition::parse(workload.get(PRECONDITION))?,
            seed: workload.get(SEED),
            workload,
            device,
            timing_params,
        })
    }

    /// Whether the host has vector access to the flash.
    pub(crate) fn is_on_vector(&self) -> bool {
        let own = [vector::KIND.info.name, pblk::KIND.info.name, host_ftl::KIND.info.name];
        own.contains(&self.stack.info.name) || self.zone.get(zone::ON) == Some("vector")
    }

    /// Whether hosts see files and no bytes of a device.
    pub fn stores_objects(&self) -> bool {
        let own = [zone_files::KIND.info.name, oftl::KIND.info.name];
        own.contains(&self.stack.info.name) || self.has_file_system()
    }

    /// What files of a workload are put on.
    pub(crate) fn files(&self) -> Below {
        match self.stack.info.name {
            _ if self.stores_objects() => Below::Objects,
            name if name == ext::DATA_JOURNAL.info.name => Below::DataJournal,
            name if name == ext::ATOMIC.info.name => Below::Atomic,
            name if name == xfs::KIND.info.name => Below::Xfs,
            _ => Below::Ext4,
        }
    }

    /// Whether a file system of the host stands in front of the flash.
    pub(crate) fn has_file_system(&self) -> bool {
        self.interfaces.has(f2fs::ENTRY.info.name)
    }

    /// Whether a host interface stands in front of the flash that only block devices have.
    pub(crate) fn has_interfaces_for_blocks(&self) -> bool {
        let mut all =
            [Place::Flash, Place::Served].into_iter().flat_map(|place| self.interfaces.to_tables(place));
        all.any(|(name, _)| name != f2fs::ENTRY.info.name)
    }

    /// The shape that translation layers see: that of the flash, unless the device compresses or maps units
    /// smaller than a page.
    pub fn seen_geometry(&self) -> &Geometry {
        seen(&self.geometry, self.packing.as_ref(), self.units.as_ref())
    }

    /// How requests are paced: the configured depth, else time stamps where they are real, else depth 32.
    pub fn pacing(&self, has_real_times: bool) -> Pacing {
        match self.depth {
            Some(0) => Pacing::Open,
            Some(depth) => Pacing::Closed { depth },
            None if has_real_times => Pacing::Open,
            None => Pacing::Closed { depth: 32 },
        }
    }

    /// What a stream policy of the host is told of the device.
    pub fn policy_setup(&self, capacity_bytes: u64) -> PolicySetup {
        let (streams, groups) =
            (page_map::streams(&self.ftl_params), page_map::reclaim_groups(&self.ftl_params));
        let page_bytes = u64::from(self.seen_geometry().page_bytes);
        let id_offset = self.interfaces.default_ids(groups);
        let streams = self.interfaces.host_ids(streams, groups);
        PolicySetup { streams, id_offset, capacity_bytes, page_bytes }
    }

    /// Puts the interfaces of a place in front of a subsystem.
    pub(crate) fn with_interfaces(
        &self,
        place: Place,
        subsystem: Box<dyn Subsystem + Send>,
    ) -> Result<Box<dyn Subsystem + Send>> {
        let below = Lower {
            geometry: &self.geometry,
            partition: &self.partition,
            ftl_params: &self.ftl_params,
            host_ids: self.policy_setup(0).streams,
        };
        self.interfaces.wrap(place, &below, subsystem)
    }

    /// The whole configuration as TOML that can be read back.
    pub fn to_toml(&self) -> String {
        toml::to_string(&self.to_table()).expect("a table of scalars is valid TOML")
    }

    /// The configuration of the device as TOML that can be read back, to be kept with what the device stores:
    /// without `tables`, and without the name of a preset, whose keys may be others tomorrow.
    pub(crate) fn to_toml_without(&self, tables: &[&str]) -> String {
        let mut table = self.to_table();
        for name in tables {
            table.remove(*name);
        }
        if let Some(toml::Value::Table(device)) = table.get_mut("device") {
            device.remove("preset");
        }
        toml::to_string(&table).expect("a table of scalars is valid TOML")
    }

    /// The same configuration with another seed.
    ///
    /// # Errors
    ///
    /// None for a configuration that was checked.
    pub fn with_seed(&self, seed: u64) -> Result<Self> {
        self.with("workload.seed", &seed.to_string())
    }

    /// The same configuration with another value of a key.
    pub(crate) fn with(&self, key: &str, value: &str) -> Result<Self> {
        let mut typed = Typed::new();
        typed.merge_text("the configuration", &self.to_toml())?;
        typed.set(key, value)?;
        typed.check()
    }

    /// What shapes the state of a device, besides the preconditioning and its seed: everything but how the
    /// workload is read, and what stands between it and the device.
    pub(crate) fn shape(&self) -> serde_json::Value {
        let mut table = self.to_table();
        for name in ["workload", "host", "journal"] {
            table.remove(name);
        }
        if let Some(toml::Value::Table(device)) = table.get_mut("device") {
            device.remove("preset");
        }
        serde_json::to_value(table).expect("a table of scalars is valid JSON")
    }

    /// The value of a dotted key, as a person would type it; `None` where it has none.
    pub(crate) fn value(&self, key: &str) -> Option<String> {
        let table = self.to_table();
        let mut parts = key.split('.');
        let first = table.get(parts.next()?)?;
        let value = parts.try_fold(first, |value, part| value.get(part))?;
        text_of(key, value).ok()
    }

    /// Whether there is a cache; a disk alone is none.
    pub fn has_cache(&self) -> bool {
        self.cache.as_ref().is_some_and(|cache| cache.design.is_some())
    }

    /// What a run is called: its translation layer, or its cache.
    pub fn label(&self) -> String {
        match &self.cache {
            None if self.stack.info.name == host_ftl::KIND.info.name => format!("{} on the host", self.ftl),
            None if self.has_file_system() => self.stack.info.name.to_owned(),
            None if self.stack.layer.is_none() && self.stack.info.name != KINDS[0].info.name => {
                format!("{} with {}", self.ftl, self.stack.info.name)
            }
            None => self.ftl.to_owned(),
            Some(cache) if cache.is_over_flash() && !self.stack.is_drive() => {
                format!("{} over {}", cache.name(), self.stack.info.name)
            }
            Some(cache) if cache.is_over_flash() && self.ftl != DEFAULT_FTL => {
                format!("{} over {}", cache.name(), self.ftl)
            }
            Some(cache) => cache.name().to_owned(),
        }
    }

    pub(crate) fn to_stack_table(&self) -> toml::Table {
        let mut table = self.to_table();
        table.remove("workload");
        table
    }

    /// The whole configuration as nested JSON tables.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self.to_table()).expect("a table of scalars is valid JSON")
    }

    /// Hash of the whole configuration, in hexadecimal: equal for equal configurations, whatever was typed,
    /// and with or without the name of a preset.
    pub fn hash(&self) -> String {
        format!("{:016x}", xxh3_64(self.to_toml_without(&[]).as_bytes()))
    }

    fn to_table(&self) -> toml::Table {
        let mut device = table_of(&self.device);
        device.insert("timing".into(), table_of(&self.timing_params).into());
        let mut ftl = toml::Table::new();
        ftl.insert("kind".into(), self.ftl.into());
        ftl.extend(table_of(&self.ftl_params));
        let mut table = toml::Table::new();
        table.insert("device".into(), device.into());
        table.insert("ftl".into(), ftl.into());
        // Only where a table says anything, so that what it would divide or change prints and hashes as ever.
        let own = [("sets", self.partition.sets_table()), ("namespaces", self.partition.namespaces_table())];
        let own = own.into_iter().filter_map(|(name, own)| Some((name, own?)));
        let own = own.chain(self.interfaces.to_tables(Place::Flash));
        let stack = (self.stack.info.name != KINDS[0].info.name).then(|| {
            let kind = [("kind".to_owned(), self.stack.info.name.into())];
            let zone = (!self.stack.is_drive()).then(|| ("zone", table_of(&self.zone)));
            let vector = self.is_on_vector().then(|| ("vector", table_of(&self.vector)));
            [("stack", kind.into_iter().collect())].into_iter().chain(zone).chain(vector)
        });
        let own = own.chain(stack.into_iter().flatten());
        let host = [("host", self.host.to_table()), ("journal", self.journal.to_table())];
        let own = own.chain(host.into_iter().filter_map(|(name, own)| Some((name, own?))));
        let own = own.chain(self.interfaces.to_tables(Place::Served));
        let own = own.chain(self.faults.to_table().map(|faults| ("faults", faults)));
        table.extend(own.map(|(name, own)| (name.to_owned(), own.into())));
        if let Some(cache) = &self.cache {
            let (cache, disk) = cache.to_tables();
            table.insert("cache".into(), cache.into());
            table.insert("disk".into(), disk.into());
        }
        table.insert("workload".into(), table_of(&self.workload).into());
        table
    }
}
