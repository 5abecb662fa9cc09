//! Stream policies: write amplification on recorded loads, and the orderings that the sources claim.

mod load;
mod measure;
mod synthetic;

use super::{Context, Reproduction, number, statement};
use load::{Load, RECORDINGS, Recording};
use measure::{COARSE, Cell, FINE, STREAMS, Shape, measure};
use nandscape_core::{Info, TraceError};
use nandscape_report::ReproductionRow;
use nandscape_stack::RunError;
use rayon::prelude::*;
use serde_json::Value;

type Rows = Result<Vec<ReproductionRow>, RunError>;

pub(super) const CAPTURED: Reproduction = Reproduction {
    info: Info {
        name: "streams-captured",
        summary: "write amplification of stream policies on recorded loads (folder in NANDSCAPE_TRACES)",
        source: "[AutoStream abstract]; the recordings are ours",
        params: &[],
    },
    run: captured,
};

pub(super) const POLICIES: Reproduction = Reproduction {
    info: Info {
        name: "streams-policies",
        summary: "streams for metadata, mails, logs and tables: what the sources claim of hints, names and pools",
        source: "[FStream abstract], [AutoStream abstract], [streams-article 4.2]",
        params: &[],
    },
    run: policies,
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
const COLUMNS: [Column; 9] = [
    column("none", "none", &[]),
    Column { needs_names: true, ..column("write-hint", "write-hint", &[]) },
    Column { needs_names: true, ..column("names", "names", &[]) },
    Column { needs_names: true, ..column("exclusive", "exclusive", &[]) },
    column("autostream-mq, base 2", "autostream-mq", &[("base", "2")]),
    column("autostream-mq, base 10", "autostream-mq", &[("base", "10")]),
    column("autostream-sfr, base 2", "autostream-sfr", &[("base", "2")]),
    column("autostream-sfr, base 10", "autostream-sfr", &[("base", "10")]),
    column(ORACLE, "oracle", &[]),
];

/// Occupancies of the table.
const OCCUPANCIES: [f64; 3] = [0.7, 0.9, 1.0];
/// How much above another policy the oracle may be before its bound does not hold: counting ends inside a
/// collection.
const TOLERANCE: f64 = 0.002;

/// A measured figure that no source states.
fn figure(id: &str, name: String, measured: f64, note: &str) -> ReproductionRow {
    ReproductionRow {
        id: id.to_owned(),
        source: String::new(),
        name,
        unit: "WAF".to_owned(),
        published: Value::Null,
        measured: measured.into(),
        ratio: None,
        note: note.to_owned(),
        series: None,
    }
}

fn captured(context: &Context<'_>) -> Rows {
    let id = CAPTURED.info.name;
    let mut rows = Vec::new();
    let mut best = 0.0_f64;
    for recording in &RECORDINGS {
        context.check_stop()?;
        let path = match recording.find() {
            Ok(path) => path,
            Err(why) => {
                rows.push(ReproductionRow {
                    measured: Value::Null,
                    ..figure(id, recording.name.to_owned(), 0.0, &why)
                });
                continue;
            }
        };
        // A volume mounted without online discard keeps all that was ever written; with it, less than is
        // written is live.
        let mounts: &[(&str, Option<&str>)] = if recording.has_names {
            &[("", Some("ops:discard=false")), (", discard", Some("ops"))]
        } else {
            &[("", None)]
        };
        for (mount, format) in mounts {
            let load = Load::read(&path, *format)?;
            let settings = OCCUPANCIES.map(|occupancy| (FINE, occupancy, ""));
            for (shape, occupancy, units) in settings.into_iter().chain([(COARSE, 1.0, ", coarse")]) {
                context.check_stop()?;
                let cells = table(&load, shape, occupancy, recording)?;
                let setting = format!("{} {:.0} %{units}{mount}", recording.name, occupancy * 100.0);
                rows.extend(rows_of(id, &setting, &cells));
                let none = cells[0].1.waf;
                let auto = cells.iter().filter(|(column, _)| column.policy.starts_with("autostream"));
                best = auto.fold(best, |best, (_, cell)| best.max((none - cell.waf) / none));
            }
        }
    }
    if rows.iter().any(|row| !row.measured.is_null()) {
        let note =
            "the loads of the source are not public; see docs/stream-policies.md for what limits these";
        rows.push(number(
            id,
            "[AutoStream abstract]",
            "largest WAF reduction by AutoStream",
            "%",
            60.0,
            best * 100.0,
            note,
        ));
    }
    Ok(rows)
}

fn table<'a>(
    load: &Load,
    shape: Shape,
    occupancy: f64,
    recording: &Recording,
) -> Result<Vec<(&'a Column, Cell)>, RunError> {
    let suited: Vec<&Column> =
        COLUMNS.iter().filter(|column| recording.has_names || !column.needs_names).collect();
    suited
        .into_par_iter()
        .map(|column| Ok((column, measure(load, shape, occupancy, column.policy, column.keys)?)))
        .collect()
}

/// The figures of one setting and whether the oracle bounds them.
fn rows_of(id: &str, setting: &str, cells: &[(&Column, Cell)]) -> Vec<ReproductionRow> {
    let mut rows: Vec<ReproductionRow> = cells
        .iter()
        .map(|(column, cell)| {
            let note = format!("{} of {STREAMS} streams used", cell.used);
            figure(id, format!("{setting}: {}", column.name), cell.waf, &note)
        })
        .collect();
    let oracle =
        cells.iter().find(|(column, _)| column.name == ORACLE).map_or(f64::NAN, |(_, cell)| cell.waf);
    let (nearest, least) = cells
        .iter()
        .filter(|(column, _)| column.name != ORACLE)
        .map(|(column, cell)| (column.name, cell.waf))
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .unwrap_or_default();
    let note = format!("measured: {oracle:.3}, next {nearest} with {least:.3}");
    let holds = oracle <= least + TOLERANCE;
    rows.push(statement(id, "", format!("{setting}: bound"), "oracle <= every other policy", holds, &note));
    rows
}

fn policies(context: &Context<'_>) -> Rows {
    const OCCUPANCY: f64 = 0.9;
    let id = POLICIES.info.name;
    context.check_stop()?;
    let mut reader = synthetic::Synthetic::new(context.seed)
        .map_err(|error| TraceError::Io { source_name: id.to_owned(), message: error.to_string() })?;
    let load = Load::of(&mut reader)?;
    let names = [
        "none",
        "write-hint",
        "shared",
        "split-pools",
        "names",
        "exclusive",
        "autostream-mq",
        "autostream-sfr",
        ORACLE,
    ];
    let cells = names
        .par_iter()
        .map(|name| measure(&load, FINE, OCCUPANCY, name, &[]))
        .collect::<Result<Vec<_>, RunError>>()?;
    let of = |name: &str| names.iter().position(|other| *other == name).map_or(f64::NAN, |at| cells[at].waf);
    let mut rows: Vec<ReproductionRow> = names
        .iter()
        .zip(&cells)
        .map(|(name, cell)| {
            let note = format!("{} of {STREAMS} streams used", cell.used);
            figure(id, (*name).to_owned(), cell.waf, &note)
        })
        .collect();
    let (none, shared, exclusive) = (of("none"), of("shared"), of("exclusive"));
    let mut claim = |source: &str, name: &str, published: &str, holds: bool, note: String| {
        rows.push(statement(id, source, name, published, holds, &format!("measured: {note}")));
    };
    claim(
        "[streams-article 4.2.1]",
        "exclusive streams are the upper bound of knowing the class",
        "exclusive <= shared <= none",
        exclusive <= shared && shared <= none,
        format!("{exclusive:.3}, {shared:.3}, {none:.3}"),
    );
    let used = cells[2].used;
    claim(
        "[streams-article 4.2.2]",
        "streams that four levels use",
        "never more than 4",
        used <= 4,
        used.to_string(),
    );
    let cut = |waf: f64| (none - waf) / none * 100.0;
    claim(
        "[FStream abstract]",
        "WAF cut by names and classes of metadata",
        "7 to 46 % (filebench), up to 81 % (Cassandra)",
        cut(of("names")) >= 7.0,
        format!("{:.1} %", cut(of("names"))),
    );
    claim(
        "[streams-article 4.2.3]",
        "hints by the program, by name, and both",
        "all three selectable; both are at least as good as hints alone",
        exclusive <= of("write-hint"),
        format!(
            "hints {:.3}, names {:.3}, by class of file and metadata {exclusive:.3}",
            of("write-hint"),
            of("names")
        ),
    );
    claim(
        "[streams-article 4.2.4]",
        "pools of the kernel and of programs",
        "no file data beside metadata, WAF not above none",
        of("split-pools") <= none,
        format!("{:.3}; the ids are disjoint, and no block holds two streams (tests)", of("split-pools")),
    );
    let auto = cut(of("autostream-mq")).max(cut(of("autostream-sfr")));
    claim(
        "[AutoStream abstract]",
        "WAF cut by AutoStream",
        "up to 60 %",
        auto > 0.0,
        format!("{auto:.1} % without knowing any file"),
    );
    Ok(rows)
}
