//! The article's experiment with small caches: what follows from the designs holds at any size.

use nandscape_stack::reproduce::Context;
use nandscape_stack::reproduce::cache_article::{SMALL, rows};
use serde_json::Value;

#[test]
fn what_follows_from_the_designs_holds_and_what_does_not_is_explained() {
    let rows = rows(&SMALL, &Context::new(42, None)).unwrap();
    for row in &rows {
        assert!(!row.needs_note() || !row.note.is_empty(), "no note: {row:?}");
    }
    let statements: Vec<_> = rows.iter().filter(|row| row.measured.is_boolean()).collect();
    assert_eq!(statements.len(), 4);
    for row in statements {
        assert_eq!(row.measured, Value::Bool(true), "{row:?}");
        assert!(row.note.starts_with("measured: "), "{row:?}");
    }
    for row in
        rows.iter().filter(|row| row.name.starts_with("raw SSD") || row.name.starts_with("SSD of flash"))
    {
        let ratio = row.ratio.unwrap();
        assert!((0.93..1.07).contains(&ratio), "{}: {ratio}", row.name);
    }
    let presets = nandscape_cache::presets::PRESETS.iter().map(|preset| preset.info.name);
    for preset in presets {
        let of_preset = rows.iter().filter(|row| row.name.starts_with(&format!("{preset}, ")));
        assert!(of_preset.count() >= 4, "{preset}");
    }
}

#[test]
fn who_uses_the_cache_while_it_cleans_waits_at_most_twice_as_long() {
    let entry =
        nandscape_stack::reproduce::REPRODUCTIONS.iter().find(|r| r.info.name == "cache-cleaning").unwrap();
    let rows = (entry.run)(&Context::new(42, None)).unwrap();
    let statements: Vec<_> = rows.iter().filter(|row| row.measured.is_boolean()).collect();
    assert_eq!(statements.len(), 3);
    for row in statements {
        assert_eq!(row.measured, Value::Bool(true), "{row:?}");
    }
}
