//! Every `nandscape` command that docs/cache-simulation.md shows runs, on a small trace; and what it says of
//! the JSON is so. Every tag of a source is in docs/sources.md, and no text names what only its authors have.

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn document() -> String {
    std::fs::read_to_string(Path::new(ROOT).join("docs/cache-simulation.md")).unwrap()
}

#[test]
fn the_commands_of_the_document_run() {
    let dir = tempfile::tempdir().unwrap();
    let trace = Path::new(ROOT).join("crates/policies/tests/data/mixed.csv.gz");
    std::fs::copy(trace, dir.path().join("my.csv.gz")).unwrap();
    let mut commands = 0;
    let mut is_inside = false;
    for line in document().lines() {
        if line.starts_with("```") {
            is_inside = !is_inside;
        }
        let Some(arguments) = line.strip_prefix("nandscape ").filter(|_| is_inside) else { continue };
        let output = Command::new(env!("CARGO_BIN_EXE_nandscape"))
            .args(arguments.split_whitespace())
            .current_dir(dir.path())
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "nandscape {arguments}: {stderr}");
        assert!(!output.stdout.is_empty(), "nandscape {arguments} printed nothing");
        commands += 1;
    }
    assert!(commands >= 6, "the document shows only {commands} commands");
    assert!(dir.path().join("curves.html").exists() && dir.path().join("curves.csv").exists());
}

#[test]
fn the_document_names_every_field_and_flag() {
    let args = ["cache", "simulate", "zipf-cdf:ranks=10,count=10", "--size", "4b", "--json"];
    let output = Command::new(env!("CARGO_BIN_EXE_nandscape")).args(args).output().unwrap();
    let rows: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = document();
    for key in rows[0].as_object().unwrap().keys().filter(|key| *key != "workload") {
        assert!(text.contains(&format!("`{key}`")), "{key} is not in the document");
    }
    for flag in [
        "--size",
        "--block",
        "--eviction",
        "--preset",
        "--objects",
        "--jobs",
        "--sample",
        "--csv",
        "--report",
    ] {
        assert!(text.contains(flag), "{flag} is not in the document");
    }
    // In prose, `arc` and `clock` are in other words too.
    let rows = text.lines().filter(|line| line.starts_with('|'));
    let cells: Vec<&str> = rows.flat_map(|row| row.split(['|', ',', '`', ' '])).collect();
    for info in nandscape_policies::eviction::EVICTIONS {
        assert!(cells.contains(&info.name), "{} is in no table of the document", info.name);
    }
}

/// Text files of the project with their paths in it, but for the inputs that fuzzing found.
fn texts() -> Vec<(String, String)> {
    let roots = ["README.md", "CHANGELOG.md", "Makefile", "configs", "crates", "docs", "fuzz", "tests"];
    let mut left: Vec<PathBuf> = roots.iter().map(|name| Path::new(ROOT).join(name)).collect();
    let mut texts = Vec::new();
    while let Some(path) = left.pop() {
        if path.is_dir() {
            let skipped = ["target", "corpus", "__pycache__"];
            let entries = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap());
            let kept = entries.filter(|entry| !skipped.iter().any(|name| entry.file_name() == *name));
            left.extend(kept.map(|entry| entry.path()));
        } else if let Ok(text) = std::fs::read_to_string(&path) {
            texts.push((path.strip_prefix(ROOT).unwrap().display().to_string(), text));
        }
    }
    assert!(texts.len() > 500, "only {} files", texts.len());
    texts
}

/// The tags that rows of docs/sources.md explain.
fn listed_tags() -> BTreeSet<String> {
    let text = std::fs::read_to_string(Path::new(ROOT).join("docs/sources.md")).unwrap();
    let cells = text.lines().filter_map(|line| line.strip_prefix("| `[")?.split_once("]` |"));
    let tags: BTreeSet<String> = cells.map(|(tag, _)| tag.to_owned()).collect();
    for tag in &tags {
        let source = tag.split(' ').next().unwrap();
        assert!(text.lines().any(|line| line == format!("## {source}")), "{source} has no section");
    }
    tags
}

/// What stands in brackets on a line and is or looks like a tag, without the brackets. A tag that goes on on
/// the next line comes without its end.
fn tags_of<'a>(line: &'a str, sources: &BTreeSet<&str>) -> Vec<&'a str> {
    let is_place = |place: &str| {
        let number = place.split(' ').next().unwrap_or_default();
        let is_number = number.contains('.') && number.chars().all(|c| c.is_ascii_digit() || c == '.');
        is_number || ["fig ", "table ", "section "].iter().any(|word| place.starts_with(word))
    };
    let mut tags = Vec::new();
    for (at, _) in line.match_indices('[') {
        let rest = &line[at + 1..];
        let word = rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').next().unwrap_or_default();
        let (inner, after) = rest.split_once(']').unwrap_or((rest, ""));
        // `(`: a link.
        if after.starts_with('(') || !word.starts_with(|c: char| c.is_ascii_alphabetic()) {
            continue;
        }
        let place = inner[word.len()..].strip_prefix(' ');
        let is_known = sources.contains(word) && (inner == word || place.is_some());
        if is_known || place.is_some_and(|place| word.ends_with("-article") || is_place(place)) {
            tags.push(inner);
        }
    }
    tags
}

#[test]
fn every_tag_of_a_source_is_listed() {
    let listed = listed_tags();
    let sources: BTreeSet<&str> = listed.iter().map(|tag| tag.split(' ').next().unwrap()).collect();
    let mut used = BTreeSet::new();
    let mut unknown = Vec::new();
    for (path, text) in texts() {
        for (number, line) in text.lines().enumerate() {
            for tag in tags_of(line, &sources) {
                if !listed.contains(tag) {
                    unknown.push(format!("{path}:{}: [{tag}]", number + 1));
                } else if path != "docs/sources.md" {
                    used.insert(tag.to_owned());
                }
            }
        }
    }
    assert!(unknown.is_empty(), "no rows in docs/sources.md:\n{}", unknown.join("\n"));
    let unused: Vec<_> = listed.difference(&used).collect();
    assert!(unused.is_empty(), "rows of docs/sources.md that nothing uses: {unused:?}");
}

#[test]
fn tags_are_found_in_comments_strings_and_prose() {
    let sources = BTreeSet::from(["thesis", "FStream"]);
    // Written with other brackets, since the test above reads this file too.
    let of = |line: &str| {
        let line = line.replace('<', "[").replace('>', "]");
        tags_of(&line, &sources).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(of("/// As in <thesis 9.9>, <FStream>."), ["thesis 9.9", "FStream"]);
    assert_eq!(of("source: \"<tesis fig 9.9>; fitted\","), ["tesis fig 9.9"]);
    assert_eq!(of("# <thesis fig"), ["thesis fig"]);
    assert_eq!(of("<an-article summary> of <XYZ99 table 9>"), ["an-article summary", "XYZ99 table 9"]);
    assert!(of("see <thesis>(thesis.html), values<thesis(1)?, 2>, <u8; 4>").is_empty());
}

#[test]
fn no_text_names_what_only_its_authors_have() {
    // A letter, perhaps a digit, a hyphen, two or three digits.
    let is_number_of_row = |word: &str| {
        let Some((head, digits)) = word.split_once('-') else { return false };
        let mut head = head.chars();
        head.next().is_some_and(|c| c.is_ascii_uppercase())
            && head.next().is_none_or(|c| c.is_ascii_digit())
            && head.next().is_none()
            && (2..=3).contains(&digits.len())
            && digits.chars().all(|c| c.is_ascii_digit())
    };
    let notes = ["design", "requirements", "interfaces", "caching", "simulators", "nvm-sets-model"];
    let mut found = Vec::new();
    for (path, text) in texts() {
        for (number, line) in text.lines().enumerate() {
            let words = line.split(|c: char| !c.is_ascii_alphanumeric() && !['-', '.', '/'].contains(&c));
            let words: Vec<&str> = words.map(|word| word.trim_end_matches('.')).collect();
            let is_note = |word: &str| {
                let name = word.rsplit('/').next().and_then(|name| name.strip_suffix(".md"));
                name.is_some_and(|name| notes.contains(&name))
                    || name == Some("thesis") && !word.ends_with("reproductions/thesis.md")
            };
            let is_numbered = |pair: &[&str]| {
                ["decision", "contract"].contains(&pair[0].to_lowercase().as_str())
                    && pair[1].parse::<u32>().is_ok()
            };
            let is_named = words.iter().any(|word| is_number_of_row(word) || is_note(word));
            if is_named || words.windows(2).any(is_numbered) {
                found.push(format!("{path}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
