//! Configuration as it was typed.

use super::{DEFAULT_FTL, StackConfig};
use crate::host::HOST;
use crate::keys::{ConfigError, Result, shape, text_of};
use crate::kinds::{KINDS, layers};
use crate::presets::PRESETS;
use nandscape_core::{registry, scaled_blocks};
use std::path::Path;

/// Keys whose values are names of registries, which are in lower case.
const NAMES: [&str; 11] = [
    "cache.admission",
    "cache.cleaning",
    "cache.eviction",
    "cache.metadata",
    "cache.preset",
    "device.preset",
    "device.timing.scheduler",
    "disk.kind",
    "ftl.kind",
    "host.policy",
    "stack.kind",
];

/// The value of a key in a table of the configuration, if it is a plain one.
pub(super) fn text(tables: &toml::Table, name: &str, key: &str) -> Option<String> {
    text_of(name, tables.get(name)?.get(key)?).ok()
}

/// Configuration as typed: nested tables.
#[derive(Clone, Debug, Default)]
pub struct Typed {
    table: toml::Table,
    /// Keys that were set one by one, in order: a preset that is set after them does not take them away.
    set: Vec<(String, String)>,
}

/// What a configuration is made of, as flags name it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sources<'a> {
    /// Device preset, or a TOML file; replaces the device of the configuration file.
    pub device: Option<&'a str>,
    /// Configuration file.
    pub config: Option<&'a str>,
    /// Interface of the flash.
    pub stack: Option<&'a str>,
    /// Translation layer.
    pub ftl: Option<&'a str>,
    /// `1/N`.
    pub scale: Option<&'a str>,
    /// `key=value`, a later one over an earlier one.
    pub sets: &'a [String],
}

impl Typed {
    /// What was typed, merged: device preset, then the file, then flags.
    ///
    /// # Errors
    ///
    /// Files that cannot be read, unknown presets, settings that are no `key=value`.
    pub fn of(sources: Sources<'_>) -> Result<Self> {
        let mut typed = Self::new();
        if let Some(device) = sources.device {
            typed.merge_device(device)?;
        }
        if let Some(path) = sources.config {
            typed.merge_file(path)?;
            // The device replaces that of the file, while the file's other tables override those of the
            // preset.
            if let Some(device) = sources.device {
                let mut again = Self::new();
                again.merge_device(device)?;
                typed.replace_table(&again, "device");
            }
        }
        if let Some(stack) = sources.stack {
            typed.set_stack(stack)?;
        }
        if let Some(ftl) = sources.ftl {
            typed.set_ftl(ftl)?;
        }
        if let Some(scale) = sources.scale {
            typed.set("device.scale", scale)?;
        }
        sources.sets.iter().try_for_each(|pair| typed.set_pair(pair))?;
        typed.scale_zones()?;
        Ok(typed)
    }

    /// The number of zones that a preset gives is that of the whole device.
    fn scale_zones(&mut self) -> Result<()> {
        let key = "zone.count";
        let count = text(&self.table, "zone", "count");
        let preset = text(&self.table, "device", "preset");
        let preset = preset.and_then(|name| PRESETS.iter().find(|preset| preset.info.name == name));
        let whole = preset.and_then(|preset| text(&preset.toml.parse().ok()?, "zone", "count"));
        if count.is_none() || count != whole || self.set.iter().any(|(set, _)| set == key) {
            return Ok(());
        }
        let scale = text(&self.table, "device", "scale");
        let fewer = count.zip(scale).and_then(|(count, scale)| scaled_blocks(count.parse().ok()?, &scale));
        fewer.map_or(Ok(()), |fewer| self.insert(key, &fewer.to_string()))
    }

    /// Lays a preset or a TOML file over what is there.
    fn merge_device(&mut self, device: &str) -> Result<()> {
        if Path::new(device).extension().is_some_and(|e| e == "toml") {
            self.merge_file(device)
        } else {
            self.merge_preset(device)
        }
    }

    /// The default device and translation layer, without any key.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lays a TOML text over what is there. `path` names it in errors. A `device.preset` key of the text is
    /// laid down first.
    pub fn merge_text(&mut self, path: &str, text: &str) -> Result<()> {
        let mut table: toml::Table = text.parse().map_err(|e: toml::de::Error| ConfigError::Syntax {
            path: path.to_owned(),
            message: e.to_string().trim_end().to_owned(),
        })?;
        if let Some(toml::Value::Table(device)) = table.get_mut("device")
            && let Some(preset) = device.remove("preset")
        {
            let name =
                preset.as_str().ok_or_else(|| shape("device.preset", "expected the name of a preset"))?;
            self.merge_preset(name)?;
        }
        merge(&mut self.table, table);
        Ok(())
    }

    /// Lays a file over what is there.
    pub fn merge_file(&mut self, path: &str) -> Result<()> {
        let text = std::fs::read_to_string(path)
            .map_err(|e| ConfigError::Io { path: path.to_owned(), message: e.to_string() })?;
        self.merge_text(path, &text)
    }

    /// Lays a preset over what is there.
    pub fn merge_preset(&mut self, name: &str) -> Result<()> {
        let name = &name.to_ascii_lowercase();
        let preset = registry::find("device", name, PRESETS, |preset| &preset.info)?;
        self.merge_text(name, preset.toml)?;
        self.insert("device.preset", name)
    }

    /// Sets one dotted key, such as `ftl.op`. Names of registries may be typed in any case. `scheduler`
    /// alone means `device.timing.scheduler`; `device.preset` lays that preset over what is there, but for
    /// keys that were set in this way, before it or after it.
    pub fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let key = if key == "scheduler" { "device.timing.scheduler" } else { key };
        let value = &if NAMES.contains(&key) { value.to_ascii_lowercase() } else { value.to_owned() };
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

    fn insert(&mut self, key: &str, value: &str) -> Result<()> {
        let mut parts: Vec<&str> = key.split('.').collect();
        let last = parts.pop().filter(|last| !last.is_empty()).ok_or_else(|| shape(key, "empty key"))?;
        if parts.is_empty() {
            return Err(shape(
                key,
                "expected a dotted key such as ftl.op, device.channels or workload.depth",
            ));
        }
        let mut table = &mut self.table;
        for part in parts {
            let entry = table.entry(part).or_insert_with(|| toml::Value::Table(toml::Table::new()));
            table = entry.as_table_mut().ok_or_else(|| shape(key, "is not a table"))?;
        }
        // The other keys of a table that chooses a policy belong to the policy before.
        if key == "host.policy"
            && table.get("policy").and_then(toml::Value::as_str).is_some_and(|old| old != value)
        {
            table.retain(is_of_every_policy);
        }
        table.insert(last.to_owned(), toml::Value::String(value.to_owned()));
        Ok(())
    }

    /// Sets `key=value`.
    pub fn set_pair(&mut self, pair: &str) -> Result<()> {
        let wrong = || shape(pair, "expected key=value, such as ftl.op=0.07");
        let (key, value) = pair.split_once('=').ok_or_else(wrong)?;
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
    pub fn replace_table(&mut self, other: &Self, name: &str) {
        self.forget_set(name);
        match other.table.get(name) {
            Some(table) => self.table.insert(name.into(), table.clone()),
            None => self.table.remove(name),
        };
    }

    /// Chooses the translation layer. The other `ftl` keys stay only if it is the same kind, since they
    /// belong to a kind.
    pub fn set_ftl(&mut self, kind: &str) -> Result<()> {
        let kind = kind.to_ascii_lowercase();
        if let Some(toml::Value::Table(ftl)) = self.table.get_mut("ftl")
            && ftl.get("kind").and_then(toml::Value::as_str).is_some_and(|old| old != kind)
        {
            ftl.clear();
            self.forget_set("ftl");
        }
        self.set("ftl.kind", &kind)
    }

    /// Chooses the stack. The keys of `[ftl]` stay only if they belong to its layer.
    pub fn set_stack(&mut self, kind: &str) -> Result<()> {
        let kind = kind.to_ascii_lowercase();
        let layer = KINDS.iter().find(|entry| entry.info.name == kind).and_then(|entry| entry.layer);
        if let Some(toml::Value::Table(ftl)) = self.table.get_mut("ftl") {
            let old = ftl.get("kind").and_then(toml::Value::as_str).unwrap_or(DEFAULT_FTL);
            let is_kept = match layer {
                Some(layer) => layer.name == old,
                None => layers().all(|layer| layer.name != old),
            };
            if !is_kept {
                ftl.clear();
                self.forget_set("ftl");
            }
        }
        self.set("stack.kind", &kind)
    }

    /// Checks everything.
    pub fn check(&self) -> Result<StackConfig> {
        StackConfig::check(&self.table)
    }
}

/// Whether a key of `[host]` belongs to no single policy.
fn is_of_every_policy(key: &str, _: &mut toml::Value) -> bool {
    HOST.has(key)
}

pub(super) fn merge(below: &mut toml::Table, above: toml::Table) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            (Some(toml::Value::Table(below)), toml::Value::Table(above)) => {
                // A new kind of translation layer starts from its own defaults.
                let is_other = |key: &str| matches!((below.get(key), above.get(key)), (Some(old), Some(new)) if old != new);
                let (is_other_kind, is_other_policy) = (is_other("kind"), is_other("policy"));
                if is_other_kind {
                    below.clear();
                }
                if is_other_policy {
                    below.retain(is_of_every_policy);
                }
                merge(below, above);
            }
            (_, value) => {
                below.insert(key, value);
            }
        }
    }
}
