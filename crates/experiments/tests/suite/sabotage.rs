//! Every rule that an experiment keeps fails where the experiment is spoiled on purpose. What a spoiled run
//! cannot turn, and what the quick size does not keep, is listed here with its reason.

use nandscape_experiments::reproduce::{Context, REPRODUCTIONS, Reproduction, Sabotage};
use nandscape_report::{ReproductionRow, Verdict};

/// Experiments without a sabotage.
const UNSPOILED: [(&str, &str); 6] = [
    ("thesis-fig-2.2", "every row is an input or calibrated"),
    ("thesis-fig-2.3", "every row is an input"),
    ("thesis-fig-2.5", "every row is an input"),
    ("thesis-fig-2.6", "every row is an input"),
    ("thesis-fig-2.7", "every row is an input"),
    ("streams-captured", "needs recordings that are not in the tree"),
];

/// Experiments whose sabotage is tested by the command line, which can be given the recordings that are in
/// the tree.
const ELSEWHERE: [&str; 1] = ["oftl-captured"];

/// Rules that the quick size cannot decide; those of the full size are in docs/reproductions. Experiment, row
/// and reason.
const UNDECIDED: [(&str, &str, &str); 3] = [
    ("pm963", "writes over time, 90 % full", "so small a drive copies less, and so falls less"),
    ("pm963", "random reads, the six jobs together, 78 % full", "copies less, so that more reads find room"),
    ("nvm-sets", "p99.9999 of reads", "150,000 reads have no such percentile: it is the longest of them"),
];

/// Rules that the sabotage of their experiment leaves kept. Experiment, part of the row's name and reason.
const UNTURNED: [(&str, &str, &str); 6] = [
    (
        "thesis-fig-4.4",
        "slope of the first half over the whole's",
        "the load is the same all along, so that no layer treats its halves unequally",
    ),
    ("drives", "a cliff from fresh to steady random writes", "every drive that collects has one"),
    ("zn540", "", "only what the spoiled run changes can turn: see its `turns`"),
    (
        "zone-size",
        "zones over all dies together are written alike, whatever their size",
        "the spoiled run makes all zones like these",
    ),
    ("atc21-", "", "only what the spoiled run changes can turn: see their `turns`"),
    ("oftl-", "", "only what the spoiled run changes can turn: see their `turns`"),
];

/// Experiments that are spoiled together, in a test of their own, since their runs take long or are shared.
const GROUPS: [&[&str]; 5] = [
    &["thesis-"],
    &["streams-", "pm963"],
    &["nvm-sets"],
    &["cache-"],
    &["drives", "zone-size", "zn540", "atc21-", "oftl-"],
];

fn of_group(group: usize) -> impl Iterator<Item = &'static Reproduction> {
    let is_in = move |r: &&Reproduction| GROUPS[group].iter().any(|prefix| r.info.name.starts_with(prefix));
    REPRODUCTIONS.iter().filter(is_in)
}

fn is_kept(row: &ReproductionRow) -> bool {
    row.verdict.is_some_and(Verdict::is_good)
}

fn spoil(group: usize) {
    let context = crate::quick(true);
    for reproduction in of_group(group).filter(|one| !ELSEWHERE.contains(&one.info.name)) {
        check(reproduction, &context);
    }
}

fn check(reproduction: &Reproduction, context: &Context<'_>) {
    let name = reproduction.info.name;
    let Some(sabotage) = reproduction.sabotage else { return };
    let clean = crate::rows(name);
    let spoiled = reproduction.run(context).unwrap();
    assert_eq!(sabotage.survivors(&spoiled), [""; 0], "{name}: {}", sabotage.what);
    assert!(clean.iter().any(is_kept), "{name}: no rule is kept as it is");
    if sabotage.turns != Sabotage::EVERY_RULE {
        assert_eq!(sabotage.survivors(&clean), sabotage.turns, "{name}: kept as it is");
    }
    let kept: Vec<&str> = spoiled.iter().filter(|row| is_kept(row)).map(|row| row.name.as_str()).collect();
    for row in clean.iter().filter(|row| is_kept(row)).filter(|row| kept.contains(&row.name.as_str())) {
        let is_listed = UNTURNED.iter().any(|(id, part, _)| name.starts_with(id) && row.name.contains(part));
        assert!(is_listed, "{name}, {}: kept when spoiled", row.name);
    }
    for (_, row, _) in UNDECIDED.iter().filter(|(id, ..)| *id == name) {
        assert!(clean.iter().any(|other| other.name == *row && other.verdict.is_some()), "{name}: {row}");
    }
}

#[test]
fn every_experiment_has_a_sabotage_and_a_test_or_a_reason() {
    for reproduction in REPRODUCTIONS.iter() {
        let name = reproduction.info.name;
        let groups = (0..GROUPS.len()).filter(|group| of_group(*group).any(|r| r.info.name == name));
        assert_eq!(groups.count(), 1, "{name}");
        let is_listed = UNSPOILED.iter().any(|(id, _)| *id == name);
        assert_eq!(reproduction.sabotage.is_none(), is_listed, "{name}");
    }
}

#[test]
fn rules_of_the_thesis_fail_when_spoiled() {
    spoil(0);
    for (id, _) in UNSPOILED.iter().filter(|(id, _)| id.starts_with("thesis-")) {
        assert!(crate::rows(id).iter().all(|row| row.verdict.is_none()), "{id}");
    }
}

#[test]
fn rules_of_streams_fail_when_spoiled() {
    spoil(1);
}

#[test]
fn rules_of_nvm_sets_fail_when_spoiled() {
    spoil(2);
}

#[test]
fn rules_of_caches_fail_when_spoiled() {
    spoil(3);
}

#[test]
fn rules_of_drives_and_files_fail_when_spoiled() {
    spoil(4);
}
