//! The integration tests of this crate, in one program.

mod atc21;
mod cache_article;
mod drives;
mod neighbours;
mod nvm_sets;
mod oftl;
mod pm963;
mod policies;
mod reproduce;
mod sabotage;
mod streams;

use nandscape_experiments::reproduce::{Context, REPRODUCTIONS};
use nandscape_report::{ReproductionRow, RowKind};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{LazyLock, OnceLock};

/// Each experiment at its smaller scale if it has one. Runs that several of them share are done once.
static QUICK: LazyLock<Context<'static>> = LazyLock::new(|| quick(false));

fn quick(is_sabotaged: bool) -> Context<'static> {
    let mut context = Context::new(42, None);
    (context.is_quick, context.is_sabotaged) = (true, is_sabotaged);
    context
}

/// Rows by experiment, each run once.
static ROWS: LazyLock<BTreeMap<&str, OnceLock<Vec<ReproductionRow>>>> =
    LazyLock::new(|| REPRODUCTIONS.iter().map(|r| (r.info.name, OnceLock::new())).collect());

/// The rows of an experiment.
fn rows(id: &str) -> Vec<ReproductionRow> {
    let reproduction = REPRODUCTIONS.iter().find(|r| r.info.name == id).unwrap();
    ROWS[id].get_or_init(|| reproduction.run(&QUICK).unwrap()).clone()
}

/// Measured over published, of numbers.
fn ratio(row: &ReproductionRow) -> Option<f64> {
    Some(row.measured.as_f64()? / row.published.as_f64()?)
}

/// A row of a document: what begins it, then the figures, which `number` writes.
fn line(first: &[&str], row: &ReproductionRow, number: impl Fn(f64) -> String) -> String {
    let text = |value: &Value| match value {
        Value::Number(found) => number(found.as_f64().unwrap()),
        Value::Bool(holds) => if *holds { "yes" } else { "no" }.to_owned(),
        other => other.as_str().unwrap_or_default().to_owned(),
    };
    let ratio = row.ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}"));
    let kind = if row.kind == RowKind::Measured { "" } else { row.kind.name() };
    let rule = row.verdict.map_or("", |verdict| verdict.name());
    let (published, measured) = (text(&row.published), text(&row.measured));
    let cells = [&row.name, &row.unit, &published, &measured, &ratio, kind, rule, &row.note];
    format!("| {} |\n", [first, &cells[..]].concat().join(" | "))
}

/// A document of docs/reproductions has this table between its marks.
fn assert_documented(name: &str, table: &str) {
    const MARKS: [&str; 2] = ["<!-- table -->\n\n", "\n<!-- end -->"];
    let path = format!("{}/../../docs/reproductions/{name}", env!("CARGO_MANIFEST_DIR"));
    let mut document = std::fs::read_to_string(&path).unwrap();
    let [start, end] = MARKS.map(|mark| document.find(mark).expect(mark));
    let shown = start + MARKS[0].len()..end;
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        document.replace_range(shown, table);
        std::fs::write(&path, &document).unwrap();
        return;
    }
    assert_eq!(document[shown], *table, "UPDATE_GOLDEN=1 writes it");
}
