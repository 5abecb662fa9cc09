//! Presets beside real drives, small: figures that do not depend on the size of the device are as near as in
//! the full run, and whatever is far from its figure says why.

use crate::rows;
use nandscape_report::{RowKind, Verdict};

/// Ends of names, and the ratios that they have on any device. What is left out needs more blocks.
const NEAR: [(&str, f64, f64); 9] = [
    ("MAX 800 GB, sequential writes", 1.03, 1.1),
    ("MAX 800 GB, sequential reads", 0.97, 1.02),
    ("MAX 800 GB, random reads", 0.9, 1.0),
    ("MAX 800 GB, read latency at depth 1", 0.96, 1.01),
    ("MAX 800 GB, write latency at depth 1", 0.68, 0.73),
    ("PM963 1.92 TB, sequential writes", 0.85, 1.0),
    ("PM963 1.92 TB, random reads", 0.85, 0.98),
    ("PM963 1.92 TB, read latency at depth 1", 1.04, 1.1),
    ("PM963 1.92 TB, fresh random writes", 0.1, 0.35),
];

#[test]
fn rules_are_kept_and_what_is_far_from_its_figure_says_why() {
    let rows = rows("drives");
    for (end, least, most) in NEAR {
        let row = rows.iter().find(|row| row.name.ends_with(end)).expect(end);
        assert!((least..=most).contains(&crate::ratio(row).unwrap()), "{row:?}");
    }
    let mut names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), rows.len());
    for row in &rows {
        assert_eq!(row.id, "drives");
        assert!(row.verdict.is_none_or(Verdict::is_good), "{row:?}");
        assert!(!row.needs_note() || !row.note.is_empty(), "no note: {row:?}");
        assert_ne!(row.kind, RowKind::Input, "{row:?}");
    }
    assert_eq!(rows.iter().filter(|row| row.verdict.is_some()).count(), 4);
    // Units are what makes a drive with pages of 16 KiB as fast as the real one.
    let fresh = |changed: &str| {
        let name = format!("Samsung PM963 1.92 TB, fresh random writes{changed}");
        rows.iter().find(|row| row.name == name).unwrap().measured.as_f64().unwrap()
    };
    assert!(fresh(", ftl.unit=4KiB") > 3.0 * fresh(""));
}
