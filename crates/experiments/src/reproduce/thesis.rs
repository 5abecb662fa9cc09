//! The thesis on open-channel SSDs in high-performance computing (`thesis` in docs/sources.md): its figures
//! 2.2 to 2.7 (the two loads), Table 4.2, the mapping traffic and table sizes, and figures 4.1 to 4.11.
//!
//! The recorded traces are not public. Every run replays the built-in loads `lammps` and `macdrp`, which were
//! made to meet the published facts, so agreement with a published figure is agreement of model and load
//! together. Their live data (272 and 87.6 MiB) and the 225 unaligned requests of `macdrp` are inputs from
//! published results: both follow from the mapping traffic of `PM_GCC`. No parameter of the device or of the
//! strategies is set to a result.
//!
//! Rules: a published number is met within 0.8 to 1.25 times itself, or exactly where the source gives bytes
//! of a table. Where the source says "close", "slightly" or "much", the row states in `published` which
//! bounds that is taken to mean.

mod curves;
mod lab;
mod load;
mod sweeps;
mod tables;
mod wear;

pub(super) use lab::Point;

use super::{Context, Done, Reproduction, Sabotage, Table, experiment};

/// An experiment whose rows are all explained.
const fn figure(
    name: &'static str,
    summary: &'static str,
    source: &'static str,
    rows: fn(&Context<'_>, &mut Table) -> Done,
) -> Reproduction {
    Reproduction { must_explain: true, ..experiment(name, summary, source, rows) }
}

/// An experiment with rules, and how they are shown to be able to fail.
const fn ruled(figure: Reproduction, sabotage: Sabotage) -> Reproduction {
    Reproduction { sabotage: Some(sabotage), ..figure }
}

pub(super) const EXPERIMENTS: [Reproduction; 22] = [
    figure(
        "thesis-fig-2.2",
        "LAMMPS load: bytes written, address range, overwrites",
        "[thesis fig 2.2]",
        load::fig_2_2,
    ),
    figure("thesis-fig-2.3", "LAMMPS load: sizes and page alignment", "[thesis fig 2.3]", load::fig_2_3),
    ruled(
        figure("thesis-fig-2.4", "LAMMPS load: block alignment", "[thesis fig 2.4]", load::fig_2_4),
        load::ON_BORDERS,
    ),
    figure(
        "thesis-fig-2.5",
        "MACDRP load: bytes written, address range, overwrites",
        "[thesis fig 2.5]",
        load::fig_2_5,
    ),
    figure("thesis-fig-2.6", "MACDRP load: sizes and page alignment", "[thesis fig 2.6]", load::fig_2_6),
    figure("thesis-fig-2.7", "MACDRP load: block alignment", "[thesis fig 2.7]", load::fig_2_7),
    ruled(
        figure(
            "thesis-table-4.2",
            "write throughput of the four strategies",
            "[thesis table 4.2]",
            tables::table_4_2,
        ),
        tables::PARALLEL,
    ),
    ruled(
        figure(
            "thesis-map-traffic",
            "bytes of mapping-table updates, and what they imply",
            "[thesis 4.3]",
            tables::map_traffic,
        ),
        tables::OTHER_MAPS,
    ),
    ruled(
        figure("thesis-table-sizes", "bytes of the mapping tables", "[thesis 4.3]", tables::table_sizes),
        tables::OTHER_TABLES,
    ),
    ruled(
        figure("thesis-fig-4.1", "orderings of the throughputs", "[thesis fig 4.1]", tables::fig_4_1),
        tables::MIXED_UP,
    ),
    ruled(
        figure("thesis-fig-4.2", "running mean of the throughput", "[thesis fig 4.2]", curves::fig_4_2),
        curves::NO_COLLECTION,
    ),
    ruled(
        figure("thesis-fig-4.3", "throughput of single requests", "[thesis fig 4.3]", curves::fig_4_3),
        curves::EXCHANGED,
    ),
    ruled(
        figure(
            "thesis-fig-4.4",
            "mapping-table updates over data written",
            "[thesis fig 4.4]",
            curves::fig_4_4,
        ),
        curves::TRAFFIC,
    ),
    ruled(
        figure("thesis-fig-4.5", "erased blocks over data written", "[thesis fig 4.5]", curves::fig_4_5),
        curves::NO_COLLECTION,
    ),
    ruled(
        figure(
            "thesis-fig-4.6",
            "write amplification over data written",
            "[thesis fig 4.6]",
            curves::fig_4_6,
        ),
        sweeps::OTHER_COLLECTION,
    ),
    ruled(
        figure("thesis-fig-4.7", "evenness of programs and erases", "[thesis fig 4.7]", wear::fig_4_7),
        wear::IN_PLACE,
    ),
    ruled(
        figure(
            "thesis-fig-4.8",
            "capacity of 2, 4 and 8 times the live data",
            "[thesis fig 4.8]",
            sweeps::fig_4_8,
        ),
        sweeps::OTHER_COLLECTION,
    ),
    ruled(
        figure(
            "thesis-fig-4.9",
            "8, 16, 32 and 64 pages per block at constant capacity",
            "[thesis fig 4.9]",
            sweeps::fig_4_9,
        ),
        sweeps::OTHER_UNITS,
    ),
    ruled(
        figure(
            "thesis-fig-4.10",
            "superblocks of 1, 2, 4 and 8 blocks of 8 pages",
            "[thesis fig 4.10]",
            sweeps::fig_4_10,
        ),
        sweeps::OTHER_SIZES,
    ),
    ruled(
        figure("thesis-fig-4.11", "1 to 32 log superblocks", "[thesis fig 4.11]", sweeps::fig_4_11),
        sweeps::SCATTERED,
    ),
    ruled(
        figure("thesis-conclusion", "which strategy to use", "[thesis 4.10]", tables::conclusion),
        tables::MIXED_UP,
    ),
    ruled(
        figure(
            "thesis-parallel",
            "the same strategies on a device whose dies work in parallel: our experiment, not the source's",
            "ours; the device is that of [thesis table 4.1]",
            tables::parallel,
        ),
        tables::SERIAL,
    ),
];
