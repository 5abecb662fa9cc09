//! The thesis on open-channel SSDs in high-performance computing (`thesis` in docs/sources.md): its figures
//! 2.2 to 2.7 (the two loads), Table 4.2, the mapping traffic and table sizes, and figures 4.1 to 4.11.
//!
//! The recorded traces are not public. Every run replays the built-in loads `lammps` and `macdrp`, which meet
//! the published facts, so agreement with a published figure is agreement of model and load together. Nothing
//! is fitted to the figures.
//!
//! Where the source says "close", "slightly" or "much", the row states in `published` which bounds that is
//! taken to mean.

mod curves;
mod lab;
mod load;
mod sweeps;
mod tables;
mod wear;

pub(super) use lab::Point;

use super::{Context, Done, Reproduction, Table, experiment};

/// An experiment whose rows are all explained.
const fn figure(
    name: &'static str,
    summary: &'static str,
    source: &'static str,
    rows: fn(&Context<'_>, &mut Table) -> Done,
) -> Reproduction {
    Reproduction { must_explain: true, ..experiment(name, summary, source, rows) }
}

pub(super) const EXPERIMENTS: [Reproduction; 22] = [
    figure(
        "thesis-fig-2.2",
        "LAMMPS load: bytes written, address range, overwrites",
        "[thesis fig 2.2]",
        load::fig_2_2,
    ),
    figure("thesis-fig-2.3", "LAMMPS load: sizes and page alignment", "[thesis fig 2.3]", load::fig_2_3),
    figure("thesis-fig-2.4", "LAMMPS load: block alignment", "[thesis fig 2.4]", load::fig_2_4),
    figure(
        "thesis-fig-2.5",
        "MACDRP load: bytes written, address range, overwrites",
        "[thesis fig 2.5]",
        load::fig_2_5,
    ),
    figure("thesis-fig-2.6", "MACDRP load: sizes and page alignment", "[thesis fig 2.6]", load::fig_2_6),
    figure("thesis-fig-2.7", "MACDRP load: block alignment", "[thesis fig 2.7]", load::fig_2_7),
    figure(
        "thesis-table-4.2",
        "write throughput of the four strategies",
        "[thesis table 4.2]",
        tables::table_4_2,
    ),
    figure(
        "thesis-map-traffic",
        "bytes of mapping-table updates, and what they imply",
        "[thesis 4.3]",
        tables::map_traffic,
    ),
    figure("thesis-table-sizes", "bytes of the mapping tables", "[thesis 4.3]", tables::table_sizes),
    figure("thesis-fig-4.1", "orderings of the throughputs", "[thesis fig 4.1]", tables::fig_4_1),
    figure("thesis-fig-4.2", "running mean of the throughput", "[thesis fig 4.2]", curves::fig_4_2),
    figure("thesis-fig-4.3", "throughput of single requests", "[thesis fig 4.3]", curves::fig_4_3),
    figure("thesis-fig-4.4", "mapping-table updates over data written", "[thesis fig 4.4]", curves::fig_4_4),
    figure("thesis-fig-4.5", "erased blocks over data written", "[thesis fig 4.5]", curves::fig_4_5),
    figure("thesis-fig-4.6", "write amplification over data written", "[thesis fig 4.6]", curves::fig_4_6),
    figure("thesis-fig-4.7", "evenness of programs and erases", "[thesis fig 4.7]", wear::fig_4_7),
    figure(
        "thesis-fig-4.8",
        "capacity of 2, 4 and 8 times the live data",
        "[thesis fig 4.8]",
        sweeps::fig_4_8,
    ),
    figure(
        "thesis-fig-4.9",
        "8, 16, 32 and 64 pages per block at constant capacity",
        "[thesis fig 4.9]",
        sweeps::fig_4_9,
    ),
    figure(
        "thesis-fig-4.10",
        "superblocks of 1, 2, 4 and 8 blocks of 8 pages",
        "[thesis fig 4.10]",
        sweeps::fig_4_10,
    ),
    figure("thesis-fig-4.11", "1 to 32 log superblocks", "[thesis fig 4.11]", sweeps::fig_4_11),
    figure("thesis-conclusion", "which strategy to use", "[thesis 4.10]", tables::conclusion),
    figure(
        "thesis-parallel",
        "the same strategies on a device whose dies work in parallel: our experiment, not the source's",
        "ours; the device is that of [thesis table 4.1]",
        tables::parallel,
    ),
];
