//! Every `nandscape` command of the README runs, on a copy of the shipped trace and job file.
#![expect(clippy::print_stderr, reason = "a skip that is seen")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Words as a shell has them, some of them in single quotes.
fn words(arguments: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (number, part) in arguments.split('\'').enumerate() {
        if number % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

fn nandscape(arguments: &str, dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
    // No other server is found there.
    command.args(words(arguments)).current_dir(dir).env("XDG_RUNTIME_DIR", dir);
    command
}

/// A server, ended in good order also by a test that fails.
struct Server(Child);

impl Server {
    /// Starts one and waits until it says that it is ready.
    fn start(arguments: &str, dir: &Path) -> Self {
        let mut server = Self(nandscape(arguments, dir).stdout(Stdio::piped()).spawn().unwrap());
        let mut line = String::new();
        BufReader::new(server.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "nandscape {arguments} did not become ready");
        server
    }

    fn end(&mut self) -> bool {
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        self.0.wait().is_ok_and(|status| status.success())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let is_good = self.end();
        assert!(is_good || std::thread::panicking(), "the server did not end in good order");
    }
}

/// Why a server of the kernel's file systems cannot run here.
fn no_fuse() -> Option<&'static str> {
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout.starts_with(b"0"));
    let has = |path: &str| Path::new(path).exists();
    match (is_root, has("/dev/fuse") && has("/dev/loop-control")) {
        (true, true) => None,
        (false, _) => Some("it takes root"),
        (true, false) => Some("/dev/fuse or /dev/loop-control is absent"),
    }
}

#[test]
fn the_commands_of_the_readme_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    std::fs::copy(root.join("traces/lammps.block.csv.zst"), dir.path().join("my.csv.zst")).unwrap();
    std::fs::create_dir(dir.path().join("configs")).unwrap();
    std::fs::create_dir(dir.path().join("traces")).unwrap();
    for shipped in [
        "traces/pgbench.block.csv.zst",
        "traces/lammps.block.csv.zst",
        "configs/random-read.fio",
        "configs/hosts.fio",
    ] {
        std::fs::copy(root.join(shipped), dir.path().join(shipped)).unwrap();
    }
    std::fs::File::create(dir.path().join("disk.img")).unwrap().set_len(64 << 20).unwrap();
    let (mut commands, mut shown) = (0, 0);
    let (mut in_block, mut in_output) = (false, false);
    // What the last command printed, which a block of text below it shows in part.
    let mut printed = String::new();
    let mut server = None;
    for line in readme.lines() {
        if line.starts_with("```") {
            in_block = !in_block;
            in_output = line == "```text";
        } else if in_output {
            assert!(
                printed.lines().any(|own| own == line),
                "'{line}' is not what the command above prints:\n{printed}"
            );
            shown += 1;
        }
        let Some(arguments) = line.strip_prefix("nandscape ").filter(|_| in_block) else { continue };
        let arguments = arguments.split(" #").next().unwrap_or_default();
        commands += 1;
        if arguments.starts_with("serve") {
            drop(server.take());
            match no_fuse().filter(|_| arguments.starts_with("serve fuse")) {
                Some(why) => eprintln!("SKIP: nandscape {arguments}: {why}"),
                None => server = Some(Server::start(arguments, dir.path())),
            }
            continue;
        }
        if !arguments.starts_with("stat") {
            drop(server.take());
        }
        let output = nandscape(arguments, dir.path()).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "nandscape {arguments}: {stderr}");
        printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(!output.stdout.is_empty() || !stderr.is_empty(), "nandscape {arguments} said nothing");
    }
    drop(server.take());
    assert!(shown >= 5, "the README shows {shown} lines of output");
    assert!(commands >= 5, "the README shows only {commands} commands");
    assert!(dir.path().join("out.html").exists());
}
