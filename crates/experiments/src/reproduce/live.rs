//! Published experiments that need a Linux kernel or another program, and so a command of their own.

use nandscape_core::Info;

/// A published experiment that [`REPRODUCTIONS`](super::REPRODUCTIONS) cannot run.
#[derive(Clone, Copy, Debug)]
pub struct Live {
    /// Id, what it is, tags of its sources.
    pub info: Info,
    /// What runs it, from the root of the sources.
    pub command: &'static str,
}

const fn live(
    name: &'static str,
    summary: &'static str,
    source: &'static str,
    command: &'static str,
) -> Live {
    Live { info: Info { name, summary, source, params: &[] }, command }
}

/// Every one of them.
pub const LIVE: [Live; 4] = [
    live(
        "fast13-baselines",
        "ext2, ext3, ext4, btrfs, xfs and a mount of objects under the loads of OFTL",
        "[OFTL table 3], [OFTL fig 7]",
        "make baselines",
    ),
    live(
        "fstream-live",
        "streams by what ext4 keeps in a block, under fio, files and PostgreSQL",
        "[FStream], [streams-article 2.4]",
        "tests/fstream/measure.py --binary target/release/nandscape",
    ),
    live(
        "rocksdb-live",
        "db_bench on a mounted store of files on zones and on XFS",
        "[ATC21 5.3]",
        "make bench-rocksdb",
    ),
    live(
        "mqsim",
        "mean response times of two open-loop traces, beside MQSim's",
        "MQSim, FAST 2018",
        "cargo test --release -p nandscape-sim --test suite mqsim:: -- --nocapture",
    ),
];
