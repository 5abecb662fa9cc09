//! `nandscape list`: every registry.

use super::serve::FRONT_ENDS;
use crate::args::{ListArgs, Listing};
use crate::console::{Console, Result};
use clap::ValueEnum;
use nandscape_cache::metadata;
use nandscape_cache::presets::{self as designs, PRESETS, Preset};
use nandscape_core::Info;
use nandscape_disk::registry::DiskPreset;
use nandscape_experiments::reproduce;
use nandscape_media::scheduler::SCHEDULERS;
use nandscape_policies::admission::ADMISSIONS;
use nandscape_policies::cleaning::{CAPS, CLEANINGS};
use nandscape_policies::eviction::EVICTIONS;
use nandscape_policies::simulate::BELADY;
use nandscape_sim::trust::{CHECKS, OTHER_CHECKS};
use nandscape_stack::interfaces::INTERFACES;
use nandscape_stack::{cache, config, faults, host, journal, kinds, partition, presets};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt::Write;

pub fn run(args: &ListArgs, console: Console) -> Result<()> {
    let wanted: Vec<Listing> =
        args.what.map_or_else(|| Listing::value_variants().to_vec(), |what| vec![what]);
    if args.json {
        let tables: serde_json::Map<String, serde_json::Value> = wanted
            .iter()
            .map(|what| {
                let infos = match what {
                    Listing::Caches => serde_json::to_value(PRESETS),
                    Listing::Reproductions => serde_json::to_value(experiments()),
                    what => serde_json::to_value(infos(*what)),
                };
                (title(*what), infos.expect("registry entries are plain data"))
            })
            .collect();
        return console.json(&tables);
    }
    let mut text = String::new();
    for (i, what) in wanted.iter().enumerate() {
        if wanted.len() > 1 {
            let _ = writeln!(text, "{}{}:", if i > 0 { "\n" } else { "" }, title(*what));
        }
        let settings: &Settings = match what {
            Listing::Caches if args.detail => {
                &|name| designs::find(name).map(Preset::settings).unwrap_or_default()
            }
            Listing::Disks if args.detail => &settings_of_disk,
            _ => &|_| Vec::new(),
        };
        if *what == Listing::Reproductions {
            text.push_str(&reproductions());
            continue;
        }
        render(&mut text, &infos(*what), args.detail || *what == Listing::Keys, settings);
    }
    console.result(&text)
}

/// The name as it is typed.
fn title(what: Listing) -> String {
    what.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// A published experiment: what it is, and how it is run.
#[derive(Serialize)]
struct Experiment {
    #[serde(flatten)]
    info: Info,
    /// `seeded`, `fixed`, or `live`.
    runs: &'static str,
    /// What runs those that `reproduce` does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'static str>,
}

fn experiments() -> Vec<Experiment> {
    let own = reproduce::REPRODUCTIONS.iter().map(|entry| {
        let runs = if entry.is_seeded() { "seeded" } else { "fixed" };
        Experiment { info: entry.info, runs, command: None }
    });
    let live = reproduce::LIVE.iter().map(|live| Experiment {
        info: live.info,
        runs: "live",
        command: Some(live.command),
    });
    own.chain(live).collect()
}

/// Every published experiment, a line for each.
pub fn reproductions() -> String {
    let all = experiments();
    let width = all.iter().map(|one| one.info.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for Experiment { info, runs, command } in all {
        let _ = write!(text, "{:width$}  {runs:6}  {}; source: {}", info.name, info.summary, info.source);
        let _ = command.map(|command| write!(text, "; run by: {command}"));
        text.push('\n');
    }
    text.push_str(
        "\nseeded: figures depend on --seed; fixed: they do not; live: a command of its own runs it, in a checkout \
         of the sources\n",
    );
    text
}

/// Every key that `--set` takes, with its table.
pub fn keys() -> Vec<String> {
    let table = |info: &Info| if info.name == CAPS.name { "cache" } else { info.name };
    let tables = infos(Listing::Keys).into_iter().map(|info| (table(&info), info));
    let layers = infos(Listing::Ftls).into_iter().map(|info| ("ftl", info));
    let key = |(table, info): (&'static str, Info)| {
        info.params.iter().map(move |param| format!("{table}.{}", param.name)).collect::<Vec<_>>()
    };
    let all: BTreeSet<String> = tables.chain(layers).flat_map(key).collect();
    all.into_iter().collect()
}

pub fn infos(what: Listing) -> Vec<Info> {
    match what {
        Listing::Devices => presets::PRESETS.iter().map(|p| p.info).collect(),
        Listing::Ftls => {
            let ftls = nandscape_ftl::registry::infos().into_iter().chain(kinds::layers());
            // Several stacks have zones on the same table.
            let mut seen = BTreeSet::new();
            ftls.copied().filter(|info| seen.insert(info.name)).collect()
        }
        Listing::Victims => nandscape_ftl::victim::VICTIMS.iter().map(|v| v.info).collect(),
        Listing::Policies => host::infos(),
        Listing::Caches => PRESETS.iter().map(|preset| preset.info).collect(),
        Listing::Evictions => EVICTIONS.iter().chain([&BELADY]).copied().collect(),
        Listing::Admissions => ADMISSIONS.iter().map(|entry| entry.info).collect(),
        Listing::Cleanings => CLEANINGS.iter().map(|entry| entry.info).collect(),
        Listing::Metadata => metadata::KINDS.iter().map(|kind| kind.info).collect(),
        Listing::Disks => disks(),
        Listing::Workloads => nandscape_trace::generators::GENERATORS.iter().map(|g| g.info).collect(),
        Listing::Formats => nandscape_trace::formats::FORMATS.iter().map(|f| f.info).collect(),
        Listing::Keys => {
            let device = [config::DEVICE, config::TIMING, partition::SETS, partition::NAMESPACES];
            let others = [
                kinds::STACK,
                kinds::VECTOR,
                kinds::ZONE,
                host::HOST,
                cache::CACHE,
                nandscape_cache::compose::KEYS,
                cache::DISK,
                journal::JOURNAL,
                faults::FAULTS,
                config::WORKLOAD,
                // Taken by every cleaning policy.
                CAPS,
            ];
            device.into_iter().chain(interfaces()).chain(others).collect()
        }
        Listing::Reproductions => reproduce::REPRODUCTIONS.iter().map(|r| r.info).collect(),
        Listing::Outputs => super::outputs().map(|output| output.info).collect(),
        Listing::Stacks => kinds::KINDS.iter().map(|kind| kind.info).collect(),
        Listing::Interfaces => interfaces().collect(),
        Listing::FrontEnds => FRONT_ENDS.iter().map(|entry| entry.info).collect(),
        Listing::Checks => {
            CHECKS.iter().map(|check| check.info).chain(OTHER_CHECKS.iter().copied()).collect()
        }
        Listing::Schedulers => SCHEDULERS.iter().map(|entry| entry.info).collect(),
    }
}

fn interfaces() -> impl Iterator<Item = Info> {
    INTERFACES.iter().map(|entry| entry.info)
}

type Settings = dyn Fn(&str) -> Vec<(String, String)>;

/// Kinds of stores, then presets of them.
fn disks() -> Vec<Info> {
    let preset =
        |preset: &DiskPreset| Info { name: preset.name, summary: preset.summary, source: "", params: &[] };
    let kinds = nandscape_disk::registry::DISKS.iter().map(|entry| entry.info);
    kinds.chain(nandscape_disk::registry::PRESETS.iter().map(preset)).collect()
}

fn settings_of_disk(name: &str) -> Vec<(String, String)> {
    let Some(preset) = nandscape_disk::registry::PRESETS.iter().find(|preset| preset.name == name) else {
        return Vec::new();
    };
    let mut settings = vec![("kind".to_owned(), preset.kind.to_owned())];
    settings.extend(preset.values.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    if let Some([read, write, random_read, random_write]) = preset.published_mb_per_s {
        settings.push((
            "published MB/s".to_owned(),
            format!(
                "{read} and {write} read and written in order, {random_read} and {random_write} at random"
            ),
        ));
    }
    settings
}

fn render(text: &mut String, infos: &[Info], with_params: bool, settings: &Settings) {
    let width = infos.iter().map(|info| info.name.len()).max().unwrap_or(0);
    for info in infos {
        let _ = write!(text, "{:width$}  {}", info.name, info.summary);
        if !info.source.is_empty() {
            let _ = write!(text, "; source: {}", info.source);
        }
        text.push('\n');
        for (key, value) in settings(info.name) {
            let _ = writeln!(text, "    {key:22} {value}");
        }
        if with_params {
            for param in info.params {
                let default = if param.default.is_empty() {
                    String::new()
                } else {
                    format!(", default {}", param.default)
                };
                let _ = writeln!(text, "    {:22} {} ({}{default})", param.name, param.summary, param.kind);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_core::Params;
    use std::collections::BTreeMap;

    #[test]
    fn defaults_are_valid_and_no_two_names_have_the_same_number() {
        let mut names = BTreeMap::new();
        for info in Listing::value_variants().iter().flat_map(|what| infos(*what)) {
            let _ = Params::defaults(&info);
            // Names may be typed in any case.
            assert_eq!(info.name, info.name.to_ascii_lowercase());
            for param in info.params {
                assert_eq!(*names.entry(param.id).or_insert(param.name), param.name, "{}", info.name);
            }
        }
        assert!(names.len() > 200, "{}", names.len());
    }
}
