//! Devices, workloads and outputs that a careless or malicious user gives: a clear refusal or a whole result,
//! never an abort.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
    command.stdin(std::process::Stdio::null());
    command
}

fn run(args: &[&str]) -> Output {
    command().args(args).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", stderr(output)))
}

fn fails(args: &[&str], code: i32, wanted: &[&str]) {
    let output = run(args);
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {message}");
    assert!(output.stdout.is_empty(), "{args:?} printed a result");
    for part in wanted {
        assert!(message.contains(part), "{args:?}: '{message}' lacks '{part}'");
    }
}

/// A device of 64 blocks by `--set`, whose pages may be programmed in any order.
const SMALL: &[&str] = &[
    "--set",
    "device.channels=2",
    "--set",
    "device.dies_per_channel=1",
    "--set",
    "device.planes_per_die=2",
    "--set",
    "device.blocks_per_plane=16",
    "--set",
    "device.pages_per_block=8",
    "--set",
    "device.page=4k",
    "--set",
    "device.out_of_order_program=true",
];

#[test]
fn a_device_that_cannot_fit_into_memory_is_refused_and_not_an_abort() {
    // 4 278 190 080 blocks of one page: state alone takes over 200 GiB.
    let huge = [
        "replay",
        "uniform:count=10",
        "--set",
        "device.channels=4096",
        "--set",
        "device.dies_per_channel=4096",
        "--set",
        "device.planes_per_die=1",
        "--set",
        "device.blocks_per_plane=255",
        "--set",
        "device.pages_per_block=1",
    ];
    fails(&huge, 2, &["device: 4278190080 pages in 4278190080 blocks", "expected at most"]);
    let mut more = huge;
    more[9] = "device.blocks_per_plane=256";
    fails(&more, 2, &["device.blocks_per_plane = 256", "at most 4294967292 pages"]);
}

#[test]
fn comparing_all_layers_leaves_out_those_that_the_device_cannot_carry() {
    let in_order = ["--set", "device.out_of_order_program=false"];
    let args = [&["compare", "uniform:count=50,span=10%", "--json"], SMALL, &in_order].concat();
    let output = run(&args);
    assert!(output.status.success(), "{}", stderr(&output));
    let runs = json(&output);
    let kinds: Vec<_> = runs.as_array().unwrap().iter().map(|r| r["config"]["ftl"]["kind"].clone()).collect();
    assert_eq!(kinds, ["pm-gcl", "pm-gcc", "page-map"]);
    let notes = runs[0]["notes"].to_string();
    assert!(notes.contains("left out: sbm-gcl") && notes.contains("left out: hsbm-gcl"), "{notes}");
    // Asked for by name, a layer that cannot run is an error.
    let named = [&args[..], &["--ftl", "pm-gcl,sbm-gcl"]].concat();
    fails(&named, 2, &["sbm-gcl cannot run on this device", "device.out_of_order_program"]);
}

#[test]
fn a_layer_that_fails_while_preconditioned_does_not_take_the_others_results() {
    let args = [
        &["compare", "uniform:count=50,span=50%", "--json", "--ftl", "pm-gcl,page-map"],
        SMALL,
        &["--precondition", "fill+uniform:1x"],
    ]
    .concat();
    let output = run(&args);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let runs = json(&output);
    let failed = &runs[0];
    assert_eq!(failed["error"]["request"], 0);
    let message = failed["error"]["message"].as_str().unwrap();
    assert!(message.contains("precondition write") && message.contains("device full"), "{message}");
    // Preconditioning is counted nowhere, in a failed run neither.
    for (part, key) in [("flash", "programs"), ("host", "writes"), ("workload", "requests")] {
        assert_eq!(failed[part][key], 0, "{part}.{key}");
    }
    assert_eq!(runs[1]["error"], Value::Null);
    assert_eq!(runs[1]["host"]["writes"], 50);
    assert!(stderr(&output).contains("pm-gcl: precondition write"), "{}", stderr(&output));
}

#[test]
fn a_full_device_says_that_its_blocks_are_worn_out() {
    for (ftl, wanted) in [
        ("pm-gcl", "too many blocks are worn out"),
        ("pm-gcc", "too many blocks are worn out"),
        ("page-map", "too many blocks are worn out"),
    ] {
        let args = [
            &["replay", "uniform:count=50k,span=10%", "--json", "--ftl", ftl],
            SMALL,
            &["--set", "device.endurance=2"],
        ]
        .concat();
        let output = run(&args);
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{ftl}: {message}");
        assert!(message.contains(wanted), "{ftl}: {message}");
        let document = json(&output);
        assert!(document["error"]["request"].as_u64().unwrap() > 1, "{ftl}");
        assert!(document["wear"]["erases_max"].as_u64().unwrap() <= 2, "{ftl}");
    }
}

#[test]
fn a_device_without_a_usable_block_is_refused_before_the_first_request() {
    for ftl in ["pm-gcl", "pm-gcc", "sbm-gcl", "hsbm-gcl", "page-map"] {
        let list: Vec<String> = (0..64).map(|block| block.to_string()).collect();
        let bad = format!("device.bad_blocks={}", list.join(","));
        let args = [&["replay", "uniform:count=5,span=4k", "--json", "--ftl", ftl], SMALL, &["--set", &bad]]
            .concat();
        fails(&args, 2, &["blocks"]);
    }
}

#[test]
fn a_byte_order_mark_does_not_hide_a_trace() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sheet.csv");
    std::fs::write(&path, "\u{feff}ts_us,op,offset,len\r\n0,W,0,4096\r\n5,R,0,4096").unwrap();
    let output = run(&["trace", "head", path.to_str().unwrap()]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "ts_us,op,offset,len\n0,W,0,4096\n5,R,0,4096\n");
}

#[test]
fn standard_input_is_given_once() {
    fails(
        &["compare", "-", "-", "--device", "thesis"],
        2,
        &["standard input", "expected it as one workload"],
    );
}

#[test]
fn a_mistyped_generator_is_not_taken_for_a_file() {
    fails(
        &["trace", "generate", "unifrom", "-o", "-", "--to", "csv"],
        2,
        &["generator 'unifrom'", "uniform"],
    );
}

/// `head` of an endless workload prints at once and in bounded memory, and stops when nobody reads on.
#[cfg(unix)]
#[test]
fn head_streams_and_ends_with_its_reader() {
    use std::io::Read;
    let mut child = command()
        .args(["trace", "head", "uniform:count=1000G", "-n", "18446744073709551615"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut start = [0; 20];
    child.stdout.take().unwrap().read_exact(&mut start).unwrap();
    assert_eq!(&start, b"ts_us,op,offset,len\n");
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
}

#[test]
fn a_full_disk_is_named_by_the_file_on_it() {
    if !Path::new("/dev/full").exists() {
        return;
    }
    let args = ["trace", "convert", "uniform:count=20k", "--to", "csv", "-o", "/dev/full"];
    fails(&args, 1, &["/dev/full", "space"]);
}

/// Everything but the wall clock, whatever the number of jobs and however often.
#[test]
fn jobs_do_not_change_a_comparison() {
    let once = |jobs: &str, scheduler: &str| {
        let work = ["compare", "uniform:count=400,read=30%,trim=5%,span=30%", "zipf:count=300,span=20%"];
        let args = [&work, SMALL, &["--json", "--detail", "--jobs", jobs, "--set", scheduler]].concat();
        let mut runs = json(&run(&args));
        for run in runs.as_array_mut().unwrap() {
            for key in ["wall_s", "host_pages_per_wall_s"] {
                run["time"][key] = Value::Null;
            }
        }
        assert_eq!(runs.as_array().unwrap().len(), 10);
        runs.to_string()
    };
    for scheduler in ["device.timing.mode=serial", "scheduler=fifo", "scheduler=read-first"] {
        assert_eq!(once("1", scheduler), once("3", scheduler), "{scheduler}");
    }
}

#[test]
fn a_store_of_files_is_no_block_device_and_a_block_device_no_store_of_files() {
    let dir = tempfile::tempdir().unwrap();
    let mount = dir.path().join("mount").display().to_string();
    let no_blocks = ["zone-files", "no blocks to serve", "'serve fuse' without --loop"];
    let nbd = ["serve", "nbd", "--stack", "zone-files", "--scale", "1/16"];
    fails(&nbd, 2, &no_blocks);
    fails(
        &["serve", "fuse", "--loop", "--mount", &mount, "--stack", "zone-files", "--scale", "1/16"],
        2,
        &no_blocks,
    );
    let gathered = ["serve", "fuse", "--writeback", "--mount", &mount, "--scale", "1/16"];
    fails(&gathered, 2, &["--writeback", "--stack zone-files"]);
    let image = dir.path().join("i.nand").display().to_string();
    let no_bytes = ["f2fs keeps no bytes", "replay or compare"];
    fails(&["serve", "fuse", "--mount", &mount, "--stack", "f2fs", "--scale", "1/16"], 2, &no_bytes);
    fails(&["serve", "nbd", "--stack", "f2fs-zones", "--scale", "1/16"], 2, &no_bytes);
    fails(&["image", "create", &image, "--stack", "f2fs", "--scale", "1/16"], 2, &no_bytes);
    let no_atomic = ["stack.kind = atomic", "no server has atomic writes", "replay or compare"];
    fails(&["serve", "nbd", "--stack", "atomic", "--scale", "1/16"], 2, &no_atomic);
    fails(&["image", "create", &image, "--stack", "atomic", "--scale", "1/16"], 2, &no_atomic);
    let on_files = ["replay", "lsm:span=1MiB", "--stack", "zone-files", "--set", "f2fs.mode=lfs"];
    fails(&on_files, 2, &["f2fs.mode: with stack.kind = zone-files", "f2fs-zones"]);
    let plain = dir.path().join("plain").display().to_string();
    std::fs::write(&plain, "").unwrap();
    let on_a_file = ["--scale", "1/64", "--image", &image, "--mount", &plain];
    fails(&[&["serve", "fuse", "--stack", "oftl"], &on_a_file[..]].concat(), 1, &["--mount", "plain"]);
    fails(&["stat", &plain], 1, &["plain", "expected the control socket of a server"]);
    assert!(
        ![mount, image].iter().any(|path| Path::new(path).exists()),
        "nothing is made for what is refused"
    );
}

#[test]
fn stacks_of_a_comparison_have_keys_of_their_own() {
    let compare = |stacks| ["compare", "uniform:count=50,span=10%", "--scale", "1/16", "--stack", stacks];
    fails(&compare("block:ftl.op"), 2, &["ftl.op: expected key=value"]);
    fails(&compare("block:ftl.oo=1,xfs"), 2, &["unknown key 'ftl.oo'"]);
    fails(&compare("blocks:ftl.op=1"), 2, &["stack.kind = 'blocks'", "expected one of block"]);
    let output = run(&compare("block:ftl.op=0.2,block:ftl.op=0.4,zone-map"));
    let table = String::from_utf8(output.stdout).unwrap();
    for label in ["page-map, ftl.op=0.2", "page-map, ftl.op=0.4", "zone-map"] {
        assert!(table.lines().any(|line| line.starts_with(label)), "{label}: {table}");
    }
}

#[test]
fn objects_are_looked_at_in_images_of_stores_of_objects_only() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let small = ["channels=2", "dies_per_channel=1", "blocks_per_plane=64", "pages_per_block=32"];
    for stack in ["oftl", "zone-files", "block"] {
        let image = path(stack);
        let sets = small.map(|pair| format!("--set=device.{pair}"));
        let mut words =
            vec!["image", "create", &image, "--stack", stack, "--device", "generic-tlc", "--quiet"];
        words.extend(sets.iter().map(String::as_str));
        run(&words);
        if stack == "block" {
            fails(
                &["object", "ls", &image],
                1,
                &["stack block keeps no objects", "expected an image of oftl"],
            );
            continue;
        }
        let listed = run(&["object", "ls", &image, "--json"]).stdout;
        assert_eq!(String::from_utf8(listed).unwrap().trim(), "[]", "{stack}");
        fails(&["object", "stat", &image, "/a"], 1, &["'/a'", "the path of an object that exists"]);
        fails(&["object", "stat", &image, "7"], 1, &["object 7", "expected the number of an object"]);
        let checked = String::from_utf8(run(&["object", "check", &image]).stdout).unwrap();
        assert!(checked.contains("0 wrong; 1 files"), "{stack}: {checked}");
    }
    fails(&["object", "check", &path("block")], 1, &["stack block keeps no objects"]);
    fails(&["object", "check", &path("none")], 1, &["none: no such image"]);
}
