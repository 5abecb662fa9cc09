use super::*;
use crate::{metadata, status};
use nandscape_policies::{admission, cleaning};
use std::collections::BTreeMap;

fn typed(choices: &[Choice]) -> BTreeMap<String, String> {
    let params = choices.iter().flat_map(|choice| choice.params);
    params.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn every_admission_of_a_preset_can_be_built_with_its_parameters() {
    for preset in PRESETS {
        let names: Vec<&str> = preset.admission.iter().map(|choice| choice.name).collect();
        let built = admission::Chain::build(&names.join(","), "cache.", &typed(preset.admission), 1024, 1);
        assert!(built.is_ok(), "{}: {:?}", preset.info.name, built.err());
    }
}

#[test]
fn every_cleaning_of_a_preset_can_be_built_with_its_parameters() {
    for preset in PRESETS {
        let shape = (1 << 16, preset.map.ways(1 << 16), preset.block_bytes);
        for choice in preset.cleaning {
            let built = cleaning::build(choice.name, "cache.", &typed(&[*choice]), shape);
            assert!(built.is_ok(), "{}: {:?}", preset.info.name, built.err());
        }
    }
}

#[test]
fn every_kind_of_metadata_of_a_preset_exists() {
    for preset in PRESETS {
        assert!(metadata::find(preset.metadata.name).is_ok(), "{}", preset.info.name);
        assert!(
            preset.metadata.params.is_empty(),
            "{}: kinds of metadata have no parameters",
            preset.info.name
        );
    }
}

#[test]
fn every_preset_has_printers_and_every_printer_a_preset() {
    let presets: Vec<&str> = PRESETS.iter().map(|preset| preset.info.name).collect();
    let printers: Vec<&str> = status::PRINTERS.iter().map(|printer| printer.info.name).collect();
    assert_eq!(presets, printers);
    for name in presets {
        assert_eq!(find(name).expect(name).info.name, name);
    }
    assert!(find("dmcache").is_err());
}

#[test]
fn defaults_are_among_what_a_preset_allows() {
    for preset in PRESETS {
        let name = preset.info.name;
        assert!(preset.modes.contains(&preset.mode), "{name}");
        let (least, most) = preset.block_range;
        assert!(
            least.is_power_of_two() && most.is_power_of_two() && preset.block_bytes.is_power_of_two(),
            "{name}"
        );
        assert!((least..=most).contains(&preset.block_bytes), "{name}");
    }
}

#[test]
fn what_a_cut_leaves_agrees_with_mode_and_metadata() {
    for preset in PRESETS {
        let name = preset.info.name;
        let is_volatile = matches!(preset.metadata.name, "none" | "at-removal");
        let left = preset.after_cut;
        assert_eq!(is_volatile, matches!(left, AfterCut::EmptyCache | AfterCut::DirtyLost), "{name}");
        assert_eq!(left.keeps_flushed(), !(is_volatile && preset.mode.makes_dirty()), "{name}");
        assert!(!left.keeps_clean() || !is_volatile, "{name}");
        assert!(!preset.flushing_source.is_empty(), "{name}");
    }
}

#[test]
fn settings_list_the_parameters_that_are_not_defaults() {
    let settings = find("dm-cache").expect("a preset").settings();
    let text: Vec<String> = settings.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    let expected = [
        "block = 32 KiB",
        "map = full",
        "mode = write-back",
        "eviction = smq",
        "admission = n-hit",
        "hits = 2",
        "hits_from = 0%",
        "cleaning = smq",
        "metadata = periodic",
        "flushing = cache-device",
    ];
    assert_eq!(text, expected);
    let sets = find("flashcache").expect("a preset").settings();
    assert!(
        sets.contains(&("cluster".into(), "256 KiB".into())) && sets.contains(&("ways".into(), "512".into()))
    );
}

#[test]
fn sets_and_clusters_follow_the_block_as_in_the_originals() {
    let at = |name: &str, block| find(name).expect("a preset").map_with(block);
    for (block, ways) in [(2048, 128), (4096, 256), (8192, 512)] {
        assert_eq!(at("enhanceio", block), Map::Linear { ways }, "{block}");
    }
    for block in [512, 4096, 65_536] {
        let expected = Map::ClusterHashed { ways: 1024, cluster: 512 };
        assert_eq!(at("dm-cache-fiu", block), expected, "512 blocks share a set");
        let expected = Map::ClusterHashed { ways: 512, cluster: (256 << 10) / block };
        assert_eq!(at("flashcache", block), expected, "as many bytes");
    }
    assert_eq!(at("nandscape", 65_536), Map::Full);
}
