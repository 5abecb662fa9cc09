//! Every registered layer, with its defaults and every variation of its choices, against a plain array of
//! bytes.

use nandscape_core::{AnyDevice, Info, ParamKind, Params};
use nandscape_ftl::{FtlEntry, boxed_ftls};
use nandscape_media::{Fifo, ReadFirst, Scheduler, Serial};
use nandscape_testkit::conformance::{Device, Seen, run, shapes, steps};
use std::collections::BTreeMap;

type Typed = BTreeMap<String, String>;

/// Idle time is used for whatever gains anything.
const EAGER: &[(&str, &str)] = &[("background_gc", "true"), ("background_watermark", "100%")];

/// The defaults, then each other value of each choice on its own.
fn variants(info: &Info) -> Vec<Typed> {
    let mut list = vec![Typed::new()];
    for param in info.params {
        let values: &[&str] = match param.kind {
            ParamKind::Choice { of } => of,
            ParamKind::Bool => &["true", "false"],
            _ => continue,
        };
        let others = values.iter().filter(|value| **value != param.default);
        list.extend(others.map(|value| Typed::from([(param.name.to_owned(), (*value).to_owned())])));
    }
    list.extend(numbers(info.name));
    if info.params.iter().any(|param| param.name == "gc_order") {
        // The order of the thesis, each variant again: on devices with bytes it has to be asked for.
        let unsafe_order = |mut typed: Typed| {
            typed.insert("gc_order".to_owned(), "erase-first".to_owned());
            typed.insert("unsafe_order".to_owned(), "true".to_owned());
            typed
        };
        list.extend(
            list.clone().into_iter().filter(|typed| !typed.contains_key("gc_order")).map(unsafe_order),
        );
    }
    list
}

/// Numbers have no list of values to try; these are the ones that change what a layer does.
fn numbers(name: &str) -> Vec<Typed> {
    let sets: &[&[(&str, &str)]] = match name {
        "pm-gcl" | "pm-gcc" => &[&[("reserve", "2")], EAGER],
        "sbm-gcl" => &[
            &[("reserve", "2")],
            &[("pn", "2")],
            &[("bn", "2")],
            &[("pn", "2"), ("bn", "4")],
            &[("pn", "2"), ("bn", "4"), ("full", "in-place")],
            EAGER,
            &[("background_gc", "true"), ("background_watermark", "25%"), ("full", "in-place")],
        ],
        "hsbm-gcl" => &[
            &[("logs", "1")],
            &[("logs", "3"), ("pn", "2"), ("identity", "covering")],
            &[("logs", "2"), ("bn", "2"), ("log_victim", "lru")],
            EAGER,
            &[
                ("background_gc", "true"),
                ("background_watermark", "50%"),
                ("background_logs", "2"),
                ("logs", "2"),
                ("identity", "covering"),
            ],
        ],
        "page-map" => &[
            &[("slc_blocks", "1"), ("slc_fold_after", "0ns")],
            &[("slc_blocks", "2"), ("cell_bits", "2"), ("slc_fold_after", "0ns"), ("gc_step", "3")],
            &[
                ("slc_blocks", "25%"),
                ("cell_bits", "4"),
                ("slc_fold_after", "0ns"),
                ("gc_frontier", "shared"),
            ],
            &[("map_cache", "50%")],
            &[("map_cache", "50%"), ("map_commit", "lazy"), ("gc_frontier", "shared"), ("victim", "fifo")],
            &[("map_cache", "50%"), ("streams", "1"), ("frontiers", "1")],
        ],
        _ => &[],
    };
    let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    sets.iter().map(|set| set.iter().map(own).collect()).collect()
}

/// Runs one layer under one scheduler; gives what was seen with each variant that some shape accepted.
fn conforms<S: Scheduler + Send + 'static>(entry: &FtlEntry<AnyDevice>, seeds: u64) -> Seen {
    conforms_if::<S>(entry, seeds, |_| true)
}

fn conforms_if<S: Scheduler + Send + 'static>(
    entry: &FtlEntry<AnyDevice>,
    seeds: u64,
    is_meant: impl Fn(&Typed) -> bool,
) -> Seen {
    let mut total = Seen::default();
    for typed in variants(entry.info).into_iter().filter(is_meant) {
        let params = Params::check(entry.info, "ftl.", &typed).expect("values from the list");
        let build =
            |device: Device<S>| (entry.build)(Box::new(device), &params).map_err(|error| error.to_string());
        for shape in shapes() {
            let can_build = |ordered| build(nandscape_testkit::conformance::device(&shape, ordered)).is_ok();
            if !can_build(true) {
                continue;
            }
            for seed in 0..seeds {
                let steps = steps(seed, 300, shape.geometry.page_bytes);
                match run(&shape, &steps, &build) {
                    Ok(seen) => total.add(seen),
                    Err(error) => panic!("{} with {typed:?}, seed {seed}: {error}", entry.info.name),
                }
            }
        }
    }
    assert!(total.requests > 0, "{}: no shape was accepted", entry.info.name);
    assert!(total.erases > 0 && total.moved > 0, "{}: collected nothing: {total:?}", entry.info.name);
    total
}

fn all<S: Scheduler + Send + 'static>(seeds: u64) {
    let entries = boxed_ftls();
    assert!(entries.len() >= 5);
    for entry in &entries {
        conforms::<S>(entry, seeds);
    }
}

#[test]
fn every_layer_keeps_bytes_under_serial_timing() {
    all::<Serial>(8);
}

#[test]
fn every_layer_keeps_bytes_under_fifo_timing() {
    all::<Fifo>(4);
}

#[test]
fn every_layer_keeps_bytes_under_event_driven_timing() {
    all::<ReadFirst>(4);
}

#[test]
fn a_full_device_is_met_and_survived() {
    // In the order of the thesis there is no spare space, so random traffic over the whole capacity must meet
    // a full device; with copies first the reserve is such that it never does.
    for entry in boxed_ftls().iter().filter(|entry| entry.info.name.ends_with("-gcl")) {
        let is_erase_first =
            |typed: &Typed| typed.get("gc_order").is_some_and(|order| order == "erase-first");
        assert_eq!(
            conforms_if::<Serial>(entry, 8, |typed| !is_erase_first(typed)).full,
            0,
            "{}",
            entry.info.name
        );
        // SBM_GCL rewrites in place instead.
        if entry.info.name != "sbm-gcl" {
            assert!(
                conforms_if::<Serial>(entry, 8, is_erase_first).full > 0,
                "{} never was full",
                entry.info.name
            );
        }
    }
}
