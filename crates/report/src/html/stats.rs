//! Statistics of a workload, from what `trace stats --json` prints.

use super::escape::text;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// One card per workload with its plain figures.
pub(super) fn workloads(stats: &[(String, Value)]) -> String {
    let mut out = String::new();
    for (name, value) in stats {
        let _ = writeln!(out, "<h3>{}</h3>\n<dl class=\"facts\">", text(name));
        for (key, value) in value.as_object().into_iter().flatten() {
            if !value.is_object() && !value.is_array() && !value.is_null() {
                let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let _ = writeln!(
                    out,
                    "<div><dt>{}</dt><dd>{}</dd></div>",
                    text(&key.replace('_', " ")),
                    text(&shown)
                );
            }
        }
        out.push_str("</dl>\n");
    }
    out
}

/// Data of their charts.
pub(super) fn charts(_stats: &[(String, Value)]) -> Value {
    json!([])
}
