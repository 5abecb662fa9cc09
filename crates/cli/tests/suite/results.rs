//! Result documents that live on: every kind of run gives a document that the schema describes and that
//! docs/formats/result.md explains, key by key; `report` reads them back.

use nandscape_core::cached::BypassCount;
use nandscape_core::{
    FdpReport, MapCacheStats, ObjectFlashReport, ObjectReport, OpCounts, PlacementReport, SlcStatus,
    StreamReport,
};
use nandscape_report::{Fault, RESULT_SCHEMA, faults};
use nandscape_sim::RunResult;
use nandscape_sim::result::{
    CacheResult, ChunksResult, DirectionResult, JobResult, LatencyLevel, LatencyPoint, LatencySummary,
    PolicyResult, PolicyStream, RunError, SeedsResult, SetResult, Spread, StateSource, SyncResult, TrustNote,
    ZoneShown, ZonesResult,
};
use nandscape_sim::zones::{ZoneColumn, ZoneHistory};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Output};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

const JOB: &str = "[global]\nsize=1m\nbs=4k\nnumber_ios=200\n[writer]\ndescription=writes\nrw=randwrite\n\
                   filename=ns1\nfsync=16\n[reader]\nrw=randread\nfilename=ns1\n";

const ZONES: &str = "ts_us,op,offset,len\n1,O,0,0\n2,A,0,16384\n3,N,0,0\n4,X,0,0\n";

const SMALL: &str = "[device]\nblocks_per_plane = 16\npages_per_block = 32\n";

fn run(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
    command.current_dir(folder).env("XDG_RUNTIME_DIR", folder).env("LC_ALL", "C.UTF-8");
    command.args(args).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("small.toml"), SMALL).unwrap();
    std::fs::write(folder.path().join("two.fio"), JOB).unwrap();
    std::fs::write(folder.path().join("zones.csv"), ZONES).unwrap();
    folder
}

/// Documents of a command, which may fail in the way that a failing run does.
fn documents(folder: &Path, args: &[&str]) -> Vec<Value> {
    let output = run(folder, &[args, &["--json", "-q"]].concat());
    match serde_json::from_slice(&output.stdout) {
        Ok(Value::Array(documents)) => documents,
        Ok(document) => vec![document],
        Err(error) => panic!("{args:?}: {error}: {}", stderr(&output)),
    }
}

/// Documents of every kind of run.
fn of_every_kind(folder: &Path) -> Vec<(String, Value)> {
    let full = Path::new(ROOT).join("tests/golden/thesis/full.csv");
    let load = "uniform:count=2k,span=50%,bs=16k";
    let files = "lsm:span=16MiB,turns=0.5";
    let kinds: [(&str, Vec<&str>); 16] = [
        ("plain", vec!["replay", load, "--detail", "--precondition", "fill", "--config", "small.toml"]),
        ("slc", vec!["replay", load, "--device", "client-tlc", "--scale", "1/64"]),
        ("map on flash", vec!["replay", load, "--config", "small.toml", "--set", "ftl.map_cache=5%"]),
        ("compare", vec!["compare", load, "--ftl", "page-map,pm-gcl", "--config", "small.toml"]),
        ("seeds", vec!["compare", load, "--seed", "1..3", "--ftl", "page-map", "--config", "small.toml"]),
        ("jobs", vec!["replay", "two.fio", "--config", "small.toml"]),
        ("cache", vec!["compare", load, "--cache", "nandscape,flashcache,none", "--config", "small.toml"]),
        ("zones", vec!["replay", load, "--stack", "zone-map", "--scale", "1/16"]),
        ("raw zones", vec!["replay", "zones.csv", "--stack", "zone", "--scale", "1/16"]),
        ("f2fs", vec!["replay", files, "--stack", "f2fs-zones", "--scale", "1/64"]),
        ("objects", vec!["replay", files, "--stack", "oftl", "--scale", "1/64"]),
        (
            "files",
            vec!["replay", files, "--stack", "zone-files", "--scale", "1/64", "--write", "html=z.html"],
        ),
        ("chunks", vec!["replay", load, "--stack", "pblk", "--scale", "1/16"]),
        ("placement", vec!["replay", load, "--stack", "fdp", "--config", "small.toml"]),
        (
            "policy",
            vec![
                "replay",
                load,
                "--set",
                "ftl.streams=4",
                "--set",
                "host.policy=autostream-mq",
                "--config",
                "small.toml",
            ],
        ),
        ("failing", vec!["replay", full.to_str().unwrap(), "--device", "thesis", "--ftl", "pm-gcl"]),
    ];
    let mut all = Vec::new();
    for (name, args) in kinds {
        all.extend(documents(folder, &args).into_iter().map(|document| (name.to_owned(), document)));
    }
    all
}

/// A document with everything that a document can have, so that no key needs a run that has it.
fn with_everything() -> Value {
    let mut result = RunResult {
        error: Some(RunError { request: 1, message: "full".into() }),
        placement: Some(PlacementReport {
            streams: vec![StreamReport::default()],
            fdp: Some(FdpReport::default()),
            ..PlacementReport::default()
        }),
        trust: vec![TrustNote { check: "no-gc".into(), message: "nothing".into() }],
        notes: vec!["a note".into()],
        ..RunResult::default()
    };
    result.run.seeds =
        Some(SeedsResult { used: vec![1], spread: [("waf".to_owned(), Spread::default())].into() });
    result.run.schema = 1;
    result.run.config = Value::Object(Map::new());
    result.run.state = Some(StateSource { file: "drive.state".into(), precondition: "fill".into() });
    result.run.job_defaults.insert("bs".into(), "4k".into());
    result.flash.by_cause.insert("host".into(), OpCounts::default());
    result.layer.slc = Some(SlcStatus::default());
    result.layer.map_cache = Some(MapCacheStats::default());
    result.wear.per_block = Some(vec![1]);
    (result.latency_ns.flush, result.latency_ns.zone) =
        (Some(LatencySummary::default()), Some(LatencySummary::default()));
    let point = || vec![LatencyPoint::default()];
    let direction = || DirectionResult { percentiles: point(), ..DirectionResult::default() };
    let policy = || Some(PolicyResult { streams: vec![PolicyStream::default()], ..PolicyResult::default() });
    result.jobs = vec![JobResult {
        description: "a job".into(),
        policy: policy(),
        latency_levels: vec![LatencyLevel::default()],
        read: direction(),
        write: direction(),
        trim: direction(),
        sync: SyncResult { percentiles: point(), ..SyncResult::default() },
        ..JobResult::default()
    }];
    result.sets = vec![SetResult {
        set: 0,
        namespaces: vec!["ns1".into()],
        host: result.host,
        flash: result.flash.clone(),
        waf: None,
        waf_bytes: None,
        gc: result.layer.gc,
        wear: result.wear.clone(),
        cost: result.cost,
    }];
    let mut cache = CacheResult::default();
    cache.report.bypass.insert("mode".into(), BypassCount::default());
    cache.report.disks.push(result.host);
    result.cache = Some(cache);
    let column = ZoneColumn {
        valid: vec![Some(1), None],
        owners: "m".into(),
        lifetimes: "0".into(),
        ..ZoneColumn::default()
    };
    result.between.zones = Some(ZonesResult {
        shown: vec![ZoneShown { zone: 0, state: "empty".into(), written: 0.0, valid: Some(0.0) }],
        history: Some(ZoneHistory { columns: vec![column], ..ZoneHistory::default() }),
        ..ZonesResult::default()
    });
    result.between.chunks = Some(ChunksResult::default());
    let on_flash = Some(ObjectFlashReport::default());
    result.between.objects = Some(ObjectReport { on_flash, ..ObjectReport::default() });
    result.between.policy = policy();
    serde_json::to_value(&result).unwrap()
}

/// Every key of a document but those inside `config`, with the path of tables above it; names in tables whose
/// keys are free are left out.
fn keys(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    const FREE: [&str; 9] = [
        "config",
        "job_defaults",
        "flash.by_cause",
        "sets.flash.by_cause",
        "jobs.options",
        "cache.bypass",
        "zones.states",
        "chunks.states",
        "seeds.spread",
    ];
    match value {
        Value::Array(items) => items.iter().for_each(|item| keys(item, path, found)),
        Value::Object(table) => {
            for (key, value) in table {
                let at = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                let is_free = FREE.contains(&path);
                if !is_free {
                    found.insert(at.clone());
                }
                if at != "config" {
                    keys(value, if is_free { path } else { &at }, found);
                }
            }
        }
        _ => {}
    }
}

/// The tables of docs/formats/result.md: the keys of each, by its heading.
fn explained() -> BTreeMap<String, Vec<String>> {
    let text = std::fs::read_to_string(Path::new(ROOT).join("docs/formats/result.md")).unwrap();
    let mut tables: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut heading = String::new();
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            heading = title.replace('`', "");
        } else if let Some((key, _)) = line.strip_prefix("| `").and_then(|row| row.split_once("` |")) {
            tables.entry(heading.clone()).or_default().push(key.to_owned());
        }
    }
    tables
}

fn check(name: &str, document: &Value, in_text: &BTreeSet<String>) {
    let faults: Vec<String> = faults(document).iter().map(Fault::to_string).collect();
    assert!(faults.is_empty(), "{name}: docs/formats/result.schema.json: {}", faults.join("; "));
    let mut found = BTreeSet::new();
    keys(document, "", &mut found);
    for path in found {
        let key = path.rsplit('.').next().unwrap_or_default();
        assert!(in_text.contains(key), "{name}: {path} is not in docs/formats/result.md");
    }
}

#[test]
fn every_kind_of_result_is_as_the_schema_and_its_document_say() {
    let folder = folder();
    let in_text: BTreeSet<String> = explained().into_values().flatten().collect();
    let all = of_every_kind(folder.path());
    for (name, document) in &all {
        check(name, document, &in_text);
    }
    let mut found = BTreeSet::new();
    for (_, document) in &all {
        keys(document, "", &mut found);
    }
    // The kinds are what they are meant to be.
    for key in [
        "jobs.read",
        "sets.set",
        "placement.fdp",
        "cache.counters",
        "zones.shown",
        "zones.history",
        "chunks.states",
        "objects.on_flash",
        "policy.streams",
        "error.request",
        "wear.per_block",
        "latency_ns.zone",
        "trust.check",
        "seeds.spread",
    ] {
        assert!(found.contains(key), "no kind of run has {key}");
    }
}

#[test]
fn every_key_is_in_the_schema_and_in_its_document_and_in_no_other() {
    let in_text: BTreeSet<String> = explained().into_values().flatten().collect();
    let document = with_everything();
    check("everything", &document, &in_text);
    // And the schema has no key that no document can have.
    let mut found = BTreeSet::new();
    keys(&document, "", &mut found);
    let found: BTreeSet<&str> = found.iter().filter_map(|path| path.rsplit('.').next()).collect();
    let schema: Value = serde_json::from_str(RESULT_SCHEMA).unwrap();
    let mut tables: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, table) in schema["$defs"].as_object().unwrap() {
        let keys: Vec<String> = table["properties"].as_object().unwrap().keys().cloned().collect();
        for key in &keys {
            assert!(found.contains(key.as_str()), "{name}.{key} is in the schema and in no document");
        }
        tables.insert(table["title"].as_str().unwrap().to_owned(), keys);
    }
    // Table by table, key by key, in the same order.
    assert_eq!(tables, explained(), "docs/formats/result.schema.json (left) and result.md (right)");
}

#[test]
fn every_kind_of_result_reads_back_as_it_was() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    for (number, (name, document)) in of_every_kind(folder.path()).into_iter().enumerate() {
        let file = format!("{number}.json");
        std::fs::write(at(&file), document.to_string()).unwrap();
        let again = run(folder.path(), &["report", &file, "--json", "-q"]);
        assert_eq!(serde_json::from_slice::<Value>(&again.stdout).unwrap(), document, "{name}");
        assert_eq!(again.status.success(), document["error"].is_null(), "{name}: {}", stderr(&again));
        let table = run(folder.path(), &["report", &file, "--report", "again.html", "--csv", "again.csv"]);
        assert!(stdout(&table).contains("host writes"), "{name}: {}", stdout(&table));
        let html = std::fs::read_to_string(at("again.html")).unwrap();
        assert!(html.trim_end().ends_with("</html>"), "{name}");
        std::fs::remove_file(at("again.html")).unwrap();
    }
}

/// Two results and the folder that they are in: `a.json` and `b.json`, with 7 and 28 % over-provisioning.
fn two() -> tempfile::TempDir {
    let folder = folder();
    for (name, op) in [("a.json", "0.07"), ("b.json", "0.28")] {
        let set = format!("ftl.op={op}");
        let args = ["replay", "zipf:count=3k,span=96MiB,bs=16k", "--config", "small.toml", "--set", &set];
        let output = run(folder.path(), &[&args[..], &["--json", "-q"]].concat());
        std::fs::write(folder.path().join(name), output.stdout).unwrap();
    }
    folder
}

#[test]
fn results_of_several_files_are_compared() {
    let folder = two();
    let output = run(folder.path(), &["report", "a.json", "b.json", "--report", "x.html", "--csv", "x.csv"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let table = stdout(&output);
    assert!(table.contains("page-map, ftl.op=0.07") && table.contains("page-map, ftl.op=0.28"), "{table}");
    assert!(table.contains("WAF"), "{table}");
    let html = std::fs::read_to_string(folder.path().join("x.html")).unwrap();
    assert!(html.contains("page-map, ftl.op=0.28") && html.trim_end().ends_with("</html>"));
    let csv = std::fs::read_to_string(folder.path().join("x.csv")).unwrap();
    assert_eq!(csv.lines().count(), 3);

    // A list, packed, beside a document from a pipe.
    let list = run(folder.path(), &["report", "a.json", "b.json", "--json"]).stdout;
    let documents: Vec<Value> = serde_json::from_slice(&list).unwrap();
    assert_eq!(documents.len(), 2);
    let packed = zstd::encode_all(&list[..], 1).unwrap();
    std::fs::write(folder.path().join("list.json.zst"), packed).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
    command.current_dir(folder.path()).args(["report", "list.json.zst", "-"]);
    command.stdin(std::fs::File::open(folder.path().join("a.json")).unwrap());
    let three = stdout(&command.output().unwrap());
    assert!(three.contains("page-map, ftl.op=0.07 (list.json.zst)"), "{three}");
    assert!(three.contains("page-map, ftl.op=0.07 (standard input)"), "{three}");
    assert!(three.contains("indistinguishable: "), "{three}");
    let alone = run(folder.path(), &["report", "list.json.zst"]);
    assert!(!stdout(&alone).contains("host writes") && stdout(&alone).contains("ftl.op=0.28"));
}

#[test]
fn what_is_no_result_is_refused_and_nothing_is_written() {
    let folder = two();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let good = std::fs::read_to_string(folder.path().join("a.json")).unwrap();
    write("empty.json", "");
    write("cut.json", &good[..good.len() / 2]);
    write("other.json", "[{\"row\": 1}]");
    write("later.json", &good.replacen("\"schema\": 1", "\"schema\": 2", 1));
    write("lacks.json", &good.replacen("\"write_pages\"", "\"wrote_pages\"", 1));
    write(
        "wrong.json",
        &good.replacen("\"erases_max\": ", "\"erases_max\": \"\\u001b[31m\u{202e}\", \"x\": ", 1),
    );
    let fails = |args: &[&str], code: i32, expected: &str| {
        let output = run(folder.path(), &[&["report"], args, &["--report", "x.html"]].concat());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(expected) && !said.contains('\u{1b}'), "{args:?}: {said}");
        assert!(output.stdout.is_empty() && !folder.path().join("x.html").exists(), "{args:?}");
    };
    fails(&["a.json", "absent.json"], 1, "absent.json: cannot read: No such file");
    fails(&["."], 1, ".: cannot read: ");
    fails(&["empty.json"], 1, "empty.json: line 1, column 0: EOF");
    fails(&["a.json", "cut.json"], 1, "cut.json: line ");
    fails(&["other.json"], 1, "other.json: no key 'schema': expected a result document");
    fails(&["later.json"], 1, "later.json: schema = 2: expected 1");
    fails(&["lacks.json"], 1, "lacks.json: host.write_pages is missing: expected an integer");
    fails(&["wrong.json"], 1, "wrong.json: wear.erases_max: expected an integer from 0 on, found");
    fails(&["small.toml"], 1, "small.toml: line 1, column 2");
    fails(&["-", "-"], 2, "expected it once");
    fails(&["a.json", "--series", "s.parquet"], 2, "parquet (s.parquet) holds the series over time");
    fails(&["a.json", "--write", "parquet=s.parquet"], 2, "expected --series at replay or compare");
    fails(&["a.json", "--detail"], 2, "--detail belongs to a run");
    fails(&[], 2, "<FILE>");
}
