//! Parts of the page about what is beside flash: caches, streams and placement handles.

use super::elements::{cells, heads, left_heads, row};
use super::escape::text;
use super::tables::frame;
use crate::Run;
use crate::cached::{describe, facts};
use crate::placement::{self, columns, not_listed};
use nandscape_sim::result::CacheResult;
use std::fmt::Write as _;

pub(super) fn caches(runs: &[Run]) -> String {
    let cached: Vec<(&Run, &CacheResult)> = runs
        .iter()
        .filter_map(|run| run.result.cache.as_ref().map(|cache| (run, cache)))
        .filter(|(_, cache)| !cache.is_disk_alone())
        .collect();
    let all: Vec<Vec<(&str, String)>> = cached.iter().map(|(_, cache)| facts(cache)).collect();
    let mut names: Vec<&str> = Vec::new();
    for name in all.iter().flatten().map(|(name, _)| *name) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() {
        return String::new();
    }
    let fact = |value: &str| format!("<td class=\"left fact\">{}</td>", text(value));
    let labels = cached.iter().map(|(run, _)| text(&run.label));
    let head = format!("<tr>{}</tr>", left_heads(std::iter::once("cache".to_owned()).chain(labels)));
    let designs: String = cached.iter().map(|(_, cache)| fact(&describe(cache))).collect();
    let mut body = row("design", &designs);
    for name in names {
        let values = all.iter().map(|facts| {
            fact(facts.iter().find(|(other, _)| *other == name).map_or("–", |(_, value)| value))
        });
        body += &row(&text(name), &values.collect::<String>());
    }
    frame("Cache table", "What was found in each cache, and what went to either side of it.", &head, &body)
}

/// The streams of every run that has some, as tables of the page.
pub(super) fn streams(runs: &[Run]) -> String {
    let mut out = String::new();
    for run in runs {
        let Some(placement) = &run.result.placement else { continue };
        let columns = columns(placement);
        let head = format!("<tr>{}</tr>", heads(columns.iter().map(|(name, _)| *name)));
        let mut body = String::new();
        for at in 0..columns[0].1.len() {
            let first = text(&columns[0].1[at]);
            let rest = cells(columns[1..].iter().map(|(_, cells)| text(&cells[at])));
            let _ = writeln!(body, "<tr><th scope=\"row\">{first}</th>{rest}</tr>");
        }
        let rest = not_listed(placement).map_or(String::new(), |line| format!("; {line}"));
        let caption = format!("{}: {}{rest}.", text(&run.label), text(&placement::facts(placement)));
        out.push_str(&frame("Streams table", &caption, &head, &body));
    }
    out
}
