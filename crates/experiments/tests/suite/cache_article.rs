//! The article's experiment with small caches: what follows from the designs holds at any size.

use crate::rows;
use nandscape_report::RowKind;
use serde_json::Value;

#[test]
fn what_follows_from_the_designs_holds_and_what_does_not_is_explained() {
    let rows = rows("cache-article");
    for row in &rows {
        assert!(!row.needs_note() || !row.note.is_empty(), "no note: {row:?}");
    }
    let statements: Vec<_> = rows.iter().filter(|row| row.measured.is_boolean()).collect();
    assert_eq!(statements.len(), 5);
    for row in statements {
        assert_eq!(row.measured, Value::Bool(true), "{row:?}");
        assert!(row.note.starts_with("measured: "), "{row:?}");
    }
    for row in
        rows.iter().filter(|row| row.name.starts_with("raw SSD") || row.name.starts_with("SSD of flash"))
    {
        assert_ne!(row.kind, RowKind::Measured, "{row:?}");
        let ratio = crate::ratio(row).unwrap();
        assert!((0.93..1.07).contains(&ratio), "{}: {ratio}", row.name);
    }
    let presets = nandscape_cache::presets::PRESETS.iter().map(|preset| preset.info.name);
    for preset in presets {
        let of_preset = rows.iter().filter(|row| row.name.starts_with(&format!("one load: {preset}, ")));
        assert!(of_preset.count() >= 4, "{preset}");
    }
    // Sets of 16 overflow soon, sets of 1,024 at the end, if at all.
    let lines: Vec<_> = rows.iter().filter_map(|row| row.series.as_ref()).collect();
    let [few, many, bound] = lines.as_slice() else { panic!("{lines:?}") };
    assert_eq!((few.line.as_str(), many.line.as_str(), bound.is_bound), ("16 ways", "1,024 ways", true));
    let at = |line: &nandscape_report::RowSeries, percent: f64| {
        let place = line.at.iter().position(|at| (at - percent).abs() < 0.1).unwrap();
        line.values[place].unwrap()
    };
    assert!(at(many, 50.0) > 2.0 * at(few, 50.0), "{few:?} {many:?}");
    assert!(at(few, 3.0) > 2.0 * at(few, 50.0), "{few:?}");
    let text = nandscape_report::render_reproduction_text(&rows, None);
    assert!(text.contains("data asked for"), "{text}");
}

#[test]
fn who_uses_the_cache_while_it_cleans_waits_at_most_twice_as_long() {
    let rows = rows("cache-cleaning");
    let statements: Vec<_> = rows.iter().filter(|row| row.measured.is_boolean()).collect();
    assert_eq!(statements.len(), 3);
    for row in statements {
        assert_eq!(row.measured, Value::Bool(true), "{row:?}");
    }
    let series = |load: &str, chart: &str, line: &str| {
        let of = |row: &&nandscape_report::ReproductionRow| {
            row.series
                .as_ref()
                .is_some_and(|s| (s.part.as_str(), s.chart.as_str(), s.line.as_str()) == (load, chart, line))
        };
        let row = rows.iter().find(of).unwrap_or_else(|| panic!("{load}: {chart}, {line}"));
        let values: Vec<f64> =
            row.series.as_ref().unwrap().values.iter().map(|value| value.unwrap()).collect();
        (row.measured.as_f64().unwrap(), values)
    };
    for load in ["all hits", "all hits, SSD near its limit", "half of them misses"] {
        for chart in ["p99 of reads", "p99 of writes"] {
            let (whole, without) = series(load, chart, "no cleaning");
            let (limit, line) = series(load, chart, "twice that of no cleaning");
            assert_eq!(line, [limit; 2]);
            assert!((limit / whole - 2.0).abs() < 1e-9, "{load}: {chart}");
            let (whole_with, with) = series(load, chart, "pi-rate");
            assert!(whole_with <= limit, "{load}: {chart}");
            assert_eq!((without.len(), with.len()), (5, 5), "{load}: {chart}");
        }
        let (_, rate) = series(load, "blocks cleaned", "pi-rate");
        assert!(rate.iter().all(|rate| *rate > 0.0), "{load}: {rate:?}");
        let dirty = |line| series(load, "dirty share of the cache", line).1[4];
        assert!(dirty("no cleaning") > dirty("pi-rate") && dirty("pi-rate") > dirty("no limit"), "{load}");
        // Where nothing misses, nothing has to leave.
        if load.starts_with("all hits") {
            assert_eq!(series(load, "blocks cleaned", "no cleaning").1, [0.0; 5], "{load}");
        }
    }

    let page = nandscape_report::render_html(
        &[],
        &nandscape_report::ReportContext { reproduction: rows.clone(), ..Default::default() },
    );
    assert_eq!(page.matches("data-chart=\"figure\"").count(), 12);
    let data = page.split_once("id=\"data\">").unwrap().1.split_once("</script>").unwrap().0;
    let data: Value = serde_json::from_str(data).unwrap();
    let lines = data["figures"][0]["lines"].as_array().unwrap();
    let names: Vec<_> = lines.iter().map(|line| line["label"].as_str().unwrap()).collect();
    assert_eq!(names, ["no cleaning", "pi-rate", "no limit", "twice that of no cleaning"]);

    // The same numbers as JSON, as CSV and as text.
    let again: Vec<nandscape_report::ReproductionRow> =
        serde_json::from_str(&serde_json::to_string(&rows).unwrap()).unwrap();
    assert_eq!(again, rows);
    let csv = nandscape_report::render_reproduction_csv(&rows);
    let times: usize = rows.iter().filter_map(|row| row.series.as_ref()).map(|s| s.at.len()).sum();
    assert_eq!(csv.lines().count(), 1 + rows.len() + times);
    let text = nandscape_report::render_reproduction_text(&rows, None);
    assert_eq!(text.matches("until").count(), 3, "{text}");
}
