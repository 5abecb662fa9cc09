//! Sweeps: the runs of a plan, each in a file of its own; resumed, split and joined they are the same.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Six points with two seeds on a small device.
const PLAN: &str = "workload = \"uniform:count=4k,span=50%,bs=16k\"\nconfig = \"small.toml\"\nseeds = \"1,2\"\n\
                    [grid]\nftl.op = [0.1, 0.2, 0.4]\nftl.victim = [\"greedy\", \"fifo\"]\n";
const RUNS: usize = 12;

fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
    command.current_dir(folder).args(args);
    command
}

fn run(folder: &Path, args: &[&str]) -> Output {
    command(folder, args).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn ok(folder: &Path, args: &[&str]) -> Output {
    let output = run(folder, args);
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    output
}

fn fails(folder: &Path, args: &[&str], code: i32, wanted: &[&str]) {
    let output = run(folder, args);
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {message}");
    for part in wanted {
        assert!(message.contains(part), "{args:?}: '{message}' lacks '{part}'");
    }
    assert!(!message.contains("panicked"), "{args:?}: {message}");
}

/// A folder with `plan.toml`.
fn folder(plan: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let small = "[device]\nchannels = 2\ndies_per_channel = 1\nblocks_per_plane = 16\npages_per_block = 32\n";
    std::fs::write(folder.path().join("small.toml"), small).unwrap();
    std::fs::write(folder.path().join("plan.toml"), plan).unwrap();
    folder
}

/// Everything that a sweep left, without times of the wall clock.
fn results(out: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all =
        BTreeMap::from([("sweep.parquet".to_owned(), std::fs::read(out.join("sweep.parquet")).unwrap())]);
    for entry in std::fs::read_dir(out.join("points")).unwrap() {
        let path = entry.unwrap().path();
        let mut document: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        if let Some(time) = document.get_mut("time").and_then(Value::as_object_mut) {
            time.remove("wall_s");
            time.remove("host_pages_per_wall_s");
        }
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        all.insert(name, document.to_string().into_bytes());
    }
    all
}

#[test]
fn every_combination_has_a_row_a_document_and_a_place_in_the_table() {
    let folder = folder(PLAN);
    let output = ok(folder.path(), &["sweep", "plan.toml", "--out", "out", "--report", "x.html"]);
    let text = stdout(&output);
    assert!(text.contains("6 points over ftl.op x ftl.victim, 2 seeds, 12 runs\n"), "{text}");
    assert!(text.contains("Best WAF") && text.contains("on the front"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert_eq!(results(&folder.path().join("out")).len(), RUNS + 1);
    let html = std::fs::read_to_string(folder.path().join("x.html")).unwrap();
    assert!(html.contains("Sweep over ftl.op x ftl.victim") && html.trim_end().ends_with("</html>"));

    // A run is what replay gives with the same settings, and report reads its document.
    let replay = ok(
        folder.path(),
        &[
            "replay",
            "uniform:count=4k,span=50%,bs=16k",
            "--config",
            "small.toml",
            "--seed",
            "2",
            "--set",
            "ftl.op=0.4",
            "--set",
            "ftl.victim=greedy",
            "--json",
        ],
    );
    let replay: Value = serde_json::from_slice(&replay.stdout).unwrap();
    let point = std::fs::read(folder.path().join("out/points/00004-seed2.json")).unwrap();
    let point: Value = serde_json::from_slice(&point).unwrap();
    assert_eq!((&point["flash"], &point["latency_ns"]), (&replay["flash"], &replay["latency_ns"]));
    assert_eq!(point["config_hash"], replay["config_hash"]);
    ok(folder.path(), &["report", "out/points/00004-seed2.json"]);
    let path = folder.path().join("out/points/00000-seed1.json");
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let damaged = run(folder.path(), &["report", "out"]);
    let said = String::from_utf8_lossy(&damaged.stdout) + String::from_utf8_lossy(&damaged.stderr);
    assert!(
        damaged.status.code() == Some(1) && said.contains("00000-seed1.json: expected a result"),
        "{said}"
    );
    std::fs::write(&path, whole).unwrap();

    // Rows as JSON have the values of the documents.
    let rows = ok(folder.path(), &["sweep", "plan.toml", "--out", "out", "--resume", "--json"]);
    let rows: Vec<Value> = serde_json::from_slice(&rows.stdout).unwrap();
    assert_eq!(rows.len(), RUNS);
    let row = rows.iter().find(|row| row["point"] == 4 && row["seed"] == 2).unwrap();
    assert_eq!(row["axes"], serde_json::json!({"ftl.op": "0.4", "ftl.victim": "greedy"}));
    assert_eq!(row["metrics"]["waf_bytes"], point["waf_bytes"]);
    assert_eq!(row["metrics"]["latency_ns.all.p99_9"].as_f64(), point["latency_ns"]["all"]["p99_9"].as_f64());
    let share = row["metrics"]["usable_share"].as_f64().unwrap();
    assert!((share - 1.0 / 1.4).abs() < 0.01, "{share}");
    // Nothing was read.
    assert!(row["metrics"]["throughput.read_bytes_per_s"].as_f64().is_some_and(|rate| rate == 0.0));
}

#[test]
fn a_sweep_that_was_killed_goes_on_where_it_was() {
    let plan = PLAN.replace("count=4k", "count=40k");
    let folder = folder(&plan);
    ok(folder.path(), &["sweep", "plan.toml", "--out", "whole"]);
    let out = folder.path().join("out");
    let points = out.join("points");
    let is_kept = |entry: &std::io::Result<std::fs::DirEntry>| {
        !entry.as_ref().unwrap().file_name().to_string_lossy().starts_with('.')
    };
    let done = || std::fs::read_dir(&points).map_or(0, |entries| entries.filter(is_kept).count());
    (0..20)
        .find_map(|_| {
            let _ = std::fs::remove_dir_all(&out);
            let args = ["sweep", "plan.toml", "--out", "out", "--jobs", "1"];
            let mut killed = command(folder.path(), &args).spawn().unwrap();
            let started = Instant::now();
            while done() < 3 && started.elapsed() < Duration::from_secs(60) {
                std::thread::sleep(Duration::from_millis(1));
            }
            killed.kill().unwrap();
            killed.wait().unwrap();
            // On a busy machine it may be done before it is killed.
            Some(done()).filter(|before| (3..RUNS).contains(before))
        })
        .expect("killed in the middle once");
    // What a kill may leave: a file under its other name, and one that a failing disk cut.
    std::fs::write(points.join(".00005-seed1.json.1-0.tmp"), "{\"schema\": 1,").unwrap();
    let cut = std::fs::read(points.join("00000-seed1.json")).unwrap();
    std::fs::write(points.join("00000-seed1.json"), &cut[..cut.len() / 2]).unwrap();
    let kept = std::fs::metadata(points.join("00000-seed2.json")).unwrap().modified().unwrap();

    fails(folder.path(), &["sweep", "plan.toml", "--out", "out"], 2, &["out: has results", "--resume"]);
    ok(folder.path(), &["sweep", "plan.toml", "--out", "out", "--resume"]);
    assert_eq!(std::fs::metadata(points.join("00000-seed2.json")).unwrap().modified().unwrap(), kept);
    let (whole, resumed) = (results(&folder.path().join("whole")), results(&folder.path().join("out")));
    assert!(whole == resumed, "{:?} {:?}", whole.keys(), resumed.keys());
}

#[test]
fn shards_are_the_whole_together() {
    let folder = folder(PLAN);
    ok(folder.path(), &["sweep", "plan.toml", "--out", "whole"]);
    let mut runs = 0;
    for shard in ["0/3", "1/3", "2/3"] {
        let out = format!("shard{}", &shard[..1]);
        let output = ok(folder.path(), &["sweep", "plan.toml", "--out", &out, "--shard", shard]);
        assert!(stdout(&output).contains("4 runs of 12"), "{}", stdout(&output));
        runs += results(&folder.path().join(out)).len() - 1;
    }
    assert_eq!(runs, RUNS);
    let whole = ok(folder.path(), &["report", "whole", "--report", "whole.html"]);
    let joined = ok(folder.path(), &["report", "shard0", "shard1", "shard2", "--report", "joined.html"]);
    assert_eq!(stdout(&whole), stdout(&joined));
    let from = ["--from", "shard0", "--from", "shard1", "--from", "shard2"];
    ok(folder.path(), &[&["sweep", "plan.toml", "--out", "all"], &from[..]].concat());
    assert!(results(&folder.path().join("whole")) == results(&folder.path().join("all")));
    // Into one folder.
    for shard in ["1/2", "0/2"] {
        ok(folder.path(), &["sweep", "plan.toml", "--out", "one", "--resume", "--shard", shard]);
    }
    assert!(results(&folder.path().join("whole")) == results(&folder.path().join("one")));
    for wrong in ["2/2", "1", "a/b", "0/0"] {
        let args = ["sweep", "plan.toml", "--out", "one", "--shard", wrong];
        fails(folder.path(), &args, 2, &["--shard", "such as 0/4"]);
    }
}

#[test]
fn a_run_that_fails_is_a_row_and_the_others_go_on() {
    // 4 blocks a plane are too few for the layer; the number is accepted.
    let plan = "workload = \"uniform:count=1k,span=50%,bs=16k\"\nconfig = \"small.toml\"\n\
                [grid]\ndevice.blocks_per_plane = [16, 1]\n";
    let folder = folder(plan);
    let output = run(folder.path(), &["sweep", "plan.toml", "--out", "out", "--report", "x.html"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("1 of 2 runs failed"), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("! point 1 (device.blocks_per_plane=1): "), "{text}");
    let html = std::fs::read_to_string(folder.path().join("x.html")).unwrap();
    assert!(html.contains("<li>point 1 (device.blocks_per_plane=1): "));
    assert!(folder.path().join("out/sweep.parquet").exists());
    assert!(folder.path().join("out/points/00001-seed42.error.json").exists());
    fails(folder.path(), &["report", "out"], 1, &["1 of 2 runs failed"]);
    fails(folder.path(), &["sweep", "plan.toml", "--out", "out", "--resume"], 1, &["1 of 2 runs failed"]);
}

#[test]
fn another_plan_is_refused_by_what_differs() {
    let folder = folder(PLAN);
    ok(folder.path(), &["sweep", "plan.toml", "--out", "out", "--shard", "0/6"]);
    let again = |plan: &str, wanted: &[&str]| {
        std::fs::write(folder.path().join("plan.toml"), plan).unwrap();
        fails(folder.path(), &["sweep", "plan.toml", "--out", "out", "--resume"], 2, wanted);
    };
    again(&PLAN.replace("0.4", "0.3"), &["out: ", "grid.ftl.op was [0.1, 0.2, 0.4] and is [0.1, 0.2, 0.3]"]);
    again(&PLAN.replace("\"1,2\"", "3"), &["seeds was \"1,2\" and is 3"]);
    again(&format!("ftl = \"page-map\"\n{PLAN}"), &["ftl was absent and is \"page-map\""]);
    // Comments and metrics may change.
    let plan = format!("# another comment\nmetrics = [\"gc.runs\"]\n{PLAN}");
    std::fs::write(folder.path().join("plan.toml"), plan).unwrap();
    ok(folder.path(), &["sweep", "plan.toml", "--out", "out", "--resume", "--shard", "0/6"]);
    let small = std::fs::read_to_string(folder.path().join("small.toml")).unwrap();
    std::fs::write(folder.path().join("small.toml"), small + "endurance = 5000\n").unwrap();
    let args = ["sweep", "plan.toml", "--out", "out", "--resume"];
    fails(folder.path(), &args, 2, &["small.toml has other contents"]);
}

#[test]
fn wrong_plans_are_refused_by_file_and_key_and_nothing_is_written() {
    let folder = folder("");
    let head = "workload = \"uniform:count=1k,span=50%\"\nconfig = \"small.toml\"\n";
    let grid = "[grid]\nftl.op = [0.1, 0.2]\n";
    let with = |more: &str| format!("{head}{more}");
    let cases: Vec<(String, &str)> = vec![
        ("workload = ".to_owned(), "line 1"),
        (with("[grid]\nftl.op = [0.1\n"), "line "),
        (with(""), "grid: is missing: expected one of grid, random and list"),
        (with(&format!("{grid}[random]\npoints = 2\n")), "grid and random: expected one of them"),
        (with("[grid]\n"), "grid: is empty"),
        (with("grid = 3\n"), "grid: expected a table"),
        (with("list = 3\n"), "list: expected a list of tables"),
        (grid.to_owned(), "workload: is missing"),
        (format!("workload = 3\n{grid}"), "workload: 3: expected text"),
        (format!("workload = \"-\"\n{grid}"), "workload: -: standard input"),
        (with(&format!("sedes = 1\n{grid}")), "sedes: unknown key; known: workload, "),
        (with(&format!("sedes = 1\n{grid}")), "did you mean 'seeds'?"),
        (with(&format!("seeds = \"x\"\n{grid}")), "seeds: 'x': expected a seed"),
        (with(&format!("seeds = [1, 1]\n{grid}")), "seeds: 1 is there twice"),
        (
            with(&format!("metrics = [\"waff\"]\n{grid}")),
            "metrics: waff: expected a key of the result document",
        ),
        (with(&format!("metrics = []\n{grid}")), "metrics: expected a list of keys"),
        (with(&format!("{grid}[set]\nftl.op = 0.3\n")), "set.ftl.op: is an axis too"),
        (
            with(&format!("{grid}[set]\nworkload.seed = 3\n")),
            "set.workload.seed: has its own key: expected seeds",
        ),
        (with("[grid]\nop = [0.1]\n"), "grid.op: expected a dotted key"),
        (with("[grid]\nftl.op = []\n"), "grid.ftl.op: is an empty list"),
        (with("[grid]\nftl.op = [0.1, 0.1]\n"), "grid.ftl.op: 0.1 is there twice"),
        (with("[grid]\nftl.op = \"0.1..\"\n"), "grid.ftl.op: '0.1..': expected a range"),
        (with("[grid]\nftl.opp = [0.1, 0.2]\n"), "ftl.opp"),
        (with("[grid]\nftl.op = [0.1, -1]\n"), "ftl.op: no point with ftl.op = -1 is accepted"),
        (with("[grid]\nftl.op = [0.1]\nftl.victim = [\"greedy\", \"greddy\"]\n"), "ftl.victim = greddy"),
        (
            with("[[list]]\nftl.op = 0.1\n[[list]]\nftl.victim = \"fifo\"\n"),
            "list[2].ftl.victim: expected the keys",
        ),
        (with("[random]\nftl.op = \"0.1..0.3\"\n"), "random.points: is missing"),
        (with("[random]\npoints = 0\nftl.op = \"0.1..0.3\"\n"), "random.points: 0: expected a whole number"),
        (
            with("[random]\npoints = 2\nftl.op = \"0.3..0.1\"\n"),
            "random.ftl.op: '0.3..0.1': expected a range",
        ),
        (
            with("[random]\npoints = 2\nftl.op = \"0..0.1:log\"\n"),
            "random.ftl.op: '0..0.1:log': expected a range",
        ),
        (with(grid).replace("small.toml", "absent.toml"), "absent.toml"),
        (with(&format!("device = \"none\"\n{grid}")), "none"),
        (with(&format!("fit = \"much\"\n{grid}")), "fit: 'much'"),
        (with(&format!("fit = \"90%\"\n{grid}")), "has no footprint of its own"),
        (with("fit = \"90%\"\n[grid]\ndevice.channels = [1, 2]\n"), "fit: with the axis device.channels"),
    ];
    for (plan, wanted) in cases {
        std::fs::write(folder.path().join("plan.toml"), &plan).unwrap();
        let output = run(folder.path(), &["sweep", "plan.toml", "--out", "out"]);
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{plan}: {message}");
        assert!(
            message.contains("plan.toml: ") && message.contains(wanted),
            "{plan}: '{message}' lacks '{wanted}'"
        );
        assert!(!folder.path().join("out").exists(), "{plan}");
    }
    fails(folder.path(), &["sweep", "absent.toml", "--out", "out"], 1, &["absent.toml: No such file"]);
    fails(folder.path(), &["report", "small.toml", "."], 1, &["small.toml"]);
    std::fs::write(folder.path().join("plan.toml"), with(grid)).unwrap();
    let args = ["sweep", "plan.toml", "--out", "out", "--from", "."];
    fails(folder.path(), &args, 2, &[".: has no sweep.json"]);
    fails(folder.path(), &["sweep", "plan.toml", "--out", "small.toml"], 1, &["small.toml"]);
}

#[test]
fn a_device_fits_the_workload_at_the_point_with_the_least_capacity() {
    let folder = folder(
        "workload = \"trace.csv\"\nconfig = \"small.toml\"\nfit = \"90%\"\n[grid]\nftl.op = [0.1, 0.4]\n",
    );
    let lines = (0..60_000).map(|i| format!("{i},W,{},4096\n", i * 7919 % 12_000 * 3 * 4096));
    let trace = "ts_us,op,offset,len\n".to_owned() + &lines.collect::<String>();
    std::fs::write(folder.path().join("trace.csv"), trace).unwrap();
    ok(folder.path(), &["sweep", "plan.toml", "--out", "out"]);
    let document = |point: usize| -> Value {
        let path = folder.path().join(format!("out/points/0000{point}-seed42.json"));
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    };
    let filled =
        [0, 1].map(|point| 12_000.0 * 4096.0 / document(point)["cost"]["usable_bytes"].as_f64().unwrap());
    assert!(filled[1] <= 0.9 && filled[1] > 0.85 && filled[0] < 0.75, "{filled:?}");
    for key in ["blocks_per_plane", "pages_per_block"] {
        assert_eq!(document(0)["config"]["device"][key], document(1)["config"]["device"][key]);
    }
    assert_eq!(document(1)["config"]["workload"]["precondition"], "fill+uniform:1x");
    // What is there is of the same configuration.
    ok(folder.path(), &["sweep", "plan.toml", "--out", "out", "--resume"]);
}

#[test]
fn random_points_are_in_their_ranges_and_the_same_every_time() {
    let plan = "workload = \"uniform:count=100,span=50%,bs=16k\"\nconfig = \"small.toml\"\n[random]\npoints = 20\nseed = 7\n\
                ftl.op = \"0.1..0.9:log\"\ndevice.pages_per_block = \"16..64\"\nftl.victim = [\"greedy\", \"fifo\"]\n";
    let folder = folder(plan);
    let points = |out: &str, more: &[&str]| {
        let args = [&["sweep", "plan.toml", "--out", out, "--json"], more].concat();
        serde_json::from_slice::<Vec<Value>>(&ok(folder.path(), &args).stdout).unwrap()
    };
    let all = points("a", &[]);
    assert_eq!(all.len(), 20);
    for row in &all {
        let axis = |key: &str| row["axes"][key].as_str().unwrap().to_owned();
        let (op, pages) = (axis("ftl.op").parse::<f64>().unwrap(), axis("device.pages_per_block"));
        assert!((0.1..=0.9).contains(&op) && (16..=64).contains(&pages.parse::<u32>().unwrap()), "{row}");
    }
    assert!(all.iter().any(|row| row["axes"]["ftl.victim"] == "fifo"));
    let part = points("b", &["--shard", "1/4"]);
    assert!(part.iter().all(|row| row["point"].as_u64().unwrap() % 4 == 1 && all.contains(row)));
    assert_eq!(part.len(), 5);
}

#[test]
fn a_list_of_points_and_an_axis_of_workloads() {
    let plan = "config = \"small.toml\"\nmetrics = [\"flash.programs\", \"host.writes\"]\n\
                [[list]]\nworkload = \"uniform:count=100,span=50%,bs=16k\"\nftl.kind = \"page-map\"\n\
                [[list]]\nworkload = \"uniform:count=200,span=50%,bs=16k\"\nftl.kind = \"pm-gcl\"\n";
    let folder = folder(plan);
    let rows = ok(folder.path(), &["sweep", "plan.toml", "--out", "out", "--json"]);
    let rows: Vec<Value> = serde_json::from_slice(&rows.stdout).unwrap();
    let writes: Vec<f64> = rows.iter().map(|row| row["metrics"]["host.writes"].as_f64().unwrap()).collect();
    assert_eq!(writes, [100.0, 200.0]);
    assert_eq!(rows[1]["axes"]["ftl.kind"], "pm-gcl");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_ends_the_sweep_and_what_was_kept_is_whole() {
    // A limit on the size of files stands for a disk without room: documents are larger than the plan.
    let folder = folder(PLAN);
    let script = format!("ulimit -f 4; exec {} sweep plan.toml --out out", env!("CARGO_BIN_EXE_nandscape"));
    let output = Command::new("bash").args(["-c", &script]).current_dir(folder.path()).output().unwrap();
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("out/points/0000") && message.contains("cannot write"), "{message}");
    assert_eq!(std::fs::read_dir(folder.path().join("out/points")).unwrap().count(), 0);
    ok(folder.path(), &["sweep", "plan.toml", "--out", "out", "--resume"]);
    assert_eq!(results(&folder.path().join("out")).len(), RUNS + 1);
}

#[test]
fn the_shipped_sweeps_run() {
    let folder = folder("");
    let mut plans = 0;
    for entry in std::fs::read_dir(Path::new(ROOT).join("configs/sweeps")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let shown = format!("nandscape sweep configs/sweeps/{name} --out");
        assert!(text.contains(&shown), "{name}: its header shows no command");
        // The first of many parts, with fewer requests.
        let text = text.replace("count=60k", "count=2k");
        std::fs::write(folder.path().join(name), text).unwrap();
        ok(folder.path(), &["sweep", name, "--out", name.trim_end_matches(".toml"), "--shard", "0/9"]);
        plans += 1;
    }
    assert!(plans > 0);
}
