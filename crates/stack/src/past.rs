//! Results of earlier runs, read from documents, as runs that can be compared.
//!
//! A document has no label, so labels are made as `compare` makes them, from the configurations; documents
//! whose configurations do not tell them apart have the names of their files.

use crate::config::Typed;
use crate::config::labels::{Keys, differences, keys_of, with_keys};
use crate::trust::tell_alike;
use nandscape_report::Run;
use nandscape_sim::RunResult;
use nandscape_sim::result::TrustNote;
use nandscape_sim::trust::{ALIKE, OTHER_REQUESTS, OTHER_SETTINGS};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Tables that a label depends on. Others may name files, which a document of somebody else must not open.
const TABLES: [&str; 8] = ["device", "ftl", "stack", "zone", "vector", "f2fs", "cache", "disk"];
/// Most keys in a label; runs that differ in more have the names of their files instead.
const MOST_KEYS: usize = 3;

/// A document that was read.
#[derive(Clone, Debug)]
pub struct Past {
    /// The file that it was in, as it was given.
    pub file: String,
    /// The document.
    pub result: RunResult,
}

/// Runs with labels that differ within each workload, and with the notes of trust that concern several runs.
/// Their series are not known.
pub fn past_runs(documents: Vec<Past>) -> Vec<Run> {
    let labels = labels(&documents);
    let is_several = documents.len() > 1;
    let specs: BTreeSet<&str> = documents.iter().map(spec_of).collect();
    let has_one_workload = specs.len() < 2;
    let named = labels.into_iter().zip(documents);
    let mut runs: Vec<Run> = named
        .map(|(label, Past { result, .. })| {
            let spec = &result.workload.spec;
            let label = if has_one_workload { label } else { format!("{label} | {spec}") };
            Run { label, result, series: None, jobs: None }
        })
        .collect();
    if is_several {
        for run in &mut runs {
            // Those of the comparison that the document was part of name its runs.
            run.result.trust.retain(|note| {
                ![ALIKE, OTHER_REQUESTS, OTHER_SETTINGS].map(|check| check.name).contains(&&*note.check)
            });
        }
        tell_other_settings(&mut runs);
        tell_other_requests(&mut runs);
        tell_alike(&mut runs);
    }
    runs
}

fn spec_of(document: &Past) -> &str {
    &document.result.workload.spec
}

/// A label for each document that no other one of the same workload has.
fn labels(documents: &[Past]) -> Vec<String> {
    // Runs are only compared within their workload.
    let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, document) in documents.iter().enumerate() {
        groups.entry(spec_of(document)).or_default().push(index);
    }
    let mut labels = vec![String::new(); documents.len()];
    for group in groups.values() {
        let named: Vec<(String, Keys)> = group
            .iter()
            .map(|index| &documents[*index].result.run.config)
            .map(|config| (label_of(config), keys_of(config)))
            .collect();
        for (((label, _), keys), index) in named.iter().zip(differences(&named)).zip(group) {
            labels[*index] = with_keys(label, &few(keys));
        }
        for (index, place) in places(documents, &labels, group) {
            labels[index].push_str(&place);
        }
    }
    labels
}

/// Keys that are few enough for a label: of devices that differ in their presets only these, and nothing
/// where there are too many still.
fn few(mut keys: Vec<(String, String)>) -> Vec<(String, String)> {
    if keys.len() > MOST_KEYS && keys.iter().any(|(key, _)| key == "device.preset") {
        keys.retain(|(key, _)| key == "device.preset" || !key.starts_with("device."));
    }
    if keys.len() > MOST_KEYS { Vec::new() } else { keys }
}

/// What tells documents of the same label apart: the file, the whole path where files are called alike, and
/// the number of the run where a file has several.
fn places(documents: &[Past], labels: &[String], group: &[usize]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for index in group {
        let alike: Vec<usize> =
            group.iter().copied().filter(|other| labels[*other] == labels[*index]).collect();
        if alike.len() < 2 {
            continue;
        }
        let path = &documents[*index].file;
        let others = || alike.iter().filter(|other| *other != index).map(|other| &documents[*other].file);
        let name = if others().any(|other| other != path && name_of(other) == name_of(path)) {
            path
        } else {
            name_of(path)
        };
        // A file may be given twice, so that its runs are numbered through.
        let number = documents[..=*index].iter().filter(|document| document.file == *path).count();
        let is_again = others().any(|other| other == path);
        found
            .push((*index, if is_again { format!(" ({name}, run {number})") } else { format!(" ({name})") }));
    }
    found
}

fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// What a run of this configuration is called. One that this version does not accept, such as one with keys
/// of a later version, has the name of its cache or layer.
fn label_of(config: &Value) -> String {
    let checked = || {
        let mut tables = config.as_object()?.clone();
        tables.retain(|name, _| TABLES.contains(&name.as_str()));
        let text = toml::to_string(&Value::Object(tables)).ok()?;
        let mut typed = Typed::new();
        typed.merge_text("config", &text).ok()?;
        Some(typed.check().ok()?.label())
    };
    let named = || {
        let name = |pointer| config.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        name("/cache/preset").or_else(|| name("/ftl/kind"))
    };
    checked().or_else(named).unwrap_or_else(|| "run".to_owned())
}

/// Says of complete runs of one workload, read in the same form, that they had different requests.
fn tell_other_requests(runs: &mut [Run]) {
    let mut hashes: BTreeMap<(String, String, bool), BTreeSet<String>> = BTreeMap::new();
    // Stores of files get other requests than block devices, of the same load.
    let form = |run: &Run| {
        let workload = &run.result.workload;
        (workload.spec.clone(), workload.format.clone(), run.result.between.objects.is_some())
    };
    for run in runs.iter().filter(|run| run.is_complete()) {
        hashes.entry(form(run)).or_default().insert(run.result.run.workload_hash.clone());
    }
    for run in runs.iter_mut().filter(|run| run.is_complete()) {
        let count = hashes[&form(run)].len();
        if count > 1 {
            let message = format!(
                "the runs of this workload had {count} different sequences of requests (workload_hash): another seed or \
                 limit, another file of that name, or a generator on another capacity; their figures differ for that \
                 reason too, and compare gives all runs the same requests"
            );
            run.result.trust.push(TrustNote { check: OTHER_REQUESTS.name.to_owned(), message });
        }
    }
}

/// Tables in which runs that are compared are expected to be the same. Others name what is compared, or
/// belong to that.
const EXPECTED_ALIKE: [&str; 6] = ["device", "disk", "sets", "namespaces", "faults", "workload"];
/// Most keys, and most values of a key, that a note names.
const MOST_NAMED: usize = 5;

/// Says of runs of one workload in which keys they differ that no label of them has.
fn tell_other_settings(runs: &mut [Run]) {
    let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, run) in runs.iter().enumerate() {
        groups.entry(run.result.workload.spec.clone()).or_default().push(index);
    }
    for group in groups.values() {
        let of_runs: Vec<Keys> = group.iter().map(|index| keys_of(&runs[*index].result.run.config)).collect();
        let all: BTreeSet<&String> = of_runs.iter().flat_map(Keys::keys).collect();
        let is_named =
            |key: &str| group.iter().any(|index| runs[*index].label.contains(&format!(", {key}=")));
        let mut differing: Vec<(&str, BTreeSet<&str>)> = all
            .into_iter()
            .filter(|key| EXPECTED_ALIKE.contains(&key.split('.').next().unwrap_or_default()))
            .filter(|key| !is_named(key))
            .map(|key| {
                (key.as_str(), of_runs.iter().map(|keys| keys.get(key).map_or("-", String::as_str)).collect())
            })
            .filter(|(_, values): &(_, BTreeSet<&str>)| values.len() > 1)
            .collect();
        // Presets differ in many keys.
        let has_presets =
            is_named("device.preset") || differing.iter().any(|(key, _)| *key == "device.preset");
        differing.retain(|(key, _)| !has_presets || *key == "device.preset" || !key.starts_with("device."));
        if differing.is_empty() {
            continue;
        }
        let message =
            format!("the runs of this workload differ in other settings too: {}", few_settings(&differing));
        for index in group {
            let check = OTHER_SETTINGS.name.to_owned();
            runs[*index].result.trust.push(TrustNote { check, message: message.clone() });
        }
    }
}

/// Keys with their values, as many as fit a line; '-' stands for an absent one.
fn few_settings(differing: &[(&str, BTreeSet<&str>)]) -> String {
    let setting = |(key, values): &(&str, BTreeSet<&str>)| {
        let named: Vec<&str> = values.iter().copied().take(MOST_NAMED).collect();
        let more = if values.len() > MOST_NAMED { ", ..." } else { "" };
        format!("{key} ({}{more})", named.join(", "))
    };
    let named: Vec<String> = differing.iter().take(MOST_NAMED).map(setting).collect();
    let more = differing.len().saturating_sub(MOST_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    named.join(", ") + &more
}
