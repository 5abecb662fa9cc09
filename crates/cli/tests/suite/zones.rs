//! Zones as people see them: reports of images and servers, the strip of a watched server, and what goes
//! wrong.

use serde_json::Value;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

const DEVICE: &str = "[device]\nchannels = 2\ndies_per_channel = 2\nplanes_per_die = 1\nblocks_per_plane = 32\n\
                      pages_per_block = 16\npage = \"4KiB\"\nsector = \"4KiB\"\n";

fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
    command.current_dir(folder).env("XDG_RUNTIME_DIR", folder).env("LC_ALL", "C.UTF-8");
    command
}

fn run(folder: &Path, args: &[&str]) -> Output {
    command(folder).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A folder with an image of a stack.
fn image(stack: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("device.toml"), DEVICE).unwrap();
    let args =
        ["image", "create", "z.nand", "--stack", stack, "--config", "device.toml", "--set", "zone.dies=1"];
    let args = if stack == "block" { &args[..7] } else { &args[..] };
    let made = run(folder.path(), args);
    assert!(made.status.success(), "{}", text(&made.stderr));
    folder
}

/// A server of that image, which ends with this.
struct Server(Child);

impl Server {
    fn start(folder: &Path) -> Self {
        let args = ["serve", "nbd", "--image", "z.nand", "--socket", "n.sock", "--control", "c.sock"];
        let mut child =
            command(folder).args(args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("listening"), "{line}");
        Self(child)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn zone(folder: &Path, args: &[&str]) {
    let output = run(folder, &[&["zone"], args, &["--socket", "c.sock"]].concat());
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
}

#[test]
fn a_watched_server_shows_its_zones_below_each_line_without_escapes_in_a_pipe() {
    let folder = image("zone");
    let path = folder.path();
    let _server = Server::start(path);
    zone(path, &["open", "--zone", "1"]);
    zone(path, &["finish", "--zone", "2"]);
    let mut watch = command(path)
        .args(["stat", "c.sock", "--watch=0.1"])
        .env("COLUMNS", "60")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut strip = || -> Vec<String> {
        let first = lines.by_ref().find(|line| line.starts_with("   zones ")).unwrap();
        let rest = lines.by_ref().take_while(|line| !line.contains("share:"));
        std::iter::once(first).chain(rest).collect()
    };
    let before = strip();
    zone(path, &["close", "--zone", "1"]);
    strip();
    let after = (0..20).map(|_| strip()).find(|strip| strip.join("\n").contains(" c closed 1"));
    watch.kill().unwrap();
    watch.wait().unwrap();
    let (before, after) = (before.join("\n"), after.expect("the strip follows the zones").join("\n"));
    for (shown, states) in [(&before, "eofe"), (&after, "ecfe")] {
        assert!(shown.contains(&format!("\n       0 {states}")), "{shown}");
        assert!(shown.contains("\n written   █ "), "{shown}");
        assert!(!shown.contains('\u{1b}') && shown.lines().all(|line| line.chars().count() <= 60), "{shown}");
    }
    assert!(before.contains("open 1 (no limit), active 1 (no limit)"), "{before}");

    let once = text(&run(path, &["stat", "c.sock"]).stdout);
    assert!(once.contains("       0 ecfe") && once.contains("DRAM of the device"), "{once}");
    let document: Value = serde_json::from_slice(&run(path, &["stat", "c.sock", "--json"]).stdout).unwrap();
    assert_eq!(document["zones"]["counts"], Value::Null, "counts are beside the rest");
    assert_eq!(document["zones"]["finishes"], 1);
    assert!(document["zones"]["history"]["columns"][0]["states"].as_str().unwrap().starts_with("ecfe"));
}

#[test]
fn in_a_terminal_the_strip_stays_below_the_last_line_and_colour_can_be_left_out() {
    if Command::new("script").arg("--version").output().is_err() {
        #[expect(clippy::print_stderr, reason = "a skip must be seen")]
        {
            eprintln!("SKIP: no script in PATH: the strip was not shown in a terminal");
        }
        return;
    }
    let folder = image("zone-map");
    let path = folder.path();
    let _server = Server::start(path);
    let shown = |no_colour: &str| {
        let inside = format!(
            "stty cols 70 rows 18; exec timeout -s INT 3 {} stat c.sock --watch=0.2",
            env!("CARGO_BIN_EXE_nandscape")
        );
        let output = Command::new("script")
            .args(["-qec", &inside, "/dev/null"])
            .current_dir(path)
            .envs([("NO_COLOR", no_colour), ("TERM", "xterm"), ("LC_ALL", "C.UTF-8")])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        text(&output.stdout)
    };
    let coloured = shown("");
    // Before every line but the first, as many lines up as the strip has.
    let strip: Vec<&str> = coloured.split("   zones ").nth(1).unwrap().split("share:").collect();
    let up = format!("\u{1b}[{}A\u{1b}[J", strip[0].lines().count());
    assert!(coloured.matches(&up).count() >= 2, "{up:?} in {coloured:?}");
    assert!(coloured.contains("\u{1b}[90me"), "{coloured:?}");
    assert!(coloured.contains("valid"), "{coloured:?}");
    let plain = shown("1");
    assert!(!plain.contains("\u{1b}[90m") && plain.contains(&up), "{plain:?}");
}

#[test]
fn reports_know_what_is_valid_where_the_host_maps_zones() {
    let folder = image("zone-map");
    let path = folder.path();
    let document: Vec<Value> =
        serde_json::from_slice(&run(path, &["zone", "report", "z.nand", "--json"]).stdout).unwrap();
    assert!(document[0].get("valid").is_none() && document[10]["valid"] == 0, "{:?}", &document[..11]);
    let table = text(&run(path, &["zone", "report", "z.nand"]).stdout);
    assert!(table.lines().next().unwrap().contains("written       valid  state"), "{table}");
    assert!(table.lines().nth(11).unwrap().contains("0 %  empty"), "{table}");
    let raw = image("zone");
    let table = text(&run(raw.path(), &["zone", "report", "z.nand"]).stdout);
    assert!(!table.contains("valid") && !table.contains('%'), "{table}");
}

#[test]
fn what_cannot_be_reported_is_named_and_a_closed_pipe_is_no_failure() {
    let folder = image("zone");
    let path = folder.path();
    let block = image("block");
    std::fs::copy(block.path().join("z.nand"), path.join("block.nand")).unwrap();
    let map = image("zone-map");
    std::fs::copy(map.path().join("z.nand"), path.join("map.nand")).unwrap();
    let files = image("zone-files");
    std::fs::copy(files.path().join("z.nand"), path.join("files.nand")).unwrap();
    let content = |name: &str| std::fs::read(path.join(name)).unwrap();
    let before = ["map.nand", "files.nand"].map(content);
    std::fs::write(path.join("empty.nand"), "").unwrap();
    std::fs::write(path.join("noise.nand"), [0x5a; 9000]).unwrap();
    let mut bytes = Vec::new();
    std::fs::File::open(path.join("z.nand")).unwrap().take(5000).read_to_end(&mut bytes).unwrap();
    std::fs::write(path.join("short.nand"), bytes).unwrap();
    for (args, status, wanted) in [
        (&["report", "none.nand"][..], 1, "none.nand: no such image"),
        (&["report", "."], 1, ".: a directory"),
        (&["report", "empty.nand"], 1, "empty.nand: offset 0: not an image"),
        (&["report", "noise.nand"], 1, "noise.nand: offset 0: not an image"),
        (&["report", "short.nand"], 1, "short.nand: "),
        (&["report", "block.nand"], 1, "block.nand: zone management is not supported"),
        (&["reset", "map.nand", "--all"], 1, "map.nand: zone management is not supported"),
        (&["report", "z.nand", "--zone", "4000"], 1, "zone 4000: LBA Out of Range: expected a zone below "),
        (&["close", "z.nand", "--zone", "1"], 1, "zone 1: Invalid Zone State Transition: the zone is empty"),
        (&["reset", "files.nand", "--zone", "1"], 1, "files.nand: zone 1: zone management is not supported"),
        (&["report", "--socket", "gone.sock"], 1, "gone.sock: No such file"),
        (&["reset", "z.nand"], 2, "expected --zone N, or --all"),
    ] {
        let output = run(path, &[&["zone"], args, &["--json"]].concat());
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{args:?}: {message}");
        assert!(message.contains(wanted) && !message.contains("panicked"), "{args:?}: {message}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }

    assert!(before == ["map.nand", "files.nand"].map(content), "what is refused changes nothing");

    // A server that was killed, and one that is killed while it is watched.
    let server = Server::start(path);
    let mut watch = command(path)
        .args(["stat", "c.sock", "--watch=0.1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    let mut lines = BufReader::new(watch.stdout.take().unwrap());
    lines.read_line(&mut first).unwrap();
    drop(server);
    std::io::copy(&mut lines, &mut std::io::sink()).unwrap();
    let ended = watch.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(1));
    assert!(text(&ended.stderr).contains("c.sock: "), "{}", text(&ended.stderr));
    let gone = run(path, &["zone", "report", "--socket", "c.sock"]);
    assert!(text(&gone.stderr).contains("c.sock: Connection refused"), "{}", text(&gone.stderr));

    let mut child = command(path)
        .args(["zone", "report", "z.nand", "--json"])
        .stdout(closed_pipe())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let status = child.wait().unwrap();
    let mut message = String::new();
    child.stderr.take().unwrap().read_to_string(&mut message).unwrap();
    assert!(status.success() && message.is_empty(), "{status}: {message}");
}

/// The end of a pipe that nobody reads.
fn closed_pipe() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

#[test]
fn one_run_recorded_as_file_operations_and_as_commands_stands_in_one_table() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    // A log that grows, and a file that is overwritten in place.
    let mut ops = String::from("ts_us,op,pid,file,offset,len\n1,create,5,1,0,0\n1,create,5,2,0,0\n");
    for at in 0..200u64 {
        writeln!(ops, "{},write,5,1,{},131072", 2 + at * 10, at * 131_072).unwrap();
        writeln!(ops, "{},write,5,2,{},8192", 3 + at * 10, at * 7919 % 16 * 8192).unwrap();
        writeln!(ops, "{},fsync,5,1,0,0", 4 + at * 10).unwrap();
    }
    std::fs::write(path.join("run.ops.csv"), ops).unwrap();
    let converted = run(path, &["trace", "convert", "run.ops.csv", "-o", "device.csv"]);
    assert!(converted.status.success(), "{}", text(&converted.stderr));

    let output = run(path, &["trace", "stats", "run.ops.csv", "device.csv", "--json"]);
    let levels: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    let names: Vec<&str> = levels.iter().map(|level| level["level"].as_str().unwrap()).collect();
    assert_eq!(names, ["files", "blocks below a file system model", "blocks"]);
    let files = &levels[0]["patterns"];
    assert_eq!((&files["whole"]["requests"], &files["whole"]["large"]), (&400.into(), &200.into()));
    assert_eq!((&files["written"]["count"], &files["append_only"]["count"]), (&2.into(), &1.into()));
    assert_eq!(files["append_only"]["write_bytes"], 200 * 131_072);
    assert_eq!(files["streams"][0]["class"], "large-sequential-append");
    // Its places are so few that each write starts where one of the last 32 ended.
    assert_eq!(files["streams"][1]["class"], "small-sequential-overwrite");
    assert_eq!(levels[1]["patterns"]["whole"], levels[2]["patterns"]["whole"], "one run, told in two ways");

    let table = text(&run(path, &["trace", "stats", "run.ops.csv", "--levels", "--report", "l.html"]).stdout);
    assert!(
        table.contains("append-only") && table.contains("1 of 2 written, 94.1 % of their bytes"),
        "{table}"
    );
    assert!(std::fs::read_to_string(path.join("l.html")).unwrap().contains("run.ops.csv: files"));
    let missing = run(path, &["trace", "stats", "run.ops.csv", "none.csv"]);
    assert!(text(&missing.stderr).contains("none.csv") && missing.status.code() == Some(1), "{missing:?}");
}
