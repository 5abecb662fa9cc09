//! The engines of the page benchmark on the open-channel device of the thesis:
//! `cargo run --release -p nandscape-openchannel --example fox [LOG.csv]`. The log has every page of the last
//! row.
#![expect(clippy::print_stdout, reason = "an example prints")]

#[path = "../tests/suite/thesis.rs"]
mod thesis;

use nandscape_media::{Fifo, Serial};
use nandscape_openchannel::bench::Engine;
use std::fs::File;
use std::io::BufWriter;
use thesis::{PARALLEL, SERIAL, run_on, workload};

fn main() -> std::io::Result<()> {
    let path = std::env::args().nth(1);
    println!("device   engine      jobs read%     MB/s     IOPS   read us  write us  erase us  elapsed ms");
    let mut last = None;
    for is_serial in [true, false] {
        for (jobs, percents) in [(1, &[0, 50, 100][..]), (8, &[0, 50, 100]), (32, &[0, 50, 100])] {
            for engine in Engine::ALL {
                for &percent in percents {
                    let workload = workload(engine, jobs, percent);
                    let log = if is_serial {
                        run_on::<Serial>(&SERIAL, &workload)
                    } else {
                        run_on::<Fifo>(&PARALLEL, &workload)
                    };
                    let it = log.summary();
                    println!(
                        "{:8} {:11} {jobs:4} {percent:5} {:8.1} {:8.0} {:9.1} {:9.1} {:9.1} {:11.1}",
                        if is_serial { "serial" } else { "parallel" },
                        engine.name(),
                        it.throughput / 1e6,
                        it.iops,
                        it.read_ns_mean / 1e3,
                        it.write_ns_mean / 1e3,
                        it.erase_ns_mean / 1e3,
                        it.elapsed_ns as f64 / 1e6,
                    );
                    last = Some(log);
                }
            }
        }
    }
    if let (Some(path), Some(log)) = (path, last) {
        log.write_csv(&mut BufWriter::new(File::create(path)?))?;
    }
    Ok(())
}
