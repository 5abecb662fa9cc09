//! The NVM sets experiment ([sets-article test 1], [sets-article test 2]) at the level of the scheduler: what
//! the article states in figures or orderings, with the parameters of the preset `pblaze5-916`.
//! `cargo run --release -p nandscape-media --example nvm_sets 10000000` prints it all.

use crate::sets;

use nandscape_media::Options;
use sets::{Layout, Outcome, options, run, timing};

fn at(layout: Layout, depth: u64, reads: u64, options: &Options) -> Outcome {
    run(layout, depth, reads, &timing(), options)
}

#[test]
fn three_layouts_at_depth_8_are_as_published() {
    let [traditional, vertical, horizontal] = [Layout::Traditional, Layout::Vertical, Layout::Horizontal]
        .map(|layout| at(layout, 8, 100_000, &options()));
    let mean = horizontal.mean_us();
    assert!((90.0..110.0).contains(&mean), "near 100 us: {mean}");
    let ratio = traditional.mean_us() / mean;
    assert!((1.8..2.8).contains(&ratio), "2.25 times better: {ratio}");
    let gap = vertical.mean_us() - mean;
    assert!(gap >= 0.3, "horizontal is better than vertical: {gap} us");
    // The greatest of 100,000 stands for p99.9999: nothing rarer is modelled.
    let tail = traditional.percentile_us(1.0) / horizontal.percentile_us(1.0);
    assert!(tail >= 15.0, "21 times lower in the tail: {tail}");
    assert!(traditional.percentile_us(0.9999) > 4000.0 && vertical.percentile_us(0.9999) < 300.0);
    for (name, outcome, range) in [
        ("traditional", &traditional, 2.0..3.0),
        ("vertical", &vertical, 1.4..1.7),
        ("horizontal", &horizontal, 1.4..1.7),
    ] {
        let written = outcome.write_bytes_per_s / 1e9;
        assert!(range.contains(&written), "{name} writes {written} GB/s");
    }
    assert!(vertical.write_bytes_per_s > horizontal.write_bytes_per_s);
}

#[test]
fn writes_alone_take_all_dies_or_half_of_them() {
    let alone = at(Layout::Traditional, 0, 1_500_000, &options()).write_bytes_per_s / 1e9;
    let half = at(Layout::Vertical, 0, 1_500_000, &options()).write_bytes_per_s / 1e9;
    assert!(alone > 3.0 && (1.4..1.7).contains(&half), "{alone} and {half} GB/s");
}

#[test]
fn both_set_layouts_scale_with_the_depth_and_horizontal_scales_better() {
    let reads = 40_000;
    let one = at(Layout::Horizontal, 1, reads / 4, &options()).read_iops;
    for (depth, least_gap) in [(16, 0.01), (32, 0.03), (64, 0.08)] {
        let [traditional, vertical, horizontal] = [Layout::Traditional, Layout::Vertical, Layout::Horizontal]
            .map(|layout| at(layout, depth, reads, &options()));
        let gap = vertical.mean_us() / horizontal.mean_us() - 1.0;
        assert!(gap >= least_gap, "depth {depth}: {gap}");
        assert!(vertical.read_iops > 1.5 * traditional.read_iops, "depth {depth}");
        let linear = one * depth as f64;
        if depth == 16 {
            assert!(vertical.read_iops > 0.85 * linear, "{} of {linear}", vertical.read_iops);
        }
        if depth <= 32 {
            assert!(horizontal.read_iops > 0.845 * linear, "{} of {linear}", horizontal.read_iops);
        }
    }
}

#[test]
fn without_contention_on_the_channels_vertical_and_horizontal_are_equal() {
    let free = Options { contention: false, ..options() };
    for depth in [8, 64] {
        let [vertical, horizontal] =
            [Layout::Vertical, Layout::Horizontal].map(|layout| at(layout, depth, 30_000, &free));
        let gap = (vertical.mean_us() - horizontal.mean_us()).abs();
        assert!(gap < 0.1, "depth {depth}: {gap} us");
        let written = vertical.write_bytes_per_s / horizontal.write_bytes_per_s;
        assert!((written - 1.0).abs() < 0.005, "depth {depth}: {written}");
    }
}

#[test]
fn each_mechanism_has_the_effect_that_it_is_there_for() {
    let reads = 30_000;
    let mean = |layout, options: &Options| at(layout, 8, reads, options).mean_us();
    // Program data in one piece and without regard for reads: horizontal shares its channels with programs
    // and becomes the worse.
    let rude = Options { burst_bytes: 0, hold_off_ns: 0, ..options() };
    assert!(mean(Layout::Horizontal, &rude) > mean(Layout::Vertical, &rude) + 2.0);
    // Without suspension reads wait for whole programs.
    let mut patient = options();
    patient.suspension.programs = false;
    assert!(mean(Layout::Traditional, &patient) > 600.0);
    // The tail without sets is the erase and nothing else.
    let mut kind = options();
    kind.suspension.erases = true;
    kind.suspension.most = 50;
    assert!(at(Layout::Traditional, 8, reads, &kind).percentile_us(1.0) < 1500.0);
    // A buffer below one stripe of all dies takes the bandwidth away.
    let mut small = options();
    small.buffer.bytes = 3 << 20;
    assert!(at(Layout::Traditional, 0, 500_000, &small).write_bytes_per_s < 2.0e9);
}
