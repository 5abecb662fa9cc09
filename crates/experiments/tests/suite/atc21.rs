//! The zoned drive and the block drives on its flash: every rule is kept, one parameter tells the flash from
//! that of the ZN540, and the document shows what the code gives.

use crate::{assert_documented, line, rows};
use nandscape_report::Verdict;
use nandscape_stack::Typed;
use serde_json::Value;

#[test]
fn every_rule_is_kept_and_the_document_shows_the_rows() {
    let mut table =
        "| source | what | unit | published | measured | ratio | kind | rule | note |\n".to_owned();
    table += "|---|---|---|---|---|---|---|---|---|\n";
    for id in ["atc21-fig-1", "atc21-fig-4", "atc21-read-latency"] {
        let rows = rows(id);
        for row in &rows {
            assert!(row.verdict.is_none_or(Verdict::is_good), "{row:?}");
            let is_near = row.ratio.is_none_or(|ratio| (0.8..=1.25).contains(&ratio));
            assert!(is_near || !row.note.is_empty(), "no note: {row:?}");
        }
        // Charts are for the report.
        for row in rows.iter().filter(|row| row.series.is_none()) {
            let digits = |number: f64| if number.abs() < 10.0 { 2 } else { 0 };
            table += &line(&[&row.source], row, |number| format!("{number:.*}", digits(number)));
        }
    }
    assert_documented("zns-atc21.md", &table);
}

/// Dotted keys of a preset and their values.
fn keys(preset: &str, prefix: &str) -> Vec<(String, Value)> {
    fn collect(prefix: &str, value: &Value, out: &mut Vec<(String, Value)>) {
        match value {
            Value::Object(table) => {
                table.iter().for_each(|(key, value)| collect(&format!("{prefix}.{key}"), value, out));
            }
            value => out.push((prefix.to_owned(), value.clone())),
        }
    }
    let mut typed = Typed::new();
    typed.merge_preset(preset).unwrap();
    let mut out = Vec::new();
    collect(prefix, &typed.check().unwrap().to_json()[prefix], &mut out);
    out.retain(|(key, _)| key != "device.preset");
    out
}

/// Keys that two presets have different values of.
fn differing(one: &str, other: &str, prefix: &str) -> Vec<String> {
    let others = keys(other, prefix);
    keys(one, prefix).into_iter().filter(|pair| !others.contains(pair)).map(|(key, _)| key).collect()
}

#[test]
fn the_flash_of_all_drives_is_that_of_the_zn540_but_for_its_size_and_one_parameter() {
    let device = differing("zns-atc21", "zn540", "device");
    assert_eq!(device, ["device.blocks_per_plane", "device.timing.intake_bytes_per_s"]);
    assert_eq!(differing("zns-atc21", "zn540", "zone"), ["zone.count"]);
    for block in ["zns-atc21-block-7op", "zns-atc21-block-28op", "zns-atc21-streams"] {
        assert_eq!(differing(block, "zns-atc21", "device"), [""; 0], "{block}");
    }
    assert_eq!(differing("zns-atc21-block-28op", "zns-atc21-block-7op", "ftl"), ["ftl.op"]);
}

#[test]
fn file_systems_keep_their_order_on_a_small_device_too() {
    for id in ["atc21-fig-5", "atc21-fig-6", "atc21-waf", "atc21-tails", "atc21-sst-size"] {
        let rows = rows(id);
        let statements = rows.iter().filter(|row| row.published.is_string());
        assert!(statements.clone().count() > 0, "{id}");
        for row in statements {
            assert_eq!(row.verdict, Some(Verdict::Holds), "{row:?}");
        }
    }
}
