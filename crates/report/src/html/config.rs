//! The full configuration, so that a run can be repeated from its report.

use super::Page;
use super::escape::{block, text};
use serde_json::Value;
use std::fmt::Write as _;

/// Configuration of every run; those whose configurations are equal share one.
pub(super) fn configuration(page: &Page<'_>) -> String {
    let mut seen: Vec<(&Value, Vec<usize>)> = Vec::new();
    for (i, run) in page.runs.iter().enumerate() {
        match seen.iter_mut().find(|(config, _)| **config == run.result.run.config) {
            Some((_, runs)) => runs.push(i),
            None => seen.push((&run.result.run.config, vec![i])),
        }
    }
    let mut out = String::from(
        "<p class=\"lead\">Saved as a file, a configuration repeats its run with <code>nandscape replay WORKLOAD --config FILE \
         --seed N</code>.</p>\n",
    );
    for (config, runs) in seen {
        let first = &page.runs[runs[0]].result;
        let names: Vec<String> = runs
            .iter()
            .map(|i| {
                if page.groups.len() > 1 {
                    format!(
                        "{} <small>on {}</small>",
                        page.name(*i),
                        text(&page.runs[*i].result.workload.spec)
                    )
                } else {
                    page.name(*i)
                }
            })
            .collect();
        let _ = write!(
            out,
            "<details class=\"config\"><summary>{}</summary>\n<p class=\"about\">seed {}, nandscape {}, configuration {}, workload {}</p>\n\
             <pre><code>{}</code></pre></details>\n",
            names.join(", "),
            first.run.seed,
            text(&first.run.version),
            text(&first.run.config_hash),
            text(&first.run.workload_hash),
            block(&as_toml(config))
        );
    }
    out
}

/// As TOML; as JSON where TOML cannot say it.
pub(super) fn as_toml(config: &Value) -> String {
    toml::to_string(&without_nulls(config)).unwrap_or_else(|_| crate::json::pretty(config))
}

/// TOML has no null; an absent key says the same.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            // Plain keys first: after a table's head they would belong to that table.
            let is_table =
                |v: &Value| v.is_object() || v.as_array().is_some_and(|a| a.iter().any(Value::is_object));
            let kept = fields.iter().filter(|(_, item)| !item.is_null());
            let (tables, plain): (Vec<_>, Vec<_>) = kept.partition(|(_, item)| is_table(item));
            plain.into_iter().chain(tables).map(|(key, item)| (key.clone(), without_nulls(item))).collect()
        }
        Value::Array(items) => items.iter().filter(|item| !item.is_null()).map(without_nulls).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_configuration_reads_back_from_its_toml() {
        let config = json!({"device": {"timing": {"read": "60us"}, "channels": 8, "bad": null}, "seed": 3});
        let text = as_toml(&config);
        let back: Value = toml::from_str(&text).unwrap();
        assert_eq!(back, json!({"device": {"timing": {"read": "60us"}, "channels": 8}, "seed": 3}));
        assert!(text.starts_with("seed = 3"), "{text}");
    }
}
