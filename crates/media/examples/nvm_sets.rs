//! Two NVM sets on one drive, without a translation layer: `cargo run --release -p nandscape-media --example
//! nvm_sets [READS [DEPTH...]]`.
#![expect(clippy::print_stdout, reason = "an example prints")]

#[path = "../tests/suite/sets.rs"]
mod sets;

use sets::{Layout, options, run, timing};

fn main() {
    let numbers: Vec<u64> =
        std::env::args().skip(1).map(|text| text.parse().expect("reads, then depths: numbers")).collect();
    let reads = numbers.first().copied().unwrap_or(300_000);
    let depths = if numbers.len() > 1 { &numbers[1..] } else { &[1, 2, 4, 8, 16, 32, 64] };
    let alone = run(Layout::Traditional, 0, 3_000_000, &timing(), &options());
    let half = run(Layout::Vertical, 0, 3_000_000, &timing(), &options());
    println!(
        "write alone {:.3} GB/s, on half of the dies {:.3}",
        alone.write_bytes_per_s / 1e9,
        half.write_bytes_per_s / 1e9
    );
    println!("depth layout       mean us   kIOPS    p50   p99.9  p99.99 p99.9999    max  write GB/s");
    for &depth in depths {
        for layout in [Layout::Traditional, Layout::Vertical, Layout::Horizontal] {
            let it = run(layout, depth, reads, &timing(), &options());
            let p = |share| it.percentile_us(share);
            println!(
                "{depth:5} {:12} {:8.2} {:7.1} {:6.0} {:7.0} {:7.0} {:8.0} {:6.0}  {:.3}",
                format!("{layout:?}"),
                it.mean_us(),
                it.read_iops / 1e3,
                p(0.5),
                p(0.999),
                p(0.9999),
                p(0.999_999),
                p(1.0),
                it.write_bytes_per_s / 1e9
            );
        }
    }
}
