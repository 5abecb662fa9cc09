//! Stream policies: write amplification on recorded loads, and the orderings that the sources claim.

mod gap;
mod load;
mod measure;
mod synthetic;

use super::{Context, Done, Reproduction, Sabotage, Table, experiment, recordings};
use crate::Result;
use load::{Load, RECORDINGS, Recording};
use measure::{COARSE, Cell, FINE, STREAMS, Shape, measure};
use nandscape_core::TraceError;
use nandscape_host::fs::FsError;
use rayon::prelude::*;

pub(super) const CAPTURED: Reproduction = experiment(
    "streams-captured",
    "write amplification of stream policies on recorded loads (folder in NANDSCAPE_TRACES)",
    "[AutoStream abstract]; the recordings are ours",
    captured,
);

pub(super) const POLICIES: Reproduction = Reproduction {
    sabotage: Some(Sabotage {
        what: "the device has one log, and no policy gives a write a stream",
        turns: Sabotage::EVERY_RULE,
    }),
    ..experiment(
        "streams-policies",
        "streams for metadata, mails, logs and tables: what the sources claim of hints, names and pools",
        "[FStream abstract], [AutoStream abstract], [streams-article 4.2]",
        policies,
    )
};

/// A policy with its keys, as it stands in the table.
struct Column {
    name: &'static str,
    policy: &'static str,
    keys: &'static [(&'static str, &'static str)],
    needs_names: bool,
}

const fn column(
    name: &'static str,
    policy: &'static str,
    keys: &'static [(&'static str, &'static str)],
) -> Column {
    Column { name, policy, keys, needs_names: false }
}

const ORACLE: &str = "oracle";

/// What is compared on recordings. `none` comes first.
const COLUMNS: [Column; 10] = [
    column("none", "none", &[]),
    Column { needs_names: true, ..column("write-hint", "write-hint", &[]) },
    Column { needs_names: true, ..column("names", "names", &[]) },
    Column { needs_names: true, ..column("exclusive", "exclusive", &[]) },
    column("autostream-mq, base 2", "autostream-mq", &[("base", "2")]),
    column("autostream-mq, base 10", "autostream-mq", &[("base", "10")]),
    column("autostream-sfr, base 2", "autostream-sfr", &[("base", "2")]),
    column("autostream-sfr, base 10", "autostream-sfr", &[("base", "10")]),
    column("death-time", "death-time", &[]),
    column(ORACLE, "oracle", &[]),
];

const OCCUPANCIES: [f64; 3] = [0.7, 0.9, 1.0];
/// How much above another policy the oracle may be before its bound does not hold: counting ends inside a
/// collection.
const TOLERANCE: f64 = 0.002;

/// Adds the figure of a policy, which no source states.
fn figure(out: &mut Table, name: String, cell: &Cell) {
    let note = format!("{} of {STREAMS} streams used", cell.used);
    out.row("", name).figure("WAF", cell.waf).note(note);
}

fn captured(context: &Context<'_>, out: &mut Table) -> Done {
    let mut best: Option<f64> = None;
    for recording in &RECORDINGS {
        context.check_stop()?;
        let path = match recordings::find(recording.file) {
            Ok(path) => path,
            Err(why) => {
                // A number that is none is null.
                out.row("", recording.name).figure("WAF", f64::NAN).note(why);
                continue;
            }
        };
        for (mount, format) in recording.mounts() {
            let load = Load::read(&path, *format)?;
            let settings = OCCUPANCIES.map(|occupancy| (FINE, occupancy, ""));
            for (shape, occupancy, units) in settings.into_iter().chain([(COARSE, 1.0, ", coarse")]) {
                context.check_stop()?;
                let cells = table(&load, shape, occupancy, recording)?;
                let setting = format!("{} {:.0} %{units}{mount}", recording.name, occupancy * 100.0);
                rows_of(&setting, &cells, out);
                let none = cells[0].1.waf;
                let auto = cells.iter().filter(|(column, _)| column.policy.starts_with("autostream"));
                let cuts = auto.map(|(_, cell)| (none - cell.waf) / none);
                best = Some(cuts.fold(best.unwrap_or(0.0), f64::max));
            }
        }
    }
    gap::rows(context, out)?;
    if let Some(best) = best {
        out.row("[AutoStream abstract]", "largest WAF reduction by AutoStream")
            .number("%", 60.0, best * 100.0)
            .note(
                "the loads of the source are not public; see docs/stream-policies.md for what limits these",
            );
    }
    Ok(())
}

fn table<'a>(
    load: &Load,
    shape: Shape,
    occupancy: f64,
    recording: &Recording,
) -> Result<Vec<(&'a Column, Cell)>> {
    let suited: Vec<&Column> =
        COLUMNS.iter().filter(|column| recording.has_names || !column.needs_names).collect();
    suited
        .into_par_iter()
        .map(|column| Ok((column, measure(load, shape, occupancy, column.policy, column.keys)?)))
        .collect()
}

/// The figures of one setting and whether the oracle bounds them.
fn rows_of(setting: &str, cells: &[(&Column, Cell)], out: &mut Table) {
    for (column, cell) in cells {
        figure(out, format!("{setting}: {}", column.name), cell);
    }
    let oracle =
        cells.iter().find(|(column, _)| column.name == ORACLE).map_or(f64::NAN, |(_, cell)| cell.waf);
    let (nearest, least) = cells
        .iter()
        .filter(|(column, _)| column.name != ORACLE)
        .map(|(column, cell)| (column.name, cell.waf))
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .unwrap_or_default();
    out.row("", format!("{setting}: bound"))
        .says("oracle <= every other policy", oracle <= least + TOLERANCE)
        .found(format!("{oracle:.3}, next {nearest} with {least:.3}"));
}

fn policies(context: &Context<'_>, out: &mut Table) -> Done {
    const OCCUPANCY: f64 = 0.9;
    context.check_stop()?;
    let failed = |error: FsError| TraceError::Io {
        source_name: POLICIES.info.name.to_owned(),
        message: error.to_string(),
    };
    let mut reader = synthetic::Synthetic::new(context.seed).map_err(failed)?;
    let load = Load::of(&mut reader)?;
    let cells = COMPARED
        .par_iter()
        .map(|column| {
            let policy = if context.is_sabotaged { "none" } else { column.policy };
            let keys = if context.is_sabotaged { &[] } else { column.keys };
            measure(&load, FINE, OCCUPANCY, policy, keys)
        })
        .collect::<Result<Vec<_>>>()?;
    for (column, cell) in COMPARED.iter().zip(&cells) {
        figure(out, column.name.to_owned(), cell);
    }
    claims(&cells, out);
    Ok(())
}

const BOTH: &str = "hints and names";

/// What is compared on the load that needs no recording.
const COMPARED: [Column; 10] = [
    column("none", "none", &[]),
    column("write-hint", "write-hint", &[]),
    column("shared", "shared", &[]),
    column("split-pools", "split-pools", &[]),
    column("names", "names", &[]),
    column(BOTH, "exclusive", &[("by", "hint-or-class")]),
    column("exclusive", "exclusive", &[]),
    column("autostream-mq", "autostream-mq", &[]),
    column("autostream-sfr", "autostream-sfr", &[]),
    column(ORACLE, "oracle", &[]),
];

/// A write amplification is lower than another one if it is by so much.
const MARGIN: f64 = 0.02;

fn claims(cells: &[Cell], out: &mut Table) {
    let cell = |name: &str| COMPARED.iter().position(|column| column.name == name).map(|at| &cells[at]);
    let of = |name: &str| cell(name).map_or(f64::NAN, |cell| cell.waf);
    let is_lower = |one: f64, other: f64| one <= (1.0 - MARGIN) * other;
    let (none, shared, exclusive) = (of("none"), of("shared"), of("exclusive"));
    out.row("[streams-article 4.2.1]", "exclusive streams are the upper bound of knowing the class")
        .says(
            "exclusive < shared < none (each taken as by 2 % or more)",
            is_lower(exclusive, shared) && is_lower(shared, none),
        )
        .found(format!("{exclusive:.3}, {shared:.3}, {none:.3}"));
    let used = cell("shared").map_or(0, |cell| cell.used);
    out.row("[streams-article 4.2.2]", "streams that four levels use")
        .says("never more than 4 (and taken as 2 or more)", (2..=4).contains(&used))
        .found(used.to_string());
    let cut = |waf: f64| (none - waf) / none * 100.0;
    out.row("[FStream abstract]", "WAF cut by names and classes of metadata")
        .says(
            "7 to 46 % (filebench), up to 81 % (Cassandra); taken as 7 to 46 % for mails and tables",
            (7.0..=46.0).contains(&cut(of("names"))),
        )
        .found(format!("{:.1} %", cut(of("names"))));
    let [hint, name, both] = ["write-hint", "names", BOTH].map(of);
    out.row("[streams-article 4.2.3]", "hints by the program, by name, and both")
        .says(
            "all three can be chosen; taken as each below none by 2 % or more, and both no more than 2 % above the \
             better of the two",
            [hint, name, both].iter().all(|waf| is_lower(*waf, none)) && both <= (1.0 + MARGIN) * hint.min(name),
        )
        .found(format!(
            "hints {hint:.3}, names {name:.3}, both {both:.3} (the hint, or the kind of file or metadata without one)"
        ));
    out.row("[streams-article 4.2.4]", "pools of the kernel and of programs")
        .says(
            "no file data beside metadata; taken as WAF below none by 2 % or more",
            is_lower(of("split-pools"), none),
        )
        .found(format!(
            "{:.3}; the ids are disjoint, and no block holds two streams (tests)",
            of("split-pools")
        ));
    let auto = cut(of("autostream-mq")).max(cut(of("autostream-sfr")));
    out.row("[AutoStream abstract]", "WAF cut by AutoStream")
        .says("up to 60 % (taken as 5 to 60 %)", (5.0..=60.0).contains(&auto))
        .found(format!("{auto:.1} % without knowing any file"));
}
