//! The PM963 experiment on a small drive: everything that holds at its scale of 1/124 holds here.

use nandscape_stack::reproduce::Context;
use nandscape_stack::reproduce::pm963::{SMALL, rows};
use serde_json::Value;

#[test]
fn stream_ids_change_nothing_without_directives_and_much_with_them() {
    let rows = rows(&SMALL, &Context::new(42, None)).unwrap();
    let statements: Vec<_> = rows.iter().filter(|row| row.measured.is_boolean()).collect();
    assert_eq!(statements.len(), 8);
    for row in statements {
        assert_eq!(row.measured, Value::Bool(true), "{row:?}");
        assert!(row.note.starts_with("measured: "), "{row:?}");
    }
    for row in rows.iter().filter(|row| row.row == "S0-47" && row.measured.is_number()) {
        assert_eq!(row.measured.as_f64(), Some(0.0), "{row:?}");
    }
    for row in rows.iter().filter(|row| row.ratio.is_some_and(|ratio| !(0.8..=1.25).contains(&ratio))) {
        assert!(!row.note.is_empty(), "{row:?}");
    }
}
