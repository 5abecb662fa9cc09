//! Values that several options share.

use super::Given;
use crate::job::{Amount, BlockSize, Distribution, ZoneShare};
use crate::values::{Expected, KbBase, integer, per_direction, real};

/// Bytes, percent, or zones.
pub(super) fn amount(text: &str, base: KbBase) -> Result<Amount, Expected> {
    if let Some(zones) = text.strip_suffix('z') {
        return zones.parse().map(Amount::Zones).map_err(|_| "a number of zones such as 4z".to_owned());
    }
    match text.strip_suffix('%') {
        Some(percent) => real(percent)
            .ok()
            .filter(|p| (0.0..=100.0).contains(p))
            .map(Amount::Percent)
            .ok_or_else(|| "a percentage from 0% to 100%".to_owned()),
        None => integer(text, base)
            .map(Amount::Bytes)
            .map_err(|_| "a size such as 10g, a percentage such as 80%, or zones such as 4z".to_owned()),
    }
}

/// No request is larger.
const MAX_BLOCK: u64 = 1 << 30;

fn block(text: &str, base: KbBase) -> Result<u64, Expected> {
    integer(text, base)
        .ok()
        .filter(|bytes| (1..=MAX_BLOCK).contains(bytes))
        .ok_or_else(|| "a request size from 1 to 1g, such as 4k".to_owned())
}

pub(super) fn block_sizes(given: Given<'_>, into: &mut [BlockSize; 3]) -> Result<(), Expected> {
    per_direction(given.text()?, into, |text| block(text, given.base).map(BlockSize::fixed))
}

pub(super) fn block_aligns(given: Given<'_>, into: &mut [Option<u64>; 3]) -> Result<(), Expected> {
    per_direction(given.text()?, into, |text| block(text, given.base).map(Some))
}

pub(super) fn block_ranges(given: Given<'_>, into: &mut [BlockSize; 3]) -> Result<(), Expected> {
    per_direction(given.text()?, into, |text| {
        let (a, b) = text.split_once(['-', ':']).ok_or_else(|| "a range such as 1k-64k".to_owned())?;
        let (a, b) = (block(a, given.base)?, block(b, given.base)?);
        Ok(BlockSize { min: a.min(b), max: a.max(b), split: Vec::new() })
    })
}

/// `bssplit`: entries without a share have equal parts of what is left.
pub(super) fn block_splits(given: Given<'_>, into: &mut [BlockSize; 3]) -> Result<(), Expected> {
    let expected = || "sizes with shares that add up to 100, such as 4k/60:64k/40".to_owned();
    per_direction(given.text()?, into, |text| {
        let mut sizes: Vec<(u64, Option<f64>)> = Vec::new();
        for part in text.split(':') {
            let (size, share) = match part.split_once('/') {
                Some((size, "")) => (size, None),
                Some((size, share)) => {
                    let share =
                        real(share).ok().filter(|s| (0.0..=100.0).contains(s)).ok_or_else(expected)?;
                    (size, Some(share))
                }
                None => (part, None),
            };
            sizes.push((block(size, given.base)?, share));
        }
        let given_share: f64 = sizes.iter().filter_map(|(_, share)| *share).sum();
        let open = sizes.iter().filter(|(_, share)| share.is_none()).count();
        let is_short = open == 0 && given_share < 100.0 - 1e-6;
        if given_share > 100.0 + 1e-6 || is_short {
            return Err(format!("{}; these add up to {given_share}", expected()));
        }
        let rest = (100.0 - given_share).max(0.0) / open.max(1) as f64;
        let split: Vec<(u64, f64)> = sizes
            .into_iter()
            .map(|(bytes, share)| (bytes, share.unwrap_or(rest)))
            .filter(|(_, share)| *share > 0.0)
            .collect();
        let min = split.iter().map(|(bytes, _)| *bytes).min().ok_or_else(expected)?;
        let max = split.iter().map(|(bytes, _)| *bytes).max().ok_or_else(expected)?;
        let split = if min == max { Vec::new() } else { split };
        Ok(BlockSize { min, max, split })
    })
}

pub(super) fn distribution(given: Given<'_>, into: &mut [Distribution; 3]) -> Result<(), Expected> {
    let text = given.text()?;
    let (name, rest) = text.split_once(':').unwrap_or((text, ""));
    let law = |default: f64, is_fine: fn(f64) -> bool, what: &str| -> Result<(f64, Option<f64>), Expected> {
        let (value, centre) = match rest.split_once(':') {
            Some((value, centre)) => (value, Some(centre)),
            None => (rest, None),
        };
        let value = if value.is_empty() { Some(default) } else { real(value).ok().filter(|v| is_fine(*v)) };
        let centre = match centre {
            None => None,
            Some(text) => Some(
                real(text)
                    .ok()
                    .filter(|c| (0.0..=1.0).contains(c))
                    .ok_or_else(|| format!("{what}, then a centre from 0 to 1"))?,
            ),
        };
        Ok((value.ok_or_else(|| what.to_owned())?, centre))
    };
    let all = match name {
        "random" if rest.is_empty() => Distribution::Uniform,
        "zipf" => {
            let (theta, centre) = law(1.1, |v| v > 0.0 && v <= 100.0, "zipf:THETA with THETA above 0")?;
            Distribution::Zipf { theta, centre }
        }
        "pareto" => {
            let (h, centre) = law(0.2, |v| v > 0.0 && v < 1.0, "pareto:H with H between 0 and 1")?;
            Distribution::Pareto { h, centre }
        }
        "normal" => {
            let what = "normal:DEVIATION in percent of the region, from 0 to 100";
            let (deviation, centre) = law(0.0, |v| (0.0..=100.0).contains(&v), what)?;
            Distribution::Normal { deviation, centre }
        }
        "zoned" | "zoned_abs" => {
            return per_direction(rest, into, |text| zones(text, name == "zoned_abs", given.base));
        }
        _ => {
            return Err(
                "random, zipf:THETA, pareto:H, normal:DEVIATION, zoned:ACCESS/SIZE:... or zoned_abs:..."
                    .to_owned(),
            );
        }
    };
    into.fill(all);
    Ok(())
}

fn zones(text: &str, is_absolute: bool, base: KbBase) -> Result<Distribution, Expected> {
    let expected = if is_absolute {
        "zones such as 60/10g:40/20g whose first numbers add up to 100"
    } else {
        "zones such as 60/10:40/90 whose first numbers and second numbers each add up to 100"
    };
    let mut zones = Vec::new();
    for part in text.split(':') {
        let (accesses, size) = part.split_once('/').ok_or_else(|| expected.to_owned())?;
        let share = |t: &str| real(t).ok().filter(|s| (0.0..=100.0).contains(s));
        let accesses = share(accesses).ok_or_else(|| expected.to_owned())?;
        let size = if is_absolute {
            integer(size, base).ok().map(Amount::Bytes)
        } else {
            share(size.trim_end_matches('%')).map(Amount::Percent)
        };
        zones.push(ZoneShare { accesses, size: size.ok_or_else(|| expected.to_owned())? });
    }
    let accesses: f64 = zones.iter().map(|z| z.accesses).sum();
    let percents: f64 = zones
        .iter()
        .map(|z| match z.size {
            Amount::Percent(p) => p,
            _ => 0.0,
        })
        .sum();
    let is_whole = |sum: f64| (sum - 100.0).abs() < 1e-6;
    let has_empty =
        zones.iter().any(|z| z.accesses > 0.0 && matches!(z.size, Amount::Bytes(0) | Amount::Percent(0.0)));
    if !is_whole(accesses) || !is_absolute && !is_whole(percents) || has_empty {
        return Err(expected.to_owned());
    }
    Ok(Distribution::Zoned(zones))
}
