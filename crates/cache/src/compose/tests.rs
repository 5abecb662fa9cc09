use super::*;
use crate::presets::{Choice, Partial, Victims};
use nandscape_core::command::Payload;
use nandscape_core::{BlockCommand, Extent, Hint, Op};
use nandscape_policies::BlockKey;
use nandscape_policies::eviction::EVICTIONS;

fn typed(pairs: &[(&str, &str)]) -> Typed {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn refusal(pairs: &[(&str, &str)]) -> String {
    Design::parse("cache.", &typed(pairs)).expect_err("wrong").to_string()
}

/// Memory.
fn store(bytes: u64) -> BoxedStore {
    nandscape_disk::registry::build("ram", "disk.", &Typed::new(), bytes, nandscape_disk::Keep::Bytes)
        .expect("a store")
}

fn ask(cache: &mut Cache<AnyEviction>, op: Op, offset: u64, bytes: &mut [u8]) {
    let command = BlockCommand::new(op, Extent::new(offset, bytes.len() as u64), Hint::default());
    let payload = if op == Op::Read { Payload::Read(bytes) } else { Payload::Write(bytes) };
    cache.submit(0, command, payload, SimTime::ZERO).expect("no error");
}

#[test]
fn every_preset_makes_a_cache_that_gives_back_what_was_written() {
    for preset in PRESETS {
        let name = preset.info.name;
        let design = Design::parse("", &typed(&[("preset", name)])).expect(name);
        let (fast, disks) = (store(8 << 20), vec![Disk { store: store(16 << 20), uuid: [1; 16] }]);
        let mut cache = design.create(fast, disks, [7; 16], SimTime::ZERO).expect(name).cache;
        assert_eq!((cache.mode(), design.quirks), (preset.mode, preset.quirks), "{name}");
        for at in [0, 4096, 1 << 20, (16 << 20) - 32768] {
            ask(&mut cache, Op::Write, at, &mut vec![name.len() as u8; 32768]);
        }
        let mut bytes = vec![0; 32768];
        ask(&mut cache, Op::Read, 1 << 20, &mut bytes);
        assert!(bytes.iter().all(|byte| *byte == name.len() as u8), "{name}");
        cache.check_invariants();
        if preset.mode.makes_dirty() && preset.admission == [Choice { name: "all", params: &[] }] {
            let key = BlockKey::new(0, (1 << 20) / u64::from(preset.block_bytes));
            assert!(cache.entry(key).is_some_and(|entry| entry.dirty != 0), "{name}");
        }
    }
}

#[test]
fn a_size_is_met_exactly_with_every_kind_of_metadata() {
    for kind in metadata::KINDS {
        for (size, slots) in [("1000b", 1000), ("4MiB", 1024), ("1b", 1)] {
            let mode = if kind.info.name == "none" { "write-through" } else { "write-back" };
            let pairs = [("size", size), ("metadata", kind.info.name), ("mode", mode)];
            let design = Design::parse("cache.", &typed(&pairs)).expect("a design");
            let made = design.create(store(8 << 20), vec![], [1; 16], SimTime::ZERO).expect("it fits");
            assert_eq!(made.cache.slots(), slots, "{} of {size}", kind.info.name);
            let small = design.create(store(u64::from(slots) * 4096 - 512), vec![], [1; 16], SimTime::ZERO);
            assert!(matches!(small, Err(ComposeError::Metadata(MetadataError::TooSmall { .. }))));
        }
    }
}

#[test]
fn what_is_typed_stands_over_the_preset() {
    let pairs = [
        ("preset", "flashcache"),
        ("map", "linear"),
        ("ways", "16"),
        ("eviction", "two-list"),
        ("hot", "50%"),
        ("admission", "sequential,tags"),
        ("sequential_read", "64KiB"),
        ("tags_deny", "4"),
        ("fallow_delay", "1s"),
        ("clean_iops", "100"),
        ("victims", "any"),
    ];
    let design = Design::parse("cache.", &typed(&pairs)).expect("a design");
    assert_eq!(design.map, Map::Linear { ways: 16 });
    assert_eq!(design.quirks.victims, Victims::Any);
    assert_eq!(design.quirks.partial, Partial::Uncached, "as of the preset");
    let settings = design.settings();
    let has = |key: &str, value: &str| settings.iter().any(|(k, v)| (k.as_str(), v.as_str()) == (key, value));
    for (key, value) in pairs.iter().filter(|(key, _)| *key != "victims") {
        assert!(has(key, value), "{key} = {value} in {settings:?}");
    }
    assert!(has("promote", "2") && has("cleaning", "set-threshold,idle-age"), "{settings:?}");
    let again = Design::parse("cache.", design.typed()).expect("the same");
    assert_eq!(again.settings(), settings);
    let lines = design.text();
    let pairs = lines.lines().map(|line| line.split_once(" = ").expect("a key and a value"));
    let typed = pairs.map(|(key, value)| (key.to_owned(), unquoted(value).expect("in quotes"))).collect();
    assert_eq!(design.typed(), &typed, "what the text of the settings says");
}

#[test]
fn a_cluster_of_dm_cache_of_fiu_is_no_larger_than_a_set_unless_it_was_asked_for() {
    let map = |ways, pairs: &[(&str, &str)]| {
        let pairs = [&[("preset", "dm-cache-fiu"), ("ways", ways)], pairs].concat();
        Design::parse("cache.", &typed(&pairs)).unwrap().map
    };
    assert_eq!(map("16", &[]), Map::ClusterHashed { ways: 16, cluster: 16 });
    assert_eq!(map("2048", &[("block", "8k")]), Map::ClusterHashed { ways: 2048, cluster: 512 });
    assert_eq!(map("16", &[("cluster", "2MiB")]), Map::ClusterHashed { ways: 16, cluster: 512 });
}

#[test]
fn a_table_line_of_dm_cache_means_its_design() {
    let design = |line: &str| {
        let line = crate::status::TableLine::parse(line).unwrap();
        Design::parse("cache.", &line.typed()).unwrap()
    };
    let article = design("0 20971520 cache /dev/sda3 /dev/sdb 0 8 65536 16 1");
    let map = Map::ClusterHashed { ways: 16, cluster: 16 };
    assert_eq!((article.slots, article.map, article.block_bytes), (Some(65_536), map, 4096));
    assert_eq!((article.preset.info.name, article.mode), ("dm-cache-fiu", Mode::WriteBack));
    let plain = design("0 9 cache a b");
    assert_eq!((plain.map, plain.mode), (plain.preset.map, Mode::WriteThrough));
}

#[test]
fn parameters_of_a_preset_hold_for_its_own_choice_only() {
    let hits = |pairs: &[(&str, &str)]| {
        let settings = Design::parse("", &typed(pairs)).expect("a design").settings();
        settings.into_iter().find(|(key, _)| key == "hits").map(|(_, value)| value)
    };
    assert_eq!(hits(&[("preset", "dm-cache")]).as_deref(), Some("2"));
    assert_eq!(hits(&[("preset", "dm-cache"), ("hits", "4")]).as_deref(), Some("4"));
    assert_eq!(hits(&[("preset", "dm-cache"), ("admission", "all")]), None);
    assert_eq!(hits(&[("admission", "n-hit")]), None, "nandscape's own leaves the default");
}

#[test]
fn a_wrong_key_or_value_is_named_with_what_was_expected() {
    let cases: &[(&[(&str, &str)], &str)] = &[
        (&[("preset", "dmcache")], "unknown preset 'dmcache'; known: nandscape, dm-cache-fiu, flashcache"),
        (
            &[("mod", "write-back")],
            "unknown key 'cache.mod' for a cache of preset nandscape; known keys: preset, block",
        ),
        (&[("hits", "2")], "unknown key 'cache.hits'"),
        (&[("mode", "writeback")], "cache.mode = 'writeback': expected one of write-back, write-through"),
        (
            &[("preset", "rapidcache"), ("mode", "write-back")],
            "cache.mode = 'write-back': expected one of write-through, write-around with preset rapidcache",
        ),
        (&[("metadata", "none")], "cache.mode = 'write-back': expected a mode that leaves nothing dirty"),
        (&[("metadata", "log")], "cache.metadata = 'log': expected one of journal"),
        (
            &[("preset", "rapidcache"), ("block", "8k")],
            "cache.block = '8k': expected 4 KiB with preset rapidcache",
        ),
        (&[("block", "3000")], "cache.block = '3000': expected a power of two from 512 B to 1 MiB"),
        (&[("ways", "16")], "cache.ways = '16': expected none with map = full"),
        (&[("map", "linear"), ("cluster", "64k")], "cache.cluster = '64k': expected none with map = linear"),
        (&[("map", "mesh")], "cache.map = 'mesh': expected one of full, linear, cluster-hashed"),
        (&[("size", "0")], "cache.size = '0': expected a size such as 64MiB, or blocks such as 10000b"),
        (&[("size", "many")], "cache.size = 'many'"),
        (&[("eviction", "lru2")], "unknown eviction policy 'lru2'"),
        (&[("small", "200%")], "cache.small = '200%': expected a percentage"),
        (&[("admission", "all,never")], "unknown admission policy 'never'"),
        (&[("admission", "n-hit,n-hit")], "cache.admission = 'n-hit,n-hit': expected every name once"),
        (&[("cleaning", "pi-rate,pi-rate")], "cache.cleaning = 'pi-rate,pi-rate': expected every name once"),
        (&[("cleaning", "often")], "unknown cleaning policy 'often'"),
        (&[("rate_min", "2k"), ("rate_max", "1k")], "cache.rate_max = '1k': expected no less than rate_min"),
    ];
    for (pairs, expected) in cases {
        let said = refusal(pairs);
        assert!(said.contains(expected), "{pairs:?}: {said}");
    }
}

#[test]
fn names_of_parameters_are_unique_among_all_that_stand_in_one_table() {
    let mut seen = std::collections::BTreeMap::new();
    let admissions = nandscape_policies::admission::ADMISSIONS.iter().map(|entry| entry.info);
    let cleanings = cleaning::CLEANINGS.iter().map(|entry| entry.info);
    let others: Vec<_> = [KEYS, cleaning::CAPS].into_iter().chain(admissions).chain(cleanings).collect();
    for info in &others {
        for param in info.params {
            assert_eq!(seen.insert(param.name, info.name), None, "{} of {}", param.name, info.name);
        }
    }
    // Of eviction policies there is one, so that only others may not have the same.
    for param in EVICTIONS.iter().flat_map(|info| info.params) {
        assert!(!seen.contains_key(param.name), "{}", param.name);
    }
}

#[test]
fn text_of_settings_comes_back_whatever_is_in_it() {
    for value in ["", "\"", "\\", "a\\\"b", "1,4-7", " = "] {
        assert_eq!(unquoted(&keys::quoted(value)).as_deref(), Some(value));
    }
    for bad in ["x", "\"", "\"a\"b\"", "\"a\\\""] {
        assert_eq!(unquoted(bad), None, "{bad}");
    }
}

/// The value that was quoted; `None` if it was not.
fn unquoted(text: &str) -> Option<String> {
    let mut rest = text.strip_prefix('"')?.strip_suffix('"')?.chars();
    let mut value = String::new();
    while let Some(c) = rest.next() {
        match c {
            '"' => return None,
            '\\' => value.push(rest.next()?),
            c => value.push(c),
        }
    }
    Some(value)
}
