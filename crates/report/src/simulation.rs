//! Simulated caches for a terminal (`cache simulate`).

use crate::metrics::{Better, best};
use crate::number::{Kind, grouped, printable};
use crate::table::{Head, Table, Weight};
use nandscape_core::units::format_bytes;
use nandscape_policies::simulate::Row;

/// One line for each cache, in the order given. For a terminal of `width` columns the table is made to fit,
/// and of each size the least miss ratio marked.
pub fn render_simulations_text(rows: &[Row], width: Option<usize>) -> String {
    let Some(first) = rows.first() else { return String::new() };
    let ratio = |misses: u64, hits: u64| match misses + hits {
        0 => "-".to_owned(),
        all => format!("{:.4}", misses as f64 / all as f64),
    };
    let mut table = Table::new();
    let mut column = |head: Head, cell: &dyn Fn(&Row) -> String| table.column(head, rows.iter().map(cell));
    if rows.iter().any(|row| row.preset.is_some()) {
        column(Head::text("preset"), &|row| row.preset.as_deref().map_or_else(|| "-".to_owned(), printable));
        column(Head::text("map").weighing(Weight::Minor), &|row| match row.map {
            "full" => "full".to_owned(),
            map => format!("{map}, {} ways", row.ways),
        });
    }
    column(Head::text("eviction"), &|row| printable(&row.eviction));
    if rows.iter().any(|row| row.block_bytes > 0) {
        column(Head::number("cache", "block", "").weighing(Weight::Minor), &|row| {
            format_bytes(row.block_bytes)
        });
        column(Head::number("cache", "size", "").weighing(Weight::Essential), &|row| {
            format_bytes(row.size_bytes)
        });
    }
    column(Head::number("cache", "blocks", ""), &|row| grouped(row.size_blocks.into()));
    column(Head::number("cache", "in use", "").weighing(Weight::Minor), &|row| {
        format!("{:.0} %", row.counts.used as f64 * 100.0 / f64::from(row.size_blocks.max(1)))
    });
    let accesses = |row: &Row| row.counts.accesses;
    column(Head::number("blocks", "requests", "").weighing(Weight::Minor), &|row| grouped(row.requests));
    column(Head::number("blocks", "hits", ""), &|row| grouped(accesses(row).hits()));
    column(Head::number("blocks", "misses", ""), &|row| grouped(accesses(row).misses()));
    let head = Head::number("miss ratio", "all", "").weighing(Weight::Essential);
    table.column(head, rows.iter().map(|row| ratio(accesses(row).misses(), accesses(row).hits())));
    if width.is_some() {
        table.mark(&least_of_each_size(rows));
    }
    let mut column = |head: Head, cell: &dyn Fn(&Row) -> String| table.column(head, rows.iter().map(cell));
    column(Head::number("miss ratio", "reads", ""), &|row| {
        ratio(accesses(row).read_misses, accesses(row).read_hits)
    });
    column(Head::number("miss ratio", "writes", ""), &|row| {
        ratio(accesses(row).write_misses, accesses(row).write_hits)
    });
    column(Head::number("policy", "writes", "").weighing(Weight::Minor), &|row| {
        let each = |writes: u64| writes as f64 / row.requests.max(1) as f64;
        row.policy_writes.map_or_else(|| "-".to_owned(), |writes| format!("{:.2}", each(writes)))
    });
    column(Head::number("", "M/s", "").weighing(Weight::Minor), &|row| {
        format!("{:.1}", row.requests_per_wall_s / 1e6)
    });
    format!("workload {}\n\n{}", printable(&first.workload), table.render(width))
}

/// Caches that miss the least of those of their size.
fn least_of_each_size(rows: &[Row]) -> Vec<bool> {
    let size = |row: &Row| (row.size_blocks, row.block_bytes);
    let mut marks = vec![false; rows.len()];
    for first in rows {
        let same: Vec<usize> = (0..rows.len()).filter(|at| size(&rows[*at]) == size(first)).collect();
        let ratios = same.iter().map(|at| Some(rows[*at].counts.accesses.miss_ratio()));
        let ratios: Vec<Option<f64>> = ratios.collect();
        let unit = Kind::Ratio.unit(ratios.iter().copied().flatten());
        for (at, is_best) in same.iter().zip(best(Better::Lower, &unit, &ratios)) {
            marks[*at] = is_best;
        }
    }
    marks
}
