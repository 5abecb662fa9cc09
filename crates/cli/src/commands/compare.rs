//! `nandscape compare`.

use super::{DefaultDrive, deliver, grid, run_options, share_of, typed};
use crate::args::CompareArgs;
use crate::console::{Console, Result, stop_on_ctrl_c};
use nandscape_core::Info;
use nandscape_report::render_text;
use nandscape_stack::cache::{NO_CACHE, knows};
use nandscape_stack::kinds::{KINDS, StackKind};
use nandscape_stack::{CompareOptions, Said, StackConfig, Typed, fit, said};
use std::collections::BTreeMap;

pub fn run(args: &CompareArgs, console: Console) -> Result<()> {
    stop_on_ctrl_c()?;
    let assumed = assumed(args)?;
    let mut args = args.clone();
    assumed.take(&mut args.stack, &mut args.fit);
    let all_layers = args.ftl == ["all"];
    if all_layers {
        args.ftl = nandscape_ftl::registry::infos().iter().map(|info| info.name.to_owned()).collect();
    }
    let (mut configs, mut notes) = (Vec::new(), BTreeMap::new());
    for args in grid::devices(&args) {
        let (own, note) = fitted(&args, assumed)?;
        // Runs that cannot be are left out, so notes go by the configuration.
        if let Some(note) = note {
            let seeds = args.stack.several_seeds();
            for config in &own {
                notes.insert(config.hash(), note.clone());
                for seed in seeds {
                    notes.insert(config.with_seed(*seed)?.hash(), note.clone());
                }
            }
        }
        configs.extend(own);
    }
    let bar = console.progress("compare");
    let progress = |label: &str, progress| bar.show_run(label, progress);
    let options = run_options(&args.output, &args.state, &progress)?;
    // A layer that was asked for by name must run; 'all' means all that can.
    let how = CompareOptions {
        jobs: args.jobs,
        seeds: args.stack.several_seeds(),
        skip_unsuited: all_layers
            || (args.ftl.is_empty() && args.cache.is_empty() && args.stack.device.stack.is_none()),
    };
    let runs = nandscape_stack::compare(&configs, &args.workloads, how, &options);
    bar.finish();
    let mut runs = runs?;
    for run in &mut runs {
        run.result.notes.extend(notes.get(&run.result.run.config_hash).cloned());
    }
    deliver(&runs, &args.output, true, || render_text(&runs, console.width()), console)
}

/// What a fitted device is compared as, unless something else is asked for.
const TWO_DRIVES: &str = "block:ftl.op=0.07,block:ftl.op=0.28";
/// And with streams, where a workload says of its writes by what to tell them apart.
const STREAMS: &str = ":ftl.streams=8";
const BY_FILES: &str = ":host.policy=names";

/// The configurations on one device, which fits the workloads if it is to, and what was done for that.
fn fitted(args: &CompareArgs, assumed: DefaultDrive) -> Result<(Vec<StackConfig>, Option<String>)> {
    let Some(share) = args.fit.share() else { return Ok((configs_of(args)?, None)) };
    let mut args = args.clone();
    let sets = |args: &CompareArgs, key: &str| {
        args.stack.device.sets.iter().any(|pair| pair.trim_start().starts_with(key))
    };
    let is_any = args.ftl.is_empty() && args.cache.is_empty() && args.stack.device.stack.is_none();
    let is_one = sets(&args, "ftl.op");
    if is_any && is_one {
        args.ftl = vec!["page-map".to_owned()];
    } else if is_any {
        args.stack.device.stack = Some(TWO_DRIVES.to_owned());
    }
    let mut configs = configs_of(&args)?;
    // Unless something was said of streams.
    if assumed == DefaultDrive::Filled && is_any && !sets(&args, "host.") && !sets(&args, "ftl.streams") {
        let by = match said(&configs[0], &args.workloads)? {
            Said::Files => Some(BY_FILES),
            Said::Hints => Some(""),
            Said::Nothing => None,
        };
        if let Some(by) = by {
            let (without, with) = if is_one { ("block", "block") } else { (TWO_DRIVES, "block:ftl.op=0.07") };
            args.ftl.clear();
            args.stack.device.stack = Some(format!("{without},{with}{STREAMS}{by}"));
            configs = configs_of(&args)?;
        }
    }
    let fitted = fit(&configs, &args.workloads, share_of(share)?, args.stack.says_precondition())?;
    let pairs = fitted.sets.into_iter().map(|(key, value)| format!("{key}={value}"));
    args.stack.device.sets.extend(pairs);
    Ok((configs_of(&args)?, Some(fitted.note + &assumed.note())))
}

/// What is assumed of the device: nothing where its layers are named.
fn assumed(args: &CompareArgs) -> Result<DefaultDrive> {
    if !args.ftl.is_empty() {
        return Ok(DefaultDrive::No);
    }
    // Of lists, any value says the same; of caches, the disk alone says nothing.
    let args = &grid::combinations(args)?[0];
    let configs = || match (&args.stack.device.stack, args.cache.is_empty()) {
        (_, false) => of_caches(args),
        (Some(_), _) => of_layers(args, None),
        (None, _) => Ok(vec![typed(&args.stack, None)?.check()?]),
    };
    DefaultDrive::of(&args.stack, &args.fit, &args.workloads, configs)
}

/// The configurations of every combination of settings.
fn configs_of(args: &CompareArgs) -> Result<Vec<StackConfig>> {
    let mut configs = Vec::new();
    for args in grid::combinations(args)? {
        configs.extend(if args.cache.is_empty() { of_layers(&args, None)? } else { of_caches(&args)? });
    }
    Ok(configs)
}

/// One configuration for each stack, and each layer that is named of a stack that does not have its own;
/// below this cache, if there is one. Where no stack is named, one for each layer.
fn of_layers(args: &CompareArgs, cache: Option<&str>) -> Result<Vec<StackConfig>> {
    let named: Vec<&str> = args.stack.device.stack.iter().flat_map(|list| list.split(',')).collect();
    // The disk alone is the same whatever the flash is.
    let is_disk_alone = cache == Some(NO_CACHE);
    let stacks: Vec<Option<&str>> = if named.is_empty() || is_disk_alone {
        vec![None]
    } else {
        named.iter().copied().map(Some).collect()
    };
    let others: Vec<&Info> = named.iter().filter_map(|stack| kind_of(stack)?.layer).collect();
    let mut configs = Vec::new();
    for stack in &stacks {
        let mut args = args.clone();
        let mut words = stack.iter().flat_map(|stack| stack.split(':'));
        let name = words.next();
        // Keys of this stack alone.
        let own: Vec<&str> = words.collect();
        let check = |mut typed: Typed| {
            own.iter().try_for_each(|pair| typed.set_pair(pair))?;
            if let Some(cache) = cache {
                typed.set("cache.preset", cache)?;
            }
            typed.check()
        };
        args.stack.device.stack = name.map(str::to_owned);
        if let Some(layer) = name.and_then(kind_of).and_then(|kind| kind.layer) {
            keep_keys_of(&mut args, layer, stacks.len());
            configs.push(check(typed(&args.stack, None)?)?);
            continue;
        }
        let infos = nandscape_ftl::registry::infos();
        // What only the layer of another stack knows is not for this one.
        retain_keys(&mut args.stack.device.sets, "ftl.", |key| {
            infos.iter().any(|info| info.has(key)) || !others.iter().any(|info| info.has(key))
        });
        if cache.is_some() && args.ftl.is_empty() {
            configs.push(check(typed(&args.stack, None)?)?);
            continue;
        }
        let mut names: Vec<String> = args.ftl.clone();
        if names.is_empty() && stack.is_some() {
            names.push("page-map".to_owned());
        } else if names.is_empty() {
            names = infos.iter().map(|info| info.name.to_owned()).collect();
        }
        for name in &names {
            configs.push(check(typed_for(&args, name)?)?);
        }
    }
    Ok(configs)
}

/// The stack that a word of the list names, before keys of its own.
fn kind_of(stack: &str) -> Option<&'static StackKind> {
    let name = stack.split(':').next();
    KINDS.iter().find(|kind| Some(kind.info.name) == name)
}

/// Among several stacks, `ftl.*` settings apply to the layers that have such a key.
fn keep_keys_of(args: &mut CompareArgs, layer: &Info, stacks: usize) {
    if stacks > 1 {
        retain_keys(&mut args.stack.device.sets, "ftl.", |key| layer.has(key));
    }
}

/// Settings without those of a table whose key is not to be kept.
fn retain_keys(sets: &mut Vec<String>, table: &str, keep: impl Fn(&str) -> bool) {
    sets.retain(|pair| {
        let key = pair.split('=').next().unwrap_or_default().trim();
        key.strip_prefix(table).is_none_or(&keep)
    });
}

/// One configuration for each cache, and each stack and layer of its flash. `cache.*` settings apply to the
/// caches that have such a key, and at least one must.
fn of_caches(args: &CompareArgs) -> Result<Vec<StackConfig>> {
    let pairs = args.stack.device.sets.iter().filter_map(|pair| pair.split_once('='));
    let pairs: Vec<(&str, &str)> =
        pairs.filter_map(|(key, value)| Some((key.trim().strip_prefix("cache.")?, value.trim()))).collect();
    let mut configs = Vec::new();
    for cache in &args.cache {
        let mut args = args.clone();
        retain_keys(&mut args.stack.device.sets, "cache.", |key| {
            knows(cache, key, &pairs) || !args.cache.iter().any(|other| knows(other, key, &pairs))
        });
        configs.extend(of_layers(&args, Some(cache))?);
    }
    Ok(configs)
}

/// The configuration for one translation layer: `ftl.*` settings apply to the layers that have such a key,
/// and at least one must.
fn typed_for(args: &CompareArgs, name: &str) -> Result<Typed> {
    let infos = nandscape_ftl::registry::infos();
    let is_compared = |info: &Info| args.ftl.is_empty() || args.ftl.iter().any(|ftl| ftl == info.name);
    let mut stack = args.stack.clone();
    retain_keys(&mut stack.device.sets, "ftl.", |key| {
        let known_here = infos.iter().any(|info| info.name == name && info.has(key));
        // A key that no compared layer knows stays, so that the check refuses it by name.
        known_here || !infos.iter().any(|info| is_compared(info) && info.has(key))
    });
    typed(&stack, Some(name))
}
