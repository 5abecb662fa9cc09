//! Every registered host interface, with the keys of its trial, in front of a small device.

use crate::support;
use nandscape_stack::interfaces::{INTERFACES, InterfaceEntry};
use nandscape_stack::{RunOptions, StackConfig, build_storing, replay};
use nandscape_testkit::subsystem::{Trial, run};

/// 2 MiB for hosts.
const DEVICE: &[&str] = &[
    "device.channels=2",
    "device.dies_per_channel=1",
    "device.planes_per_die=1",
    "device.blocks_per_plane=64",
    "device.pages_per_block=16",
    "device.page=4KiB",
    "ftl.capacity=2MiB",
    "ftl.frontiers=1",
];

fn config(sets: &[&str]) -> StackConfig {
    support::typed(DEVICE, sets).check().unwrap_or_else(|error| panic!("{sets:?}: {error}"))
}

fn of_blocks() -> impl Iterator<Item = &'static InterfaceEntry> {
    INTERFACES.iter().filter(|entry| !entry.trial.is_empty())
}

fn table(entry: &InterfaceEntry) -> String {
    format!("[{}]", entry.info.name)
}

#[test]
fn every_interface_holds_what_was_written_and_counts_what_hosts_ask_for() {
    for entry in of_blocks() {
        let config = config(entry.trial);
        assert!(config.to_toml().contains(&table(entry)), "{:?} asks for it", entry.trial);
        let make = || build_storing(&config).unwrap_or_else(|error| panic!("{:?}: {error}", entry.trial));
        // Trims reach whole pages.
        let trial = Trial { make: &make, unit_bytes: 512, is_zeroed: false, control: &|_, _, _| Ok(()) };
        for seed in 0..4 {
            run(&trial, seed, 200).unwrap_or_else(|error| panic!("{}: {error}", table(entry)));
        }
    }
}

#[test]
fn every_interface_replays_and_only_those_asked_for_are_printed() {
    for entry in of_blocks() {
        let load = "uniform:count=2000,bs=16k,read=30%";
        let run = replay(&config(entry.trial), load, &RunOptions::default()).unwrap();
        assert!(run.is_complete(), "{}: {:?}", table(entry), run.result.error);
        assert!(!config(&[]).to_toml().contains(&table(entry)), "{} was not asked for", table(entry));
    }
}
