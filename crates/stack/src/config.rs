//! Configuration: what was typed ([`Typed`]), then what is meant ([`StackConfig`]).
//!
//! Text is merged table by table, later over earlier: preset, file, flags. Every table is then checked
//! against the same [`Info`] that `list --detail` prints, so unknown keys and values out of range are refused
//! by name in one place.

use crate::cache::CacheConfig;
use crate::directives::{Below, DirectivesKeys};
use crate::faults::FaultsConfig;
use crate::file_system::FsKeys;
use crate::host::HostConfig;
use crate::journal::JournalKeys;
pub use crate::keys::ConfigError;
use crate::keys::{flat, int, param, size, table_of, take_table, text_of};
use crate::partition::Partition;
use crate::presets::PRESETS;
pub use crate::timing::{TIMING, TimingMode};
use crate::timing::{mode_of, options_of, timing_of};
use nandscape_core::registry::{self, ParamKind};
use nandscape_core::{BlockId, Capabilities, Geometry, Info, ParamError, Params, units};
use nandscape_host::PolicySetup;
use nandscape_media::{BadBlocks, NandOptions, Options, Packing, Timing};
use nandscape_sim::{Pacing, Precondition};
use xxhash_rust::xxh3::xxh3_64;

const U32: u64 = u32::MAX as u64;

/// The translation layer where none is named.
const DEFAULT_FTL: &str = "page-map";

/// Keys of `[device]`.
pub static DEVICE: Info = Info {
    name: "device",
    summary: "shape and rules of the flash",
    source: "nandscape",
    params: &[
        param("channels", "channel buses", int(1, 4096), "8"),
        param("dies_per_channel", "dies (LUNs) on each channel", int(1, 4096), "4"),
        param("planes_per_die", "planes in each die", int(1, 64), "2"),
        param("blocks_per_plane", "erase blocks in each plane", int(1, 1 << 24), "512"),
        param("pages_per_block", "pages in each block", int(1, 1 << 16), "256"),
        param("page", "data bytes of a page", size(1 << 24), "16KiB"),
        param("sector", "smallest unit of validity and transfer inside a page", size(1 << 24), "4KiB"),
        param("oob", "spare bytes of a page", ParamKind::Size { min: 0, max: 1 << 20 }, "128B"),
        param("endurance", "erases a block survives, or 'endless'", ParamKind::Text, "3000"),
        param(
            "bad_blocks",
            "factory bad blocks: a share such as 0.5%, or block numbers such as 3,17",
            ParamKind::Text,
            "",
        ),
        param("bad_blocks_seed", "seed of the draw when bad_blocks is a share", int(0, u64::MAX), "1"),
        param(
            "out_of_order_program",
            "pages of a block may be programmed in any order (the superblock strategies need it)",
            ParamKind::Bool,
            "false",
        ),
        param(
            "partial_transfer",
            "only the covered bytes of a page cross the bus, not the whole page",
            ParamKind::Bool,
            "false",
        ),
        param(
            "compression",
            "share of its size that a page takes on flash after the device has compressed it; ftl.op counts pages so compressed; 1: no compression",
            ParamKind::Float { min: 0.01, max: 1.0 },
            "1",
        ),
        param("preset", "a shipped device, whose keys are laid down first", ParamKind::Text, ""),
        param(
            "scale",
            "1/N: blocks_per_plane divided by N, but not below 16; sizes given in % follow",
            ParamKind::Text,
            "",
        ),
    ],
};

/// Keys of `[workload]`.
pub static WORKLOAD: Info = Info {
    name: "workload",
    summary: "how the workload is read and paced",
    source: "nandscape",
    params: &[
        param(
            "depth",
            "requests outstanding (closed loop); 0 follows the time stamps; absent: the stamps if real, else 32",
            int(0, 1 << 20),
            "",
        ),
        param(
            "precondition",
            "writes before the counted part, such as fill+uniform:2x",
            ParamKind::Text,
            "none",
        ),
        param("seed", "seed of generators and preconditioning", int(0, u64::MAX), "42"),
        param("format", "trace format, instead of detection", ParamKind::Text, ""),
        param("columns", "column map of an odd CSV", ParamKind::Text, ""),
        param("volumes", "only these volumes, separated by ';', such as 0;3 or hm_0", ParamKind::Text, ""),
        param(
            "remap",
            "dense: touched 4 KiB pages moved together in order",
            ParamKind::Choice { of: &["none", "dense"] },
            "none",
        ),
        param("repeat", "replay the workload so many times", int(1, U32), "1"),
        param(
            "time_scale",
            "multiplies the gaps between requests",
            ParamKind::Float { min: 0.0, max: 1e9 },
            "1",
        ),
        param("limit", "only the first so many requests", ParamKind::Count, ""),
    ],
};

/// Configuration as typed: nested tables.
#[derive(Clone, Debug, Default)]
pub struct Typed {
    table: toml::Table,
    /// Keys that were set one by one, in order: a preset that is set after them does not take them away.
    set: Vec<(String, String)>,
}

impl Typed {
    /// The default device and translation layer, without any key.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lays a TOML text over what is there. `path` names it in errors. A `device.preset` key of the text is
    /// laid down first.
    pub fn merge_text(&mut self, path: &str, text: &str) -> Result<(), ConfigError> {
        let mut table: toml::Table = text.parse().map_err(|e: toml::de::Error| ConfigError::Syntax {
            path: path.to_owned(),
            message: e.to_string().trim_end().to_owned(),
        })?;
        if let Some(toml::Value::Table(device)) = table.get_mut("device")
            && let Some(preset) = device.remove("preset")
        {
            let name = preset.as_str().ok_or_else(|| ConfigError::Shape {
                key: "device.preset".into(),
                message: "expected the name of a preset".into(),
            })?;
            self.merge_preset(name)?;
        }
        merge(&mut self.table, table);
        Ok(())
    }

    /// Lays a file over what is there.
    pub fn merge_file(&mut self, path: &str) -> Result<(), ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|e| ConfigError::Io { path: path.to_owned(), message: e.to_string() })?;
        self.merge_text(path, &text)
    }

    /// Lays a preset over what is there.
    pub fn merge_preset(&mut self, name: &str) -> Result<(), ConfigError> {
        let preset = PRESETS
            .iter()
            .find(|p| p.info.name == name)
            .ok_or_else(|| registry::unknown_name("device", name, PRESETS.iter().map(|p| &p.info)))?;
        self.merge_text(name, preset.toml)?;
        self.insert("device.preset", name)
    }

    /// Sets one dotted key, such as `ftl.op`. `scheduler` alone means `device.timing.scheduler`;
    /// `device.preset` lays that preset over what is there, but for keys that were set in this way, before
    /// it or after it.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ConfigError> {
        let key = if key == "scheduler" { "device.timing.scheduler" } else { key };
        if key != "device.preset" {
            self.set.push((key.to_owned(), value.to_owned()));
            return self.insert(key, value);
        }
        self.merge_preset(value)?;
        for (key, value) in self.set.clone() {
            self.insert(&key, &value)?;
        }
        Ok(())
    }

    /// Keys of a table count as never set.
    fn forget_set(&mut self, table: &str) {
        self.set.retain(|(key, _)| key.strip_prefix(table).is_none_or(|rest| !rest.starts_with('.')));
    }

    fn insert(&mut self, key: &str, value: &str) -> Result<(), ConfigError> {
        let shape = |message: &str| ConfigError::Shape { key: key.to_owned(), message: message.to_owned() };
        let mut parts: Vec<&str> = key.split('.').collect();
        let last = parts.pop().filter(|last| !last.is_empty()).ok_or_else(|| shape("empty key"))?;
        if parts.is_empty() {
            return Err(shape("expected a dotted key such as ftl.op, device.channels or workload.depth"));
        }
        let mut table = &mut self.table;
        for part in parts {
            let entry = table.entry(part).or_insert_with(|| toml::Value::Table(toml::Table::new()));
            table = entry.as_table_mut().ok_or_else(|| shape("is not a table"))?;
        }
        // The other keys of a table that chooses a policy belong to the policy before.
        if key == "host.policy"
            && table.get("policy").and_then(toml::Value::as_str).is_some_and(|old| old != value)
        {
            table.retain(|key, _| crate::host::HOST.params.iter().any(|param| param.name == key));
        }
        table.insert(last.to_owned(), toml::Value::String(value.to_owned()));
        Ok(())
    }

    /// Sets `key=value`.
    pub fn set_pair(&mut self, pair: &str) -> Result<(), ConfigError> {
        let (key, value) = pair.split_once('=').ok_or_else(|| ConfigError::Shape {
            key: pair.to_owned(),
            message: "expected key=value, such as ftl.op=0.07".into(),
        })?;
        self.set(key.trim(), value.trim())
    }

    /// Whether a dotted key, such as `namespaces.count`, was typed.
    pub fn has(&self, key: &str) -> bool {
        let mut parts = key.split('.');
        let first = parts.next().and_then(|part| self.table.get(part));
        parts.try_fold(first, |value, part| value?.get(part).map(Some)).flatten().is_some()
    }

    /// Every dotted key that was typed, those of presets included.
    pub(crate) fn keys(&self) -> Vec<String> {
        fn collect(prefix: &str, table: &toml::Table, keys: &mut Vec<String>) {
            for (key, value) in table {
                match value {
                    toml::Value::Table(inner) => collect(&format!("{prefix}{key}."), inner, keys),
                    _ => keys.push(format!("{prefix}{key}")),
                }
            }
        }
        let mut keys = Vec::new();
        collect("", &self.table, &mut keys);
        keys
    }

    /// Takes a table of another configuration in place of this one's.
    pub(crate) fn replace_table(&mut self, other: &Self, name: &str) {
        self.forget_set(name);
        match other.table.get(name) {
            Some(table) => self.table.insert(name.into(), table.clone()),
            None => self.table.remove(name),
        };
    }

    /// Chooses the translation layer. The other `ftl` keys stay only if it is the same kind, since they
    /// belong to a kind.
    pub fn set_ftl(&mut self, kind: &str) -> Result<(), ConfigError> {
        if let Some(toml::Value::Table(ftl)) = self.table.get_mut("ftl")
            && ftl.get("kind").and_then(toml::Value::as_str).is_some_and(|old| old != kind)
        {
            ftl.clear();
            self.forget_set("ftl");
        }
        self.set("ftl.kind", kind)
    }

    /// Takes the whole device of another configuration in place of this one's.
    pub fn replace_device(&mut self, other: &Self) {
        self.replace_table(other, "device");
    }

    /// Checks everything.
    pub fn check(&self) -> Result<StackConfig, ConfigError> {
        StackConfig::check(&self.table)
    }
}

fn merge(below: &mut toml::Table, above: toml::Table) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            (Some(toml::Value::Table(below)), toml::Value::Table(above)) => {
                // A new kind of translation layer starts from its own defaults.
                let is_other_kind = match (below.get("kind"), above.get("kind")) {
                    (Some(old), Some(new)) => old != new,
                    _ => false,
                };
                if is_other_kind {
                    below.clear();
                }
                let is_other_policy = match (below.get("policy"), above.get("policy")) {
                    (Some(old), Some(new)) => old != new,
                    _ => false,
                };
                if is_other_policy {
                    below.retain(|key, _| crate::host::HOST.params.iter().any(|param| param.name == key));
                }
                merge(below, above);
            }
            (_, value) => {
                below.insert(key, value);
            }
        }
    }
}

/// A checked configuration: every key known, every value in range.
#[derive(Clone, Debug)]
pub struct StackConfig {
    /// Shape of the flash.
    pub geometry: Geometry,
    /// Compression by the device, and the shape that translation layers then see.
    pub packing: Option<(Packing, Geometry)>,
    /// Rules of the medium.
    pub nand: NandOptions,
    /// Latencies.
    pub timing: Timing,
    /// What else the scheduler models.
    pub timing_options: Options,
    /// How time passes.
    pub mode: TimingMode,
    /// Name of the translation layer.
    pub ftl: &'static str,
    /// Its parameters.
    pub ftl_params: Params,
    /// Queue depth: `None` follows the workload's own rule.
    pub depth: Option<u32>,
    /// Writes before the counted part.
    pub precondition: Precondition,
    /// Seed.
    pub seed: u64,
    /// How the workload is read.
    pub workload: Params,
    /// What stands between the workload and the device.
    pub host: HostConfig,
    /// How the device is divided into sets and namespaces.
    pub partition: Partition,
    /// How a device that keeps bytes finds back what it held.
    pub journal: JournalKeys,
    /// What a served device makes of the file system on it.
    pub fs: FsKeys,
    /// What hints of writes mean.
    pub directives: DirectivesKeys,
    /// What goes wrong with the flash.
    pub faults: FaultsConfig,
    /// The disk, and what is in front of it; `None` where the flash is the device.
    pub cache: Option<CacheConfig>,
    device: Params,
    timing_params: Params,
}

impl StackConfig {
    fn check(typed: &toml::Table) -> Result<Self, ConfigError> {
        let mut table = typed.clone();
        let mut device = take_table(&mut table, "device", "device")?;
        let timing = take_table(&mut device, "timing", "device.timing")?;
        let mut ftl = take_table(&mut table, "ftl", "ftl")?;
        let workload = take_table(&mut table, "workload", "workload")?;
        let sets = take_table(&mut table, "sets", "sets")?;
        let namespaces = take_table(&mut table, "namespaces", "namespaces")?;
        let directives = take_table(&mut table, "directives", "directives")?;
        let journal = JournalKeys::check(&take_table(&mut table, "journal", "journal")?)?;
        let fs = FsKeys::check(&take_table(&mut table, "fs", "fs")?)?;
        let faults = take_table(&mut table, "faults", "faults")?;
        let cache = take_table(&mut table, "cache", "cache")?;
        let cache = CacheConfig::check(cache, take_table(&mut table, "disk", "disk")?)?;
        let host = HostConfig::check(&take_table(&mut table, "host", "host")?)?;
        if let Some(key) = table.keys().next() {
            const KNOWN: &str = "cache, device, device.timing, disk, ftl, fs, host, journal, sets, namespaces, directives, faults, workload";
            let near = registry::suggestion(key, KNOWN);
            let message = format!("unknown table; known: {KNOWN}{near}");
            return Err(ConfigError::Shape { key: key.clone(), message });
        }
        let device = Params::check(&DEVICE, "device.", &flat("device.", &device)?)?;
        let timing_params = Params::check(&TIMING, "device.timing.", &flat("device.timing.", &timing)?)?;
        let workload = Params::check(&WORKLOAD, "workload.", &flat("workload.", &workload)?)?;
        let kind = match ftl.remove("kind") {
            None => DEFAULT_FTL.to_owned(),
            Some(kind) => text_of("ftl.kind", &kind)?,
        };
        let infos = nandscape_ftl::registry::infos();
        let info = infos
            .iter()
            .find(|info| info.name == kind)
            .ok_or_else(|| registry::unknown_name("ftl", &kind, infos.iter().copied()))?;
        let ftl_params = Params::check(info, "ftl.", &flat("ftl.", &ftl)?)?;
        let geometry = geometry(&device)?;
        let timing_options = options_of(&geometry, &timing_params)?;
        let packing = packing(&device, &geometry, timing_options.program_pages)?;
        let seen = packing.as_ref().map_or(&geometry, |(_, seen)| seen);
        Ok(Self {
            faults: FaultsConfig::check(&faults, seen, packing.is_some())?,
            cache,
            geometry,
            packing,
            host,
            partition: Partition::check(&geometry, &sets, &namespaces)?,
            nand: nand_options(&device, timing_options.program_pages)?,
            directives: DirectivesKeys::check(&directives)?,
            journal,
            fs,
            timing: timing_of(&timing_params)?,
            timing_options,
            mode: mode_of(&timing_params),
            ftl: info.name,
            ftl_params,
            depth: workload.get("depth").map(|_| workload.int32("depth")),
            precondition: Precondition::parse(workload.text("precondition"))?,
            seed: workload.int("seed"),
            workload,
            device,
            timing_params,
        })
    }

    /// The shape that translation layers see: that of the flash, unless the device compresses.
    pub fn seen_geometry(&self) -> &Geometry {
        self.packing.as_ref().map_or(&self.geometry, |(_, seen)| seen)
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
        let streams = self.ftl_params.get("streams").and_then(|text| text.parse().ok()).unwrap_or(0);
        let page_bytes = u64::from(self.geometry.page_bytes);
        PolicySetup { streams: self.directives.host_ids(streams), capacity_bytes, page_bytes }
    }

    pub(crate) const fn below_directives(&self) -> Below<'_> {
        Below { geometry: &self.geometry, ftl: &self.ftl_params }
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

    /// The value of a dotted key, as a person would type it; `None` where it has none.
    pub(crate) fn value(&self, key: &str) -> Option<String> {
        let table = self.to_table();
        let mut parts = key.split('.');
        let first = table.get(parts.next()?)?;
        let value = parts.try_fold(first, |value, part| value.get(part))?;
        text_of(key, value).ok()
    }

    /// What a run is called: its translation layer, or its cache.
    pub fn label(&self) -> String {
        match &self.cache {
            None => self.ftl.to_owned(),
            Some(cache) if cache.is_over_flash() && self.ftl != DEFAULT_FTL => {
                format!("{} over {}", cache.name(), self.ftl)
            }
            Some(cache) => cache.name().to_owned(),
        }
    }

    /// The tables of a flash stack inside another configuration.
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
        let mut table = self.to_table();
        if let Some(toml::Value::Table(device)) = table.get_mut("device") {
            device.remove("preset");
        }
        let text = toml::to_string(&table).expect("a table of scalars is valid TOML");
        format!("{:016x}", xxh3_64(text.as_bytes()))
    }

    fn to_table(&self) -> toml::Table {
        let mut device = table_of(&DEVICE, &self.device);
        device.insert("timing".into(), table_of(&TIMING, &self.timing_params).into());
        let mut ftl = toml::Table::new();
        ftl.insert("kind".into(), self.ftl.into());
        let infos = nandscape_ftl::registry::infos();
        let info = infos.iter().find(|info| info.name == self.ftl).expect("checked");
        ftl.extend(table_of(info, &self.ftl_params));
        let mut table = toml::Table::new();
        table.insert("device".into(), device.into());
        table.insert("ftl".into(), ftl.into());
        // Only where the device is divided, so that what is not divided prints and hashes as ever.
        for (info, params, is_default) in
            self.partition.params().into_iter().chain([self.directives.params()])
        {
            if !is_default {
                table.insert(info.name.into(), table_of(info, params).into());
            }
        }
        if let Some(host) = self.host.to_table() {
            table.insert("host".into(), host.into());
        }
        if let Some(journal) = self.journal.to_table() {
            table.insert("journal".into(), journal.into());
        }
        if let Some(fs) = self.fs.to_table() {
            table.insert("fs".into(), fs.into());
        }
        if let Some(faults) = self.faults.to_table() {
            table.insert("faults".into(), faults.into());
        }
        if let Some(cache) = &self.cache {
            let (cache, disk) = cache.to_tables();
            table.insert("cache".into(), cache.into());
            table.insert("disk".into(), disk.into());
        }
        table.insert("workload".into(), table_of(&WORKLOAD, &self.workload).into());
        table
    }
}

fn geometry(device: &Params) -> Result<Geometry, ConfigError> {
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
fn packing(
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

fn nand_options(device: &Params, program_pages: u32) -> Result<NandOptions, ConfigError> {
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
