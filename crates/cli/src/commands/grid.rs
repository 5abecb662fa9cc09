//! Several values where one is taken: `--set ftl.op=0.07,0.28`, `--set ftl.streams=1..8`,
//! `--set ftl.op=0.07..0.28:4`, `--device x,y`. A comparison runs every combination.

use super::typed;
use crate::args::CompareArgs;
use crate::console::{Failure, Result};
use std::path::Path;

/// Combinations that a comparison has at most.
const MOST: usize = 1000;

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
        if all.len() > MOST {
            return Err(Failure::usage(format!(
                "--set {pair}: {} combinations, and more with other lists: expected at most {MOST}",
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

/// The parts of a list, ranges among them; nothing for a single value.
fn values(text: &str) -> Result<Option<Vec<String>>, String> {
    let mut all = Vec::new();
    for part in text.split(',').map(str::trim) {
        match part.split_once("..") {
            Some((from, to)) => all.extend(range(part, from, to)?),
            None => all.push(part.to_owned()),
        }
    }
    Ok(Some(all).filter(|_| text.contains(',') || text.contains("..")))
}

/// `1..8`: every whole number; `0.07..0.28:4`: so many, evenly spaced.
fn range(part: &str, from: &str, to: &str) -> Result<Vec<String>, String> {
    let expected = || format!("'{part}': expected a range such as 1..8, or 0.07..0.28:4 for four values");
    if let Some((to, count)) = to.split_once(':') {
        let percents = [from, to].map(|text| text.trim().strip_suffix('%'));
        let (from, to, unit) = match percents {
            [Some(from), Some(to)] => (from, to, "%"),
            _ => (from, to, ""),
        };
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
        let (from, to) = number(from).zip(number(to)).ok_or_else(expected)?;
        let count: usize =
            count.trim().parse().ok().filter(|n| (2..=MOST).contains(n)).ok_or_else(expected)?;
        let step = (to - from) / (count - 1) as f64;
        // As many digits as a person would type.
        let shown = |at: usize| ((from + step * at as f64) * 1e6).round() / 1e6;
        return Ok((0..count).map(|at| format!("{}{unit}", shown(at))).collect());
    }
    let whole = |text: &str| text.trim().parse::<u64>().ok();
    let (from, to) = whole(from).zip(whole(to)).filter(|(from, to)| from <= to).ok_or_else(expected)?;
    if to - from >= MOST as u64 {
        return Err(expected());
    }
    Ok((from..=to).map(|n| n.to_string()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges_are_values() {
        let all = |text: &str| values(text).unwrap().map(|values| values.join(" "));
        assert_eq!(all("0.07"), None);
        assert_eq!(all("0.07,0.28").unwrap(), "0.07 0.28");
        assert_eq!(all("1..4").unwrap(), "1 2 3 4");
        assert_eq!(all("0,4..6, 8").unwrap(), "0 4 5 6 8");
        assert_eq!(all("0.07..0.28:4").unwrap(), "0.07 0.14 0.21 0.28");
        assert_eq!(all("7%..28%:4").unwrap(), "7% 14% 21% 28%");
        for wrong in ["1..", "7%..0.28:4", "4..1", "a..b", "0..1:1", "0..x:3", "1..100000", "../faults.toml"]
        {
            assert!(values(wrong).unwrap_err().contains("expected a range"), "{wrong}");
        }
    }
}
