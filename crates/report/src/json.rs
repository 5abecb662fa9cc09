//! The result documents as JSON, indented for people; lists of plain values stay on one line, so that the
//! erase counts of a device do not take a line each.

use crate::{Output, ReportError, Run};
use nandscape_sim::RunResult;
use serde_json::Value;

pub(crate) const OUTPUT: Output =
    Output::new("json", "the result documents (schema 1), one array", |runs, _| {
        Ok::<_, ReportError>(render_json(runs).into_bytes())
    });

/// An array with one document per run, in the order given.
pub fn render_json(runs: &[Run]) -> String {
    pretty(&Value::Array(runs.iter().map(|run| document(&run.result)).collect()))
}

/// The document of one run.
pub fn render_json_document(result: &RunResult) -> String {
    pretty(&document(result))
}

pub(crate) fn document(result: &RunResult) -> Value {
    serde_json::to_value(result).expect("a result document has string keys and finite nesting")
}

/// Any value in the same layout, with a line end.
pub fn pretty(value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, value, 0);
    out.push('\n');
    out
}

fn write(out: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Array(items) if items.iter().any(|item| item.is_array() || item.is_object()) => {
            separated(out, "[", "]", items.iter(), depth, |out, item| write(out, item, depth + 1));
        }
        Value::Object(fields) if !fields.is_empty() => {
            separated(out, "{", "}", fields.iter(), depth, |out, (key, item)| {
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push_str(": ");
                write(out, item, depth + 1);
            });
        }
        plain => out.push_str(&plain.to_string()),
    }
}

fn separated<T>(
    out: &mut String,
    open: &str,
    close: &str,
    items: impl Iterator<Item = T>,
    depth: usize,
    mut each: impl FnMut(&mut String, T),
) {
    out.push_str(open);
    for (i, item) in items.enumerate() {
        out.push_str(if i == 0 { "\n" } else { ",\n" });
        out.push_str(&"  ".repeat(depth + 1));
        each(out, item);
    }
    out.push('\n');
    out.push_str(&"  ".repeat(depth));
    out.push_str(close);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn plain_lists_take_one_line_and_everything_reads_back() {
        let value =
            json!({"a": [1, 2, 3], "b": {"c": [], "d": {}, "e\"\n": null}, "f": [[1.5], {"g": "</script>"}]});
        let text = pretty(&value);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        assert!(text.contains("\"a\": [1,2,3],\n"), "{text}");
    }
}
