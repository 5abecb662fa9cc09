//! The PM963 experiment on a small drive: what holds at its scale of 1/124 holds here, but for the cliff.

use crate::rows;
use serde_json::Value;
use std::path::Path;

#[test]
fn stream_ids_change_nothing_without_directives_and_much_with_them() {
    let rows = rows("pm963");
    let statements: Vec<_> = rows.iter().filter(|row| row.measured.is_boolean()).collect();
    assert_eq!(statements.len(), 8);
    // So small a drive copies less, so that its writes fall to 0.9 of what they were and not below 0.8.
    for row in statements.iter().filter(|row| !row.name.starts_with("writes over time")) {
        assert_eq!(row.measured, Value::Bool(true), "{row:?}");
        assert!(row.note.starts_with("measured: "), "{row:?}");
    }
    for row in rows.iter().filter(|row| row.name.starts_with("change of writes by stream ids")) {
        assert_eq!(row.measured.as_f64(), Some(0.0), "{row:?}");
    }
    let figures = rows.iter().filter_map(|row| Some((row, row.measured.as_f64()?)));
    let lines = figures.map(|(row, figure)| format!("{}: {figure:.4} {}", row.name, row.unit));
    let figures = lines.collect::<Vec<_>>().join("\n") + "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/pm963.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &figures).unwrap();
    }
    assert_eq!(
        figures,
        std::fs::read_to_string(&path).unwrap(),
        "UPDATE_GOLDEN=1 rewrites {}",
        path.display()
    );
}
