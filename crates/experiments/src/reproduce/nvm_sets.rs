//! The NVM sets experiment (`sets-article` in docs/sources.md): a Memblaze `PBlaze5` 916 whose dies belong to
//! both namespaces (traditional), or half of the channels to each (vertical), or half of the dies of every
//! channel to each (horizontal).
//!
//! The load is `configs/nvm-sets.fio`, the device the preset `pblaze5-916`, and the same for every row: only
//! `sets.layout`, the reader's depth and, for some rows, `device.timing.contention`, `sets.owner` and
//! `sets.processor` differ.

mod compare;
mod lab;

use super::{Context, Done, Reproduction, Sabotage, Table, experiment};
use lab::measure;

pub(super) const NVM_SETS: Reproduction = Reproduction {
    sabotage: Some(Sabotage {
        what: "every layout has all dies in common, buses are waited for where contention is to be off, and the \
               controller's processor runs the layers of hosts too",
        turns: &[
            "read latency over time, mean of each 100 ms",
            "mean read latency at depth 8",
            "p99.99 of reads",
            "p99.9999 of reads",
            "longest read and IOPS, depth 1 to 64",
            "the same with no contention on the channels",
            "IOPS of sets over traditional at every depth",
            "write bandwidth beside reads, traditional",
            "writer and reader inside one set",
            "mean read beside the writer over alone",
            "open-channel against sets, where processors take time",
        ],
    }),
    ..experiment(
        "nvm-sets",
        "traditional, vertical and horizontal NVM sets under a writer and a reader; 10 M reads a layout",
        "[sets-article test 1], [sets-article test 2], [sets-article write bandwidth], [sets-article open-channel]",
        rows,
    )
};

/// How much to run. The figures of a small effort are those of the full one, but for the far tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Effort {
    /// Reads of the rows at depth 8.
    reads: u64,
    /// Reads of every other run.
    sweep_reads: u64,
    /// The drive's blocks are divided by this. Above 22 its spare space would be too small for an open block
    /// on every die.
    scale: u32,
    /// Half of the flash is spare and every die has an open block, for devices that are so small that a die
    /// has few blocks: with the drive's own share of spare blocks the translation layer could neither
    /// write all dies at once nor wait until blocks are empty.
    is_roomy: bool,
}

impl Effort {
    const FULL: Self = Self { reads: 10_000_000, sweep_reads: 300_000, scale: 22, is_roomy: false };
    const SMALL: Self = Self { reads: 150_000, sweep_reads: 30_000, scale: 64, is_roomy: true };
}

fn rows(context: &Context<'_>, out: &mut Table) -> Done {
    compare::rows(&measure(context, &context.scale(Effort::FULL, Effort::SMALL))?, out);
    Ok(())
}
