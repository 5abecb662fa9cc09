//! Wear maps: erases per block and programs per page, as grids of bytes.

use super::Page;
use crate::number::grouped;
use serde_json::{Value, json};

/// Cells of a map in the page; a larger one is averaged over neighbours, and its caption says so.
const MAX_COLUMNS: usize = 512;
const MAX_ROWS: usize = 128;

struct Grid<'a> {
    counts: &'a [u32],
    rows: usize,
    columns: usize,
    place: fn(row: usize, column: usize, rows: usize, columns: usize) -> usize,
    axes: &'static str,
}

fn row_major(row: usize, column: usize, _rows: usize, columns: usize) -> usize {
    row * columns + column
}

fn column_major(row: usize, column: usize, rows: usize, _columns: usize) -> usize {
    column * rows + row
}

/// Erases: a row per unit and a column per block in it. Programs: a column per block of the device and a row
/// per page in it.
fn grid<'a>(page: &'a Page<'_>, run: usize, kind: &str) -> Option<Grid<'a>> {
    let shape = page.shapes[run].as_ref();
    let fits =
        |counts: &[u32], rows: u64, columns: u64| rows.checked_mul(columns) == Some(counts.len() as u64);
    let (counts, rows, columns, place, axes): (&[u32], _, _, _, _) = if kind == "blocks" {
        let series = page.runs[run].series.as_ref().map(|series| series.erase_counts.as_slice());
        let counts = page.runs[run].result.wear.per_block.as_deref().or(series)?;
        let (rows, columns) = shape.map_or((0, 0), |s| (s.units(), s.blocks_per_unit()));
        (counts, rows, columns, row_major as fn(_, _, _, _) -> _, "rows: dies; columns: blocks of a die")
    } else {
        let counts = page.runs[run].series.as_ref()?.program_counts.as_deref()?;
        let rows = shape.map_or(0, |s| s.pages_per_block);
        let columns = (counts.len() as u64).checked_div(rows).unwrap_or(0);
        (
            counts,
            rows,
            columns,
            column_major as fn(_, _, _, _) -> _,
            "columns: blocks; rows: pages of a block",
        )
    };
    // A map of nothing shows nothing.
    if counts.iter().all(|count| *count == 0) {
        return None;
    }
    if fits(counts, rows, columns) {
        return Some(Grid { counts, rows: rows as usize, columns: columns as usize, place, axes });
    }
    // The configuration does not tell the shape: lines of text, so to speak.
    let columns = (counts.len() as f64).sqrt().ceil() as usize;
    let rows = counts.len().div_ceil(columns);
    Some(Grid {
        counts,
        rows,
        columns,
        place: row_major,
        axes: "in the order of their numbers, line by line",
    })
}

/// Cells with the mean of the counts they stand for, with what is needed to read them back.
fn encode(grid: &Grid<'_>) -> Value {
    let (rows, columns) = (grid.rows.min(MAX_ROWS), grid.columns.min(MAX_COLUMNS));
    let mut means = Vec::with_capacity(rows * columns);
    for row in 0..rows {
        for column in 0..columns {
            let (mut sum, mut n) = (0u64, 0u64);
            for r in row * grid.rows / rows..(row + 1) * grid.rows / rows {
                for c in column * grid.columns / columns..(column + 1) * grid.columns / columns {
                    if let Some(count) = grid.counts.get((grid.place)(r, c, grid.rows, grid.columns)) {
                        sum += u64::from(*count);
                        n += 1;
                    }
                }
            }
            means.push((n > 0).then(|| sum as f64 / n as f64));
        }
    }
    let low = means.iter().flatten().copied().fold(f64::INFINITY, f64::min);
    let high = means.iter().flatten().copied().fold(0.0, f64::max);
    // Byte 0 is "no such cell"; a step of at least 1 keeps small whole counts exact.
    let is_exact = rows == grid.rows && columns == grid.columns && high - low <= 254.0;
    let step = if is_exact { 1.0 } else { ((high - low) / 254.0).max(f64::MIN_POSITIVE) };
    let cells: Vec<u8> = means
        .iter()
        .map(|mean| mean.map_or(0, |mean| 1 + ((mean - low) / step).round().min(254.0) as u8))
        .collect();
    json!({
        "rows": rows, "columns": columns, "low": low, "high": high, "step": step, "cells": base64(&cells),
        "min": grid.counts.iter().min(), "max": grid.counts.iter().max(),
        "each": if is_exact { 1 } else { (grid.counts.len() as f64 / (rows * columns) as f64).ceil() as u64 },
    })
}

/// The maps of a run, by their names.
pub(super) fn maps(page: &Page<'_>, run: usize) -> Vec<(&'static str, Value)> {
    ["blocks", "pages"].into_iter().filter_map(|kind| Some((kind, encode(&grid(page, run, kind)?)))).collect()
}

/// The maps of a run with one line about each, which also serves those who cannot see it.
pub(super) fn captions(page: &Page<'_>, run: usize) -> Vec<(&'static str, String)> {
    let caption = |kind: &'static str| {
        let grid = grid(page, run, kind)?;
        // A map of nothing is empty.
        let (min, max) = (*grid.counts.iter().min()?, *grid.counts.iter().max().filter(|max| **max > 0)?);
        let mean = grid.counts.iter().map(|n| f64::from(*n)).sum::<f64>() / grid.counts.len() as f64;
        let what = if kind == "blocks" { "Erases per block" } else { "Programs per page" };
        let cells = if grid.rows > MAX_ROWS || grid.columns > MAX_COLUMNS {
            let shown = grid.rows.min(MAX_ROWS) * grid.columns.min(MAX_COLUMNS);
            let each = format!("{:.1}", grid.counts.len() as f64 / shown as f64);
            format!("; each cell is the mean of {each}")
        } else {
            String::new()
        };
        Some((
            kind,
            format!(
                "{what}: {} of them, min {}, mean {mean:.2}, max {} ({}{cells})",
                grouped(grid.counts.len() as u64),
                grouped(u64::from(min)),
                grouped(u64::from(max)),
                grid.axes
            ),
        ))
    };
    ["blocks", "pages"].into_iter().filter_map(caption).collect()
}

/// Base64 with padding (RFC 4648, section 4).
pub(super) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word =
            chunk.iter().chain([0; 2].iter()).take(3).fold(0u32, |word, byte| word << 8 | u32::from(*byte));
        for digit in 0..4 {
            if digit <= chunk.len() {
                out.push(char::from(DIGITS[(word >> (18 - 6 * digit)) as usize & 63]));
            } else {
                out.push('=');
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_as_in_the_rfc() {
        for (raw, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(raw.as_bytes()), text);
        }
        assert_eq!(base64(&[0xfb, 0xff]), "+/8=");
    }

    #[test]
    fn small_maps_are_exact_and_large_ones_are_means_of_every_count() {
        let counts = [3, 4, 5, 6, 7, 8];
        let grid = Grid { counts: &counts, rows: 2, columns: 3, place: column_major, axes: "" };
        let map = encode(&grid);
        // Column by column: 3 4 | 5 6 | 7 8, so the first row reads 3 5 7.
        assert_eq!(map["cells"], base64(&[1, 3, 5, 2, 4, 6]));
        assert_eq!((&map["low"], &map["step"]), (&json!(3.0), &json!(1.0)));

        let counts: Vec<u32> = (0..1000).flat_map(|column| std::iter::repeat_n(column / 500, 200)).collect();
        let grid = Grid { counts: &counts, rows: 200, columns: 1000, place: column_major, axes: "" };
        let map = encode(&grid);
        assert_eq!((&map["rows"], &map["columns"], &map["max"]), (&json!(128), &json!(512), &json!(1)));
        assert_eq!((&map["low"], &map["high"]), (&json!(0.0), &json!(1.0)));
    }
}
