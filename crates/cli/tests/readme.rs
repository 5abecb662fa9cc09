//! Every `nandscape` command of the README runs, on a copy of the shipped trace and job file.

use std::path::Path;
use std::process::Command;

#[test]
fn the_commands_of_the_readme_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    std::fs::copy(root.join("traces/lammps.block.csv.zst"), dir.path().join("my.csv.zst")).unwrap();
    std::fs::create_dir(dir.path().join("configs")).unwrap();
    std::fs::copy(root.join("configs/random-read.fio"), dir.path().join("configs/random-read.fio")).unwrap();
    let mut commands = 0;
    let mut in_block = false;
    for line in readme.lines() {
        if line.starts_with("```") {
            in_block = !in_block;
        }
        let Some(arguments) = line.strip_prefix("nandscape ").filter(|_| in_block) else { continue };
        let arguments = arguments.split(" #").next().unwrap_or_default();
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
    assert!(commands >= 5, "the README shows only {commands} commands");
    assert!(dir.path().join("out.html").exists());
}
