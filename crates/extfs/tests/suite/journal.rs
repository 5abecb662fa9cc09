//! What passes through the journal is known before it is in its place: a new directory by the copy of its
//! inode, a deleted one as well.
//!
//! The journal is written here by hand, in each form of its descriptor blocks; `tests/fstream/measure.py` has
//! the kernel write it.

use nandscape_extfs::{Kind, LiveMap, classify};
use std::process::Command;

const BLOCK: usize = 4096;
const MAGIC: u32 = 0xc03b_3998;
const INODE: usize = 2000;

const WIDE: u32 = 0x2;
const CHECKSUM2: u32 = 0x8;
const CHECKSUM3: u32 = 0x10;

#[expect(clippy::print_stdout, reason = "what is skipped is said")]
fn image() -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("image");
    let tool = ["mke2fs", "/sbin/mke2fs", "/usr/sbin/mke2fs"]
        .into_iter()
        .find(|tool| Command::new(tool).arg("-V").output().is_ok());
    let Some(tool) = tool else {
        println!("SKIP: mke2fs (package e2fsprogs) is absent");
        return None;
    };
    let mut command = Command::new(tool);
    command.args(["-q", "-F", "-t", "ext4", "-b", "4096", "-I", "256", "-N", "6144", "-J", "size=4"]);
    assert!(command.arg(&path).arg("24M").output().unwrap().status.success());
    Some(std::fs::read(&path).unwrap())
}

/// A served device with its map.
struct Device {
    bytes: Vec<u8>,
    live: LiveMap,
    /// Blocks of the journal in its order.
    journal: Vec<usize>,
    /// First block of the inode table, and a free one.
    table: usize,
    free: usize,
}

impl Device {
    fn new(bytes: Vec<u8>) -> Self {
        let map = classify(bytes.len() as u64, &mut |at, out| read(&bytes, at, out)).unwrap();
        let first = |kind| map.runs.iter().find(|run| run.kind == kind).unwrap().block as usize;
        let mut live = LiveMap::new(bytes.len() as u64);
        live.attach(&mut |at, out| read(&bytes, at, out));
        let table = first(Kind::InodeTable);
        let free = map.runs.iter().find(|run| run.kind == Kind::Free && run.count > 100).unwrap();
        let free = free.block as usize + 16;
        let journal = journal_of(&bytes[table * BLOCK + 7 * 256..][..256]);
        assert_eq!(journal.len(), 1024);
        Self { bytes, live, journal, table, free }
    }

    fn write(&mut self, block: usize, data: &[u8]) {
        let bytes = &self.bytes;
        self.live.wrote((block * BLOCK) as u64, data, &mut |at, out| read(bytes, at, out));
        self.bytes[block * BLOCK..][..data.len()].copy_from_slice(data);
    }

    /// The journal's superblock with these features.
    fn set_features(&mut self, features: u32) {
        let mut head = self.bytes[self.journal[0] * BLOCK..][..BLOCK].to_vec();
        head[0x28..0x2c].copy_from_slice(&features.to_be_bytes());
        self.write(self.journal[0], &head);
    }

    fn kind(&self, block: usize) -> Kind {
        let mut found = Vec::new();
        self.live.segments((block * BLOCK) as u64, BLOCK as u64, |len, kind| found.push((len, kind)));
        assert_eq!(found.len(), 1);
        found[0].1
    }

    /// The block of the inode table, with a directory in it whose block is `at`; without one at 0.
    fn inode_block(&self, at: usize) -> (usize, Vec<u8>) {
        let home = self.table + (INODE - 1) / 16;
        let mut block = self.bytes[home * BLOCK..][..BLOCK].to_vec();
        let inode = &mut block[(INODE - 1) % 16 * 256..][..256];
        inode.fill(0);
        inode[0..2].copy_from_slice(&0x41ed_u16.to_le_bytes());
        inode[0x1a] = if at > 0 { 2 } else { 0 };
        inode[0x20..0x24].copy_from_slice(&0x8_0000_u32.to_le_bytes());
        inode[0x28..0x34].copy_from_slice(&[0x0a, 0xf3, 1, 0, 4, 0, 0, 0, 0, 0, 0, 0]);
        inode[0x38] = 1;
        inode[0x3c..0x40].copy_from_slice(&(at as u32).to_le_bytes());
        (home, block)
    }

    /// A transaction of a block nobody knows and this copy, its descriptor at a block of the journal.
    fn commit(&mut self, at: usize, features: u32, home: usize, copy: &[u8], flags: u32) {
        let mut descriptor = vec![0; BLOCK];
        for (place, word) in [(0, MAGIC), (4, 1), (8, 7)] {
            descriptor[place..place + 4].copy_from_slice(&word.to_be_bytes());
        }
        let mut next = 12;
        // The first tag is followed by the identity of the file system, the others say that theirs is the
        // same.
        for (home, flags) in [(self.free + 9, 0), (home, flags | 0x2 | 0x8)] {
            let tag = &mut descriptor[next..];
            tag[..4].copy_from_slice(&(home as u32).to_be_bytes());
            if features & CHECKSUM3 != 0 {
                tag[4..8].copy_from_slice(&flags.to_be_bytes());
                next += 16;
            } else {
                tag[6..8].copy_from_slice(&(flags as u16).to_be_bytes());
                let wide = if features & WIDE != 0 { 4 } else { 0 };
                next += 8 + wide + if features & CHECKSUM2 != 0 { 2 } else { 0 };
            }
            if flags & 0x2 == 0 {
                next += 16;
            }
        }
        // The log goes round from its last block to its second.
        let place = |n: usize| self.journal[if at + n > 1023 { at + n - 1023 } else { at + n }];
        let (first, second, third) = (place(0), place(1), place(2));
        self.write(first, &descriptor);
        self.write(second, &[0x5a; BLOCK]);
        self.write(third, copy);
    }
}

/// Blocks of the journal, from its inode.
fn journal_of(inode: &[u8]) -> Vec<usize> {
    let number = |at: usize| u32::from_le_bytes(inode[at..at + 4].try_into().unwrap());
    assert_eq!(inode[0x2e], 0, "a tree without nodes");
    let extents = (0..usize::from(inode[0x2a])).map(|n| 0x34 + n * 12);
    extents
        .flat_map(|at| {
            let (count, start) = (number(at + 4) & 0xffff, number(at + 8));
            start as usize..(start + count) as usize
        })
        .collect()
}

fn read(image: &[u8], at: u64, out: &mut [u8]) -> Result<(), String> {
    let found = image.get(at as usize..at as usize + out.len());
    out.copy_from_slice(found.ok_or("beyond the end")?);
    Ok(())
}

#[test]
fn directories_are_known_and_forgotten_by_their_copies_in_the_journal() {
    let Some(image) = image() else { return };
    for features in [0, WIDE, CHECKSUM2, WIDE | CHECKSUM2, CHECKSUM3, WIDE | CHECKSUM3] {
        for at in [1, 500, 1021, 1022, 1023] {
            let mut device = Device::new(image.clone());
            device.set_features(features);
            let free = device.free;
            assert_eq!(device.kind(free), Kind::Data);
            let (home, made) = device.inode_block(free);
            device.commit(at, features, home, &made, 0);
            assert_eq!(device.kind(free), Kind::Directory, "features {features:#x}, block {at}");
            assert_eq!((device.kind(free - 1), device.kind(free + 1)), (Kind::Data, Kind::Data));
            let (_, gone) = device.inode_block(0);
            device.commit(at, features, home, &gone, 0);
            assert_eq!(device.kind(free), Kind::Data, "features {features:#x}, block {at}: deleted");
        }
    }
}

#[test]
fn a_masked_copy_and_a_block_of_an_older_round_teach_nothing() {
    let Some(image) = image() else { return };
    let mut device = Device::new(image);
    device.set_features(CHECKSUM3);
    let free = device.free;
    let (home, made) = device.inode_block(free);
    device.commit(10, CHECKSUM3, home, &made, 0x1);
    assert_eq!(device.kind(free), Kind::Data, "masked copies are not what they stand for");
    // The same bytes again without a descriptor before them: a block is awaited once.
    device.commit(10, CHECKSUM3, device.free + 7, &made, 0);
    let third = device.journal[12];
    device.write(third, &made);
    assert_eq!(device.kind(free), Kind::Data);
    // In its place it counts in any case.
    device.write(home, &made);
    assert_eq!(device.kind(free), Kind::Directory);
}

#[test]
fn a_directory_that_grows_by_a_node_is_followed_when_the_node_passes_first() {
    let Some(image) = image() else { return };
    let mut device = Device::new(image);
    device.set_features(CHECKSUM3);
    let (free, node) = (device.free, device.free + 20);
    // The inode has an index to `node`, which has the extent.
    let (home, mut made) = device.inode_block(free);
    let root = &mut made[(INODE - 1) % 16 * 256 + 0x28..][..60];
    root[6] = 1;
    root[16..20].copy_from_slice(&(node as u32).to_le_bytes());
    root[20..24].fill(0);
    let mut leaf = vec![0; BLOCK];
    leaf[..8].copy_from_slice(&[0x0a, 0xf3, 1, 0, 0x54, 1, 0, 0]);
    leaf[16] = 3;
    leaf[20..24].copy_from_slice(&(free as u32).to_le_bytes());
    device.commit(30, CHECKSUM3, node, &leaf, 0);
    device.commit(40, CHECKSUM3, home, &made, 0);
    assert_eq!(device.kind(node), Kind::Mapping);
    for block in free..free + 3 {
        assert_eq!(device.kind(block), Kind::Directory);
    }
    assert_eq!(device.kind(free + 3), Kind::Data);
    // The node in its place has one block more.
    leaf[16] = 4;
    device.write(node, &leaf);
    assert_eq!(device.kind(free + 3), Kind::Directory);
    // Discarded blocks are nobody's.
    device.live.discarded((free * BLOCK) as u64, 2 * BLOCK as u64);
    assert_eq!((device.kind(free), device.kind(free + 2)), (Kind::Data, Kind::Directory));
}
