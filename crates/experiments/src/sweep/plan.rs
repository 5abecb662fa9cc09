//! What a sweep runs, read from its TOML file.

use super::axes::{MOST_POINTS, Points, Wrong, flat, grid, list, random};
use super::error::SweepError;
use nandscape_core::registry::suggestion;
use nandscape_core::units::parse_share;
use nandscape_report::{USABLE_SHARE, is_number};
use nandscape_stack::{ConfigError, Sources, StackConfig, Typed, seeds, text_of};
use std::collections::{BTreeMap, BTreeSet};
use toml::{Table, Value};

/// Keys of the file.
const KEYS: &str =
    "workload, device, config, stack, ftl, scale, fit, set, seeds, metrics, grid, random, list";
/// Metrics that are kept if none are named.
const METRICS: [&str; 8] = [
    "waf_bytes",
    "latency_ns.all.p99",
    "latency_ns.all.p99_9",
    "throughput.write_bytes_per_s",
    "throughput.read_bytes_per_s",
    "cost.dram_bytes",
    "cost.usable_bytes",
    USABLE_SHARE,
];
/// The axis of workloads.
const WORKLOAD: &str = "workload";
/// The share of the device that the workload fills.
const FIT: &str = "fit";

/// One run: a point with a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunId {
    /// Number of the point, from 0.
    pub point: usize,
    /// The seed.
    pub seed: u64,
}

/// What a sweep runs.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The file, as it was given.
    pub path: String,
    /// Its text.
    pub text: String,
    /// Dotted keys that differ between points.
    pub axes: Vec<String>,
    /// For each point, its value on each axis.
    pub points: Vec<Vec<String>>,
    /// Seeds of every point.
    pub seeds: Vec<u64>,
    /// Dotted keys of the result document.
    pub metrics: Vec<String>,
    workload: Option<String>,
    /// `device`, `config`, `stack`, `ftl`, `scale` and `fit`, as far as they are there.
    named: BTreeMap<&'static str, String>,
    sets: Vec<String>,
    /// Keys of a device that fits, since [`Plan::check`].
    fitted: Vec<String>,
    /// Points were drawn, so that their values are of one point each.
    is_random: bool,
}

impl Plan {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// As [`Plan::parse`], and files that cannot be read.
    pub fn read(path: &str) -> Result<Self, SweepError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| SweepError::Io { path: path.to_owned(), message: error.to_string() })?;
        Self::parse(path, &text)
    }

    /// Reads a text. Opens no file that it names.
    ///
    /// # Errors
    ///
    /// Syntax, with the line; keys that are unknown, missing or have a wrong value. Configurations are
    /// checked by [`Plan::check`].
    pub fn parse(path: &str, text: &str) -> Result<Self, SweepError> {
        let table: Table = text.parse().map_err(|error: toml::de::Error| SweepError::Syntax {
            path: path.to_owned(),
            message: error.to_string().trim_end().to_owned(),
        })?;
        Self::of(path, text, &table).map_err(|(key, message)| SweepError::Key {
            path: path.to_owned(),
            key,
            message,
        })
    }

    fn of(path: &str, text: &str, table: &Table) -> Result<Self, Wrong> {
        let wrong = |key: &str, message: &str| (key.to_owned(), message.to_owned());
        if let Some(key) = table.keys().find(|key| KEYS.split(", ").all(|known| known != *key)) {
            return Err((key.clone(), format!("unknown key; known: {KEYS}{}", suggestion(key, KEYS))));
        }
        let string = |key: &'static str| match table.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(value) => Err((key.to_owned(), format!("{value}: expected text in quotes"))),
        };
        let inner = |key: &str| match table.get(key) {
            None => Ok(None),
            Some(Value::Table(inner)) => Ok(Some(inner)),
            Some(_) => Err(wrong(key, "expected a table")),
        };
        let Points { axes, points } = points(table)?;
        let workload = string(WORKLOAD)?;
        let has_axis = axes.iter().any(|axis| axis == WORKLOAD);
        if workload.is_some() == has_axis {
            let message = if has_axis {
                "is an axis too: expected one of them"
            } else {
                "is missing: expected a workload such as \"uniform:count=1M\""
            };
            return Err(wrong(WORKLOAD, message));
        }
        if workload.as_deref() == Some("-") {
            return Err(wrong(
                WORKLOAD,
                "-: standard input can be read once: expected a file or a generator",
            ));
        }
        let mut named = BTreeMap::new();
        for key in ["device", "config", "stack", "ftl", "scale", FIT] {
            named.extend(string(key)?.map(|value| (key, value)));
        }
        let mut sets = Vec::new();
        for (key, value) in inner("set")?.map(flat).unwrap_or_default() {
            let at = format!("set.{key}");
            is_setting(&at, &key)?;
            if axes.contains(&key) {
                return Err(wrong(&at, "is an axis too: expected one of them"));
            }
            let value =
                text_of(&at, &value).map_err(|_| wrong(&at, "expected a string, number, boolean or list"))?;
            sets.push(format!("{key}={value}"));
        }
        let seeds = seeds_of(table.get("seeds"))?;
        if points.len() * seeds.len() > MOST_POINTS {
            return Err(wrong(
                "seeds",
                &format!("more than {MOST_POINTS} runs: expected fewer points or seeds"),
            ));
        }
        let metrics = metrics_of(table.get("metrics"))?;
        Ok(Self {
            path: path.to_owned(),
            text: text.to_owned(),
            axes,
            points,
            seeds,
            metrics,
            workload,
            named,
            sets,
            fitted: Vec::new(),
            is_random: table.contains_key("random"),
        })
    }

    /// Every run, by point, then by seed.
    pub fn runs(&self) -> impl Iterator<Item = RunId> {
        (0..self.points.len())
            .flat_map(|point| self.seeds.iter().map(move |seed| RunId { point, seed: *seed }))
    }

    /// The workload of a point.
    pub fn workload(&self, point: usize) -> &str {
        let own = self.axes.iter().position(|axis| axis == WORKLOAD).map(|axis| &self.points[point][axis]);
        own.or(self.workload.as_ref()).expect("there is one")
    }

    /// The workload, unless it is an axis.
    pub fn only_workload(&self) -> Option<&str> {
        self.workload.as_deref()
    }

    /// Files that the plan names: those of the configuration, and workloads that are files.
    pub fn files(&self) -> BTreeSet<String> {
        let is_file = |path: &&str| std::path::Path::new(path).is_file();
        let workloads = (0..self.points.len()).map(|point| self.workload(point)).filter(is_file);
        let named =
            ["device", "config"].into_iter().filter_map(|key| self.named.get(key).map(String::as_str));
        workloads.chain(named.filter(is_file)).map(str::to_owned).collect()
    }

    /// The configuration of a run.
    ///
    /// # Errors
    ///
    /// Unknown keys, values out of range, and combinations that cannot be.
    pub fn config(&self, run: RunId) -> Result<StackConfig, ConfigError> {
        let point = &self.points[run.point];
        let axis = |key: &str| self.axes.iter().position(|axis| axis == key).map(|at| point[at].as_str());
        let named = |key: &str| self.named.get(key).map(String::as_str);
        // Kinds come first, since other keys belong to them.
        let kinds = ["stack.kind", "ftl.kind", "device.preset"];
        let others = |key: &String| !kinds.contains(&key.as_str()) && key != WORKLOAD;
        let own = self.axes.iter().zip(point).filter(|(key, _)| others(key));
        let mut sets = self.sets.clone();
        sets.extend(own.map(|(key, value)| format!("{key}={value}")));
        sets.extend_from_slice(&self.fitted);
        sets.push(format!("workload.seed={}", run.seed));
        let typed = Typed::of(Sources {
            device: axis("device.preset").or(named("device")),
            config: named("config"),
            stack: axis("stack.kind").or(named("stack")),
            ftl: axis("ftl.kind").or(named("ftl")),
            scale: named("scale"),
            sets: &sets,
        })?;
        typed.check()
    }

    /// Checks the configuration of every point: a value of an axis that no point takes is an error of the
    /// plan, one that does not go with another value is an error of the point. Then fits the device, the same
    /// for all points.
    ///
    /// # Errors
    ///
    /// Names the key and the value, or the point where points have no values in common. Devices that cannot
    /// be fitted.
    pub fn check(&mut self) -> Result<(), SweepError> {
        self.check_points()?;
        let Some(share) = self.named.get(FIT) else { return Ok(()) };
        self.fitted = self.fit(share).map_err(|message| SweepError::Key {
            path: self.path.clone(),
            key: FIT.to_owned(),
            message,
        })?;
        Ok(())
    }

    /// The keys of a device that the largest workload fills to this share at the point with the least
    /// capacity.
    fn fit(&self, share: &str) -> Result<Vec<String>, String> {
        let is_shape = |axis: &&String| axis.starts_with("device.") && !axis.starts_with("device.timing.");
        if let Some(axis) = self.axes.iter().find(is_shape) {
            return Err(format!("with the axis {axis}: expected one device for all points"));
        }
        let seed = self.seeds[0];
        let points = 0..self.points.len();
        let configs = points.clone().filter_map(|point| self.config(RunId { point, seed }).ok());
        let workloads: BTreeSet<String> = points.map(|point| self.workload(point).to_owned()).collect();
        let is_said = self.sets.iter().chain(&self.axes).any(|key| key.starts_with("workload.precondition"));
        let fitted = nandscape_stack::fit(
            &configs.collect::<Vec<_>>(),
            &workloads.into_iter().collect::<Vec<_>>(),
            parse_share(share).map_err(|error| error.to_string())?,
            is_said,
        );
        let sets = fitted.map_err(|error| error.to_string())?.sets;
        Ok(sets.into_iter().map(|(key, value)| format!("{key}={value}")).collect())
    }

    fn check_points(&self) -> Result<(), SweepError> {
        let seed = self.seeds[0];
        let failed: Vec<Option<ConfigError>> =
            (0..self.points.len()).map(|point| self.config(RunId { point, seed }).err()).collect();
        let key = |key: String, message: String| SweepError::Key { path: self.path.clone(), key, message };
        if let Some(error) = failed.iter().flatten().next()
            && failed.iter().all(Option::is_some)
        {
            return Err(key("point 0".to_owned(), format!("{error} (and no other point is accepted)")));
        }
        for (axis, name) in self.axes.iter().enumerate().filter(|_| !self.is_random) {
            // Of each value an error, unless a point takes it.
            let mut refused: BTreeMap<&String, Option<&ConfigError>> = BTreeMap::new();
            for (point, error) in self.points.iter().zip(&failed) {
                let known = refused.entry(&point[axis]).or_insert(error.as_ref());
                *known = known.and(error.as_ref());
            }
            if let Some((value, error)) = refused.into_iter().find_map(|(value, error)| Some((value, error?)))
            {
                return Err(key(
                    name.clone(),
                    format!("no point with {name} = {value} is accepted: {error}"),
                ));
            }
        }
        Ok(())
    }

    /// Keys of this plan whose values another one does not have, with both. Metrics may differ: results have
    /// all of them.
    pub(super) fn differences(&self, other: &str) -> Vec<String> {
        let keys = |text: &str| -> BTreeMap<String, String> {
            let table: Table = text.parse().unwrap_or_default();
            let shown = |value: Value| value.to_string();
            flat(&table)
                .into_iter()
                .filter(|(key, _)| key != "metrics")
                .map(|(key, v)| (key, shown(v)))
                .collect()
        };
        let (own, other) = (keys(&self.text), keys(other));
        let all: BTreeSet<&String> = own.keys().chain(other.keys()).collect();
        let or_absent = |keys: &BTreeMap<String, String>, key: &String| {
            keys.get(key).cloned().unwrap_or_else(|| "absent".to_owned())
        };
        all.into_iter()
            .filter(|key| own.get(*key) != other.get(*key))
            .map(|key| format!("{key} was {} and is {}", or_absent(&other, key), or_absent(&own, key)))
            .collect()
    }
}

/// The points of the one table that has some.
fn points(table: &Table) -> Result<Points, Wrong> {
    let wrong = |key: &str, message: &str| (key.to_owned(), message.to_owned());
    let ways: Vec<&str> =
        ["grid", "random", "list"].into_iter().filter(|way| table.contains_key(*way)).collect();
    let [way] = ways[..] else {
        return match ways[..] {
            [] => Err(wrong("grid", "is missing: expected one of grid, random and list")),
            [first, ..] => Err((first.to_owned(), format!("{}: expected one of them", ways.join(" and ")))),
        };
    };
    let found = match (way, &table[way]) {
        ("grid", Value::Table(inner)) => grid(inner)?,
        ("random", Value::Table(inner)) => random(inner)?,
        ("list", Value::Array(items)) => list(items)?,
        ("list", _) => return Err(wrong(way, "expected a list of tables ([[list]])")),
        _ => return Err(wrong(way, "expected a table")),
    };
    if found.axes.is_empty() || found.points.is_empty() {
        return Err(wrong(way, "is empty: expected a key such as \"ftl.op\""));
    }
    for key in &found.axes {
        if key != WORKLOAD {
            is_setting(&format!("{way}.{key}"), key)?;
        }
    }
    Ok(found)
}

/// Refuses what is no dotted key of a configuration, or has its own place.
fn is_setting(at: &str, key: &str) -> Result<(), Wrong> {
    let message = match key {
        "workload.seed" => "has its own key: expected seeds",
        _ if !key.contains('.') => "expected a dotted key such as ftl.op, device.channels or workload.depth",
        _ => return Ok(()),
    };
    Err((at.to_owned(), message.to_owned()))
}

/// A number, a list or a range in text, or a list of numbers; 42 if there is none.
fn seeds_of(value: Option<&Value>) -> Result<Vec<u64>, Wrong> {
    let Some(value) = value else { return Ok(vec![42]) };
    let wrong = |message: String| ("seeds".to_owned(), message);
    let text =
        text_of("seeds", value).map_err(|_| wrong("expected seeds such as \"1..8\" or [1, 2, 3]".into()))?;
    seeds(&text).map_err(wrong)
}

fn metrics_of(value: Option<&Value>) -> Result<Vec<String>, Wrong> {
    let wrong = |message: String| ("metrics".to_owned(), message);
    let Some(value) = value else { return Ok(METRICS.map(str::to_owned).to_vec()) };
    let expected =
        || wrong("expected a list of keys such as [\"waf_bytes\", \"latency_ns.write.p99\"]".to_owned());
    let items = value.as_array().filter(|items| !items.is_empty()).ok_or_else(expected)?;
    let mut metrics: Vec<String> = Vec::new();
    for item in items {
        let key = item.as_str().ok_or_else(expected)?;
        if key != USABLE_SHARE && !is_number(key) {
            return Err(wrong(format!(
                "{key}: expected a key of the result document that is a number (docs/formats/result.md), or {USABLE_SHARE}"
            )));
        }
        if metrics.iter().any(|known| known == key) {
            return Err(wrong(format!("{key} is there twice: expected it once")));
        }
        metrics.push(key.to_owned());
    }
    Ok(metrics)
}
