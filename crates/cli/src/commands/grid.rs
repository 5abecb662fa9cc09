//! Several values where one is taken: `--set ftl.op=0.07,0.28`, `--set ftl.streams=1..8`,
//! `--set ftl.op=0.07..0.28:4`, `--device x,y`. A comparison runs every combination.

use super::typed;
use crate::args::CompareArgs;
use crate::console::{Failure, Result};
use nandscape_stack::{MOST_VALUES, values};
use std::path::Path;

/// Devices of a list; one, or none, stays as it is.
pub fn devices(args: &CompareArgs) -> Vec<CompareArgs> {
    let Some(list) = args.stack.device.device.as_deref().filter(|name| !Path::new(name).exists()) else {
        return vec![args.clone()];
    };
    let with = |device: &str| {
        let mut args = args.clone();
        args.stack.device.device = Some(device.trim().to_owned());
        args
    };
    list.split(',').map(with).collect()
}

/// Every combination of the values of `--set`. A value that has a comma or two points by itself, such as
/// times of reads by page type, is one value.
pub fn combinations(args: &CompareArgs) -> Result<Vec<CompareArgs>> {
    let mut all = vec![args.clone()];
    for (at, pair) in args.stack.device.sets.iter().enumerate() {
        let Some(values) = listed(args, pair) else { continue };
        let (key, _) = pair.split_once('=').expect("a list is the value of a key");
        if key.trim_start().starts_with("workload.") {
            return Err(Failure::usage(format!(
                "--set {pair}: all runs read the workload alike: expected one value"
            )));
        }
        let with = |args: &CompareArgs| {
            let of = |value: &String| {
                let mut args = args.clone();
                args.stack.device.sets[at] = format!("{key}={value}");
                args
            };
            values.iter().map(of).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(with).collect();
        if all.len() > MOST_VALUES {
            return Err(Failure::usage(format!(
                "--set {pair}: {} combinations, and more with other lists: expected at most {MOST_VALUES}",
                all.len()
            )));
        }
    }
    Ok(all)
}

/// The values of a setting that is a list, unless its key takes such a text as one value. What is neither is
/// refused by name later.
fn listed(args: &CompareArgs, pair: &str) -> Option<Vec<String>> {
    let (key, text) = pair.split_once('=')?;
    let values = values(text.trim()).ok().flatten()?;
    Some(values).filter(|values| !is_value(args, key, text) && is_value(args, key, &values[0]))
}

/// Whether something that is compared takes this value.
fn is_value(args: &CompareArgs, key: &str, value: &str) -> bool {
    let stacks = args.stack.device.stack.as_deref().map_or_else(Vec::new, |list| list.split(',').collect());
    let stacks = stacks.into_iter().map(|stack| stack.split(':').next().map(str::to_owned));
    let or_none = |named: Vec<Option<String>>| if named.is_empty() { vec![None] } else { named };
    let some = |names: &[String]| or_none(names.iter().cloned().map(Some).collect());
    or_none(stacks.collect()).into_iter().any(|stack| {
        some(&args.cache).into_iter().any(|cache| {
            some(&args.ftl).into_iter().any(|ftl| {
                let mut own = args.stack.clone();
                own.device.stack.clone_from(&stack);
                own.device.sets.retain(|pair| !pair.contains(',') && !pair.contains(".."));
                own.device.sets.extend(cache.iter().map(|cache| format!("cache.preset={cache}")));
                own.device.sets.push(format!("{key}={value}"));
                typed(&own, ftl.as_deref()).and_then(|typed| Ok(typed.check()?)).is_ok()
            })
        })
    })
}
