//! From keys to what each of them means.

use super::Member;
use super::keys::{ADMISSION, BLOCK, CLEANING, CLUSTER, EVICTION, MAP, METADATA, MODE, Typed, WAYS, names};
use crate::metadata;
use crate::mode::Mode;
use crate::presets::{Choice, Grows, Preset};
use nandscape_core::{ParamError, Params, Word as _, registry};
use nandscape_policies::Map;
use nandscape_policies::admission::{ADMISSIONS, Chain};
use nandscape_policies::cleaning;
use nandscape_policies::eviction::{EVICTIONS, EvictionSpec};

/// What was typed for a member of a preset's choices, over what the preset says.
fn member(name: &str, choices: &[Choice], typed: Typed) -> Member {
    let preset = choices.iter().filter(|choice| choice.name == name).flat_map(|choice| choice.params);
    let mut all: Typed = preset.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    all.extend(typed);
    Member { name: name.to_owned(), typed: all }
}

/// The names of choices as they would be typed.
fn listed(choices: &[Choice]) -> String {
    choices.iter().map(|choice| choice.name).collect::<Vec<_>>().join(",")
}

/// Slots of a set where a preset without sets is told to have some.
const DEFAULT_WAYS: u32 = 512;
const CLUSTER_BYTES: u64 = 256 << 10;

pub(super) fn block(own: &Params, preset: &Preset) -> Result<u32, ParamError> {
    let Some(bytes) = own.get(BLOCK) else { return Ok(preset.block_bytes) };
    let (least, most) = preset.block_range;
    if bytes.is_power_of_two() && (least..=most).contains(&bytes) {
        return Ok(bytes);
    }
    let format = |bytes: u32| nandscape_core::units::format_bytes(bytes.into());
    let range = if least == most {
        format(least)
    } else {
        format!("a power of two from {} to {}", format(least), format(most))
    };
    Err(own.error(BLOCK, format!("{range} with preset {}", preset.info.name)))
}

pub(super) fn metadata(own: &Params, preset: &Preset) -> Result<&'static str, ParamError> {
    let name = own.get(METADATA).unwrap_or(preset.metadata.name);
    let found = metadata::find(name).map(|kind| kind.info.name);
    found.map_err(|_| {
        let known: Vec<_> = metadata::KINDS.iter().map(|kind| kind.info.name).collect();
        own.error(METADATA, format!("one of {}", known.join(", ")))
    })
}

pub(super) fn mode(prefix: &str, own: &Params, preset: &Preset, metadata: &str) -> Result<Mode, ParamError> {
    let mode = match own.get(MODE) {
        None => preset.mode,
        Some(text) => Mode::of_word(text).filter(|mode| preset.modes.contains(mode)).ok_or_else(|| {
            let known: Vec<_> = preset.modes.iter().map(|mode| mode.name()).collect();
            own.error(MODE, format!("one of {} with preset {}", known.join(", "), preset.info.name))
        })?,
    };
    if mode.makes_dirty() && metadata == "none" {
        let expected = "a mode that leaves nothing dirty, since metadata = none keeps nothing";
        return Err(ParamError::bad(format!("{prefix}mode"), mode.name(), expected));
    }
    Ok(mode)
}

pub(super) fn map(own: &Params, preset: &Preset, block_bytes: u32) -> Result<Map, ParamError> {
    let default = preset.map_with(block_bytes);
    let name = own.get(MAP).unwrap_or(default.name());
    if own.get(WAYS).is_some() && name == "full" {
        return Err(own.error(WAYS, format!("none with map = {name}")));
    }
    if own.get(CLUSTER).is_some() && name != "cluster-hashed" {
        return Err(own.error(CLUSTER, format!("none with map = {name}")));
    }
    let (ways, cluster) = match default {
        Map::Full => (DEFAULT_WAYS, None),
        Map::Linear { ways } => (ways, None),
        Map::ClusterHashed { ways, cluster } => (ways, Some(cluster)),
    };
    let ways = own.get(WAYS).unwrap_or(ways);
    let cluster =
        cluster.map(|cluster| if preset.grows == Grows::Cluster { cluster.min(ways) } else { cluster });
    let blocks = |bytes: u64| u32::try_from(bytes / u64::from(block_bytes)).unwrap_or(u32::MAX).max(1);
    let cluster = own.get(CLUSTER).map(blocks).or(cluster).unwrap_or_else(|| blocks(CLUSTER_BYTES));
    Ok(match name {
        "full" => Map::Full,
        "linear" => Map::Linear { ways },
        _ => Map::ClusterHashed { ways, cluster },
    })
}

pub(super) fn eviction(
    prefix: &str,
    own: &Params,
    preset: &Preset,
    rest: &mut Typed,
) -> Result<EvictionSpec, ParamError> {
    let name = &own.get(EVICTION).unwrap_or(preset.eviction.name).to_ascii_lowercase();
    let info = registry::find("eviction policy", name, EVICTIONS, |info| info)?;
    let Member { typed, .. } = member(name, &[preset.eviction], info.take(rest));
    EvictionSpec::new(name, prefix, &typed)
}

pub(super) fn admission(
    prefix: &str,
    own: &Params,
    preset: &Preset,
    rest: &mut Typed,
) -> Result<Member, ParamError> {
    let list = own.get(ADMISSION).map_or_else(|| listed(preset.admission), str::to_ascii_lowercase);
    let mut all = Typed::new();
    for name in names(&list) {
        let entry = registry::find("admission policy", name, ADMISSIONS, |entry| &entry.info)?;
        all.extend(member(name, preset.admission, entry.info.take(rest)).typed);
    }
    // The keys are checked, and names given twice refused, where the chain is built.
    Chain::build(&list, prefix, &all, 64, 0)?;
    Ok(Member { name: list, typed: all })
}

pub(super) fn cleanings(
    prefix: &str,
    own: &Params,
    preset: &Preset,
    rest: &mut Typed,
) -> Result<Vec<Member>, ParamError> {
    let list = own.get(CLEANING).map_or_else(|| listed(preset.cleaning), str::to_ascii_lowercase);
    // Every policy counts what all of them clean, so that the limits hold for all together.
    let caps = cleaning::CAPS.take(rest);
    let mut members: Vec<Member> = Vec::new();
    for name in names(&list) {
        let entry = registry::find("cleaning policy", name, cleaning::CLEANINGS, |entry| &entry.info)?;
        if members.iter().any(|member| member.name == name) {
            let expected = format!("every name once, and '{name}' stands there twice");
            return Err(ParamError::bad(format!("{prefix}cleaning"), &list, expected));
        }
        let mut typed = entry.info.take(rest);
        typed.extend(caps.clone());
        members.push(member(name, preset.cleaning, typed));
    }
    Ok(members)
}
