//! The published experiments: all of them run, what is far from its figure is explained, runs repeat, and the
//! document shows what the code gives.

use nandscape_experiments::reproduce::{Context, REPRODUCTIONS};
use nandscape_report::{ReproductionRow, RowKind, Verdict};
use nandscape_stack::RunError;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reproductions/thesis.md");
/// Seed of the table in the document, and of `nandscape reproduce`.
const SEED: u64 = 42;

fn run_all(seed: u64) -> Vec<ReproductionRow> {
    let context = Context::new(seed, None);
    let mut rows = Vec::new();
    for reproduction in REPRODUCTIONS.iter().filter(|r| r.info.name.starts_with("thesis-")) {
        let of_one = reproduction.run(&context).unwrap();
        assert!(!of_one.is_empty(), "{}", reproduction.info.name);
        assert!(of_one.iter().all(|row| row.id == reproduction.info.name), "{}", reproduction.info.name);
        rows.extend(of_one);
    }
    rows
}

fn rows() -> &'static [ReproductionRow] {
    static ROWS: OnceLock<Vec<ReproductionRow>> = OnceLock::new();
    ROWS.get_or_init(|| run_all(SEED))
}

fn of(id: &str) -> Vec<&'static ReproductionRow> {
    let found: Vec<_> = rows().iter().filter(|row| row.id == id).collect();
    assert!(!found.is_empty(), "{id}");
    found
}

fn assert_explained(rows: &[ReproductionRow]) {
    for row in rows {
        match (&row.published, &row.measured) {
            (Value::Number(published), Value::Number(measured)) => {
                let (published, measured) = (published.as_f64().unwrap(), measured.as_f64().unwrap());
                assert!(measured.is_finite(), "{row:?}");
                match row.ratio {
                    Some(ratio) => assert!((ratio - measured / published).abs() < 1e-12, "{row:?}"),
                    None => assert!(published == 0.0 || row.kind != RowKind::Measured, "{row:?}"),
                }
                let is_near = crate::ratio(row).is_some_and(|ratio| (0.8..=1.25).contains(&ratio));
                assert!(is_near || !row.note.is_empty(), "no note: {row:?}");
            }
            (Value::String(_), Value::Bool(_)) => {
                assert!(row.ratio.is_none(), "{row:?}");
                assert!(row.note.starts_with("measured: "), "{row:?}");
            }
            other => panic!("{other:?} in {row:?}"),
        }
    }
}

#[test]
fn every_gap_has_a_note_whatever_the_seed() {
    assert_explained(rows());
    assert_explained(&run_all(7));
}

#[test]
fn what_is_put_in_or_set_has_no_verdict_and_says_what_was_set() {
    for row in rows().iter().filter(|row| row.kind != RowKind::Measured) {
        assert_eq!((row.verdict, row.ratio), (None, None), "{row:?}");
        assert!(!row.note.is_empty(), "{row:?}");
    }
    assert!(rows().iter().filter(|row| row.kind == RowKind::Measured).all(|row| row.verdict.is_some()));
}

#[test]
fn every_number_that_misses_says_why() {
    for row in rows().iter().filter(|row| row.verdict == Some(Verdict::Missed)) {
        assert!(!row.note.is_empty() && !row.note.contains("not explained"), "{row:?}");
    }
}

#[test]
fn every_statement_that_fails_says_why() {
    for row in rows().iter().filter(|row| row.measured == Value::Bool(false)) {
        assert!(row.note.contains("; ") && !row.note.contains("no cause is known"), "{row:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_rows() {
    assert_eq!(rows(), run_all(SEED));
}

/// Two are left out for their time: their runs are those of `atc21-waf`, and two more with streams.
#[test]
fn another_seed_gives_the_same_rows_where_it_is_said_to_change_nothing() {
    let mut other = crate::quick(false);
    other.seed = 43;
    let fixed = REPRODUCTIONS.iter().filter(|one| !one.is_seeded());
    let fixed: Vec<_> =
        fixed.filter(|one| !["atc21-fig-5", "atc21-fig-6"].contains(&one.info.name)).collect();
    assert!(fixed.len() > 8, "{}", fixed.len());
    for one in fixed {
        assert_eq!(one.run(&other).unwrap(), crate::rows(one.info.name), "{}", one.info.name);
    }
}

#[test]
fn ids_and_names_are_distinct() {
    let names: BTreeSet<_> = REPRODUCTIONS.iter().map(|r| r.info.name).collect();
    assert_eq!(names.len(), REPRODUCTIONS.len());
    let rows: BTreeSet<_> = rows().iter().map(|row| (&row.id, &row.name)).collect();
    assert_eq!(rows.len(), self::rows().len());
    for figure in
        (1..=11).map(|n| format!("thesis-fig-4.{n}")).chain((2..=7).map(|n| format!("thesis-fig-2.{n}")))
    {
        assert!(names.contains(figure.as_str()), "{figure}");
    }
}

#[test]
fn throughput_misses_the_table_by_no_more_than_a_faithful_model_does() {
    // A model that follows the source's text is 2.5 % low on PM_GCL, 20 to 22 % high on PM_GCC and about 7 %
    // high on SBM_GCL over MACDRP; the rest is within 1 % on a trace with the published facts, and 2 %
    // more or less on another with the same.
    let bounds = [
        ("PM_GCL on LAMMPS", 0.96, 1.0),
        ("PM_GCC on LAMMPS", 1.15, 1.25),
        ("SBM_GCL on LAMMPS", 0.98, 1.03),
        ("HSBM_GCL on LAMMPS", 0.98, 1.02),
        ("PM_GCL on MACDRP", 0.96, 1.0),
        ("PM_GCC on MACDRP", 1.17, 1.27),
        ("SBM_GCL on MACDRP", 1.03, 1.11),
        ("HSBM_GCL on MACDRP", 0.98, 1.02),
    ];
    let rows = of("thesis-table-4.2");
    assert_eq!(rows.len(), bounds.len());
    for (row, (name, least, most)) in rows.iter().zip(bounds) {
        assert_eq!(row.name, name);
        let ratio = row.ratio.unwrap();
        assert!((least..=most).contains(&ratio), "{name}: {ratio}");
    }
}

#[test]
fn mapping_traffic_and_table_sizes_are_those_published() {
    let rows = of("thesis-map-traffic");
    let traffic: Vec<_> =
        rows.iter().filter(|row| row.unit == "KiB" && row.name.ends_with("updates")).collect();
    assert_eq!(traffic.len(), 8);
    for row in traffic {
        assert!((row.ratio.unwrap() - 1.0).abs() < 0.05, "{row:?}");
    }
    let exact: Vec<_> = rows.iter().filter(|row| row.published.is_string()).collect();
    assert_eq!(exact.len(), 6);
    assert!(exact.iter().all(|row| row.measured == Value::Bool(true)), "{exact:?}");
    let sizes: Vec<_> =
        of("thesis-table-sizes").iter().filter(|r| r.unit == "B").map(|r| r.measured.clone()).collect();
    assert_eq!(sizes, [131_072.0, 131_072.0, 4096.0, 4736.0].map(Value::from));
}

#[test]
fn a_stopped_context_runs_nothing() {
    let stop = AtomicBool::new(true);
    for reproduction in REPRODUCTIONS.iter() {
        let stopped = reproduction.run(&Context::new(SEED, Some(&stop)));
        assert!(matches!(stopped, Err(RunError::Interrupted)), "{}", reproduction.info.name);
    }
}

fn figure(value: &Value) -> String {
    match value {
        Value::Bool(true) => "holds".to_owned(),
        Value::Bool(false) => "**does not hold**".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(n) => {
            let n = n.as_f64().unwrap();
            let digits = if n.fract() == 0.0 {
                0
            } else if n.abs() >= 100.0 {
                1
            } else {
                3
            };
            format!("{n:.digits$}")
        }
        other => panic!("{other}"),
    }
}

fn tables() -> String {
    let mut out = String::new();
    for reproduction in REPRODUCTIONS.iter().filter(|r| r.info.name.starts_with("thesis-")) {
        let info = &reproduction.info;
        let _ = write!(out, "\n### `{}`: {}\n\nSource: {}.\n\n", info.name, info.summary, info.source);
        out.push_str("| what | unit | published | measured | ratio | kind | rule | note |\n|---|---|---|---|---|---|---|---|\n");
        for row in of(info.name) {
            let ratio = row.ratio.map_or_else(String::new, |ratio| format!("{ratio:.3}"));
            let (published, measured) = (figure(&row.published), figure(&row.measured));
            let kind = if row.kind == RowKind::Measured { "" } else { row.kind.name() };
            let rule = row.verdict.map_or("", Verdict::name);
            let cells = [&row.name, &row.unit, &published, &measured, &ratio, kind, rule, &row.note];
            let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
            let _ = writeln!(out, "| {} |", cells.join(" | "));
        }
    }
    out.push('\n');
    out
}

#[test]
fn the_document_shows_what_the_code_gives() {
    const BEGIN: &str = "<!-- begin generated tables -->\n";
    const END: &str = "<!-- end generated tables -->";
    let text = std::fs::read_to_string(DOCUMENT).unwrap();
    let (head, rest) = text.split_once(BEGIN).expect("a begin mark");
    let (shown, tail) = rest.split_once(END).expect("an end mark");
    let given = tables();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(DOCUMENT, format!("{head}{BEGIN}{given}{END}{tail}")).unwrap();
        return;
    }
    for (line, (shown, given)) in shown.lines().zip(given.lines()).enumerate() {
        assert_eq!(shown, given, "line {line} of the generated part; UPDATE_GOLDEN=1 rewrites it");
    }
    assert_eq!(shown.lines().count(), given.lines().count(), "UPDATE_GOLDEN=1 rewrites it");
}
