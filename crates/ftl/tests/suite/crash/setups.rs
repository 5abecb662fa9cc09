//! The layers and parameters that are tried.

use nandscape_core::Params;
use nandscape_ftl::{Journal, JournalOptions, find};
use nandscape_media::faults::FaultPlan;
use nandscape_testkit::crash::{CrashDevice, Effort, Layer, Setup, nand, nand_of_units};
use std::collections::BTreeMap;

/// Channels, blocks of each, pages of a block, bytes of a page.
type Shape = (u32, u32, u32, u32);

/// Parameters of a layer, as typed.
type Typed = &'static [(&'static str, &'static str)];

/// Small enough that a run collects often.
const TINY: Shape = (2, 14, 8, 512);

/// An SLC cache of two blocks a plane that is folded as soon as the host is idle.
const SLC: Typed = &[("op", "0.5"), ("slc_blocks", "2"), ("slc_fold_after", "0ns")];

/// Idle time is used for whatever gains anything.
const EAGER: Typed = &[("background_gc", "true"), ("background_watermark", "100%")];

/// The same, with all but one log merged in it.
const EAGER_LOGS: Typed =
    &[("logs", "2"), ("background_gc", "true"), ("background_watermark", "100%"), ("background_logs", "1")];

/// A layer with its parameters over a journal.
pub fn setup(
    layer: &'static str,
    name: &str,
    typed: Typed,
    shape: Shape,
    options: JournalOptions,
) -> Setup<'static> {
    let entry = find(layer).unwrap_or_else(|| panic!("{layer} is not registered"));
    let typed: BTreeMap<_, _> = typed.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let params = Params::check(entry.info, "ftl.", &typed).unwrap_or_else(|error| panic!("{name}: {error}"));
    let out_of_order = layer.contains("sbm");
    let open = move |device: CrashDevice| -> Result<Layer, String> {
        let journal = Journal::open(device, options).map_err(|error| format!("journal: {error}"))?;
        (entry.build)(Box::new(journal), &params).map_err(|error| error.to_string())
    };
    Setup {
        name: name.to_owned(),
        nand: nand(shape, out_of_order),
        open: Box::new(open),
        plan: FaultPlan::default(),
        needs_flush: false,
        damage: None,
        effort: Effort::default(),
    }
}

/// The configurations of a layer.
pub fn of(layer: &'static str) -> Vec<Setup<'static>> {
    let often = JournalOptions { interval: Some(40), ..JournalOptions::default() };
    let list: &[(&str, Typed, Shape)] = match layer {
        "page-map" => &[
            ("page-map", &[("op", "0.5")], TINY),
            ("page-map streams", &[("op", "0.6"), ("streams", "2"), ("frontiers", "1")], (2, 18, 8, 512)),
            (
                "page-map groups",
                &[("op", "1.0"), ("streams", "1"), ("frontiers", "1"), ("reclaim_groups", "2")],
                (2, 24, 8, 512),
            ),
            (
                "page-map pieces",
                &[
                    ("op", "1.4"),
                    ("streams", "1"),
                    ("frontiers", "1"),
                    ("collect", "piece"),
                    ("stream_granularity", "8KiB"),
                ],
                (2, 24, 8, 512),
            ),
            ("page-map shared", &[("op", "0.5"), ("gc_frontier", "shared"), ("victim", "fifo")], TINY),
            ("page-map steps", &[("op", "0.6"), ("gc_step", "2")], TINY),
            ("page-map static", &[("op", "1.0"), ("allocation", "static")], (2, 16, 8, 512)),
            ("page-map sectors", &[("op", "0.5"), ("background_gc", "true")], (2, 14, 4, 2048)),
            ("page-map wear", &[("op", "0.5"), ("wear", "static"), ("frontiers", "2")], (4, 10, 4, 512)),
            ("page-map slc", SLC, (2, 16, 8, 512)),
            ("page-map map", &[("op", "0.8"), ("map_cache", "50%")], TINY),
            (
                "page-map split",
                &[("op", "0.8"), ("streams", "2"), ("frontiers", "1"), ("split", "auto")],
                (2, 18, 8, 512),
            ),
        ],
        "pm-gcl" => &[
            ("pm-gcl", &[], TINY),
            ("pm-gcl sectors", &[], (3, 10, 4, 1024)),
            ("pm-gcl background", EAGER, TINY),
        ],
        "pm-gcc" => &[
            ("pm-gcc", &[], TINY),
            ("pm-gcc sectors", &[], (3, 10, 4, 1024)),
            ("pm-gcc background", EAGER, TINY),
        ],
        "sbm-gcl" => &[
            ("sbm-gcl", &[], TINY),
            ("sbm-gcl pairs", &[("pn", "2"), ("bn", "2")], (2, 20, 4, 512)),
            ("sbm-gcl background", EAGER, TINY),
        ],
        "hsbm-gcl" => &[
            ("hsbm-gcl", &[("logs", "2")], TINY),
            ("hsbm-gcl pairs", &[("logs", "2"), ("bn", "2"), ("log_victim", "lru")], (2, 20, 4, 512)),
            ("hsbm-gcl background", EAGER_LOGS, TINY),
        ],
        _ => return vec![quick(layer)],
    };
    let mut setups: Vec<_> =
        list.iter().map(|(name, typed, shape)| setup(layer, name, typed, *shape, often)).collect();
    if layer == "page-map" {
        let units = setup(layer, "page-map units", &[("op", "0.5")], TINY, often);
        setups.push(Setup { nand: nand_of_units(TINY, 4), ..units });
        let slc = setup(layer, "page-map slc units", SLC, (2, 16, 12, 512), often);
        setups.push(Setup { nand: nand_of_units((2, 16, 12, 512), 4), ..slc });
    }
    setups
}

/// A layer with a journal that writes checkpoints often.
pub fn quick(layer: &'static str) -> Setup<'static> {
    let quick = JournalOptions { interval: Some(40), ..JournalOptions::default() };
    let entry = find(layer).unwrap_or_else(|| panic!("{layer} is not registered"));
    setup(layer, layer, entry.tiny, TINY, quick)
}

/// The configurations of a layer while programs and erases fail besides, so that the device may end
/// read-only.
pub fn failing(layer: &'static str) -> Vec<Setup<'static>> {
    let plan = FaultPlan { program: 0.004, erase: 0.03, ..FaultPlan::default() };
    let failing = |setup: Setup<'static>| Setup {
        name: format!("{} failing", setup.name),
        plan: plan.clone(),
        ..setup
    };
    of(layer).into_iter().map(failing).collect()
}
