//! A device that compresses can write less than the host does [streams-article 1.1].

use crate::support;
use nandscape_stack::config::{ConfigError, Typed};

const DEVICE: [&str; 10] = [
    "device.channels=2",
    "device.dies_per_channel=2",
    "device.planes_per_die=1",
    "device.blocks_per_plane=64",
    "device.pages_per_block=64",
    "device.page=4KiB",
    "device.sector=4KiB",
    "device.endurance=endless",
    "ftl.capacity=48MiB",
    "workload.depth=8",
];

fn typed(pairs: &[&str]) -> Typed {
    support::typed(&DEVICE, pairs)
}

fn run(workload: &str, pairs: &[&str]) -> nandscape_sim::RunResult {
    support::run(workload, &typed(pairs))
}

#[test]
fn sequential_writes_cost_their_compressed_size() {
    for scheduler in ["fifo", "read-first"] {
        let scheduler = format!("device.timing.scheduler={scheduler}");
        for (share, waf) in [("1", 1.0), ("0.5", 0.5), ("0.25", 0.25)] {
            let compression = format!("device.compression={share}");
            let result = run("sequential:bs=64k,span=100%,count=768", &[&scheduler, &compression]);
            let measured = result.waf.bytes.unwrap();
            assert!((measured - waf).abs() < 0.01 * waf, "{share}: {measured}");
        }
    }
}

#[test]
fn compressed_data_leave_more_spare_space_and_so_fewer_copies() {
    let load = "uniform:bs=4k,span=100%,count=200k";
    let plain = run(load, &["workload.precondition=fill+uniform:3x"]);
    let packed = run(load, &["workload.precondition=fill+uniform:3x", "device.compression=0.8"]);
    let (plain, packed) = (plain.waf.pages.unwrap(), packed.waf.pages.unwrap());
    assert!(packed < 0.8 * plain, "{packed} against {plain}: less than the size alone explains");
    // Nearly nothing is copied: the host's pages at 0.8 of their size, and a few.
    assert!(packed > 0.8, "{packed}");
}

#[test]
fn a_page_over_the_border_of_two_flash_pages_is_read_from_both() {
    // Slots of 0.75: of four, the second and third lie in two pages each.
    let pairs = ["workload.precondition=fill", "device.compression=0.75"];
    let result = run("sequential:bs=4k,span=100%,count=12k,read=1", &pairs);
    let reads = result.flash.reads as f64 / result.host.read_pages as f64;
    assert!((reads - 1.5).abs() < 0.01, "{reads}");
}

#[test]
fn what_compression_cannot_go_with_is_refused_by_name() {
    for other in ["device.out_of_order_program=true", "device.timing.program_pages=3"] {
        let mut pairs = vec!["device.compression=0.5", other];
        if other.contains("timing") {
            pairs.extend([
                "device.pages_per_block=96",
                "device.timing.scheduler=read-first",
                "device.timing.write_buffer=1MiB",
            ]);
        }
        let error: ConfigError = typed(&pairs).check().unwrap_err();
        assert!(error.to_string().contains("device.compression"), "{error}");
    }
}
