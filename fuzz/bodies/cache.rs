//! A damaged fast store. Byte 0 chooses the kind of metadata and whether checksums are made right again after
//! the damage; then come patches: a place (3 bytes, taken modulo the size), a length (1 byte, at most 16),
//! and that many bytes.
//!
//! Opening may refuse, and must not panic. If it succeeds, its repairs must not change what is found.

use nandscape_cache::manage;
use nandscape_cache::metadata::{self, Area, Entry, Setup, Table, Volume};
use nandscape_core::StoreError;
use nandscape_policies::BlockKey;
use nandscape_testkit::checksums::reseal_cache;
use std::sync::OnceLock;

const KINDS: [&str; 4] = ["journal", "slots", "periodic", "at-removal"];
const SLOTS: u32 = 40;
const BLOCK: usize = 4096;
const PATCH: usize = 16;

#[derive(Clone)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn part(&mut self, offset: u64, len: usize) -> Result<&mut [u8], StoreError> {
        let end = offset.checked_add(len as u64).filter(|end| *end <= self.0.len() as u64);
        let detail = format!("expected less than {} bytes", self.0.len());
        end.map(|end| &mut self.0[offset as usize..end as usize]).ok_or(StoreError::Io {
            offset,
            len: len as u64,
            detail,
        })
    }
}

impl Area for Bytes {
    fn capacity_bytes(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&mut self, offset: u64, bytes: &mut [u8]) -> Result<(), StoreError> {
        bytes.copy_from_slice(self.part(offset, bytes.len())?);
        Ok(())
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), StoreError> {
        self.part(offset, bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Every third slot free, every other of the rest dirty.
struct Slots(u64);

impl Table for Slots {
    fn entry(&self, slot: u32) -> Option<Entry> {
        let key = BlockKey::new(0, u64::from(slot) * 7 % 500 + self.0);
        let dirty = if slot.is_multiple_of(2) { 0x0f } else { 0 };
        (!slot.is_multiple_of(3)).then_some(Entry { key, valid: 0xff, dirty })
    }
}

fn used(kind: &str) -> Bytes {
    let volumes = vec![Volume { id: 0, uuid: [9; 16], bytes: 4 << 20, stamp: [0; 16] }];
    let mut setup = Setup {
        capacity_bytes: 0,
        store_block: 512,
        block_bytes: BLOCK as u32,
        uuid: [7; 16],
        settings: "mode = \"write-back\"\n".to_owned(),
        volumes,
    };
    setup.capacity_bytes = metadata::bytes_for(kind, &setup, SLOTS).expect("a size");
    let mut area =
        Bytes(vec![0; (setup.capacity_bytes + metadata::WATCH_BYTES).next_multiple_of(4096) as usize]);
    manage::create(&mut area, kind, &setup, false).expect("a cache");
    let mut opened = metadata::open(&mut area).expect("it was just made");
    metadata::apply(&mut area, &opened.repairs).expect("in memory");
    for round in 0..3 {
        let slots = Slots(round);
        for slot in 0..opened.metadata.slots() {
            opened.metadata.note(slot, slots.entry(slot));
        }
        let mut writes = Vec::new();
        opened.metadata.commit(&slots, &mut writes);
        metadata::apply(&mut area, &writes).expect("in memory");
        opened.metadata.committed();
        writes.clear();
        opened.metadata.confirm(&mut writes);
        metadata::apply(&mut area, &writes).expect("in memory");
    }
    area
}

pub fn feed(bytes: &[u8]) {
    static USED: OnceLock<Vec<(Bytes, usize)>> = OnceLock::new();
    let used = USED.get_or_init(|| {
        let one = |kind: &&str| {
            let mut area = used(kind);
            let unit = metadata::open(&mut area).expect("a cache").superblock.expect("a root").shape.unit;
            (area, unit as usize)
        };
        KINDS.iter().map(one).collect()
    });
    let Some((choice, mut patches)) = bytes.split_first() else { return };
    let (mut area, unit) = used[usize::from(choice & 3)].clone();
    while let Some(([a, b, c, len], rest)) = patches.split_first_chunk() {
        let at = u32::from_le_bytes([*a, *b, *c, 0]) as usize % (area.0.len() - PATCH);
        let len = (usize::from(*len) % PATCH + 1).min(rest.len());
        area.0[at..at + len].copy_from_slice(&rest[..len]);
        patches = &rest[len..];
    }
    if choice & 4 != 0 {
        reseal_cache(&mut area.0, unit);
    }
    let Ok(opened) = metadata::open(&mut area) else { return };
    if metadata::apply(&mut area, &opened.repairs).is_ok() {
        let again = metadata::open(&mut area).expect("a cache that was opened and repaired opens again");
        assert_eq!(again.found.entries, opened.found.entries, "repairs changed what is found");
    }
}
