//! `reproduce --csv` beside `--json` of the same run, read by a parser that knows nothing of how either was
//! written.

use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;
use std::sync::LazyLock;

const HEAD: [&str; 11] =
    ["id", "source", "name", "unit", "at", "published", "measured", "ratio", "note", "kind", "verdict"];

/// Every published experiment, as `list` has it.
fn listed() -> Vec<Value> {
    let arguments = ["list", "reproductions", "--json"];
    let listed = Command::new(env!("CARGO_BIN_EXE_nandscape")).args(arguments).output().unwrap();
    let tables: Value = serde_json::from_slice(&listed.stdout).unwrap();
    tables["reproductions"].as_array().unwrap().clone()
}

/// Every experiment that needs nothing but the command itself, without those that need recordings or half a
/// minute.
fn experiments() -> Vec<String> {
    let own = listed().into_iter().filter(|one| one["runs"] != "live");
    let names = own.map(|one| one["name"].as_str().unwrap().to_owned());
    names.filter(|name| !["streams-captured", "oftl-captured", "nvm-sets"].contains(&name.as_str())).collect()
}

/// What a cell says of a value: text as it is, a number as the number that it reads as.
fn same(cell: &str, value: &Value) -> bool {
    match value {
        Value::Null => cell.is_empty(),
        Value::String(text) => cell == text,
        Value::Bool(holds) => cell == if *holds { "true" } else { "false" },
        // By the same parser, which may be a last digit off.
        Value::Number(number) => serde_json::from_str(cell).ok() == number.as_f64(),
        Value::Array(_) | Value::Object(_) => {
            serde_json::from_str(cell).is_ok_and(|parsed: Value| parsed == *value)
        }
    }
}

/// One run of all of them at their smaller scale.
struct Quick {
    names: Vec<String>,
    rows: Vec<Value>,
    csv: String,
    page: String,
}

static QUICK: LazyLock<Quick> = LazyLock::new(|| {
    let dir = tempfile::tempdir().unwrap();
    let [csv, page] = ["rows.csv", "page.md"].map(|name| dir.path().join(name));
    let names = experiments();
    assert!(names.len() > 25, "{names:?}");
    let output = Command::new(env!("CARGO_BIN_EXE_nandscape"))
        .args(["reproduce", "--quick", "--seed", "1", "--json", "--csv", csv.to_str().unwrap()])
        .args(["--markdown", page.to_str().unwrap()])
        .args(&names)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let rows = serde_json::from_slice(&output.stdout).unwrap();
    let [csv, page] = [csv, page].map(|path| std::fs::read_to_string(path).unwrap());
    Quick { names, rows, csv, page }
});

#[test]
fn the_csv_of_every_experiment_has_each_figure_and_each_point_of_its_json() {
    let Quick { names, rows, csv, .. } = &*QUICK;
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    assert_eq!(reader.headers().unwrap().iter().collect::<Vec<_>>(), HEAD);
    // A line of another length than the head is an error of the reader.
    let lines: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let mut lines = lines.iter();
    let mut next = || lines.next().expect("fewer lines than the document has figures");
    let mut points = 0;
    for row in rows {
        let line = next();
        for (name, cell) in HEAD.iter().zip(line) {
            // Absent in the document: only points have a place on an axis.
            assert!(same(cell, &row[*name]), "{row}: {name} is '{cell}'");
        }
        let Some(series) = row.get("series") else { continue };
        let [times, values] = ["at", "values"].map(|key| series[key].as_array().unwrap());
        assert!(!times.is_empty() && times.len() == values.len(), "{row}");
        for (time, value) in times.iter().zip(values) {
            let line = next();
            assert_eq!(
                line.iter().take(4).collect::<Vec<_>>(),
                HEAD[..4].iter().map(|key| row[*key].as_str().unwrap()).collect::<Vec<_>>()
            );
            assert!(same(&line[4], time) && same(&line[6], value), "{line:?}: {time} {value}");
            assert_eq!([&line[5], &line[7], &line[10]], [""; 3], "{line:?}");
            assert_eq!(&line[8], series["axis"].as_str().unwrap_or_default(), "{line:?}");
            assert!(same(&line[9], &row["kind"]), "{line:?}");
            points += 1;
        }
    }
    assert_eq!(lines.next(), None, "more lines than the document has figures");
    for name in names {
        assert!(rows.iter().any(|row| row["id"] == name.as_str()), "no figure of {name}");
    }
    assert!(points > 100, "{points} points");
    let figures = |id: &str| rows.iter().filter(|row| row["id"] == id && row["measured"].is_number()).count();
    assert!(
        figures("cache-article") > 40 && figures("cache-cleaning") > 20,
        "{} {}",
        figures("cache-article"),
        figures("cache-cleaning")
    );
}

/// Cells of the tables of a page by the heading of the table.
fn tables(page: &str) -> BTreeMap<String, Vec<Vec<String>>> {
    let mut tables: BTreeMap<String, Vec<Vec<String>>> = BTreeMap::new();
    let mut heading = String::new();
    for line in page.lines() {
        if let Some(text) = line.strip_prefix("## ") {
            text.clone_into(&mut heading);
        } else if let Some(cells) = line.strip_prefix("| ") {
            let cells = cells.strip_suffix(" |").expect("a line of a table").split(" | ");
            tables.entry(heading.clone()).or_default().push(cells.map(str::to_owned).collect());
        }
    }
    tables
}

/// The number that a cell begins with.
fn number(cell: &str) -> Option<f64> {
    cell.split(' ').next().and_then(|word| word.parse().ok())
}

#[test]
fn the_page_of_all_experiments_is_that_of_the_code() {
    let whole = include_str!("../../../../docs/reproductions/index.md");
    let [written, quick] = [whole, &QUICK.page].map(tables);
    let seeded: BTreeMap<String, bool> = listed()
        .iter()
        .map(|one| (one["name"].as_str().unwrap().to_owned(), one["runs"] == "seeded"))
        .collect();
    let mut alike = 0;
    for (heading, on_page) in &written {
        let name = heading.split(' ').next().unwrap();
        if !QUICK.names.iter().any(|quick| quick == name) {
            assert!(seeded.contains_key(name), "{name} is no experiment: make reproduce");
            continue;
        }
        let rows = quick.get(heading).unwrap_or_else(|| panic!("no table '{heading}': make reproduce"));
        assert_eq!(on_page.len(), rows.len(), "{heading}: make reproduce");
        let mut differ = 0;
        // Behind the line of heads.
        for (there, here) in on_page.iter().zip(rows).skip(1) {
            // What it is, its unit, what was published, and the kind.
            for at in [0, 1, 2, 6] {
                assert_eq!(there[at], here[at], "{heading}: {}: make reproduce", there[0]);
            }
            differ += usize::from(!there[4].is_empty() && there[4] != there[5]);
            // Without a range one run stands for all seeds.
            let range = if there[4].is_empty() { [&there[3]; 2] } else { [&there[4], &there[5]] };
            if let [Some(here), Some(least), Some(most)] =
                [&here[3], range[0], range[1]].map(|cell| number(cell))
            {
                // Rounded to four digits. Those of a smaller scale may be anywhere.
                let is_whole = ["thesis-", "streams-"].iter().any(|prefix| name.starts_with(prefix));
                let is_within = (least - 0.001 * least.abs()..=most + 0.001 * most.abs()).contains(&here);
                assert!(is_within || !is_whole, "{name}: {}: {here}, not {least} to {most}", there[0]);
                alike += usize::from(is_within);
            }
        }
        assert!(seeded[name] || differ == 0, "{name} is listed as fixed, and {differ} figures differ");
    }
    assert!(alike > 80, "{alike} figures of one seed are within the range of the page");
}

#[test]
fn what_the_command_cannot_run_names_the_command_that_does() {
    let live: Vec<Value> = listed().into_iter().filter(|one| one["runs"] == "live").collect();
    assert!(live.len() >= 4, "{live:?}");
    for one in live {
        let [name, command] = ["name", "command"].map(|key| one[key].as_str().unwrap());
        let output =
            Command::new(env!("CARGO_BIN_EXE_nandscape")).args(["reproduce", name]).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && stderr.contains(command), "{name}: {stderr}");
        let file = command.split(' ').find(|word| word.contains('/'));
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
        assert!(
            file.is_none_or(|file| file.contains("target") || std::path::Path::new(root).join(file).exists())
        );
        if let Some(target) = command.strip_prefix("make ") {
            assert!(include_str!("../../../../Makefile").contains(&format!("\n{target}:")), "{command}");
        }
    }
}

#[test]
fn several_seeds_are_rows_with_a_mean_a_range_and_a_count() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rows.csv");
    let rows = |seed: &str, more: &[&str]| -> Vec<Value> {
        let output = Command::new(env!("CARGO_BIN_EXE_nandscape"))
            .args(["reproduce", "thesis-table-4.2", "thesis-conclusion", "--quick", "--json", "--seed", seed])
            .args(more)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let [first, second] = ["1", "2"].map(|seed| rows(seed, &[]));
    let both = rows("1..2", &["--csv", path.to_str().unwrap()]);
    let mut differ = 0;
    for ((row, one), other) in both.iter().zip(&first).zip(&second) {
        assert_eq!((&row["name"], &row["seeds"]["count"]), (&one["name"], &2.into()));
        let [mean, one, other] = [row, one, other].map(|row| row["measured"].as_f64());
        if let (Some(mean), Some(one), Some(other)) = (mean, one, other) {
            assert!((mean - f64::midpoint(one, other)).abs() < 1e-9 * mean.abs(), "{row}");
            assert_eq!(row["seeds"]["min"], one.min(other), "{row}");
            differ += usize::from(one.total_cmp(&other).is_ne());
        } else if row["measured"].is_boolean() {
            assert!(row["seeds"]["kept"].as_u64().unwrap() <= 2, "{row}");
        }
    }
    assert!(differ > 4, "{differ} figures depend on the seed");
    let mut reader = csv::Reader::from_path(&path).unwrap();
    let head: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    assert_eq!(head[HEAD.len()..], ["seeds", "min", "max", "kept"]);
    assert!(reader.records().all(|line| line.is_ok_and(|line| line.len() == HEAD.len() + 4)));
    let refused = Command::new(env!("CARGO_BIN_EXE_nandscape"))
        .args(["reproduce", "thesis-table-4.2", "--sabotage", "--seed", "1..2"])
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2));
}

/// One recording is in the tree; the others are skipped by name.
#[test]
fn objects_are_compared_on_the_recordings_that_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let captured = folder.path().join("captured");
    std::fs::create_dir(&captured).unwrap();
    for name in ["git.ops.csv.zst", "git.files.csv.zst"] {
        let there = format!("{}/../../traces/{name}", env!("CARGO_MANIFEST_DIR"));
        std::fs::copy(there, captured.join(name)).unwrap();
    }
    let run = |more: &[&str]| {
        let arguments = ["reproduce", "oftl-captured", "--quiet", "--json"];
        let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
        command.args(arguments).args(more).env("NANDSCAPE_TRACES", folder.path()).output().unwrap()
    };
    let whole = run(&[]);
    let document: Value = serde_json::from_slice(&whole.stdout).unwrap();
    let rows = document.as_array().unwrap();
    let verdict = |rows: &[Value], name: &str| {
        rows.iter().find(|row| row["name"] == name).map(|row| row["verdict"].clone()).unwrap()
    };
    for name in ["lowest of four, git", "lowest of all, git"] {
        assert_eq!(verdict(rows, name), "holds", "{name}");
    }
    let skipped = rows.iter().filter(|row| row["note"].as_str().unwrap().starts_with("skipped: "));
    assert_eq!(skipped.count(), 4);
    let spoiled = run(&["--sabotage"]);
    assert_eq!(spoiled.status.code(), Some(0), "{}", String::from_utf8_lossy(&spoiled.stderr));
    let document: Value = serde_json::from_slice(&spoiled.stdout).unwrap();
    assert_eq!(verdict(document.as_array().unwrap(), "lowest of all, git"), "fails");
}
