//! What a comparison of interfaces comes to, in a sentence.

use crate::Run;
use crate::number::printable;
use nandscape_core::units::format_bytes;
use std::fmt::Write as _;

/// Differences that are not worth a word.
const SAME: f64 = 0.005;

/// Which of several stacks programs the least flash for the same load, and how much more the others program.
/// Stacks write other bytes for the same load: a file system adds its own, a store of files does not. So
/// write amplification alone does not compare them. Nothing for runs on one kind of stack.
pub(crate) fn least_flash(runs: &[&Run]) -> Option<String> {
    let kind = |run: &&Run| run.result.run.config.pointer("/stack/kind").cloned();
    let is_mixed = runs.iter().any(|run| kind(run) != kind(&runs[0]));
    let written = |run: &Run| Some(run.result.waf.bytes? * run.result.host.write_bytes as f64);
    let mut flash: Vec<(&str, f64)> = runs
        .iter()
        .filter(|run| run.is_complete())
        // Of several workloads, each has a table of its own.
        .filter_map(|run| Some((run.label.split(" | ").next()?, written(run)?)))
        .collect();
    if !is_mixed || flash.len() < 2 || flash.iter().any(|(_, bytes)| *bytes <= 0.0) {
        return None;
    }
    flash.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (least, most) = (flash[0].1, flash[flash.len() - 1].1);
    let amount = format_bytes(least as u64);
    if most / least - 1.0 < SAME {
        return Some(format!("For this load all program the same amount of flash, {amount}.\n"));
    }
    let mut text = format!("For this load {} programs the least flash, {amount}", printable(flash[0].0));
    for (number, (label, bytes)) in flash[1..].iter().enumerate() {
        let before = if number == 0 { "; more: " } else { ", " };
        let _ = write!(text, "{before}{} by {:.1} %", printable(label), (bytes / least - 1.0) * 100.0);
    }
    text.push_str(".\n");
    Some(text)
}
