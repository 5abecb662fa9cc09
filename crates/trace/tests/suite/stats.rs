//! Statistics against loads whose answers are known.

use nandscape_trace::{OpenOptions, StatsOptions, Target, TraceStats, open};
use std::io::Write;

fn stats(text: &str, options: StatsOptions) -> TraceStats {
    TraceStats::of(open(text, &OpenOptions::default(), Target::NONE).unwrap(), options).unwrap()
}

const MIB: u64 = 1 << 20;

#[test]
fn every_number_of_a_small_load() {
    let text = "ts_us,op,offset,len\n\
                0,W,0,8192\n10,W,8192,4096\n20,R,4096,512\n40,W,4096,8192\n40,D,0,1048576\n50,F,0,0\n60,W,5000,100\n";
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.csv");
    std::fs::File::create(&path).unwrap().write_all(text.as_bytes()).unwrap();
    let options = StatsOptions { page_bytes: 4096, block_bytes: 8192, points: 100 };
    let s = stats(path.to_str().unwrap(), options);
    assert_eq!((s.requests, s.mix.writes.requests, s.mix.writes.bytes), (7, 4, 8192 + 4096 + 8192 + 100));
    assert_eq!((s.mix.reads.bytes, s.mix.trims.requests, s.mix.flushes.requests), (512, 1, 1));
    assert_eq!((s.min_offset, s.max_end), (0, 12_288));
    assert_eq!((s.touched_bytes, s.written_bytes), (12_288, 12_288));
    // Pages 0 1, then 2, then 1 2 again, then 1 again.
    assert_eq!((s.page_writes, s.page_overwrites), (6, 3));
    let page = &s.alignment[0];
    assert_eq!(
        (page.unit_bytes, page.starts_aligned, page.ends_aligned, page.lengths_aligned),
        (4096, 4, 3, 3)
    );
    assert_eq!(page.longer_than_unit, 2);
    assert_eq!((page.start_bins[0], page.start_bins[(5000 - 4096) * 64 / 4096]), (4, 1));
    assert_eq!((s.alignment[1].starts_aligned, s.alignment[1].ends_aligned), (2, 1));
    // Only the second write continues the request before it; the rewrite of 4096 starts at no recent end.
    let q = s.sequentiality;
    assert_eq!((q.continues_last, q.continues_recent, q.runs, q.longest_run_bytes), (1, 1, 4, 12_288));
    assert_eq!((s.inter_arrival_ns.count, s.inter_arrival_ns.min, s.inter_arrival_ns.max), (6, 0, 20_000));
    assert_eq!(s.common_sizes[0], nandscape_trace::stats::SizeCount { bytes: 8192, requests: 2 });
    assert_eq!((s.sizes.count, s.sizes.min, s.sizes.max, s.read_sizes.count), (5, 100, 8192, 1));
    assert_eq!((s.windows.len(), s.windows[0].pages, s.windows[0].requests), (1, 3, 7));
    assert_eq!(s.points.iter().map(|p| p.op).collect::<String>(), "WWRWDFW");
    assert_eq!((s.first_ns, s.last_ns, s.info.records), (0, 60_000, 7));
}

#[test]
fn the_thesis_figures_of_the_lammps_load() {
    let s = stats("lammps", StatsOptions::default());
    let [page, block] = [&s.alignment[0], &s.alignment[1]];
    assert_eq!((page.starts_aligned, page.ends_aligned, page.lengths_aligned), (1976, 1976, 1976));
    assert_eq!(block.start_bins[0] + block.start_bins[32], 1976, "starts at 0 and at 512 KiB only");
    assert_eq!(block.starts_aligned, block.start_bins[0]);
    assert_eq!(s.mix.writes.bytes, 7075 * MIB);
    assert!((s.page_overwrites as f64 / s.page_writes as f64 - 25.0 / 26.0).abs() < 0.001);
    assert_eq!(s.written_bytes, 272 * MIB + 6 * (32 << 10));
    // Each window of 256 requests holds more than three passes, so the working set is everything.
    assert!(s.windows[..7].iter().all(|w| w.pages * 4096 >= 272 * MIB));
    serde_json::to_string(&s).unwrap();
}

#[test]
fn points_and_windows_stay_bounded() {
    let s = stats(
        "uniform:span=64MiB,count=300k,gap=1us",
        StatsOptions { points: 500, ..StatsOptions::default() },
    );
    assert!((250..=500).contains(&s.points.len()), "{}", s.points.len());
    let step = s.points[1].request;
    assert!(
        s.points.iter().enumerate().all(|(i, p)| p.request == i as u64 * step && p.at_ns == p.request * 1000)
    );
    assert!((128..=256).contains(&s.windows.len()));
    assert_eq!(s.windows.last().unwrap().pages_so_far * 4096, s.touched_bytes);
    assert_eq!((s.inter_arrival_ns.min, s.inter_arrival_ns.max), (1000, 1000));
    let sequential = stats("sequential:span=64MiB,bs=64k", StatsOptions::default());
    assert_eq!((sequential.sequentiality.runs, sequential.sequentiality.longest_run_bytes), (1, 64 * MIB));
}
