//! Counts of public sample traces against what is known about them. The samples carry no licence for their
//! data, so they are not in the repository: `NANDSCAPE_PUBLIC_TRACES` names a directory that has them, and
//! without it this test says that it was skipped.

use nandscape_trace::{OpenOptions, StatsOptions, Target, TraceStats, open};
use std::path::Path;

/// What is known of a sample from its index, which was made by other programs; MB are 10^6 bytes.
struct Known {
    file: &'static str,
    /// `--format` where detection cannot know.
    format: Option<&'static str>,
    records: u64,
    /// Share of writes in percent.
    writes: f64,
    /// Bytes written, read and touched (4 KiB pages), in MB; negative where the index has none.
    megabytes: [f64; 3],
    has_real_times: bool,
}

const fn known(
    file: &'static str,
    records: u64,
    writes: f64,
    megabytes: [f64; 3],
    has_real_times: bool,
) -> Known {
    Known { file, format: None, records, writes, megabytes, has_real_times }
}

const NONE: f64 = -1.0;

const FILES: &[Known] = &[
    known("cloudphysics.vscsi1.zst", 113_872, 58.7, [2409.0, 1797.0, 1103.0], true),
    known("cloudphysics.oracleGeneral.bin.zst", 113_872, 0.0, [NONE, NONE, NONE], true),
    known("cloudphysics-w106.u32le.xz", 5_292_456, 0.0, [NONE, NONE, 1127.1], false),
    known("arc-oltp.lis.zst", 914_145, 0.0, [NONE, NONE, NONE], false),
    known("ycsb-rocksdb-writes.mqsim.zst", 87_487, 100.0, [7292.0, 0.0, 1980.0], false),
    known("iozone.disksim.zst", 100_000, 100.0, [36856.0, 0.0, 1111.0], true),
    known("postmark.disksim.zst", 62_257, 16.8, [8937.0, 5236.0, 6281.0], true),
    known("spc-financial1-10k.ssdsim.zst", 10_000, 59.2, [30.0, 25.0, 29.0], true),
    Known {
        format: Some("mqsim:unit=us"),
        ..known("msps-dtrs.ssdsim.zst", 127_043, 11.0, [761.0, 6437.0, 5211.0], true)
    },
    known("mqsim-tpcc-small.trace.zst", 6_999, 37.4, [NONE, NONE, 84.0], true),
    known("mqsim-wsrch-small.trace.zst", 24_783, 0.0, [NONE, 382.0, NONE], true),
    known("tencent-cbs-50k.csv.zst", 50_000, 51.0, [872.0, 647.0, NONE], true),
    known("msr-hm0-1k.csv.zst", 1_000, 49.2, [NONE, NONE, NONE], true),
    known("systor17-lun-1k-a.csv.zst", 999, 17.3, [NONE, NONE, NONE], true),
    known("systor17-lun-1k-b.csv.zst", 999, 29.9, [NONE, NONE, NONE], true),
    known("blkparse-ycsb-read.txt.zst", 1_694, 0.0, [0.0, 198.0, NONE], true),
];

impl Known {
    fn agrees(&self, stats: &TraceStats) -> bool {
        let mix = &stats.mix;
        let writes = mix.writes.requests as f64 / stats.requests as f64 * 100.0;
        let measured =
            [mix.writes.bytes, mix.reads.bytes, stats.touched_bytes].map(|bytes| bytes as f64 / 1e6);
        stats.requests == self.records
            && stats.info.records == self.records
            && (writes - self.writes).abs() < 0.06
            && stats.info.has_real_times == self.has_real_times
            && measured.iter().zip(self.megabytes).all(|(got, want)| want < 0.0 || (got - want).abs() < 1.0)
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "a skipped check has to be seen")]
fn public_samples_have_their_known_counts() {
    let Some(directory) = std::env::var_os("NANDSCAPE_PUBLIC_TRACES") else {
        eprintln!("skipped: NANDSCAPE_PUBLIC_TRACES is not set");
        return;
    };
    let mut wrong = Vec::new();
    for known in FILES {
        let path = Path::new(&directory).join(known.file);
        let options = OpenOptions {
            format: known.format.map(str::to_owned),
            remap_dense: true,
            ..OpenOptions::default()
        };
        let stats = open(path.to_str().unwrap(), &options, Target::NONE)
            .and_then(|reader| TraceStats::of(reader, StatsOptions::default()));
        match stats {
            Ok(stats) if known.agrees(&stats) => {}
            other => wrong.push(format!("{}: {other:?}", known.file)),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
