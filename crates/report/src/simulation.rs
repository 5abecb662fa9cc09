//! Simulated caches for a terminal (`cache simulate`).

use crate::number::{grouped, printable};
use crate::table::{Head, Table};
use nandscape_core::units::format_bytes;
use nandscape_policies::simulate::Row;

fn head(group: &str, name: &str, is_left: bool) -> Head {
    Head { group: group.to_owned(), name: name.to_owned(), unit: String::new(), is_left }
}

fn ratio(part: u64, rest: u64) -> String {
    if part + rest == 0 { "-".to_owned() } else { format!("{:.4}", part as f64 / (part + rest) as f64) }
}

/// One line for each cache, in the order given.
pub fn render_simulations_text(rows: &[Row]) -> String {
    let Some(first) = rows.first() else { return String::new() };
    let column = |cell: &dyn Fn(&Row) -> String| rows.iter().map(cell).collect::<Vec<_>>();
    let mut table = Table::new();
    if rows.iter().any(|row| row.preset.is_some()) {
        let preset = |row: &Row| row.preset.as_deref().map_or_else(|| "-".to_owned(), printable);
        table.column(head("", "preset", true), column(&preset));
        let map = |row: &Row| match row.map {
            "full" => "full".to_owned(),
            map => format!("{map}, {} ways", row.ways),
        };
        table.column(head("", "map", true), column(&map));
    }
    table.column(head("", "eviction", true), column(&|row| printable(&row.eviction)));
    if rows.iter().any(|row| row.block_bytes > 0) {
        table.column(head("cache", "block", false), column(&|row| format_bytes(row.block_bytes)));
        table.column(head("cache", "size", false), column(&|row| format_bytes(row.size_bytes)));
    }
    table.column(head("cache", "blocks", false), column(&|row| grouped(row.size_blocks.into())));
    let in_use =
        |row: &Row| format!("{:.0} %", row.used_blocks as f64 * 100.0 / f64::from(row.size_blocks.max(1)));
    table.column(head("cache", "in use", false), column(&in_use));
    table.column(head("blocks", "requests", false), column(&|row| grouped(row.requests)));
    table.column(head("blocks", "hits", false), column(&|row| grouped(row.hits)));
    table.column(head("blocks", "misses", false), column(&|row| grouped(row.misses)));
    table.column(head("miss ratio", "all", false), column(&|row| ratio(row.misses, row.hits)));
    let reads = |row: &Row| ratio(row.read_misses, row.read_hits);
    table.column(head("miss ratio", "reads", false), column(&reads));
    let writes = |row: &Row| ratio(row.write_misses, row.write_hits);
    table.column(head("miss ratio", "writes", false), column(&writes));
    let speed = |row: &Row| format!("{:.1}", row.requests_per_wall_s / 1e6);
    table.column(head("", "M/s", false), column(&speed));
    format!("workload {}\n\n{}", printable(&first.workload), table.render())
}
