//! Advice on a cache for a terminal and for spreadsheets (`cache advise`).

use crate::csv::line;
use crate::number::{Kind, grouped, printable};
use crate::table::{Head, Table, Weight};
use crate::text::verdict_lines;
use nandscape_core::units::format_bytes;
use nandscape_policies::simulate::advice::{Advice, Choice, Suggestion};
use nandscape_policies::simulate::curve::{Knee, Point};
use std::fmt::Write as _;

pub(crate) fn size(blocks: u64, bytes: u64) -> String {
    if bytes == 0 {
        format!("{} objects", grouped(blocks))
    } else {
        format!("{} ({} blocks)", format_bytes(bytes), grouped(blocks))
    }
}

pub(crate) fn asked(advice: &Advice) -> String {
    let what = if advice.block_bytes == 0 {
        "objects".to_owned()
    } else {
        format!("blocks of {}", format_bytes(advice.block_bytes))
    };
    let mut out = format!(
        "{} requests for {what}, {} read and {} written; {} different",
        grouped(advice.requests),
        grouped(advice.reads),
        grouped(advice.writes),
        grouped(advice.blocks)
    );
    if advice.block_bytes > 0 {
        let _ = write!(out, " ({})", format_bytes(advice.blocks * advice.block_bytes));
    }
    if let Some(sample) = &advice.sample {
        let _ = write!(
            out,
            "; estimated from a sample of {} of the blocks: {} requests for {}",
            sample.rate,
            grouped(sample.requests),
            grouped(sample.blocks)
        );
    }
    out
}

/// Share of the requests that the best cache must answer to be worth one.
const WORTH: f64 = 0.1;
const DAY_S: f64 = 86_400.0;
/// What flash endures: usual for drives sold for reads mostly.
const FULL_WRITES: f64 = 1825.0;

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// The size and policy to take, where a cache is worth one.
pub(crate) fn chosen(advice: &Advice) -> Option<&Suggestion> {
    let is_worth = |suggestion: &&Suggestion| 1.0 - suggestion.miss_ratio >= WORTH;
    advice.knee.as_ref().filter(is_worth).or(advice.enough.as_ref().filter(is_worth))
}

/// Shares of the requests: what the best cache of any size answers, and what is the first for its block.
fn limits(advice: &Advice) -> (f64, f64) {
    let best = advice.best.iter().map(|choice| 1.0 - choice.suggestion.miss_ratio).fold(0.0, f64::max);
    (best, advice.first_misses as f64 / advice.requests.max(1) as f64)
}

/// What stands beside the answer: title and value.
pub(crate) fn key_figures(advice: &Advice) -> Vec<(&'static str, String)> {
    let (best, floor) = limits(advice);
    let mut out = Vec::new();
    if let Some(chosen) = chosen(advice) {
        let bytes = chosen.size_bytes > 0;
        let size = if bytes { format_bytes(chosen.size_bytes) } else { size(chosen.size_blocks, 0) };
        out.push(("size", size));
        out.push(("policy", printable(&chosen.eviction)));
        out.push(("requests it answers", percent(1.0 - chosen.miss_ratio)));
    }
    out.push(("answered at most, of these sizes", percent(best)));
    out.push(("first requests, which no cache has", percent(floor)));
    let bytes = advice.blocks * advice.block_bytes;
    let data = if bytes > 0 { format_bytes(bytes) } else { grouped(advice.blocks) };
    out.push((if bytes > 0 { "different data" } else { "different objects" }, data));
    if out.len() < 4 {
        out.push(("requests", grouped(advice.requests)));
    }
    out
}

/// What to do, in a sentence or two.
pub(crate) fn answer(advice: &Advice) -> String {
    let (best, floor) = limits(advice);
    let Some(chosen) = chosen(advice) else {
        return format!(
            "Do not bother: the best of these caches answers {} of the requests. {} are the first for their block, or \
             since it was trimmed, which no cache has.",
            percent(best),
            percent(floor)
        );
    };
    let mut out = format!(
        "Take {} with {}: it answers {} of the requests",
        size(chosen.size_blocks, chosen.size_bytes),
        printable(&chosen.eviction),
        percent(1.0 - chosen.miss_ratio)
    );
    let of_size = |choice: &&Choice| choice.suggestion.size_blocks == chosen.size_blocks;
    if let Some(least) = advice.best.iter().find(of_size).and_then(|choice| choice.least) {
        let _ = write!(out, "; one of that size that knew the future, {}", percent(1.0 - least));
    }
    let _ = write!(out, "; the best of any size here, {}.", percent(best));
    let curve = advice.curves.iter().find(|curve| curve.eviction == chosen.eviction);
    let point = curve.and_then(|curve| curve.points.iter().find(|p| p.size_blocks == chosen.size_blocks));
    if let Some(point) = point.filter(|_| advice.block_bytes > 0) {
        let a = &point.accesses;
        let share = (a.read_misses + a.write_hits + a.write_misses) as f64 / a.requests().max(1) as f64;
        let bytes = share * (advice.requests * advice.block_bytes) as f64;
        let _ = write!(
            out,
            " If it keeps all that it misses and all that is written, this workload writes {} to its flash",
            format_bytes(bytes as u64)
        );
        out += &advice.duration_s.map_or(".".to_owned(), |seconds| life(bytes, chosen.size_bytes, seconds));
    }
    out
}

/// How long flash of this size lasts that is written so much in so many seconds.
fn life(bytes: f64, size_bytes: u64, seconds: f64) -> String {
    let a_day = bytes * DAY_S / seconds;
    let days = FULL_WRITES * size_bytes as f64 / a_day;
    let lasts = match days {
        _ if days >= 730.0 => format!("{:.1} years", days / 365.0),
        _ if days >= 2.0 => format!("{days:.0} days"),
        _ => format!("{:.1} hours", days * 24.0),
    };
    format!(
        ", {} a day at the rate of its {}: flash of this size that endures {FULL_WRITES} full writes, one a day for \
         five years, lasts {lasts}.",
        format_bytes(a_day as u64),
        Kind::Nanos.show_alone(seconds * 1e9)
    )
}

/// What follows from the curves: a word and a sentence each.
pub(crate) fn findings(advice: &Advice) -> Vec<(&'static str, String)> {
    let mut out = Vec::new();
    let of = |s: &Suggestion| format!("{}, {}", size(s.size_blocks, s.size_bytes), printable(&s.eviction));
    let knee = match &advice.knee {
        Some(knee) => format!(
            "{}: {:.4} of the requests miss; up to there a block of cache saves more misses than on average, beyond it less",
            of(knee),
            knee.miss_ratio
        ),
        None => "none: misses fall evenly as the cache grows, or only when it is large".to_owned(),
    };
    out.push(("knee", knee));
    let lru: Option<&Knee> =
        advice.curves.iter().find(|c| c.eviction == "lru").and_then(|curve| curve.knee.as_ref());
    if let Some(knee) = lru {
        let at = size(knee.size_blocks, knee.size_bytes);
        out.push(("knee of lru", format!("{at}: {:.4} miss", knee.miss_ratio)));
    }
    if let Some(enough) = &advice.enough {
        let text = format!(
            "{}: {:.4} miss, within 0.01 of the least at any size here",
            of(enough),
            enough.miss_ratio
        );
        out.push(("enough", text));
    }
    if let Some(first) = advice.ranking.first() {
        let mut text = format!(
            "{} over all sizes: misses {:.4} more than the best of each size on average, {:.4} at worst",
            printable(&first.eviction),
            first.excess_mean,
            first.excess_max
        );
        for (at, other) in advice.ranking.iter().skip(1).take(2).enumerate() {
            let joint = if at == 0 { "; then" } else { "," };
            let _ = write!(text, "{joint} {} ({:.4})", printable(&other.eviction), other.excess_mean);
        }
        out.push(("policy", text));
    }
    let floor = advice.first_misses as f64 / advice.requests.max(1) as f64;
    out.push(("floor", format!("{floor:.4} miss in any cache: the first request for each")));
    out
}

/// Miss ratios by size and policy, the best of each size marked, and what follows from them. The
/// table is made to fit a terminal of `width` columns: policies that are the best of no size go first.
pub fn render_advice_text(advice: &Advice, width: Option<usize>) -> String {
    let mut out = format!("workload {}: {}\n\n", printable(&advice.workload), asked(advice));
    if advice.requests == 0 {
        out.push_str("nothing is read or written\n");
        return out;
    }
    out.push_str(&verdict_lines(&[answer(advice)], width));
    out.push('\n');
    let mut table = Table::new();
    let sizes = || advice.best.iter().map(|best| &best.suggestion);
    if advice.block_bytes > 0 {
        let head = Head::number("", "size", "").weighing(Weight::Essential);
        table.column(head, sizes().map(|best| format_bytes(best.size_bytes)));
    }
    let weight = if advice.block_bytes > 0 { Weight::Minor } else { Weight::Essential };
    let head = Head::number("", "blocks", "").weighing(weight);
    table.column(head, sizes().map(|best| grouped(best.size_blocks)));
    for curve in &advice.curves {
        let cells = curve.points.iter().zip(sizes()).map(|(point, best)| {
            let mark = if best.eviction == curve.eviction { "*" } else { "" };
            format!("{mark}{:.4}", point.accesses.miss_ratio())
        });
        let is_best = advice.best.iter().any(|best| best.suggestion.eviction == curve.eviction);
        let weight = if is_best { Weight::Essential } else { Weight::Useful };
        let head = Head::number("miss ratio, * the least", &printable(&curve.eviction), "");
        table.column(head.weighing(weight), cells);
    }
    out.push_str(&table.render(width));
    out.push('\n');
    for (name, text) in findings(advice) {
        let _ = writeln!(out, "{name:12} {text}");
    }
    out
}

/// Every point as a line; the LRU curve has all of its steps.
pub fn render_advice_csv(advice: &Advice, lru: &[Point]) -> String {
    let mut out = String::from(
        "eviction,size_blocks,size_bytes,hits,misses,miss_ratio,read_hits,read_misses,write_hits,write_misses\n",
    );
    for curve in &advice.curves {
        let points = if curve.eviction == "lru" { lru } else { &curve.points };
        for p in points {
            let a = &p.accesses;
            let numbers = [p.size_blocks, p.size_bytes, a.hits(), a.misses()].map(|n| n.to_string());
            let sides = [a.read_hits, a.read_misses, a.write_hits, a.write_misses].map(|n| n.to_string());
            let cells: Vec<String> = std::iter::once(curve.eviction.clone())
                .chain(numbers)
                .chain([a.miss_ratio().to_string()])
                .chain(sides)
                .collect();
            line(&mut out, cells.iter().map(String::as_str));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_policies::simulate::Accesses;
    use nandscape_policies::simulate::curve::Curve;

    /// Advice on a cache of a hundred blocks that answers so many of a thousand requests, 200 of them writes.
    fn advice(hits: u64) -> Advice {
        let accesses =
            Accesses { read_hits: hits, read_misses: 800 - hits, write_hits: 150, write_misses: 50 };
        let point = Point { size_blocks: 100, size_bytes: 409_600, accesses };
        let suggestion = Suggestion {
            size_blocks: 100,
            size_bytes: 409_600,
            eviction: "sieve".to_owned(),
            miss_ratio: 1.0 - hits as f64 / 1000.0,
        };
        Advice {
            block_bytes: 4096,
            requests: 1000,
            first_misses: 300,
            curves: vec![Curve { eviction: "sieve".to_owned(), points: vec![point], knee: None }],
            best: vec![Choice { suggestion: suggestion.clone(), least: Some(0.4) }],
            knee: Some(suggestion.clone()),
            enough: Some(suggestion),
            ..Advice::default()
        }
    }

    #[test]
    fn the_answer_is_a_size_and_a_policy_or_not_to_bother() {
        let take = answer(&advice(500));
        let size = "Take 400 KiB (100 blocks) with sieve: it answers 50.0 % of the requests; one of that size that knew \
                    the future, 60.0 %";
        assert!(take.starts_with(size), "{take}");
        // 300 reads that miss and 200 writes, of 4 KiB.
        assert!(take.ends_with("this workload writes 1.95 MiB to its flash."), "{take}");
        // 5 times its size in 10 days.
        let timed = answer(&Advice { duration_s: Some(864_000.0), ..advice(500) });
        assert!(timed.contains("200 KiB a day at the rate of its 864000 s"), "{timed}");
        assert!(
            timed.ends_with("endures 1825 full writes, one a day for five years, lasts 10.0 years."),
            "{timed}"
        );
        let hot = answer(&Advice { duration_s: Some(86.4), ..advice(500) });
        assert!(hot.ends_with("lasts 8.8 hours."), "{hot}");
        let not = answer(&advice(99));
        assert!(
            not.starts_with("Do not bother: the best of these caches answers 9.9 % of the requests."),
            "{not}"
        );
        assert!(not.contains("30.0 % are the first for their block"), "{not}");
    }
}
