//! The experiments about streams, and the lifetime of a device in the result document.

use crate::rows;
use nandscape_sim::RunResult;
use nandscape_stack::Typed;
use nandscape_stack::{RunOptions, replay};
use serde_json::Value;
use std::fmt::Write as _;

#[test]
fn the_example_is_met_exactly_and_every_rule_holds_as_the_document_says() {
    let (example, rules) = (rows("streams-example"), rows("streams-rules"));
    assert!(example.iter().all(|row| row.published == row.measured), "{example:?}");
    assert!(rules.iter().all(|row| row.measured == Value::Bool(true)), "{rules:?}");
    let mut table = String::new();
    for row in example.iter().chain(&rules) {
        let text = |value: &Value| match value {
            Value::Bool(true) => "holds".to_owned(),
            Value::Bool(false) => "**does not hold**".to_owned(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        writeln!(
            table,
            "| {} | {} | {} | {} | {} |",
            row.source,
            row.name,
            text(&row.published),
            text(&row.measured),
            row.note
        )
        .unwrap();
    }
    crate::assert_documented(
        "streams.md",
        &format!("| source | what | published | measured | figures |\n|---|---|---|---|---|\n{table}"),
    );
}

fn run(pairs: &[(&str, &str)]) -> RunResult {
    let mut typed = Typed::new();
    typed.merge_preset("generic-tlc").unwrap();
    typed.set_ftl("page-map").unwrap();
    let small =
        [("device.channels", "2"), ("device.blocks_per_plane", "16"), ("device.pages_per_block", "32")];
    for (key, value) in small.iter().chain(pairs) {
        typed.set(key, value).unwrap();
    }
    replay(&typed.check().unwrap(), "uniform:bs=16k,count=40k", &RunOptions::default()).unwrap().result
}

#[test]
fn a_larger_write_amplification_means_fewer_bytes_until_the_end_of_life() {
    let precondition = ("workload.precondition", "fill");
    let tight = run(&[("ftl.op", "0.15"), precondition]);
    let roomy = run(&[("ftl.op", "0.5"), precondition]);
    assert!(tight.waf.bytes > roomy.waf.bytes);
    for result in [&tight, &roomy] {
        let life = &result.lifetime;
        let flash_bytes = (result.cost.total_blocks * result.cost.pages_per_block * 16384) as f64;
        let expected = 3000.0 * flash_bytes / result.waf.bytes.unwrap();
        assert!((life.host_bytes_until_worn.unwrap() / expected - 1.0).abs() < 1e-12);
        assert!(life.host_bytes_until_first_block_worn < life.host_bytes_until_worn);
        let years = expected / result.cost.usable_bytes as f64 / 365.25;
        assert!((life.years_at_1_dwpd.unwrap() / years - 1.0).abs() < 1e-12);
    }
    assert!(tight.lifetime.host_bytes_until_worn < roomy.lifetime.host_bytes_until_worn);
    let endless = run(&[("device.endurance", "endless"), precondition]);
    assert_eq!(endless.lifetime, nandscape_sim::LifetimeResult::default());
}
