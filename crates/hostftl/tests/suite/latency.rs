//! Latencies of random writes at a rate below the sustained one: the pace of collection keeps them short.

use super::support::{mixed, params, params_of, setup, timed};
use nandscape_core::command::Payload;
use nandscape_core::rng::{Xoshiro256PlusPlus, below, seeded, unit};
use nandscape_core::{
    BlockCommand, Command, Extent, Ftl, Geometry, Hint, Mapping, Op, Params, SimTime, Subsystem,
};
use nandscape_ftl::{PageMap, page_map};
use nandscape_hostftl::{DmZoned, ZoneMap, dm_zoned};
use nandscape_media::{Fifo, Nand, NandOptions, Scheduler, Timed, Timing};
use nandscape_namespace::zones::{ZoneLayout, ZoneSetup};
use std::collections::BTreeMap;
use std::io::Write as _;

/// Sixteen dies; zones of a block in each of them.
const GEOMETRY: Geometry = Geometry {
    channels: 4,
    dies_per_channel: 4,
    planes_per_die: 1,
    blocks_per_plane: 130,
    pages_per_block: 64,
    page_bytes: 4096,
    sector_bytes: 4096,
    oob_bytes: 0,
};
const TIMING: Timing = Timing {
    read_ns: 60_000,
    program_ns: 500_000,
    erase_ns: 3_000_000,
    command_ns: 0,
    channel_bytes_per_s: 800_000_000,
};

/// A block device in virtual time.
trait Device {
    fn pages(&self) -> u64;
    /// When the write of a page completes.
    fn write(&mut self, page: u64, at: SimTime) -> SimTime;
    fn restart(&mut self, at: SimTime);
}

/// A layer of the host.
struct OfHost<L>(L);

impl<L: Subsystem + Mapping> Device for OfHost<L> {
    fn pages(&self) -> u64 {
        self.0.logical_pages()
    }

    fn write(&mut self, page: u64, at: SimTime) -> SimTime {
        let command = BlockCommand::new(Op::Write, Extent::new(page * 4096, 4096), Hint(0));
        let answer = self.0.submit(0, Command::Block(command), Payload::None, at).unwrap();
        self.0.completion(answer.done).unwrap()
    }

    fn restart(&mut self, at: SimTime) {
        self.0.reset_counters(at);
    }
}

impl Device for PageMap<Timed<Nand, Fifo>> {
    fn pages(&self) -> u64 {
        self.logical_pages()
    }

    fn write(&mut self, page: u64, at: SimTime) -> SimTime {
        let token = Ftl::write(self, Extent::new(page * 4096, 4096), None, Hint(0), at).unwrap();
        self.device_mut().completion(token).unwrap()
    }

    fn restart(&mut self, at: SimTime) {
        self.device_mut().reset_time(at);
    }
}

/// Writes per second with 64 of them under way, and the latencies of `count` writes at a share of that rate
/// with random gaps, in ascending order. Before, the device is filled and `warm_up` pages are written; the
/// rate is that of a third as many.
fn latencies(device: &mut dyn Device, share: f64, warm_up: u64, count: usize) -> (f64, Vec<u64>) {
    let pages = device.pages();
    let mut rng: Xoshiro256PlusPlus = seeded(7);
    for page in 0..pages {
        device.write(page, SimTime::ZERO);
    }
    for _ in 0..warm_up {
        device.write(below(&mut rng, pages), SimTime::ZERO);
    }
    device.restart(SimTime::ZERO);
    let mut under_way = [SimTime::ZERO; 64];
    let mut now = SimTime::ZERO;
    let counted = warm_up / 3;
    for _ in 0..counted {
        let slot = (0..64).min_by_key(|slot| under_way[*slot]).unwrap();
        now = now.max(under_way[slot]);
        under_way[slot] = device.write(below(&mut rng, pages), now);
    }
    let rate = counted as f64 / now.0 as f64;
    device.restart(SimTime::ZERO);
    let mut now = 0.0;
    let mut latencies: Vec<u64> = (0..count)
        .map(|_| {
            now -= (1.0 - unit(&mut rng)).ln() / (rate * share);
            let at = SimTime(now as u64);
            device.write(below(&mut rng, pages), at).0 - at.0
        })
        .collect();
    latencies.sort_unstable();
    (rate * 1e9, latencies)
}

fn row(name: &str, (rate, latencies): &(f64, Vec<u64>)) -> String {
    let at = |share: f64| latencies[(latencies.len() as f64 * share) as usize] as f64 / 1e6;
    format!(
        "{name}: {rate:.0} writes/s sustained; at 70 %: median {:.2} ms, p99 {:.2} ms, p99.99 {:.2} ms, maximum {:.2} ms",
        at(0.5),
        at(0.99),
        at(0.9999),
        *latencies.last().unwrap() as f64 / 1e6
    )
}

#[test]
fn no_write_at_70_percent_of_the_sustained_rate_takes_longer_than_three_resets() {
    let mut wrong = Vec::new();
    for keys in [
        &[("op", "0.28")][..],
        &[("op", "0.12")],
        &[("op", "0.28"), ("victim", "fifo")],
        &[("op", "0.28"), ("gc_frontier", "shared"), ("gc_low", "1")],
    ] {
        let zones = timed(GEOMETRY, &setup(&GEOMETRY, 16, 1024, Some(8)), &TIMING);
        let mut map = OfHost(ZoneMap::new(zones, &params(keys)).unwrap());
        let warm_up = 3 * map.pages();
        let own = latencies(&mut map, 0.7, warm_up, 60_000);
        let _ = writeln!(std::io::stderr(), "{}", row(&format!("zone-map {keys:?}"), &own));
        if *own.1.last().unwrap() > 3 * TIMING.erase_ns {
            wrong.push(row(&format!("{keys:?}"), &own));
        }
    }
    for keys in [&[("op", "0.28")][..], &[("op", "0.28"), ("gc_step", "4")]] {
        let nand = Nand::new(GEOMETRY.checked().unwrap(), &NandOptions::default()).unwrap();
        let typed: BTreeMap<_, _> = keys.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let params = Params::check(&page_map::INFO, "ftl.", &typed).unwrap();
        let mut device = PageMap::new(Timed::new(nand, Fifo::new(&GEOMETRY, &TIMING)), &params).unwrap();
        let warm_up = 3 * device.pages();
        let found = latencies(&mut device, 0.7, warm_up, 60_000);
        let _ = writeln!(std::io::stderr(), "{}", row(&format!("page-map {keys:?}"), &found));
    }
    // For comparison: a quarter of the zones is conventional. A write that finds none of these free waits for
    // the copy of a whole chunk, so fewer writes say enough.
    let setup = setup(&GEOMETRY, 16, 1024, Some(8));
    let layout = ZoneLayout { conventional: 30, ..setup.layout };
    let setup = ZoneSetup { layout, conventional_blocks: 42, ..setup };
    let nand = Nand::new(GEOMETRY.checked().unwrap(), &NandOptions::default()).unwrap();
    let zones = mixed(Box::new(Timed::new(nand, Fifo::new(&GEOMETRY, &TIMING))), &setup).unwrap();
    let mut chunks = OfHost(DmZoned::new(zones, &params_of(&dm_zoned::INFO, &[])).unwrap());
    let found = latencies(&mut chunks, 0.7, 3_000, 2_000);
    let _ = writeln!(std::io::stderr(), "{}", row("dm-zoned", &found));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
