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

pub(super) use lab::Cache;

use super::{Context, Reproduction, number, statement};
use nandscape_core::Info;
use nandscape_report::ReproductionRow;
use nandscape_stack::RunError;

type Rows = Result<Vec<ReproductionRow>, RunError>;

const fn experiment(
    name: &'static str,
    summary: &'static str,
    source: &'static str,
    run: fn(&Context<'_>) -> Rows,
) -> Reproduction {
    Reproduction { info: Info { name, summary, source, params: &[] }, run }
}

pub(super) const FIG_2_2: Reproduction = experiment(
    "thesis-fig-2.2",
    "LAMMPS load: bytes written, address range, overwrites",
    "[thesis fig 2.2]",
    load::fig_2_2,
);
pub(super) const FIG_2_3: Reproduction =
    experiment("thesis-fig-2.3", "LAMMPS load: sizes and page alignment", "[thesis fig 2.3]", load::fig_2_3);
pub(super) const FIG_2_4: Reproduction =
    experiment("thesis-fig-2.4", "LAMMPS load: block alignment", "[thesis fig 2.4]", load::fig_2_4);
pub(super) const FIG_2_5: Reproduction = experiment(
    "thesis-fig-2.5",
    "MACDRP load: bytes written, address range, overwrites",
    "[thesis fig 2.5]",
    load::fig_2_5,
);
pub(super) const FIG_2_6: Reproduction =
    experiment("thesis-fig-2.6", "MACDRP load: sizes and page alignment", "[thesis fig 2.6]", load::fig_2_6);
pub(super) const FIG_2_7: Reproduction =
    experiment("thesis-fig-2.7", "MACDRP load: block alignment", "[thesis fig 2.7]", load::fig_2_7);
pub(super) const TABLE_4_2: Reproduction = experiment(
    "thesis-table-4.2",
    "write throughput of the four strategies",
    "[thesis table 4.2]",
    tables::table_4_2,
);
pub(super) const MAP_TRAFFIC: Reproduction = experiment(
    "thesis-map-traffic",
    "bytes of mapping-table updates, and what they imply",
    "[thesis 4.3]",
    tables::map_traffic,
);
pub(super) const TABLE_SIZES: Reproduction =
    experiment("thesis-table-sizes", "bytes of the mapping tables", "[thesis 4.3]", tables::table_sizes);
pub(super) const FIG_4_1: Reproduction =
    experiment("thesis-fig-4.1", "orderings of the throughputs", "[thesis fig 4.1]", tables::fig_4_1);
pub(super) const FIG_4_2: Reproduction =
    experiment("thesis-fig-4.2", "running mean of the throughput", "[thesis fig 4.2]", curves::fig_4_2);
pub(super) const FIG_4_3: Reproduction =
    experiment("thesis-fig-4.3", "throughput of single requests", "[thesis fig 4.3]", curves::fig_4_3);
pub(super) const FIG_4_4: Reproduction = experiment(
    "thesis-fig-4.4",
    "mapping-table updates over data written",
    "[thesis fig 4.4]",
    curves::fig_4_4,
);
pub(super) const FIG_4_5: Reproduction =
    experiment("thesis-fig-4.5", "erased blocks over data written", "[thesis fig 4.5]", curves::fig_4_5);
pub(super) const FIG_4_6: Reproduction = experiment(
    "thesis-fig-4.6",
    "write amplification over data written",
    "[thesis fig 4.6]",
    curves::fig_4_6,
);
pub(super) const FIG_4_7: Reproduction =
    experiment("thesis-fig-4.7", "evenness of programs and erases", "[thesis fig 4.7]", wear::fig_4_7);
pub(super) const FIG_4_8: Reproduction = experiment(
    "thesis-fig-4.8",
    "capacity of 2, 4 and 8 times the live data",
    "[thesis fig 4.8]",
    sweeps::fig_4_8,
);
pub(super) const FIG_4_9: Reproduction = experiment(
    "thesis-fig-4.9",
    "8, 16, 32 and 64 pages per block at constant capacity",
    "[thesis fig 4.9]",
    sweeps::fig_4_9,
);
pub(super) const FIG_4_10: Reproduction = experiment(
    "thesis-fig-4.10",
    "superblocks of 1, 2, 4 and 8 blocks of 8 pages",
    "[thesis fig 4.10]",
    sweeps::fig_4_10,
);
pub(super) const FIG_4_11: Reproduction =
    experiment("thesis-fig-4.11", "1 to 32 log superblocks", "[thesis fig 4.11]", sweeps::fig_4_11);
pub(super) const CONCLUSION: Reproduction =
    experiment("thesis-conclusion", "which strategy to use", "[thesis 4.10]", tables::conclusion);
pub(super) const PARALLEL: Reproduction = experiment(
    "thesis-parallel",
    "the same strategies on a device whose dies work in parallel: our experiment, not the source's",
    "ours; the device is that of [thesis table 4.1]",
    tables::parallel,
);

/// Collects the rows of one experiment.
struct Table {
    id: &'static str,
    rows: Vec<ReproductionRow>,
}

impl Table {
    const fn new(of: &Reproduction) -> Self {
        Self { id: of.info.name, rows: Vec::new() }
    }

    /// Two numbers side by side. A row far from its figure whose cause nobody knows says so.
    fn number(
        &mut self,
        source: &str,
        name: impl Into<String>,
        unit: &str,
        published: f64,
        measured: f64,
        note: &str,
    ) {
        let mut row = number(self.id, source, name, unit, published, measured, note);
        if row.note.is_empty() && row.ratio.is_some_and(|ratio| !(0.8..=1.25).contains(&ratio)) {
            "not explained by the model's decisions; the recorded trace is not public and this load may differ from it"
                .clone_into(&mut row.note);
        }
        self.rows.push(row);
    }

    /// A statement in words. `figures` is what was measured; `why` explains a statement that does not hold.
    fn statement(
        &mut self,
        source: &str,
        name: impl Into<String>,
        published: &str,
        holds: bool,
        figures: &str,
        why: &str,
    ) {
        let note = match (holds, why) {
            (true, _) => format!("measured: {figures}"),
            (false, "") => format!("measured: {figures}; no cause is known"),
            (false, why) => format!("measured: {figures}; {why}"),
        };
        self.rows.push(statement(self.id, source, name, published, holds, &note));
    }
}
