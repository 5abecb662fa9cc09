//! The NVM Sets experiment, small: what holds of ten million reads holds of these, but for the far tail.

use nandscape_report::ReproductionRow;
use std::sync::OnceLock;

fn rows() -> &'static [ReproductionRow] {
    static ROWS: OnceLock<Vec<ReproductionRow>> = OnceLock::new();
    ROWS.get_or_init(|| crate::rows("nvm-sets"))
}

/// Rows that need more reads than a test can afford, and those that do not hold at full size either.
const BEYOND: [&str; 5] = [
    "p99.9999 of reads, traditional over horizontal",
    "p99.9999 of reads",
    "IOPS against depth, of the vertical set",
    "IOPS against depth, of the horizontal set",
    "open-channel (translation on the host) against sets, same dies",
];

/// Of a chosen load, published nowhere.
fn is_figure(row: &ReproductionRow) -> bool {
    row.published.is_null() && row.measured.is_number()
}

#[test]
fn every_statement_of_the_article_holds() {
    for row in rows().iter().filter(|row| !BEYOND.contains(&row.name.as_str())) {
        match crate::ratio(row) {
            Some(ratio) => assert!((0.8..=1.25).contains(&ratio), "{row:?}"),
            None if is_figure(row) => assert!(row.measured.as_f64() > Some(0.0), "{row:?}"),
            None => assert_eq!(row.measured, true, "{row:?}"),
        }
    }
}

#[test]
fn rows_are_distinct_and_say_what_was_measured() {
    let mut names: Vec<&str> = rows().iter().map(|row| row.name.as_str()).collect();
    assert!(names.len() >= 20);
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), rows().len());
    for row in rows() {
        assert_eq!(row.id, "nvm-sets");
        let says = if is_figure(row) { "sets share" } else { "measured: " };
        assert!(crate::ratio(row).is_some() || row.note.starts_with(says), "{row:?}");
    }
}
