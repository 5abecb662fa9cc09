//! OFTL on loads with the counts of the published traces: the rules that were stated before hold, and fail
//! without either of the two means of the layer.

use crate::{assert_documented, line, rows};
use nandscape_report::{ReproductionRow, Verdict};

fn verdict(rows: &[ReproductionRow], name: &str) -> Option<Verdict> {
    rows.iter().find(|row| row.name == name).unwrap_or_else(|| panic!("{name}")).verdict
}

#[test]
fn sizes_are_near_the_published_ones_in_all_but_a_quarter_of_the_cells() {
    let rows = rows("oftl-table-3");
    assert_eq!(verdict(&rows, "size amplification within 25 %"), Some(Verdict::Holds));
    for name in ["without differences (ftl.diffs=false)", "with an eager index (ftl.lazy_index=false)"] {
        assert_eq!(verdict(&rows, name), Some(Verdict::Holds), "{name}: its rule fails");
    }
    // All but the one of the source, synchronous LASR-2, have a rule.
    let lowest = rows.iter().filter(|row| row.name.starts_with("lowest of four"));
    assert_eq!(lowest.clone().count(), 12);
    assert_eq!(lowest.clone().filter(|row| row.verdict.is_none()).count(), 1);
    assert!(lowest.filter_map(|row| row.verdict).all(Verdict::is_good));
    for row in &rows {
        assert!(!row.needs_note() || !row.note.is_empty(), "{row:?}");
    }
}

#[test]
fn amplification_rises_with_the_size_of_pages() {
    let rows = rows("oftl-fig-8");
    let rises: Vec<_> = rows.iter().filter(|row| row.name.starts_with("larger pages")).collect();
    assert_eq!(rises.len(), 12);
    assert!(rises.iter().all(|row| row.verdict == Some(Verdict::Holds)), "{rises:?}");
    assert_eq!(verdict(&rows, "highest at 32 KiB, sync"), Some(Verdict::Met));
    assert_eq!(verdict(&rows, "rises fastest, sync"), Some(Verdict::Holds));
}

#[test]
fn few_operations_meet_the_extension_of_a_window() {
    let rows = rows("oftl-fig-9");
    assert_eq!(verdict(&rows, "operations that meet an extension"), Some(Verdict::Met));
}

#[test]
fn the_document_shows_the_rows() {
    let mut table =
        "| experiment | what | unit | published | measured | ratio | kind | rule | note |\n".to_owned();
    table += "|---|---|---|---|---|---|---|---|---|\n";
    for id in ["oftl-table-3", "oftl-fig-8", "oftl-fig-9"] {
        for row in &rows(id) {
            table += &line(&[&row.id], row, |number| format!("{number:.3}"));
        }
    }
    assert_documented("oftl.md", &table);
}
