//! `[faults]`: checked, printed so that it reads back, and what it does to a device.

use nandscape_core::command::Payload;
use nandscape_core::{BlockCommand, Extent, Hint, Op, SimTime};
use nandscape_stack::build::BuildOptions;
use nandscape_stack::{Typed, build};

const SMALL: &[(&str, &str)] = &[
    ("device.channels", "2"),
    ("device.dies_per_channel", "1"),
    ("device.planes_per_die", "1"),
    ("device.blocks_per_plane", "16"),
    ("device.pages_per_block", "8"),
];

fn typed(pairs: &[(&str, &str)]) -> Typed {
    let mut typed = Typed::new();
    for (key, value) in SMALL.iter().chain(pairs) {
        typed.set(key, value).unwrap();
    }
    typed
}

/// Writes page after page of 16 KiB; gives how many were written before an error, and the error.
fn written(pairs: &[(&str, &str)]) -> (u64, String) {
    let config = typed(pairs).check().unwrap();
    let mut namespace = build(&config, BuildOptions::default()).unwrap();
    let page = u64::from(config.geometry.page_bytes);
    for number in 0..100 {
        let command = BlockCommand::new(Op::Write, Extent::new(number * page, page), Hint::default());
        if let Err(error) = namespace.submit(0, command.into(), Payload::None, SimTime(number)) {
            return (number, error.to_string());
        }
    }
    (100, String::new())
}

#[test]
fn faults_reach_the_device_of_a_replay() {
    assert_eq!(written(&[]), (100, String::new()));
    let (count, error) = written(&[("faults.power_cut", "7")]);
    assert_eq!(count, 7);
    assert!(error.contains("the power was cut at operation 7"), "{error}");
}

#[test]
fn a_script_becomes_part_of_the_list() {
    let path = std::env::temp_dir().join(format!("nandscape-faults-{}", std::process::id()));
    std::fs::write(&path, "# two\n5 program-fail\n\n6 slow die=1 factor=2 # slow\n").unwrap();
    let name = path.to_str().unwrap();
    let config = typed(&[("faults.script", name), ("faults.list", "1 erase-fail")]).check().unwrap();
    let toml = config.to_toml();
    assert!(toml.contains("list = \"1 erase-fail; 5 program-fail; 6 slow die=1 factor=2\""), "{toml}");
    assert_eq!(config.faults.plan.script.len(), 3);
    let mut again = Typed::new();
    again.merge_text("again", &toml).unwrap();
    assert_eq!(again.check().unwrap().hash(), config.hash());
    std::fs::write(&path, "5 program-fail\n6 explode\n").unwrap();
    let error = typed(&[("faults.script", name)]).check().unwrap_err().to_string();
    assert!(error.contains(&format!("{name}:2")) && error.contains("explode"), "{error}");
    std::fs::remove_file(&path).unwrap();
    assert!(typed(&[("faults.script", name)]).check().unwrap_err().to_string().contains(name));
}

#[test]
fn what_cannot_be_is_refused_by_its_key() {
    for (key, value, part) in [
        ("faults.program", "2", "faults.program"),
        ("faults.stuck", "x", "faults.stuck"),
        ("faults.stuck", "2", "die 2"),
        ("faults.slow", "1", "faults.slow"),
        ("faults.slow", "1:0", "faults.slow"),
        ("faults.list", "5 explode", "faults.list"),
        ("faults.power_cut", "-1", "faults.power_cut"),
        ("faults.power_cut_kind", "gone", "faults.power_cut_kind"),
        ("faults.color", "red", "color"),
    ] {
        let error = typed(&[(key, value)]).check().unwrap_err().to_string();
        assert!(error.contains(part), "{key} = {value}: {error}");
    }
    let slow = typed(&[("faults.slow", "1:2"), ("device.compression", "0.5")]).check();
    assert!(slow.unwrap_err().to_string().contains("compression"));
}

#[test]
fn without_the_table_nothing_changes() {
    assert!(!typed(&[]).check().unwrap().to_toml().contains("faults"));
}
