//! Configuration: layers override each other in order, mistakes are refused by key, value and expectation,
//! and what is printed reads back.

use nandscape_core::Info;
use nandscape_stack::presets::PRESETS;
use nandscape_stack::{StackConfig, Typed};

fn check(texts: &[&str], sets: &[&str]) -> Result<StackConfig, String> {
    let mut typed = Typed::new();
    for text in texts {
        typed.merge_text("test.toml", text).map_err(|e| e.to_string())?;
    }
    for pair in sets {
        typed.set_pair(pair).map_err(|e| e.to_string())?;
    }
    typed.check().map_err(|e| e.to_string())
}

fn error(texts: &[&str], sets: &[&str]) -> String {
    check(texts, sets).map(|_| ()).unwrap_err()
}

#[test]
fn the_default_stack_is_page_map_on_generic_tlc() {
    let config = check(&[], &[]).unwrap();
    assert_eq!(config.ftl, "page-map");
    let mut preset = Typed::new();
    preset.merge_preset("generic-tlc").unwrap();
    assert_eq!(config.hash(), preset.check().unwrap().hash(), "the built-in defaults are the preset's");
}

#[test]
fn later_layers_override_earlier_ones() {
    let file = "[device]\nchannels = 4\n[ftl]\nkind = \"page-map\"\nop = 0.1\n";
    let config = check(&[file, "[device]\nchannels = 2\n"], &["ftl.op=0.07"]).unwrap();
    assert_eq!(config.geometry.channels, 2);
    assert!(config.ftl_params.iter().any(|(param, text)| (param.name, text) == ("op", "0.07")));
}

#[test]
fn another_kind_of_layer_starts_from_its_own_defaults() {
    let config =
        check(&["[ftl]\nkind = \"page-map\"\nop = 0.1\n", "[ftl]\nkind = \"pm-gcl\"\n"], &[]).unwrap();
    assert_eq!(config.ftl, "pm-gcl");
}

#[test]
fn a_preset_that_is_set_after_a_key_does_not_take_the_key_away() {
    let hash = |sets: &[&str]| check(&[], sets).unwrap().hash();
    let sets = ["device.preset=thesis", "device.blocks_per_plane=32", "device.channels=4", "ftl.op=0.5"];
    let [preset, blocks, channels, op] = sets;
    let config = check(&[], &[blocks, op, preset, channels]).unwrap();
    assert_eq!((config.geometry.blocks_per_plane, config.geometry.channels), (32, 4));
    assert_eq!(config.hash(), hash(&sets));
    assert_eq!(hash(&[channels, op, blocks, preset]), hash(&sets));
    // Of the same key the later one counts, presets too.
    assert_eq!(hash(&["device.preset=generic-tlc", preset, blocks, channels, op]), hash(&sets));
    assert_eq!(hash(&["device.channels=2", preset, channels, blocks, op]), hash(&sets));
    // Keys of a file are below a preset that is set.
    let over = check(&["[device]\nblocks_per_plane = 8\n"], &[preset]).unwrap();
    assert_eq!(over.geometry.blocks_per_plane, check(&[], &[preset]).unwrap().geometry.blocks_per_plane);
}

#[test]
fn a_file_may_name_a_preset_and_override_it() {
    let config = check(&["[device]\npreset = \"thesis\"\nblocks_per_plane = 32\n"], &[]).unwrap();
    assert_eq!((config.geometry.channels, config.geometry.blocks_per_plane), (8, 32));
    assert_eq!(config.depth, Some(1), "the thesis preset issues one request at a time");
}

#[test]
fn mistakes_name_key_value_and_expectation() {
    for (texts, sets, wanted) in [
        (&["[device]\nchanels = 4"][..], &[][..], &["device.chanels", "known keys: channels"][..]),
        (&["[device]\nchannels = 0"], &[], &["device.channels = '0'", "1 to 4096"]),
        (&["[device]\npage = 1000\nsector = 1000"], &[], &["multiple of 512"]),
        (&["[device]\nsector = \"12KiB\""], &[], &["device.sector", "divisor of device.page"]),
        (&["[device.timing]\nread = 60"], &[], &["device.timing.read = '60'", "a time such as 50us"]),
        (&["[device.timing]\nread = \"2000000s\""], &[], &["device.timing.read", "at most one hour"]),
        (&["[device]\nendurance = \"lots\""], &[], &["device.endurance", "'endless'"]),
        (&["[device]\nbad_blocks = \"100%\""], &[], &["device.bad_blocks"]),
        (&["[ftl]\nkind = \"pagemap\""], &[], &["unknown ftl 'pagemap'", "page-map"]),
        (&["[ftl]\nop = -1"], &[], &["ftl.op = '-1'"]),
        (&["[flt]\nop = 1"], &[], &["flt", "unknown table"]),
        (&["[device\n"], &[], &["test.toml", "line 1"]),
        (&["[device]\npreset = \"tesis\""], &[], &["unknown device 'tesis'", "thesis"]),
        (&[], &["op=1"], &["dotted key"]),
        (&[], &["ftl.op"], &["key=value"]),
        (&[], &["workload.precondition=fil"], &["expected fill"]),
        (&[], &["workload.depth=x"], &["workload.depth = 'x'"]),
        (&["device = 3"], &[], &["device", "expected a table"]),
    ] {
        let message = error(texts, sets);
        for part in wanted {
            assert!(message.contains(part), "{texts:?} {sets:?}: '{message}' lacks '{part}'");
        }
    }
}

#[test]
fn what_is_printed_reads_back_as_the_same_stack() {
    for preset in PRESETS {
        let mut typed = Typed::new();
        typed.merge_preset(preset.info.name).unwrap();
        let config = typed.check().unwrap();
        let again = check(&[&config.to_toml()], &[]).unwrap();
        assert_eq!(config.to_toml(), again.to_toml(), "{}", preset.info.name);
        assert_eq!(config.hash(), again.hash());
    }
    let ftls: Vec<&'static Info> = nandscape_ftl::registry::infos();
    for ftl in ftls {
        let config = check(&["[device]\npreset = \"thesis\""], &[&format!("ftl.kind={}", ftl.name)]).unwrap();
        let again = check(&[&config.to_toml()], &[]).unwrap();
        assert_eq!(config.to_toml(), again.to_toml(), "{}", ftl.name);
    }
}

#[test]
fn every_preset_builds_with_its_layer() {
    for preset in PRESETS {
        let mut typed = Typed::new();
        typed.merge_preset(preset.info.name).unwrap();
        let config = typed.check().unwrap();
        let namespace =
            nandscape_stack::build(&config, nandscape_stack::build::BuildOptions::default()).unwrap();
        assert!(namespace.namespaces()[0].capacity_bytes > 0, "{}", preset.info.name);
    }
}
