//! What each kind brings back.

use super::*;

/// Some commits, then a loss of power or a clean removal; what is found.
fn life(kind: &str, is_removed: bool) -> (Slots, Slots, Report) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    let (mut area, opened) = Bytes::create(kind, 700);
    area.apply(&opened.repairs);
    let mut metadata = opened.metadata;
    let mut slots = Slots(vec![None; metadata.slots() as usize]);
    let mut writes = Vec::new();
    for _ in 0..20 {
        change(&mut *metadata, &mut slots, 30, &mut rng);
        metadata.commit(&slots, &mut writes);
        area.apply(&writes);
        metadata.committed();
        writes.clear();
    }
    if is_removed {
        metadata.close(&slots, &mut writes);
        area.apply(&writes);
    }
    let opened = open(&mut area).unwrap();
    (Slots::of(&opened.found, metadata.slots()), slots, opened.found.report)
}

#[test]
fn a_clean_removal_brings_all_back_in_every_kind_that_keeps_anything() {
    for kind in KINDS.iter().filter(|kind| kind.info.name != "none") {
        let (found, slots, report) = life(kind.info.name, true);
        assert!(found == slots && report.is_clean, "{}: {report}", kind.info.name);
    }
}

#[test]
fn a_loss_of_power_leaves_what_each_design_leaves() {
    let (found, slots, report) = life("journal", false);
    assert!(found == slots && !report.is_clean, "{report}");
    let (found, slots, _) = life("slots", false);
    let dirty = slots.map(|entry| (entry.dirty != 0).then_some(Entry { valid: entry.dirty, ..entry }));
    assert!(found == dirty && dirty != slots);
    let (found, slots, _) = life("periodic", false);
    assert!(found == slots.map(|entry| Some(Entry { dirty: entry.valid, ..entry })));
    let (found, slots, report) = life("at-removal", false);
    assert!(
        report.entries == 0 && found.0.iter().all(Option::is_none) && slots.0.iter().any(Option::is_some)
    );
}

#[test]
fn an_opened_cache_is_not_clean_any_more_once_repaired() {
    for kind in KINDS.iter().filter(|kind| kind.info.name != "none") {
        let (mut area, opened) = Bytes::create(kind.info.name, 700);
        area.apply(&opened.repairs);
        let mut metadata = opened.metadata;
        let mut writes = Vec::new();
        metadata.close(&Slots(vec![None; metadata.slots() as usize]), &mut writes);
        area.apply(&writes);
        let opened = open(&mut area).unwrap();
        assert!(opened.found.report.is_clean, "{}", kind.info.name);
        area.apply(&opened.repairs);
        assert!(!open(&mut area).unwrap().found.report.is_clean, "{}", kind.info.name);
    }
}

#[test]
fn nothing_is_kept_by_none_and_all_of_the_store_is_data() {
    let (area, opened) = Bytes::create("none", 700);
    assert!(area.bytes.is_empty() && opened.superblock.is_none());
    assert_eq!((opened.metadata.slots(), opened.metadata.data_offset(3)), (700, 3 * 4096));
}

#[test]
fn a_superblock_names_settings_and_volumes_and_survives_the_loss_of_a_copy() {
    for kind in KINDS.iter().filter(|kind| kind.info.name != "none") {
        let (mut area, _) = Bytes::create(kind.info.name, 700);
        for copy in 0..2 {
            let mut damaged = area.clone();
            damaged.bytes[copy * 4096 + 100] ^= 4;
            let opened = open(&mut damaged).unwrap();
            let superblock = opened.superblock.unwrap();
            assert_eq!((superblock.settings, superblock.volumes), (setup(0).settings, setup(0).volumes));
            assert_eq!(opened.found.report.damaged_superblocks, 1);
        }
        area.bytes[..8192].fill(0);
        assert_eq!(open(&mut area).err(), Some(MetadataError::Absent));
    }
}

#[test]
fn what_cannot_be_is_an_error() {
    let mut area = Bytes { bytes: vec![0; 1 << 16], capacity: 1 << 16 };
    let error =
        |setup: &Setup, kind: &str, area: &mut Bytes| create(kind, setup, area).err().unwrap().to_string();
    assert!(error(&setup(1 << 16), "b-tree", &mut area).contains("expected one of journal, none"));
    assert!(error(&setup(1 << 16), "journal", &mut area).contains("65536 bytes: expected at least"));
    assert!(
        error(&Setup { block_bytes: 5000, ..setup(1 << 30) }, "slots", &mut area)
            .contains("cache.block = 5000")
    );
    assert!(error(&Setup { store_block: 8192, ..setup(1 << 30) }, "slots", &mut area).contains("8192"));
    let settings = "x".repeat(SETTINGS_MAX + 1);
    assert!(error(&Setup { settings, ..setup(1 << 30) }, "slots", &mut area).contains("bytes of settings"));
    assert!(area.bytes.iter().all(|byte| *byte == 0));
}

#[test]
fn slots_are_written_in_blocks_of_4096_bytes_of_which_each_sector_holds_by_itself() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
    let (mut area, opened) = Bytes::create("slots", 3000);
    area.apply(&opened.repairs);
    let (mut metadata, shape) = (opened.metadata, opened.superblock.unwrap().shape);
    assert_eq!(shape.unit, 512);
    let mut slots = Slots(vec![None; shape.slots as usize]);
    let kept = |slots: &Slots| slots.map(|e| (e.dirty != 0).then_some(Entry { valid: e.dirty, ..e }));
    let mut mixed = 0;
    for round in 0..200 {
        let (before, mut writes) = (kept(&slots), Vec::new());
        change(&mut *metadata, &mut slots, 1 + round % 40, &mut rng);
        metadata.commit(&slots, &mut writes);
        let table = shape.table_offset(0, 0)..shape.table_offset(0, shape.table_blocks());
        for Write { offset, bytes } in &writes {
            let len = 4096.min(table.end - offset);
            assert!(table.contains(offset) && offset % 4096 == 0 && bytes.len() as u64 == len, "{offset}");
        }
        let whole = below(&mut rng, writes.len() as u64) as usize;
        let found = open(&mut area.cut(&writes, whole, &mut rng)).unwrap().found;
        assert_eq!(found.report.damaged_table_blocks, 0);
        let (found, after) = (Slots::of(&found, shape.slots), kept(&slots));
        for slot in 0..shape.slots as usize {
            assert!([before.0[slot], after.0[slot]].contains(&found.0[slot]), "slot {slot}");
        }
        mixed += u32::from(found != before && found != after);
        area.apply(&writes);
        metadata.committed();
    }
    assert!(mixed > 100, "{mixed} commits were cut within a block or between two");
}
