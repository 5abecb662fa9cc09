//! How the device is divided: `[sets]` and `[namespaces]`.

use crate::keys::{Result, flat, table_of};
use nandscape_core::{Geometry, Info, Key, ParamError, Params, keys, units};
use nandscape_namespace::sets::SetLayout;
use nandscape_namespace::{NamespaceSpec, SetFacts};
use std::str::FromStr;

keys! { SET_KEYS:
    LAYOUT: String = choice(&["none", "traditional", "vertical", "horizontal", "list"]) or "none",
        "none and traditional: one set of all dies; vertical: whole channels; horizontal: some dies of every \
         channel; list: see dies";
    COUNT: Option<u32> = int(1, 65_535), "vertical and horizontal: how many sets; 2 if absent";
    DIES: Option<String> = text(),
        "list: the dies of each set such as 0-63;64-127, numbered die of the channel x channels + channel";
    ENDURANCE_GROUPS: Option<String> = text(),
        "the sets of each endurance group such as 0,1;2,3; absent: a group for each set";
    AGE: Option<String> = text(),
        "erases behind each block of each set at the start, such as 0;1500, or one number for all; absent: 0";
    READ_RECOVERY: Option<String> = text(),
        "read recovery level of each set such as 4;15, from 0 (every effort) to 15 (fast fail); absent: 4";
    WINDOWS: String = choice(&["off", "host"]) or "off",
        "predictable latency: off, or host for a deterministic window of every set whenever it may be had";
    OWNER: String = choice(&["device", "host"]) or "device",
        "who runs the translation layers: device; host, as over an open-channel device, whose collection \
         crosses the host link";
    PROCESSOR: Option<u64> = time(),
        "time of the processor that runs a translation layer for each operation of flash, those for hosts \
         first; owner = device: one processor for all sets, host: one for each; absent: none";
    DTWIN_READS: u64 = count() or "10M", "reads of 4 KiB that a deterministic window promises";
    DTWIN_TIME: u64 = time() or "60s", "longest deterministic window, in whole milliseconds";
    NDWIN_LOW: u64 = time() or "1s", "time between two windows that the device insists on";
    NDWIN_HIGH: u64 = time() or "10s", "time between two windows that it recommends";
}

/// Keys of `[sets]`.
pub static SETS: Info = Info {
    name: "sets",
    summary: "NVM sets: parts of the device, each with a translation layer of its own",
    source: "NVMe 1.4, NVM sets and endurance groups; [sets-article layouts]",
    params: SET_KEYS,
};

mod spaces {
    use nandscape_core::keys;

    keys! { pub(super) KEYS:
        pub(super) COUNT: Option<u32> = int(1, 1024),
            "how many; absent: as many as sizes or sets lists, else one a set";
        pub(super) SIZES: Option<String> = text(),
            "size of each, in bytes or as a share of its set, such as 50%;50% or 100GiB;1TiB; absent: equal \
             parts of the set";
        pub(super) SETS: Option<String> = text(), "the set of each such as 0;1; absent: sets in turn";
    }
}

/// Keys of `[namespaces]`.
pub static NAMESPACES: Info = Info {
    name: "namespaces",
    summary: "namespaces: ranges of the logical space of a set, called ns1, ns2 and so on",
    source: "NVMe 1.4, namespaces and NVM sets",
    params: spaces::KEYS,
};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Size {
    /// An equal part of the set.
    Equal,
    Bytes(u64),
    Share(f64),
}

/// How the device is divided, checked.
#[derive(Clone, Debug)]
pub struct Partition {
    /// The dies of each set.
    pub layout: SetLayout,
    /// Endurance group of each set.
    pub endurance_groups: Vec<u16>,
    /// Translation layers run on the host (open-channel).
    pub is_host_side: bool,
    /// Time that each operation of flash takes of the processor that runs a translation layer; 0 for none.
    pub processor_ns: u64,
    /// Whether the device has NVM sets at all: one set of all dies is not yet a device without sets.
    pub has_sets: bool,
    /// What each set knows of the configuration, but for its flash.
    pub facts: Vec<SetFacts>,
    /// Erases behind each block of each set.
    pub ages: Vec<u32>,
    namespaces: Vec<(u16, Size)>,
    sets: Params,
    spaces: Params,
}

impl Partition {
    pub(crate) fn check(geometry: &Geometry, sets: &toml::Table, namespaces: &toml::Table) -> Result<Self> {
        let sets = Params::check(&SETS, "sets.", &flat("sets.", sets)?)?;
        let spaces = Params::check(&NAMESPACES, "namespaces.", &flat("namespaces.", namespaces)?)?;
        let layout = layout(geometry, &sets)?;
        let count = layout.sets().len();
        Ok(Self {
            endurance_groups: endurance_groups(&sets, count)?,
            facts: facts(&sets, count)?,
            ages: ages(&sets, count)?,
            is_host_side: sets.get(OWNER) == "host",
            processor_ns: sets.get(PROCESSOR).unwrap_or(0),
            has_sets: sets.get(LAYOUT) != "none",
            namespaces: plan(&spaces, count)?,
            layout,
            sets,
            spaces,
        })
    }

    /// Whether nothing was asked for: one namespace over a device that is not divided.
    pub fn is_plain(&self) -> bool {
        !self.has_sets && !self.has_part() && self.namespaces == [(0, Size::Equal)]
    }

    /// Whether also a set of all dies is a part of the device, which knows who runs its layer.
    pub(crate) const fn has_part(&self) -> bool {
        self.is_host_side || self.processor_ns > 0
    }

    /// How many namespaces there are.
    pub const fn namespaces(&self) -> usize {
        self.namespaces.len()
    }

    pub(crate) fn sets_table(&self) -> Option<toml::Table> {
        (!self.sets.is_default()).then(|| table_of(&self.sets))
    }

    pub(crate) fn namespaces_table(&self) -> Option<toml::Table> {
        (!self.spaces.is_default()).then(|| table_of(&self.spaces))
    }

    /// Erases behind each block of each die; empty if all are new. An age that `endurance` does not allow is
    /// refused.
    pub(crate) fn ages_of_dies(&self, geometry: &Geometry, endurance: Option<u32>) -> Result<Vec<u32>> {
        if self.ages.iter().all(|age| *age == 0) {
            return Ok(Vec::new());
        }
        if let Some(endurance) = endurance.filter(|endurance| self.ages.iter().any(|age| age >= endurance)) {
            return Err(self.sets.error(AGE, format!("below device.endurance = {endurance}")).into());
        }
        let mut dies = vec![0; geometry.units() as usize];
        for (set, age) in self.layout.sets().iter().zip(&self.ages) {
            for die in set {
                dies[die.0 as usize] = *age;
            }
        }
        Ok(dies)
    }

    /// Mean age of the blocks of all sets.
    pub(crate) fn mean_age(&self) -> f64 {
        let sets = self.layout.sets().iter().zip(&self.ages);
        let (dies, erases) = sets.fold((0.0, 0.0), |(dies, erases), (set, age)| {
            (dies + set.len() as f64, erases + set.len() as f64 * f64::from(*age))
        });
        erases / dies
    }

    /// The namespaces over sets of these capacities, in whole pages.
    pub fn specs(&self, capacities: &[u64], page_bytes: u32) -> Result<Vec<NamespaceSpec>> {
        let page = u64::from(page_bytes);
        let mut used = vec![0; capacities.len()];
        let mut specs = Vec::new();
        for (index, (set, size)) in self.namespaces.iter().enumerate() {
            let (name, capacity) = (format!("ns{}", index + 1), capacities[usize::from(*set)]);
            let used = &mut used[usize::from(*set)];
            let asked = match size {
                Size::Bytes(bytes) => *bytes,
                Size::Share(share) => (capacity as f64 * share) as u64,
                Size::Equal => {
                    capacity / self.namespaces.iter().filter(|(other, _)| other == set).count() as u64
                }
            };
            let bytes = asked / page * page;
            if bytes == 0 || bytes > capacity - *used {
                let expected = format!(
                    "sizes that fit: {name} takes {} of set {set}, of which {} is left",
                    units::format_bytes(asked),
                    units::format_bytes(capacity - *used)
                );
                return Err(self.spaces.error(spaces::SIZES, expected).into());
            }
            specs.push(NamespaceSpec { name, set: *set, offset_bytes: *used, capacity_bytes: bytes });
            *used += bytes;
        }
        Ok(specs)
    }
}

fn layout(geometry: &Geometry, sets: &Params) -> Result<SetLayout, ParamError> {
    let kind = sets.get(LAYOUT);
    let is_counted = matches!(kind, "vertical" | "horizontal");
    if sets.get(COUNT).is_some() && !is_counted {
        return Err(sets.error(COUNT, format!("no count with sets.layout = '{kind}'")));
    }
    if sets.get(DIES).is_some() && kind != "list" {
        return Err(sets.error(DIES, format!("sets.layout = 'list' beside it, not '{kind}'")));
    }
    let count = || sets.get(COUNT).unwrap_or(2);
    match kind {
        "vertical" => SetLayout::vertical(geometry, count()).map_err(|e| sets.error(COUNT, e.to_string())),
        "horizontal" => {
            SetLayout::horizontal(geometry, count()).map_err(|e| sets.error(COUNT, e.to_string()))
        }
        "list" => SetLayout::parse(geometry, sets.get(DIES).unwrap_or_default())
            .map_err(|e| sets.error(DIES, e.to_string())),
        _ => Ok(SetLayout::traditional(geometry)),
    }
}

fn endurance_groups(sets: &Params, count: usize) -> Result<Vec<u16>, ParamError> {
    let Some(text) = sets.get(ENDURANCE_GROUPS) else { return Ok((0..count as u16).collect()) };
    let error =
        || sets.error(ENDURANCE_GROUPS, format!("every set from 0 to {} once, such as 0,1;2,3", count - 1));
    let mut groups = vec![None; count];
    for (group, list) in text.split(';').enumerate() {
        for item in list.split(',') {
            let set: usize = item.trim().parse().map_err(|_| error())?;
            if groups.get_mut(set).ok_or_else(error)?.replace(group as u16).is_some() {
                return Err(error());
            }
        }
    }
    groups.into_iter().collect::<Option<_>>().ok_or_else(error)
}

fn facts(sets: &Params, count: usize) -> Result<Vec<SetFacts>, ParamError> {
    let ms = |key: Key<u64>| match sets.get(key) / 1_000_000 {
        0 => Err(sets.error(key, "a time of at least 1ms")),
        ms => Ok(ms),
    };
    let common = SetFacts {
        dtwin_reads: sets.get(DTWIN_READS),
        dtwin_ms: ms(DTWIN_TIME)?,
        ndwin_low_ms: ms(NDWIN_LOW)?,
        ndwin_high_ms: ms(NDWIN_HIGH)?,
        keeps_windows: sets.get(WINDOWS) == "host",
        ..SetFacts::default()
    };
    if common.ndwin_high_ms < common.ndwin_low_ms {
        return Err(sets.error(NDWIN_HIGH, format!("at least sets.ndwin_low = {}", sets.text(NDWIN_LOW))));
    }
    let levels = read_recovery(sets, count)?;
    Ok(levels.into_iter().map(|read_recovery| SetFacts { read_recovery, ..common }).collect())
}

/// A number for each set, separated by `;`.
fn numbers<T: FromStr>(text: &str) -> Option<Vec<T>> {
    text.split(';').map(|number| number.trim().parse().ok()).collect()
}

fn ages(sets: &Params, count: usize) -> Result<Vec<u32>, ParamError> {
    let Some(text) = sets.get(AGE) else { return Ok(vec![0; count]) };
    match numbers::<u32>(text) {
        Some(ages) if ages.len() == count => Ok(ages),
        Some(ages) if ages.len() == 1 => Ok(vec![ages[0]; count]),
        _ => Err(sets
            .error(AGE, format!("a number of erases, or one for each of the {count} sets, such as 0;1500"))),
    }
}

fn read_recovery(sets: &Params, count: usize) -> Result<Vec<u8>, ParamError> {
    let Some(text) = sets.get(READ_RECOVERY) else { return Ok(vec![4; count]) };
    let fits = |levels: &Vec<u8>| levels.len() == count && levels.iter().all(|level| *level <= 15);
    numbers(text).filter(fits).ok_or_else(|| {
        sets.error(READ_RECOVERY, format!("a level from 0 to 15 for each of the {count} sets, such as 4;15"))
    })
}

fn plan(spaces: &Params, sets: usize) -> Result<Vec<(u16, Size)>, ParamError> {
    let list = |key: Key<Option<String>>| {
        spaces.get(key).map(|text| text.split(';').map(str::trim).collect::<Vec<_>>())
    };
    let (sizes, places) = (list(spaces::SIZES), list(spaces::SETS));
    let count = match (spaces.get(spaces::COUNT), &sizes, &places) {
        (Some(count), ..) => count as usize,
        (_, Some(list), _) | (_, _, Some(list)) => list.len(),
        _ => sets,
    };
    for (key, list) in [(spaces::SIZES, &sizes), (spaces::SETS, &places)] {
        if list.as_ref().is_some_and(|list| list.len() != count) {
            return Err(spaces.error(key, format!("an entry for each of the {count} namespaces")));
        }
    }
    (0..count)
        .map(|index| {
            let set = match &places {
                None => index % sets,
                Some(list) => list[index].parse().ok().filter(|set| *set < sets).ok_or_else(|| {
                    spaces.error(spaces::SETS, format!("for each namespace a set from 0 to {}", sets - 1))
                })?,
            };
            let size = match &sizes {
                None => Size::Equal,
                Some(list) => size(list[index]).ok_or_else(|| {
                    spaces.error(spaces::SIZES, "shares such as 50% or sizes such as 100GiB")
                })?,
            };
            Ok((set as u16, size))
        })
        .collect()
}

fn size(text: &str) -> Option<Size> {
    if text.ends_with('%') {
        units::parse_share(text).ok().map(Size::Share)
    } else {
        units::parse_size(text).ok().map(Size::Bytes)
    }
}
