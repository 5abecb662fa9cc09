//! One line per run: every plain value of the result document under its dotted name
//! (`flash.by_cause.gc.programs`), so that the columns follow the document. The configuration and the lists
//! per block are left out; notes and the checks that found something (`trust`) are joined by `; `.

use crate::{Output, ReportError, Run, json};
use serde_json::Value;

pub(crate) const OUTPUT: Output =
    Output::new("csv", "one line per run, a column per value of the result document", |runs, _| {
        Ok::<_, ReportError>(render_csv(runs).into_bytes())
    });

/// The runs as CSV (RFC 4180, line ends `\n`), with a header. A value a run does not have is empty.
pub fn render_csv(runs: &[Run]) -> String {
    let rows: Vec<Vec<(String, String)>> = runs.iter().map(cells).collect();
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in rows.iter().flatten() {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let mut out = String::new();
    line(&mut out, names.iter().copied());
    for row in &rows {
        let find = |name: &&str| row.iter().find(|(n, _)| n == name).map_or("", |(_, value)| value.as_str());
        line(&mut out, names.iter().map(find));
    }
    out
}

fn cells(run: &Run) -> Vec<(String, String)> {
    let mut document = json::document(&run.result);
    let fields = document.as_object_mut().expect("a result document is an object");
    fields.shift_remove("config");
    // Null when the run went well, which would otherwise take the place of the two columns of those that
    // failed.
    let error = fields.shift_remove("error");
    let mut cells = vec![("label".to_owned(), run.label.clone())];
    flatten("", &document, &mut cells);
    let checks: Vec<&str> = run.result.trust.iter().map(|note| note.check.as_str()).collect();
    if !checks.is_empty() {
        cells.push(("trust".to_owned(), checks.join("; ")));
    }
    for (name, key) in [("error.request", "request"), ("error.message", "message")] {
        let value = error.as_ref().and_then(|e| e.get(key)).map(plain).unwrap_or_default();
        cells.push((name.to_owned(), value));
    }
    cells
}

fn flatten(prefix: &str, value: &Value, cells: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) => {
            for (key, item) in fields {
                let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                flatten(&name, item, cells);
            }
        }
        Value::Array(items) if items.iter().all(Value::is_string) => {
            cells.push((prefix.to_owned(), items.iter().map(plain).collect::<Vec<_>>().join("; ")));
        }
        Value::Array(_) => {}
        other => cells.push((prefix.to_owned(), plain(other))),
    }
}

/// A plain value as it is; empty for null.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// One line, quoted where it must be.
pub(crate) fn line<'a>(out: &mut String, cells: impl Iterator<Item = &'a str>) {
    for (i, cell) in cells.enumerate() {
        if i > 0 {
            out.push(',');
        }
        if cell.contains([',', '"', '\n', '\r']) {
            out.push('"');
            out.push_str(&cell.replace('"', "\"\""));
            out.push('"');
        } else {
            out.push_str(cell);
        }
    }
    out.push('\n');
}
