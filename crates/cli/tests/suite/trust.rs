//! How far results can be trusted: each check of a run is made to find something, and to find nothing; and a
//! device that fits its trace.

use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output};

const SMALL: &str = "[device]\nchannels = 2\ndies_per_channel = 2\nplanes_per_die = 1\nblocks_per_plane = 64\n\
                     pages_per_block = 16\npage = \"4KiB\"\nsector = \"4KiB\"\n";

fn run(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
    command.current_dir(folder).env("XDG_RUNTIME_DIR", folder).env("LC_ALL", "C.UTF-8");
    command.args(args).output().unwrap()
}

/// A folder with `small.toml` and `trace.csv`: so many requests, each at a time in microseconds, with an
/// operation and the number of a page.
fn folder(requests: impl Iterator<Item = (u64, char, u64)>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("small.toml"), SMALL).unwrap();
    let mut trace = "ts_us,op,offset,len\n".to_owned();
    for (at, op, page) in requests {
        writeln!(trace, "{at},{op},{},4096", page * 4096).unwrap();
    }
    std::fs::write(folder.path().join("trace.csv"), trace).unwrap();
    folder
}

fn result(folder: &Path, args: &[&str]) -> Value {
    let args: Vec<&str> = ["replay", "trace.csv", "--config", "small.toml", "-q", "--json"]
        .iter()
        .chain(args)
        .copied()
        .collect();
    let output = run(folder, &args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Checks that found something.
fn found(result: &Value) -> Vec<String> {
    let Some(notes) = result.get("trust") else { return Vec::new() };
    let of = |note: &Value| note["check"].as_str().unwrap().to_owned();
    notes.as_array().unwrap().iter().map(of).collect()
}

/// A page of the first so many, by the number of a request.
fn scattered(request: u64, pages: u64) -> u64 {
    request.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23) % pages
}

#[test]
fn a_run_that_erased_nothing_says_so_and_has_no_lifetime() {
    let folder = folder((0..2_000).map(|i| (i * 1_000, 'W', scattered(i, 500))));
    let new = result(folder.path(), &[]);
    assert_eq!(found(&new), ["no-gc"]);
    assert!(new["lifetime"]["drive_writes"].is_null(), "{}", new["lifetime"]);
    let full = result(folder.path(), &["--precondition", "fill+uniform:2x"]);
    assert!(found(&full).iter().all(|check| check != "no-gc"), "{:?}", found(&full));
    assert!(full["lifetime"]["drive_writes"].as_f64().unwrap() > 0.0);
}

#[test]
fn reads_of_nothing_and_few_requests_are_told() {
    let folder = folder((0..999).map(|i| (i * 1_000, 'R', i)));
    assert_eq!(found(&result(folder.path(), &[])), ["instant-reads", "few-samples"]);
    assert_eq!(found(&result(folder.path(), &["--precondition", "fill"])), ["few-samples"]);
    assert!(found(&result(folder.path(), &["--precondition", "fill", "--repeat", "2"])).is_empty());
}

#[test]
fn coarse_time_stamps_are_told_where_they_are_followed() {
    // Four at a time, ten milliseconds apart.
    let four = folder((0..2_000).map(|i| (i / 4 * 10_000, 'R', i % 2_000)));
    let fill = ["--precondition", "fill"];
    assert_eq!(found(&result(four.path(), &fill)), ["coarse-time"]);
    assert!(found(&result(four.path(), &[&fill[..], &["--depth", "4"]].concat())).is_empty());
    let single = folder((0..2_000).map(|i| (i * 10_000, 'R', i % 2_000)));
    assert!(found(&result(single.path(), &fill)).is_empty());
}

#[test]
fn requests_that_arrive_faster_than_they_are_done_are_told() {
    // A read each microsecond, of a device that does some 60,000 a second.
    let fast = folder((0..5_000).map(|i| (i, 'R', i % 2_000)));
    let of_fast = result(fast.path(), &["--precondition", "fill"]);
    assert_eq!(found(&of_fast), ["overrun"]);
    let message = of_fast["trust"][0]["message"].as_str().unwrap();
    assert!(message.contains("times the span of their time stamps"), "{message}");
    let slower = result(fast.path(), &["--precondition", "fill", "--time-scale", "40"]);
    assert!(found(&slower).is_empty(), "{:?}", found(&slower));
}

#[test]
fn less_than_a_capacity_written_is_told() {
    let folder = folder((0..1_500).map(|i| (i * 1_000, 'W', scattered(i, 3_000))));
    let before = ["--precondition", "fill+uniform:2x"];
    let short = result(folder.path(), &before);
    assert_eq!(found(&short), ["short"]);
    let message = short["trust"][0]["message"].as_str().unwrap();
    assert!(message.contains("% of the capacity") && message.contains("3 times as long"), "{message}");
    let whole = result(folder.path(), &[&before[..], &["--repeat", "3"]].concat());
    assert!(!found(&whole).contains(&"short".to_owned()), "{:?}", whole["trust"]);
}

#[test]
fn write_amplification_that_has_not_settled_is_told() {
    // From an empty device: at first nothing is collected.
    let folder = folder((0..12_000).map(|i| (i * 1_000, 'W', scattered(i, 3_000))));
    let new = result(folder.path(), &[]);
    assert_eq!(found(&new), ["unsteady"]);
    let steady = result(folder.path(), &["--precondition", "fill+uniform:4x", "--repeat", "4"]);
    assert!(found(&steady).is_empty(), "{:?}", steady["trust"]);
}

#[test]
fn a_device_that_the_run_wears_out_is_told() {
    let folder = folder((0..6_000).map(|i| (i * 1_000, 'W', scattered(i, 3_000))));
    let worn = |endurance: u64, age: u64| {
        let small = format!("{SMALL}endurance = {endurance}\n");
        std::fs::write(folder.path().join("small.toml"), small).unwrap();
        let age = format!("sets.age={age}");
        let more = ["--precondition", "fill+uniform:2x", "--repeat", "4", "--set", &age];
        let result = result(folder.path(), &more);
        let message = |note: &Value| note["message"].as_str().unwrap().to_owned();
        let most = result["wear"]["erases_max"].as_u64().unwrap();
        let notes = result["trust"].as_array().into_iter().flatten();
        (notes.filter(|note| note["check"] == "worn").map(message).next(), most)
    };
    let (none, most) = worn(3_000, 0);
    assert_eq!(none, None);
    // One erase more or less than half.
    let (some, same) = worn(2 * most, 0);
    let expected = format!("a block was erased {most} times");
    assert!(some.is_some_and(|message| message.contains(&expected)), "{expected}");
    assert_eq!((worn(2 * most + 1, 0), same), ((None, most), most));
    // What is behind the blocks counts too, and is said.
    assert_eq!(worn(3_000, 1_499 - most).0, None);
    let (old, _) = worn(3_000, 1_500 - most);
    let expected = format!("a block was erased 1500 times ({} before the run: sets.age)", 1_500 - most);
    assert!(old.is_some_and(|message| message.contains(&expected)), "{expected}");
}

#[test]
fn a_workload_brings_about_its_own_steady_state_before_it_is_counted() {
    let folder = folder((0..3_000).map(|i| (i * 1_000, 'W', scattered(i, 3_000))));
    let notes = |result: &Value| result["notes"].to_string();
    // From an empty device: not before the counted part, and steady in it.
    let steady = result(folder.path(), &["--until", "steady"]);
    assert!(notes(&steady).contains("\"steady: "), "{}", notes(&steady));
    assert_eq!(steady["host"]["writes"], 3_000, "what came before is not counted");
    assert_eq!(found(&steady), ["short"], "{:?}", steady["trust"]);
    // The same writes in the same order: data die as they were written. A generator writes others.
    assert!(notes(&steady).contains("makes write amplification too low"), "{}", notes(&steady));
    let waf = |args: &[&str]| {
        let args =
            [&["replay", "uniform:bs=4k,span=100%,count=6k", "--config", "small.toml", "-q", "--json"], args];
        let result: Value = serde_json::from_slice(&run(folder.path(), &args.concat()).stdout).unwrap();
        assert!(found(&result).is_empty(), "{:?}", result["trust"]);
        result["waf_bytes"].as_f64().unwrap()
    };
    let (own, before) = (waf(&["--until", "steady"]), waf(&["--precondition", "fill+uniform:6x"]));
    assert!(own > 1.5 && (own / before - 1.0).abs() < 0.1, "{own} {before}");
    // A load that writes next to nothing never gets there, and one that reads has nothing to bring about.
    std::fs::write(folder.path().join("trace.csv"), "ts_us,op,offset,len\n0,W,0,4096\n1,R,0,4096\n").unwrap();
    let little = result(folder.path(), &["--until", "steady"]);
    assert!(little["trust"].to_string().contains("never steady: "), "{little}");
    std::fs::write(folder.path().join("trace.csv"), "ts_us,op,offset,len\n0,R,0,4096\n").unwrap();
    let reads = result(folder.path(), &["--until", "steady"]);
    assert!(notes(&reads).contains("writes nothing to flash"), "{}", notes(&reads));
    std::fs::write(folder.path().join("jobs.fio"), "[a]\nrw=write\nbs=4k\nsize=64k\n").unwrap();
    let refused = run(folder.path(), &["replay", "jobs.fio", "--config", "small.toml", "--until", "steady"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && said.contains("workload.until"), "{said}");
    let wrong = run(folder.path(), &["replay", "trace.csv", "--until", "forever"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", String::from_utf8_lossy(&wrong.stderr));
}

#[test]
fn a_condition_that_holds_ends_with_a_status_of_its_own() {
    let folder = folder((0..2_000).map(|i| (i * 1_000, 'W', scattered(i, 500))));
    let replay = |conditions: &[&str]| {
        let given = ["replay", "trace.csv", "--config", "small.toml", "-q"].into_iter();
        let args: Vec<&str> =
            given.chain(conditions.iter().flat_map(|condition| ["--fail-if", *condition])).collect();
        let output = run(folder.path(), &args);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned(), output.stdout.len())
    };
    assert_eq!(replay(&["waf_bytes > 2", "latency_ns.write.p99 > 1s"]).0, Some(0));
    let (code, said, printed) = replay(&["waf_bytes > 2", "waf_bytes >= 1"]);
    assert!(code == Some(3) && said.contains("waf_bytes >= 1: it is 1") && printed > 0, "{code:?} {said}");
    assert_eq!(replay(&["trust > 0"]).0, Some(3), "nothing was erased");
    let (code, said, printed) = replay(&["waf_bytes"]);
    assert!(code == Some(2) && said.contains("expected") && printed == 0, "before anything runs: {said}");
    let (code, said, _) = replay(&["cache.hit_ratio > 1"]);
    assert!(code == Some(1) && said.contains("no number 'cache.hit_ratio'"), "{code:?} {said}");
}

#[test]
fn a_scaled_device_with_few_blocks_is_told() {
    let folder = folder((0..20_000).map(|i| (i * 1_000, 'W', scattered(i, 700))));
    let few = ["--set", "ftl.op=0.1", "--precondition", "fill+uniform:2x"];
    let scaled = result(folder.path(), &[&few[..], &["--scale", "1/4", "--limit", "3000"]].concat());
    assert!(found(&scaled).contains(&"few-blocks".to_owned()), "{:?}", scaled["trust"]);
    let wide = ["--set", "ftl.op=0.1", "--set", "device.channels=8", "--scale", "1/4", "--limit", "300"];
    let message = |args: &[&str]| {
        let result = result(folder.path(), args);
        let notes = result["trust"].as_array().unwrap();
        notes
            .iter()
            .find(|note| note["check"] == "few-blocks")
            .map(|note| note["message"].as_str().unwrap().to_owned())
    };
    let new = message(&wide).unwrap();
    assert!(new.contains("writes to 1 of ") && new.contains("spare blocks"), "nothing is erased: {new}");
    assert_eq!(message(&[&wide[..], &["--set", "ftl.frontiers=4"]].concat()), None, "as it was asked for");
    let whole = result(folder.path(), &few);
    assert!(!found(&whole).contains(&"few-blocks".to_owned()), "{:?}", whole["trust"]);
}

#[test]
fn runs_that_are_alike_are_told_in_every_form() {
    let folder = folder((0..2_000).map(|i| (i * 1_000, 'W', scattered(i, 500))));
    let compare = |more: &[&str]| {
        let base = ["compare", "trace.csv", "--config", "small.toml", "-q", "--ftl", "pm-gcl,pm-gcc"];
        let output = run(folder.path(), &[&base[..], more].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let table = compare(&[]);
    let caution =
        table.lines().position(|line| line.starts_with("caution  all: indistinguishable: pm-gcl, pm-gcc"));
    let head = table.lines().position(|line| line.starts_with("FTL"));
    assert!(caution.is_some() && caution < head, "{table}");
    let csv = compare(&["--write", "csv=out.csv", "--report", "out.html"]);
    assert!(!csv.is_empty());
    let csv = std::fs::read_to_string(folder.path().join("out.csv")).unwrap();
    assert!(csv.lines().nth(1).unwrap().contains("no-gc; indistinguishable"), "{csv}");
    let html = std::fs::read_to_string(folder.path().join("out.html")).unwrap();
    assert!(html.contains("class=\"cautions\"") && html.contains("<strong>All runs</strong>: no-gc"));
}

#[test]
fn a_fitted_device_is_as_full_as_asked_and_collects() {
    let folder = folder((0..40_000).map(|i| (i * 2_000, 'W', scattered(i, 4_000) * 3)));
    for share in [0.5, 0.9] {
        let of = format!("{}%", share * 100.0);
        let fitted = result(folder.path(), &["--fit", &of]);
        // What was touched: every page of the 4,000 at 40,000 draws, nearly.
        let filled = 4_000.0 * 4096.0 / fitted["cost"]["usable_bytes"].as_f64().unwrap();
        assert!(filled <= share && filled > share * 0.95, "{filled} of {share}");
        assert!(fitted["flash"]["erases"].as_u64().unwrap() > 100);
        let note = fitted["notes"].as_array().unwrap().last().unwrap().as_str().unwrap().to_owned();
        assert!(note.starts_with("fitted: 15.6") && note.contains("fill+uniform:1x"), "{note}");
        // The same ratio of over-provisioning as the device has at its own size.
        let op = fitted["cost"]["op_ratio"].as_f64().unwrap();
        assert!((op - 0.28).abs() < 0.03, "{op}");
    }
    let output =
        run(folder.path(), &["compare", "trace.csv", "--config", "small.toml", "--fit", "90%", "-q"]);
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("page-map, ftl.op=0.07") && table.contains("page-map, ftl.op=0.28"), "{table}");
    assert!(!table.contains("indistinguishable"), "{table}");
}

#[test]
fn a_trace_alone_is_compared_on_a_drive_that_it_fills() {
    let folder = folder((0..40_000).map(|i| (i * 2_000, 'W', scattered(i, 20_000) * 3)));
    let table = |more: &[&str]| {
        let output = run(folder.path(), &[&["compare", "trace.csv", "-q"], more].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let default = table(&[]);
    for part in ["dc-tlc-28op", "ftl.op=0.07", "ftl.op=0.28", "fitted: 52.16 MiB", "the default is"] {
        assert!(default.contains(part), "{part}: {default}");
    }
    assert!(!default.contains("no-gc"), "{default}");
    // A key changes that drive.
    let slow = table(&["--set", "device.timing.program=4ms", "--set", "ftl.op=0.1"]);
    assert!(
        slow.contains("dc-tlc-28op") && slow.contains("fitted") && !slow.contains("ftl.op=0.07"),
        "{slow}"
    );
    let empty = table(&["--precondition", "none"]);
    assert!(empty.contains("fitted") && !empty.contains("before the counted part"), "{empty}");
    // Another drive or a size, and none of that is assumed.
    let sized = table(&["--set", "device.blocks_per_plane=64"]);
    assert!(!sized.contains("dc-tlc") && !sized.contains("fitted"), "{sized}");
    let said = table(&["--fit", "none"]);
    assert!(said.contains("hsbm-gcl") && said.contains("no-gc") && !said.contains("fitted"), "{said}");
    let all = table(&["--ftl", "all", "--set", "workload.depth=4"]);
    assert!(all.contains("pm-gcc") && !all.contains("dc-tlc"), "{all}");
}

#[test]
fn hosts_with_recordings_share_a_drive_that_they_fill() {
    let folder = folder((0..40_000).map(|i| (i * 2_000, 'W', scattered(i, 20_000) * 3)));
    let table = |args: &[&str], jobs: &str| {
        std::fs::write(folder.path().join("hosts.fio"), jobs).unwrap();
        let output = run(folder.path(), &[args, &["hosts.fio", "-q"]].concat());
        let text = if output.status.success() { output.stdout } else { output.stderr };
        (output.status.code(), String::from_utf8(text).unwrap())
    };
    // Beside each other, they need twice the place of one; on a namespace each, a drive of two.
    let beside = "[a]\nread_iolog=trace.csv\n[b]\nread_iolog=trace.csv\n";
    let (code, text) = table(&["replay"], beside);
    for part in [
        "fitted: 104.33 MiB",
        "the default is dc-tlc-28op",
        "files lie behind each other on ns1: a.0.0, b.0.0",
    ] {
        assert!(code == Some(0) && text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("no-gc") && !text.contains("late:"), "{text}");
    let apart = "[a]\nread_iolog=trace.csv\nfilename=ns1\n[b]\nread_iolog=trace.csv\nfilename=ns2\n";
    let (code, text) = table(&["compare", "--set", "namespaces.count=2"], apart);
    for part in ["fitted: 52.16 MiB", "page-map, ftl.op=0.07", "page-map, ftl.op=0.28"] {
        assert!(code == Some(0) && text.contains(part), "{part}: {text}");
    }
    let (_, text) = table(&["replay"], "[a]\nread_iolog=trace.csv\niodepth=1\nreplay_time_scale=1000000\n");
    assert!(text.contains("late: job 'a' issued"), "{text}");
    // A job that is no recording has no footprint, so nothing is assumed of the drive.
    let (_, text) = table(&["replay"], &format!("{beside}[c]\nrw=write\nsize=1m\nfilename=ns1\n"));
    assert!(text.contains("no-gc") && !text.contains("fitted"), "{text}");
    for (jobs, parts) in [
        (apart, &["hosts.fio:4", "filename=ns2", "namespaces.count"][..]),
        ("[a]\nread_iolog=none.csv\n", &["hosts.fio:1: job 'a': read_iolog=none.csv: none.csv: "]),
        ("[a]\nread_iolog=hosts.fio\n", &["hosts.fio:1: job 'a'", "format"]),
        ("[a]\nread_iolog=uniform\\:count=no\n", &["hosts.fio:1: job 'a'", "count"]),
    ] {
        let (code, text) = table(&["replay"], jobs);
        assert!(matches!(code, Some(1 | 2)), "{jobs}: {text}");
        assert!(parts.iter().all(|part| text.contains(part)), "{jobs}: {text}");
    }
    // A line that cannot be read, in the middle of a run.
    let torn = std::fs::read_to_string(folder.path().join("trace.csv")).unwrap() + "80000001,W,x,4096\n";
    std::fs::write(folder.path().join("torn.csv"), torn).unwrap();
    let torn = "[a]\nread_iolog=torn.csv\nfilename=ns1\n";
    let (code, text) = table(&["replay", "--device", "generic-tlc", "--json"], torn);
    assert!(code == Some(1) && text.contains("torn.csv: line 40002"), "{text}");
}

#[test]
fn a_cache_holds_a_part_of_what_its_trace_touches() {
    let folder = folder((0..20_000).map(|i| (i * 20_000, 'W', scattered(i, 30_000) * 3)));
    let runs = |args: &[&str]| -> Vec<Value> {
        let output = run(folder.path(), &[&["compare", "trace.csv", "-q", "--json"], args].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let slots = |run: &Value| run["cache"]["slots"].as_u64().unwrap();
    let note = |run: &Value| {
        let notes = run["notes"].as_array().and_then(|notes| Some(notes.last()?.as_str()?.to_owned()));
        notes.unwrap_or_default()
    };
    let list = ["--cache", "nandscape,flashcache,rapidcache,none"];
    let default = runs(&list);
    // A tenth, in steps of 4 MiB, of the pages of 30,000 that are touched.
    for run in &default[..3] {
        assert_eq!(slots(run), 8 << 20 >> 12, "{run}");
        assert!(
            note(run).starts_with("fitted: the cache holds 8 MiB (12 % of the 66.98 MiB"),
            "{}",
            note(run)
        );
        assert!(note(run).contains("the default is dc-tlc-28op with --fit 10%"), "{}", note(run));
    }
    assert!(default[3]["cache"]["disk"].as_str().unwrap().starts_with("article-hdd"));
    let half = runs(&[&list[..], &["--fit", "50%", "--device", "dc-tlc-7op"]].concat());
    assert_eq!(slots(&half[0]), 36 << 20 >> 12);
    assert!(!note(&half[0]).contains("the default is"));
    // What was said of the size holds, and a device as well.
    let sized = runs(&[&list[..], &["--set", "cache.size=20MiB"]].concat());
    assert!(sized[..3].iter().all(|run| slots(run) == 20 << 20 >> 12));
    assert!(
        note(&sized[0]).contains("20 MiB (as asked for; the workload touches 66.98 MiB"),
        "{}",
        note(&sized[0])
    );
    let whole = runs(&["--cache", "nandscape", "--config", "small.toml"]);
    assert!(!note(&whole[0]).contains("fitted"));
    let alone = runs(&["--cache", "none"]);
    assert!(!note(&alone[0]).contains("fitted"));
    let one = run(folder.path(), &["replay", "trace.csv", "--set", "cache.preset=bcache", "-q"]);
    let one = String::from_utf8(one.stdout).unwrap();
    assert!(one.contains("the cache holds 8 MiB"), "{one}");
}

/// Writes `t.ops.csv`: at its fullest there are 250 files of 1 MiB, others came before them, and parts of
/// them are overwritten.
fn recording(folder: &Path, overwrites: u64) {
    let mut trace = "ts_us,op,pid,file,offset,len\n".to_owned();
    let mut at = 0;
    let mut add = |op: &str, file: u64, offset: u64, len: u64| {
        writeln!(trace, "{at},{op},1,{file},{offset},{len}").unwrap();
        at += 900;
    };
    for file in 1..=300 {
        add("create", file, 0, 0);
        add("write", file, 0, 1 << 20);
        add("fsync", file, 0, 0);
        if file <= 50 {
            add("delete", file, 0, 0);
        }
    }
    for write in 0..overwrites {
        let file = 51 + scattered(write * 7, 250);
        add("write", file, scattered(write, 64) * 16_384, 16_384);
        add("fsync", file, 0, 0);
    }
    std::fs::write(folder.join("t.ops.csv"), trace).unwrap();
}

#[test]
fn stacks_are_compared_on_a_drive_that_a_recording_of_files_fills() {
    let folder = tempfile::tempdir().unwrap();
    recording(folder.path(), 20_000);
    let stacks = "block,zone-map,zone-files,f2fs,oftl";
    let options = ["-q", "--json", "--format", "ops:files=none"];
    let output = run(folder.path(), &[&["compare", "t.ops.csv", "--stack", stacks], &options[..]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let runs: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(runs.len(), 5);
    for run in &runs {
        let ftl = run["config"]["ftl"]["kind"].as_str().unwrap();
        assert!(
            run["error"].is_null() && run["flash"]["erases"].as_u64() > Some(0),
            "{ftl}: {}",
            run["error"]
        );
        let usable = run["cost"]["usable_bytes"].as_u64().unwrap();
        assert!((250 << 20..500 << 20).contains(&usable), "{ftl}: {usable}");
        let notes = run["notes"].as_array().unwrap();
        let fitted = notes.iter().find(|note| note.as_str().unwrap().starts_with("fitted: ")).unwrap();
        assert!(fitted.as_str().unwrap().contains("the default is dc-tlc-28op with --fit 90%"), "{fitted}");
    }
    let one = run(folder.path(), &[&["replay", "t.ops.csv", "--stack", "oftl"], &options[..]].concat());
    let one: Value = serde_json::from_slice(&one.stdout).unwrap();
    let note = one["notes"][0].as_str().unwrap();
    // A page of 16 KiB more for each object.
    assert!(note.contains("fitted: 253.92 MiB that the workload has at its fullest fill "), "{note}");
}

#[test]
fn a_small_trace_gets_a_drive_of_fewer_dies() {
    let folder = folder((0..40_000).map(|i| (i * 2_000, 'W', scattered(i, 4_000))));
    let output = run(folder.path(), &["compare", "trace.csv", "-q", "--json"]);
    let runs: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    for run in &runs {
        let device = &run["config"]["device"];
        let dies = device["channels"].as_u64().unwrap() * device["dies_per_channel"].as_u64().unwrap();
        let note = run["notes"].as_array().unwrap().last().unwrap().as_str().unwrap();
        assert!(dies < 8 && note.contains(&format!(", and {dies} of 32 dies")), "{note}");
        assert!(run["waf"].as_f64() > Some(1.5), "{run}");
    }
    let usable = runs.iter().map(|run| run["cost"]["usable_bytes"].as_f64().unwrap());
    let filled = 4_000.0 * 4096.0 / usable.fold(f64::MAX, f64::min);
    assert!((0.855..=0.9).contains(&filled), "{filled}");
}

#[test]
fn objects_fit_blocks_and_sparse_ones_count_by_what_they_hold() {
    let folder = tempfile::tempdir().unwrap();
    let mut trace = "ts_us,op,offset,len,volume\n".to_owned();
    for object in 2..200 {
        let at = object * 100;
        writeln!(trace, "{at},c,0,0,{object}\n{at},w,0,30000,{object}\n{at},f,0,0,{object}").unwrap();
    }
    // A byte behind a hole of eight terabytes, which holds nothing.
    let path = folder.path().join("objects.csv");
    std::fs::write(&path, format!("{trace}30000,w,8796093022208,1,2\n30001,f,0,0,2\n")).unwrap();
    for args in [&["--stack", "block,zone-files,oftl"][..], &["--stack", "oftl"], &[]] {
        let output = run(folder.path(), &[&["compare", "objects.csv", "-q", "--json"], args].concat());
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        let runs: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
        for run in &runs {
            assert!(run["error"].is_null(), "{args:?}: {}", run["error"]);
            let usable = run["cost"]["usable_bytes"].as_u64().unwrap();
            assert!((6 << 20..64 << 20).contains(&usable), "{args:?}: {usable}");
        }
    }
}

#[test]
fn a_drive_is_fitted_alike_whichever_stack_comes_first() {
    let folder = tempfile::tempdir().unwrap();
    // A small file takes pages of f2fs that are mapping units of the drive, and whole ones of oftl.
    let mut trace = "ts_us,op,pid,file,offset,len\n".to_owned();
    for file in 1..=15_000 {
        writeln!(trace, "{0},create,1,{file},0,0\n{0},write,1,{file},0,1000", file * 100).unwrap();
    }
    std::fs::write(folder.path().join("small.ops.csv"), trace).unwrap();
    let fitted = |stacks: &str| -> (Value, Value) {
        let args =
            ["compare", "small.ops.csv", "--stack", stacks, "-q", "--json", "--format", "ops:files=none"];
        let output = run(folder.path(), &args);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let runs: Value = serde_json::from_slice(&output.stdout).unwrap();
        (runs[0]["config"]["device"].clone(), runs[0]["notes"].clone())
    };
    let (one, other) = (fitted("f2fs,oftl"), fitted("oftl,f2fs"));
    assert_eq!(one.0, other.0, "{} and {}", one.1, other.1);
}

#[test]
fn stores_of_files_settle_and_a_limit_that_cuts_runs_apart_is_told() {
    let folder = tempfile::tempdir().unwrap();
    recording(folder.path(), 500);
    let json = |args: &[&str]| -> Value {
        let output = run(folder.path(), &[args, &["-q", "--json"]].concat());
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let format = ["--format", "ops:files=none"];
    for stack in ["zone-files", "oftl", "f2fs"] {
        let steady = ["replay", "t.ops.csv", "--stack", stack, "--until", "steady"];
        let settled = json(&[&steady[..], &format].concat());
        assert!(settled["notes"].to_string().contains("steady: "), "{stack}: {}", settled["notes"]);
        // What is made again was deleted before, and of the last pass all is there.
        let live = |result: &Value| result["objects"]["live_bytes"].clone();
        let once = json(&[&steady[..4], &format].concat());
        let often = json(&[&steady[..4], &["--repeat", "3"], &format].concat());
        assert!(often["error"].is_null() && live(&often) == live(&once), "{stack}: {}", often["error"]);
        let loads = ["replay", "fast13:load=lasr-3,scale=1/10", "--scale", "1/64", "--stack", stack];
        let loads = json(&[&loads[..], &["--repeat", "2"]].concat());
        assert!(loads["error"].is_null(), "{stack}: {}", loads["error"]);
    }
    // One stack alone is a row, with the layer that most drives have.
    for stack in ["block", "xfs", "streams"] {
        let args = [&["compare", "t.ops.csv", "--stack", stack, "--fit", "none"], &format[..]].concat();
        let runs = json(&args);
        assert!(runs[0]["config"]["ftl"]["kind"] == "page-map" && runs[1].is_null(), "{stack}");
    }
    let limited = ["compare", "t.ops.csv", "--stack", "block,oftl", "--limit", "400"];
    for run in json(&[&limited[..], &format].concat()).as_array().unwrap() {
        assert!(found(run).contains(&"other-requests".to_owned()), "{:?}", run["trust"]);
    }
    let one_level = ["compare", "t.ops.csv", "--stack", "zone-files,oftl", "--limit", "400"];
    for run in json(&[&one_level[..], &format].concat()).as_array().unwrap() {
        assert!(!found(run).contains(&"other-requests".to_owned()), "{:?}", run["trust"]);
    }
    // Nothing is drawn where nothing is written before.
    let seeds = |stack: &str| {
        let run = json(&[&["replay", "t.ops.csv", "--stack", stack, "--seed", "1..3"], &format[..]].concat());
        run["notes"].to_string().contains("all 3 seeds gave the same figures")
    };
    assert!(seeds("oftl") && !seeds("block"));
    // The zones of a preset are those of the whole device.
    let zones = json(&[
        "replay",
        "uniform:bs=16k,count=10",
        "--device",
        "zns-atc21",
        "--stack",
        "zone-map",
        "--scale",
        "1/16",
    ]);
    assert_eq!(zones["config"]["zone"]["count"], 1771 / 16);
}

#[test]
fn what_cannot_be_fitted_is_refused() {
    let folder = folder((0..100).map(|i| (i, 'W', i)));
    for (args, expected) in [
        (&["trace.csv", "--fit", "0"][..], "expected a share from 1% to 100%"),
        (&["trace.csv", "--fit", "much"][..], "--fit: 'much'"),
        (&["uniform:span=50%,count=10", "--fit", "90%"][..], "has no footprint of its own"),
        (
            &["trace.csv", "--fit", "90%", "--stack", "zone"][..],
            "expected a stack that can be written anywhere",
        ),
        (&["trace.csv", "--fit", "90%", "--set", "device.scale=1/2"][..], "both give a size"),
        (&["trace.csv", "--fit", "90%", "--set", "disk.preset=article-hdd"][..], "expected a cache in every"),
    ] {
        let output = run(folder.path(), &[&["replay"][..], args].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(expected), "{args:?}: {said}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn lists_of_values_and_recordings_with_files_give_rows_of_their_own() {
    let folder = folder((0..3_000).map(|i| (i * 1_000, 'W', scattered(i, 1_000))));
    let rows = |args: &[&str]| -> Vec<String> {
        let output =
            run(folder.path(), &[&["compare", "-q", "--json", "--write", "text=runs.txt"], args].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let table = std::fs::read_to_string(folder.path().join("runs.txt")).unwrap();
        let runs: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
        let names = table.lines().skip_while(|line| !line.starts_with("FTL")).skip(2).take(runs.len());
        names.map(|line| line.split("  ").next().unwrap().to_owned()).collect()
    };
    let small = ["trace.csv", "--config", "small.toml", "--ftl", "page-map", "--set"];
    let two = rows(&[&small[..], &["ftl.op=0.2..0.4:2", "--set", "ftl.streams=0,2"]].concat());
    let expected = [
        "page-map, ftl.op=0.2",
        "page-map, ftl.op=0.2, ftl.streams=2",
        "page-map, ftl.op=0.4",
        "page-map, ftl.op=0.4, ftl.streams=2",
    ];
    assert_eq!(two, expected);
    let many = run(folder.path(), &[&["compare"], &small[..], &["ftl.streams=0..5000"]].concat());
    assert_eq!(many.status.code(), Some(2), "{}", String::from_utf8_lossy(&many.stderr));
    // Times by page type are one value.
    let read = [
        "device.timing.mode=parallel",
        "--set",
        "device.timing.scheduler=read-first",
        "--set",
        "device.timing.read=40us,60us",
    ];
    assert_eq!(rows(&[&small[..], &read[..]].concat()), ["page-map"]);
    let depths = run(folder.path(), &[&["compare"], &small[..], &["workload.depth=1,32"]].concat());
    let said = String::from_utf8_lossy(&depths.stderr).into_owned();
    assert!(depths.status.code() == Some(2) && said.contains("workload.depth=1,32"), "{said}");
    // Beside several stacks, and on the default drive.
    let stacks =
        ["trace.csv", "--config", "small.toml", "--stack", "block,zone-map", "--set", "ftl.op=0.3,0.4"];
    assert_eq!(rows(&stacks).len(), 4);
    let plugs = rows(&["trace.csv", "--limit", "500", "--set", "host.plug=0,4"]);
    assert_eq!(plugs.len(), 4, "two drives, two plugs: {plugs:?}");
    // With nothing said of the device: streams beside the two drives, where writes are of files.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let recording = root.join("traces/git.ops.csv.zst");
    let default = rows(&[recording.to_str().unwrap(), "--limit", "3k"]);
    let streams = "page-map, ftl.op=0.07, ftl.streams=8, host.policy=names";
    assert_eq!(default, ["page-map, ftl.op=0.07", "page-map, ftl.op=0.28", streams]);
    let one = rows(&[recording.to_str().unwrap(), "--limit", "3k", "--set", "ftl.op=0.1"]);
    assert_eq!(one, ["page-map", "page-map, ftl.streams=8, host.policy=names"]);
}
