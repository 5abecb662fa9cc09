//! Miss-ratio curves and what follows from them.

use super::elements::{CHART, Chart, cells, heads, left_heads, row};
use super::escape::text;
use super::legend::{Entry, Show, ink};
use super::tables::frame;
use super::values::number;
use crate::advice::{asked, chosen, findings};
use crate::number::grouped;
use nandscape_core::units::format_bytes;
use nandscape_policies::simulate::advice::{Advice, Choice};
use nandscape_policies::simulate::curve::{Curve, Point};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Points of the LRU curve in the page, for each doubling of the size.
const POINTS_PER_DOUBLING: f64 = 32.0;
/// Policies beside lru and those that know the future.
const BEST: usize = 4;

pub(super) fn caches(advice: &[(Advice, Vec<Point>)]) -> String {
    let mut out = String::new();
    for (at, (advice, _)) in advice.iter().enumerate() {
        let _ = writeln!(out, "<p class=\"lead\">{}</p>", text(&asked(advice)));
        // With one kind only, all are of it.
        let accesses =
            advice.curves.iter().flat_map(|curve| &curve.points).map(|point| point.accesses).next();
        let has_both =
            accesses.is_some_and(|a| a.read_hits + a.read_misses > 0 && a.write_hits + a.write_misses > 0);
        let legend = legend(advice);
        out += &Chart {
            kind: "misses",
            number: at,
            data: &[("cache", at)],
            title: "Miss ratio",
            about: "misses over requests, by size of the cache; lru at every size, the others at the sizes of the table",
            tabs: if has_both { &["all", "reads", "writes"] } else { &[] },
            can_be_log: false,
            legend: &legend,
            without: "the table does without.",
            ..CHART
        }
        .html();
        out.push_str("<h3>What follows</h3>\n<ul class=\"notes\">\n");
        for (name, finding) in findings(advice) {
            let _ = writeln!(out, "<li><strong>{name}</strong>: {}</li>", text(&finding));
        }
        out.push_str("</ul>\n<h3>Miss ratios</h3>\n");
        let few = shown(advice);
        let all: Vec<&Curve> = advice.curves.iter().collect();
        out.push_str(&table(advice, &few, "the best policies, lru and belady"));
        if few.len() < all.len() {
            let table = table(advice, &all, "all policies");
            let _ =
                writeln!(out, "<details><summary>All {} policies</summary>\n{table}</details>", all.len());
        }
    }
    out
}

/// Miss ratios at the size of the answer; without one, at the largest.
fn legend(advice: &Advice) -> Vec<Entry> {
    let size = chosen(advice).map(|chosen| chosen.size_blocks);
    let entry = |(place, curve): (usize, &Curve)| {
        let at_answer = curve.points.iter().find(|point| Some(point.size_blocks) == size);
        let point = at_answer.or(curve.points.last())?;
        Some(Entry {
            ink: ink_of(advice, curve, place),
            label: curve.eviction.clone(),
            value: Show::Digits.of(point.accesses.miss_ratio()),
        })
    };
    shown(advice).into_iter().enumerate().filter_map(entry).collect()
}

fn is_bound(advice: &Advice, curve: &Curve) -> bool {
    !advice.ranking.iter().any(|standing| standing.eviction == curve.eviction)
}

fn ink_of(advice: &Advice, curve: &Curve, place: usize) -> String {
    if is_bound(advice, curve) { "soft".to_owned() } else { ink(place) }
}

/// The policy of the answer and the best others, [`BEST`] in all; beside them lru, which everybody knows, and
/// those that know the future, which nobody can have.
fn shown(advice: &Advice) -> Vec<&Curve> {
    let of = |name: &str| advice.curves.iter().find(|curve| curve.eviction == name);
    let mut out: Vec<&Curve> = Vec::new();
    let best = chosen(advice).map(|chosen| chosen.eviction.as_str());
    for curve in best.into_iter().chain(advice.ranking.iter().map(|s| s.eviction.as_str())).filter_map(of) {
        if out.len() < BEST && !out.iter().any(|known| known.eviction == curve.eviction) {
            out.push(curve);
        }
    }
    out.extend(of("lru").filter(|lru| !out.iter().any(|known| known.eviction == lru.eviction)));
    out.extend(advice.curves.iter().filter(|curve| is_bound(advice, curve)));
    out
}

fn table(advice: &Advice, curves: &[&Curve], which: &str) -> String {
    let names = std::iter::once("blocks".to_owned()).chain(curves.iter().map(|c| text(&c.eviction)));
    let head = format!("<tr>{}{}{}</tr>", left_heads(["size"]), heads(names), left_heads(["least"]));
    let mut body = String::new();
    for (at, Choice { suggestion: best, .. }) in advice.best.iter().enumerate() {
        let size = if best.size_bytes == 0 { String::new() } else { format_bytes(best.size_bytes) };
        let ratios = curves.iter().map(|curve| {
            let ratio = curve.points[at].accesses.miss_ratio();
            let is_best = best.eviction == curve.eviction;
            if is_best { format!("<strong>{ratio:.4}</strong>") } else { format!("{ratio:.4}") }
        });
        let least = format!("<td class=\"left\">{:.4} {}</td>", best.miss_ratio, text(&best.eviction));
        body += &row(&size, &(cells(std::iter::once(grouped(best.size_blocks)).chain(ratios)) + &least));
    }
    let caption =
        format!("Misses over requests of {which}; the least of all at each size, belady's apart, in bold.");
    frame("Miss ratios", &caption, &head, &body)
}

pub(super) fn charts(advice: &[(Advice, Vec<Point>)]) -> Value {
    advice.iter().map(|(advice, lru)| chart(advice, lru)).collect()
}

fn chart(advice: &Advice, lru: &[Point]) -> Value {
    let lines: Vec<Value> = shown(advice)
        .into_iter()
        .enumerate()
        .map(|(place, curve)| {
            let points = if curve.eviction == "lru" && !lru.is_empty() {
                with_grid(lru, &curve.points)
            } else {
                curve.points.clone()
            };
            let accesses = || points.iter().map(|point| point.accesses);
            json!({
                "label": crate::number::printable(&curve.eviction),
                "ink": ink_of(advice, curve, place),
                "is_bound": is_bound(advice, curve),
                "x": points.iter().map(|p| number((p.size_blocks * advice.block_bytes.max(1)) as f64)).collect::<Vec<_>>(),
                "values": [
                    accesses().map(|a| number(a.miss_ratio())).collect::<Vec<_>>(),
                    accesses().map(|a| share(a.read_misses, a.read_hits)).collect::<Vec<_>>(),
                    accesses().map(|a| share(a.write_misses, a.write_hits)).collect::<Vec<_>>(),
                ],
            })
        })
        .collect();
    let knee = advice.knee.as_ref().map(|knee| {
        json!([number((knee.size_blocks * advice.block_bytes.max(1)) as f64), number(knee.miss_ratio)])
    });
    let answer = chosen(advice).map(|chosen| number((chosen.size_blocks * advice.block_bytes.max(1)) as f64));
    json!({ "in_bytes": advice.block_bytes > 0, "lines": lines, "knee": knee, "answer": answer })
}

fn share(misses: u64, hits: u64) -> Value {
    if misses + hits == 0 { Value::Null } else { number(misses as f64 / (misses + hits) as f64) }
}

/// Steps within the sizes of the table, so many for each doubling at most.
fn with_grid(lru: &[Point], grid: &[Point]) -> Vec<Point> {
    let (Some(first), Some(last)) = (grid.first(), grid.last()) else { return Vec::new() };
    let bucket = |p: &Point| ((p.size_blocks as f64).log2() * POINTS_PER_DOUBLING) as u64;
    let inside = lru.iter().filter(|p| (first.size_blocks..=last.size_blocks).contains(&p.size_blocks));
    let mut points: Vec<Point> = grid.to_vec();
    points.extend(inside);
    points.sort_by_key(|p| p.size_blocks);
    points.dedup_by_key(|p| p.size_blocks);
    let is_grid = |p: &Point| grid.iter().any(|g| g.size_blocks == p.size_blocks);
    let mut kept: Vec<Point> = Vec::new();
    for point in points {
        if is_grid(&point) || kept.last().is_none_or(|last| bucket(last) != bucket(&point)) {
            kept.push(point);
        }
    }
    kept
}
