//! Results of earlier runs: their labels, and the notes of trust that concern several of them.

use nandscape_sim::RunResult;
use nandscape_sim::result::TrustNote;
use nandscape_sim::trust::{ALIKE, OTHER_REQUESTS, OTHER_SETTINGS};
use nandscape_stack::{Past, Run, past_runs};
use serde_json::{Value, json};

fn past(file: &str, spec: &str, config: Value) -> Past {
    let mut result = RunResult::default();
    result.run.config = config;
    spec.clone_into(&mut result.workload.spec);
    Past { file: file.to_owned(), result }
}

fn names(documents: Vec<Past>) -> Vec<String> {
    past_runs(documents).into_iter().map(|run| run.label).collect()
}

fn page_map(op: f64) -> Value {
    json!({"ftl": {"kind": "page-map", "op": op}, "workload": {"seed": 42}})
}

#[test]
fn labels_are_those_of_the_configuration_and_then_those_of_the_file() {
    let plain = || past("a.json", "w", page_map(0.28));
    assert_eq!(names(vec![plain()]), ["page-map"]);
    assert_eq!(
        names(vec![plain(), past("b.json", "w", page_map(0.07))]),
        ["page-map, ftl.op=0.28", "page-map, ftl.op=0.07"]
    );
    assert_eq!(
        names(vec![plain(), past("x/b.json", "w", page_map(0.28))]),
        ["page-map (a.json)", "page-map (b.json)"]
    );
    assert_eq!(
        names(vec![plain(), past("x/a.json", "w", page_map(0.28))]),
        ["page-map (a.json)", "page-map (x/a.json)"]
    );
    assert_eq!(names(vec![plain(), plain()]), ["page-map (a.json, run 1)", "page-map (a.json, run 2)"]);
    assert_eq!(names(vec![plain(), past("b.json", "v", page_map(0.28))]), ["page-map | w", "page-map | v"]);
}

#[test]
fn configurations_that_are_not_known_have_labels_too() {
    let later = json!({"ftl": {"kind": "page-map", "later": [1]}, "later": {"x": null}});
    for (config, label) in
        [(later, "page-map"), (json!({"cache": {"preset": 3}}), "run"), (json!({}), "page-map")]
    {
        assert_eq!(names(vec![past("a.json", "w", config)]), [label]);
    }
}

#[test]
fn devices_with_many_other_keys_are_told_by_their_presets_or_files() {
    let device = |preset: Option<&str>, n: u64| {
        let mut config = page_map(0.28);
        config["device"] =
            json!({"channels": n, "dies_per_channel": n, "blocks_per_plane": 64 * n, "endurance": n});
        if let Some(preset) = preset {
            config["device"]["preset"] = preset.into();
        }
        config
    };
    let two = |one, other| names(vec![past("a", "w", device(one, 1)), past("b", "w", device(other, 2))]);
    assert_eq!(
        two(Some("thesis"), Some("generic-tlc")),
        ["page-map, device.preset=thesis", "page-map, device.preset=generic-tlc"]
    );
    assert_eq!(two(None, None), ["page-map (a)", "page-map (b)"]);
}

#[test]
fn a_drive_stands_for_its_sheet_and_not_for_what_was_changed_of_it() {
    let run = |preset: &str, program: &str, op: f64| {
        let mut config = page_map(op);
        let channels = if preset == "thesis" { 4 } else { 8 };
        let timing = json!({"program": program, "read": format!("{channels}us")});
        config["device"] = json!({"preset": preset, "channels": channels, "timing": timing});
        past("a", "w", config)
    };
    let plain = ["thesis", "generic-tlc"].map(|preset| [0.07, 0.28].map(|op| run(preset, "1ms", op)));
    assert_eq!(
        names(plain.into_iter().flatten().collect()),
        [
            "page-map, device.preset=thesis, ftl.op=0.07",
            "page-map, device.preset=thesis, ftl.op=0.28",
            "page-map, device.preset=generic-tlc, ftl.op=0.07",
            "page-map, device.preset=generic-tlc, ftl.op=0.28",
        ]
    );
    let changed =
        vec![run("thesis", "1ms", 0.07), run("thesis", "2ms", 0.07), run("generic-tlc", "1ms", 0.07)];
    assert_eq!(
        names(changed),
        [
            "page-map, device.preset=thesis, device.timing.program=1ms",
            "page-map, device.preset=thesis, device.timing.program=2ms",
            "page-map, device.preset=generic-tlc, device.timing.program=1ms",
        ]
    );
}

#[test]
fn settings_that_no_label_names_are_told() {
    let with = |kind: &str, precondition: &str, depth: u32| {
        let mut config = page_map(0.28);
        config["ftl"] = json!({"kind": kind});
        config["workload"] = json!({"precondition": precondition, "depth": depth});
        config
    };
    let notes = |one: Value, other: Value| {
        let runs = past_runs(vec![past("a", "w", one), past("b", "w", other)]);
        let notes = runs[0].result.trust.iter().filter(|note| note.check == OTHER_SETTINGS.name);
        notes.map(|note| note.message.clone()).collect::<Vec<_>>()
    };
    let found = notes(with("page-map", "fill", 4), with("pm-gcl", "none", 4));
    assert_eq!(
        found,
        ["the runs of this workload differ in other settings too: workload.precondition (fill, none)"]
    );
    // Those of the same layer have them in their labels.
    assert!(notes(with("page-map", "fill", 4), with("page-map", "none", 4)).is_empty());
    assert!(notes(with("page-map", "fill", 4), with("pm-gcl", "fill", 4)).is_empty());
}

#[test]
fn notes_on_several_runs_are_made_anew() {
    let old = |check: &str| TrustNote { check: check.to_owned(), message: "of old".to_owned() };
    let mut documents = vec![past("a", "w", page_map(0.28)), past("b", "w", page_map(0.07))];
    documents[0].result.trust = vec![old("no-gc"), old(ALIKE.name)];
    documents[1].result.run.workload_hash = "other".to_owned();
    let checks = |run: &Run| run.result.trust.iter().map(|note| note.check.clone()).collect::<Vec<_>>();
    assert_eq!(checks(&past_runs(documents[..1].to_vec())[0]), ["no-gc", ALIKE.name]);
    let runs = past_runs(documents);
    assert_eq!(checks(&runs[0]), ["no-gc", OTHER_REQUESTS.name, ALIKE.name]);
    assert!(runs[0].result.trust[2].message.contains("ftl.op=0.28, page-map, ftl.op=0.07"));
    assert_eq!(checks(&runs[1]), [OTHER_REQUESTS.name, ALIKE.name]);
}
