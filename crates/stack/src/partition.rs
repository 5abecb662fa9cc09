//! How the device is divided: `[sets]` and `[namespaces]`.

use crate::keys::{ConfigError, flat};
use nandscape_core::{Geometry, Info, Param, ParamError, Params, units};
use nandscape_namespace::sets::SetLayout;
use nandscape_namespace::{NamespaceSpec, SetFacts};

/// Keys of `[sets]`.
pub static SETS: Info = Info {
    name: "sets",
    summary: "NVM sets: parts of the device, each with a translation layer of its own",
    source: "NVMe 1.4, NVM sets and endurance groups; [sets-article layouts]",
    params: &[
        Param::choice("layout", &["none", "traditional", "vertical", "horizontal", "list"], "none").means(
            "none and traditional: one set of all dies; vertical: whole channels; horizontal: some dies of \
             every channel; list: see dies",
        ),
        Param::int("count", 1, 65_535, "").means("vertical and horizontal: how many sets; 2 if absent"),
        Param::text("dies", "").means(
            "list: the dies of each set such as 0-63;64-127, numbered die of the channel x channels + \
             channel",
        ),
        Param::text("endurance_groups", "")
            .means("the sets of each endurance group such as 0,1;2,3; absent: a group for each set"),
        Param::text("read_recovery", "").means(
            "read recovery level of each set such as 4;15, from 0 (every effort) to 15 (fast fail); \
             absent: 4",
        ),
        Param::choice("windows", &["off", "host"], "off").means(
            "predictable latency: off, or host for a deterministic window of every set whenever it may be \
             had",
        ),
        Param::choice("owner", &["device", "host"], "device").means(
            "who runs the translation layers: device; host, as over an open-channel device, whose \
             collection crosses the host link",
        ),
        Param::count("dtwin_reads", "10M").means("reads of 4 KiB that a deterministic window promises"),
        Param::time("dtwin_time", "60s").means("longest deterministic window, in whole milliseconds"),
        Param::time("ndwin_low", "1s").means("time between two windows that the device insists on"),
        Param::time("ndwin_high", "10s").means("time between two windows that it recommends"),
    ],
};

/// Keys of `[namespaces]`.
pub static NAMESPACES: Info = Info {
    name: "namespaces",
    summary: "namespaces: ranges of the logical space of a set, called ns1, ns2 and so on",
    source: "NVMe 1.4, namespaces and NVM sets",
    params: &[
        Param::int("count", 1, 1024, "")
            .means("how many; absent: as many as sizes or sets lists, else one a set"),
        Param::text("sizes", "").means(
            "size of each, in bytes or as a share of its set, such as 50%;50% or 100GiB;1TiB; absent: \
             equal parts of the set",
        ),
        Param::text("sets", "").means("the set of each such as 0;1; absent: sets in turn"),
    ],
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
    /// Whether the device has NVM sets at all: one set of all dies is not yet a device without sets.
    pub has_sets: bool,
    /// What each set knows of the configuration, but for its flash.
    pub facts: Vec<SetFacts>,
    namespaces: Vec<(u16, Size)>,
    sets: Params,
    spaces: Params,
}

impl Partition {
    /// Checks both tables.
    pub(crate) fn check(
        geometry: &Geometry,
        sets: &toml::Table,
        namespaces: &toml::Table,
    ) -> Result<Self, ConfigError> {
        let sets = Params::check(&SETS, "sets.", &flat("sets.", sets)?)?;
        let spaces = Params::check(&NAMESPACES, "namespaces.", &flat("namespaces.", namespaces)?)?;
        let layout = layout(geometry, &sets)?;
        let count = layout.sets().len();
        Ok(Self {
            endurance_groups: endurance_groups(&sets, count)?,
            facts: facts(&sets, count)?,
            is_host_side: sets.text("owner") == "host",
            has_sets: sets.text("layout") != "none",
            namespaces: plan(&spaces, count)?,
            layout,
            sets,
            spaces,
        })
    }

    /// Whether nothing was asked for: one namespace over a device that is not divided.
    pub fn is_plain(&self) -> bool {
        !self.has_sets && !self.is_host_side && self.namespaces == [(0, Size::Equal)]
    }

    /// How many namespaces there are.
    pub const fn namespaces(&self) -> usize {
        self.namespaces.len()
    }

    /// Both tables, for printing; empty ones where everything is as by default.
    pub(crate) fn params(&self) -> [(&'static Info, &Params, bool); 2] {
        let is_default = |info: &Info, params: &Params| *params == prefixed_defaults(info);
        [
            (&SETS, &self.sets, is_default(&SETS, &self.sets)),
            (&NAMESPACES, &self.spaces, is_default(&NAMESPACES, &self.spaces)),
        ]
    }

    /// The namespaces over sets of these capacities, in whole pages.
    pub fn specs(&self, capacities: &[u64], page_bytes: u32) -> Result<Vec<NamespaceSpec>, ConfigError> {
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
                return Err(self.spaces.error("sizes", expected).into());
            }
            specs.push(NamespaceSpec { name, set: *set, offset_bytes: *used, capacity_bytes: bytes });
            *used += bytes;
        }
        Ok(specs)
    }
}

fn prefixed_defaults(info: &Info) -> Params {
    let prefix = format!("{}.", info.name);
    Params::check(info, &prefix, &std::collections::BTreeMap::new()).expect("a registry's defaults are valid")
}

fn layout(geometry: &Geometry, sets: &Params) -> Result<SetLayout, ParamError> {
    let kind = sets.text("layout");
    let is_counted = matches!(kind, "vertical" | "horizontal");
    if sets.get("count").is_some() && !is_counted {
        return Err(sets.error("count", format!("no count with sets.layout = '{kind}'")));
    }
    if sets.get("dies").is_some() && kind != "list" {
        return Err(sets.error("dies", format!("sets.layout = 'list' beside it, not '{kind}'")));
    }
    let count = || sets.get("count").map_or(2, |_| sets.int32("count"));
    match kind {
        "vertical" => SetLayout::vertical(geometry, count()).map_err(|e| sets.error("count", e.to_string())),
        "horizontal" => {
            SetLayout::horizontal(geometry, count()).map_err(|e| sets.error("count", e.to_string()))
        }
        "list" => SetLayout::parse(geometry, sets.get("dies").unwrap_or_default())
            .map_err(|e| sets.error("dies", e.to_string())),
        _ => Ok(SetLayout::traditional(geometry)),
    }
}

/// The group of each set.
fn endurance_groups(sets: &Params, count: usize) -> Result<Vec<u16>, ParamError> {
    let Some(text) = sets.get("endurance_groups") else { return Ok((0..count as u16).collect()) };
    let error =
        || sets.error("endurance_groups", format!("every set from 0 to {} once, such as 0,1;2,3", count - 1));
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
    let ms = |name: &str| match sets.time_ns(name) / 1_000_000 {
        0 => Err(sets.error(name, "a time of at least 1ms")),
        ms => Ok(ms),
    };
    let common = SetFacts {
        dtwin_reads: sets.count("dtwin_reads"),
        dtwin_ms: ms("dtwin_time")?,
        ndwin_low_ms: ms("ndwin_low")?,
        ndwin_high_ms: ms("ndwin_high")?,
        keeps_windows: sets.text("windows") == "host",
        ..SetFacts::default()
    };
    if common.ndwin_high_ms < common.ndwin_low_ms {
        return Err(sets.error("ndwin_high", format!("at least sets.ndwin_low = {}", sets.text("ndwin_low"))));
    }
    let levels = read_recovery(sets, count)?;
    Ok(levels.into_iter().map(|read_recovery| SetFacts { read_recovery, ..common }).collect())
}

fn read_recovery(sets: &Params, count: usize) -> Result<Vec<u8>, ParamError> {
    let Some(text) = sets.get("read_recovery") else { return Ok(vec![4; count]) };
    let levels: Option<Vec<u8>> =
        text.split(';').map(|level| level.trim().parse().ok().filter(|level| *level <= 15)).collect();
    levels.filter(|levels| levels.len() == count).ok_or_else(|| {
        sets.error(
            "read_recovery",
            format!("a level from 0 to 15 for each of the {count} sets, such as 4;15"),
        )
    })
}

/// Set and size of each namespace.
fn plan(spaces: &Params, sets: usize) -> Result<Vec<(u16, Size)>, ParamError> {
    let list = |name: &str| spaces.get(name).map(|text| text.split(';').map(str::trim).collect::<Vec<_>>());
    let (sizes, places) = (list("sizes"), list("sets"));
    let count = match (spaces.get("count"), &sizes, &places) {
        (Some(_), ..) => spaces.int("count") as usize,
        (_, Some(list), _) | (_, _, Some(list)) => list.len(),
        _ => sets,
    };
    for (name, list) in [("sizes", &sizes), ("sets", &places)] {
        if list.as_ref().is_some_and(|list| list.len() != count) {
            return Err(spaces.error(name, format!("an entry for each of the {count} namespaces")));
        }
    }
    (0..count)
        .map(|index| {
            let set = match &places {
                None => index % sets,
                Some(list) => list[index].parse().ok().filter(|set| *set < sets).ok_or_else(|| {
                    spaces.error("sets", format!("for each namespace a set from 0 to {}", sets - 1))
                })?,
            };
            let size = match &sizes {
                None => Size::Equal,
                Some(list) => size(list[index])
                    .ok_or_else(|| spaces.error("sizes", "shares such as 50% or sizes such as 100GiB"))?,
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
