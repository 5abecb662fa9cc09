//! The `ftl.*` keys of `page-map`: what can be typed, and what it means for a given device.

use crate::placement::{self, Placement, Stripe};
use crate::victim::{self, VictimEntry};
use crate::wear::{self, WearEntry};
use nandscape_core::{Geometry, Info, Param, ParamError, ParamKind, Params};

/// Name, source and keys.
pub static INFO: Info = Info {
    name: "page-map",
    summary: "the conventional SSD: one map entry per page, over-provisioning, garbage collection",
    source: "design.md, Ftl; MQSim, FAST 2018, for static allocation",
    params: &[
        Param {
            name: "op",
            summary: "over-provisioning, (physical - logical) / logical, over the good blocks",
            kind: ParamKind::Float { min: 0.0, max: 1000.0 },
            default: "0.28",
        },
        Param {
            name: "capacity",
            summary: "logical capacity, instead of op; rounded down to whole pages",
            kind: ParamKind::Size { min: 512, max: 1 << 56 },
            default: "",
        },
        Param {
            name: "victim",
            summary: "which block is collected",
            kind: ParamKind::Choice { of: &["greedy", "fifo", "random", "d-choices", "cost-benefit"] },
            default: "greedy",
        },
        victim::D,
        victim::SEED,
        Param {
            name: "gc_frontier",
            summary: "separate: moved pages have blocks of their own; shared: one log with host writes",
            kind: ParamKind::Choice { of: &["separate", "shared"] },
            default: "separate",
        },
        Param {
            name: "allocation",
            summary: "dynamic: any die with room, round robin; static: the plane that the page number gives",
            kind: ParamKind::Choice { of: &["dynamic", "static"] },
            default: "dynamic",
        },
        placement::ORDER,
        Param {
            name: "frontiers",
            summary: "blocks open at once in each log (dynamic allocation); default: one a die, but at most 1/16 of the spare blocks",
            kind: ParamKind::Int { min: 1, max: 1 << 20 },
            default: "",
        },
        Param {
            name: "gc_low",
            summary: "erased space, in blocks beyond the open ones (or % of the domain's blocks), below which writes wait for GC",
            kind: ParamKind::Text,
            default: "2",
        },
        Param {
            name: "gc_high",
            summary: "erased space at which that GC stops, in the same unit; default: gc_low, one victim at a time",
            kind: ParamKind::Text,
            default: "",
        },
        Param {
            name: "background_gc",
            summary: "collect while the host is idle",
            kind: ParamKind::Bool,
            default: "false",
        },
        Param {
            name: "background_watermark",
            summary: "erased space at which background GC stops, in the unit of gc_low; default: twice gc_high",
            kind: ParamKind::Text,
            default: "",
        },
        Param {
            name: "wear",
            summary: "wear levelling",
            kind: ParamKind::Choice { of: &["none", "dynamic", "static"] },
            default: "none",
        },
        wear::THRESHOLD,
        Param {
            name: "unmapped_read",
            summary: "reads of unmapped pages: none costs nothing, flash reads the page's static place once",
            kind: ParamKind::Choice { of: &["none", "flash"] },
            default: "none",
        },
        Param {
            name: "rmw",
            summary: "a partial write reads the page first where another valid sector remains; false: never (timing only)",
            kind: ParamKind::Bool,
            default: "true",
        },
    ],
};

/// What the keys mean for a device.
#[derive(Clone, Debug)]
pub(super) struct Config {
    pub logical_pages: u32,
    pub victim: &'static VictimEntry,
    pub wear: &'static WearEntry,
    pub shared_frontier: bool,
    pub placement: Placement,
    /// Striping for the static place of unmapped pages, if their reads cost anything.
    pub unmapped_stripe: Option<Stripe>,
    /// Open blocks of each log of each domain.
    pub frontiers: u32,
    pub background_gc: bool,
    pub rmw: bool,
}

impl Config {
    pub fn new(params: &Params, geometry: &Geometry, good_blocks: u64) -> Result<Self, ParamError> {
        let physical = good_blocks * u64::from(geometry.pages_per_block);
        let (key, logical) = if params.get("capacity").is_some() {
            ("capacity", params.size("capacity") / u64::from(geometry.page_bytes))
        } else {
            ("op", (physical as f64 / (1.0 + params.float("op"))) as u64)
        };
        if logical == 0 || logical >= physical {
            return Err(params.error(
                key,
                format!(
                    "a logical capacity of at least one page ({} bytes) and less than the {physical} pages of the good blocks",
                    geometry.page_bytes
                ),
            ));
        }
        let stripe = Stripe::new(geometry, params.text("allocation_order"))
            .ok_or_else(|| params.error("allocation_order", "a permutation of the letters c, w, d and p"))?;
        let is_static = params.text("allocation") == "static";
        let frontiers = if is_static {
            1
        } else if params.get("frontiers").is_some() {
            params.int32("frontiers")
        } else {
            let spare = good_blocks - logical.div_ceil(u64::from(geometry.pages_per_block)).min(good_blocks);
            (spare / 16).clamp(1, u64::from(geometry.units())) as u32
        };
        Ok(Self {
            // At most the device's pages, which are 32-bit.
            logical_pages: logical as u32,
            victim: victim::find(params.text("victim")).expect("the registry holds every choice"),
            wear: wear::find(params.text("wear")).expect("the registry holds every choice"),
            shared_frontier: params.text("gc_frontier") == "shared",
            unmapped_stripe: (params.text("unmapped_read") == "flash").then(|| stripe.clone()),
            placement: if is_static { Placement::Static(stripe) } else { Placement::Dynamic },
            frontiers,
            background_gc: params.flag("background_gc"),
            rmw: params.flag("rmw"),
        })
    }
}

/// Watermarks of a domain, in blocks beyond the open ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Watermarks {
    pub low: u32,
    pub high: u32,
    pub background: u32,
}

impl Watermarks {
    pub fn new(params: &Params, domain_blocks: u32) -> Result<Self, ParamError> {
        let low = blocks(params, "gc_low", domain_blocks)?.expect("has a default").max(1);
        let high = blocks(params, "gc_high", domain_blocks)?.unwrap_or(low);
        if high < low {
            return Err(params.error("gc_high", format!("at least gc_low, which is {low} block(s)")));
        }
        let background =
            blocks(params, "background_watermark", domain_blocks)?.unwrap_or(high.saturating_mul(2));
        if background < high {
            let expected = format!("at least gc_high, which is {high} block(s)");
            return Err(params.error("background_watermark", expected));
        }
        Ok(Self { low, high, background })
    }
}

/// `12` or `2%` of the domain's blocks, rounded down.
fn blocks(params: &Params, key: &str, domain_blocks: u32) -> Result<Option<u32>, ParamError> {
    let Some(text) = params.get(key) else { return Ok(None) };
    let value = match text.strip_suffix('%') {
        Some(percent) => percent
            .trim()
            .parse::<f64>()
            .ok()
            .filter(|percent| (0.0..=100.0).contains(percent))
            .map(|percent| (f64::from(domain_blocks) * percent / 100.0) as u32),
        None => text.trim().parse::<u32>().ok().filter(|blocks| *blocks <= domain_blocks),
    };
    value.map(Some).ok_or_else(|| {
        params.error(
            key,
            format!("a number of blocks up to {domain_blocks}, or a percentage of them such as 2%"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn params(pairs: &[(&str, &str)]) -> Params {
        let typed: BTreeMap<_, _> =
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Params::check(&INFO, "ftl.", &typed).unwrap()
    }

    #[test]
    fn choices_are_the_registries() {
        let of = |name: &str| {
            let param = INFO.params.iter().find(|param| param.name == name).unwrap();
            let ParamKind::Choice { of } = param.kind else { panic!("{name} is a choice") };
            of.to_vec()
        };
        assert_eq!(of("victim"), victim::VICTIMS.iter().map(|e| e.info.name).collect::<Vec<_>>());
        assert_eq!(of("wear"), wear::WEAR.iter().map(|e| e.info.name).collect::<Vec<_>>());
        assert_eq!(of("allocation"), placement::PLACEMENTS.iter().map(|i| i.name).collect::<Vec<_>>());
        let infos = victim::VICTIMS.iter().map(|e| e.info).chain(wear::WEAR.iter().map(|e| e.info));
        for param in infos.chain(placement::PLACEMENTS.iter().copied()).flat_map(|info| info.params) {
            assert!(INFO.params.iter().any(|own| own.name == param.name), "{} can be typed", param.name);
        }
    }

    #[test]
    fn watermarks_take_blocks_or_percent_and_stay_in_order() {
        let marks = Watermarks::new(&params(&[("gc_low", "2%")]), 512).unwrap();
        assert_eq!(marks, Watermarks { low: 10, high: 10, background: 20 });
        assert_eq!(Watermarks::new(&params(&[("gc_low", "0")]), 512).unwrap().low, 1, "GC needs a block");
        for (key, value) in [
            ("gc_low", "2.5"),
            ("gc_low", "200%"),
            ("gc_high", "1"),
            ("background_watermark", "1"),
            ("gc_low", "513"),
        ] {
            let err = Watermarks::new(&params(&[(key, value)]), 512).unwrap_err().to_string();
            assert!(err.starts_with(&format!("ftl.{key} = '{value}'")), "{err}");
        }
    }
}
