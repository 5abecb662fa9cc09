//! The file without FUSE: what it holds, where it ends, what it refuses.

use nandscape_core::rng::{Rng, below, seeded};
use nandscape_engine::{Clock, Engine};
use nandscape_fuse::BlockFile;
use nandscape_stack::{Typed, build_storing};
use std::sync::Arc;

/// 4 channels, 16 KiB pages, a few megabytes.
fn engine(ftl: &str) -> Arc<Engine> {
    let mut typed = Typed::new();
    typed.merge_preset("generic-tlc").unwrap();
    typed.set_ftl(ftl).unwrap();
    for pair in [
        "device.channels=2",
        "device.dies_per_channel=1",
        "device.blocks_per_plane=12",
        "device.pages_per_block=32",
    ] {
        typed.set_pair(pair).unwrap();
    }
    Arc::new(Engine::new(build_storing(&typed.check().unwrap()).unwrap(), Clock::free()))
}

const PUNCH: i32 = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
const ZERO: i32 = libc::FALLOC_FL_ZERO_RANGE;

#[test]
fn random_calls_of_any_alignment_leave_what_a_plain_file_would_hold() {
    let file = BlockFile::new(engine("page-map"), 0, false);
    let size = file.capacity_bytes();
    let mut model = vec![0u8; size as usize];
    let mut rng = seeded(7);
    let mut buffer = vec![0u8; 300_000];
    for round in 0..4000 {
        let unit = [1, 512, 4096, 16384][below(&mut rng, 4) as usize];
        let offset = below(&mut rng, size / unit) * unit;
        let len = (1 + below(&mut rng, 16)) * unit;
        let inside = (len.min(size - offset)) as usize;
        let at = offset as usize;
        match below(&mut rng, 5) {
            0 | 1 => {
                rng.fill_bytes(&mut buffer[..len as usize]);
                let is_durable = below(&mut rng, 2) == 0;
                assert_eq!(
                    file.write(offset, &buffer[..len as usize], is_durable).map(|done| done.len),
                    Ok(inside),
                    "round {round}"
                );
                model[at..at + inside].copy_from_slice(&buffer[..inside]);
            }
            2 => {
                file.allocate(offset, len, PUNCH).unwrap();
                model[at..at + inside].fill(0);
            }
            3 => {
                file.allocate(offset, inside as u64, ZERO).unwrap();
                model[at..at + inside].fill(0);
            }
            _ => {
                buffer.fill(0xa5);
                assert_eq!(
                    file.read(offset, &mut buffer[..len as usize]).map(|done| done.len),
                    Ok(inside),
                    "round {round}"
                );
                assert_eq!(&buffer[..inside], &model[at..at + inside], "round {round}");
            }
        }
    }
    file.sync().unwrap();
    let mut all = vec![1u8; size as usize];
    assert_eq!(file.read(0, &mut all).map(|done| done.len), Ok(all.len()));
    assert!(all == model);
}

#[test]
fn a_punched_range_frees_its_whole_pages() {
    let engine = engine("page-map");
    let file = BlockFile::new(Arc::clone(&engine), 0, false);
    let live = || engine.with(|subsystem, _| subsystem.inspect().layer(0).stats().live_pages);
    file.write(0, &vec![7; 64 << 10], false).unwrap();
    assert_eq!(live(), 4);
    file.allocate(1, (64 << 10) - 2, PUNCH).unwrap();
    assert_eq!(live(), 2, "the two pages at the ends keep a byte each");
    let mut data = vec![1; 64 << 10];
    file.read(0, &mut data).unwrap();
    assert_eq!((data[0], data[(64 << 10) - 1]), (7, 7));
    assert!(data[1..(64 << 10) - 1].iter().all(|byte| *byte == 0));
}

#[test]
fn the_file_ends_where_its_namespace_does() {
    let file = BlockFile::new(engine("page-map"), 0, false);
    let size = file.capacity_bytes();
    let mut data = [1; 100];
    assert_eq!(file.read(size, &mut data).map(|done| done.len), Ok(0));
    assert_eq!(file.read(u64::MAX, &mut data).map(|done| done.len), Ok(0));
    assert_eq!(file.read(size - 10, &mut data).map(|done| done.len), Ok(10));
    assert_eq!(file.write(size - 10, &data, false).map(|done| done.len), Ok(10));
    assert_eq!(file.write(size, &data, false).unwrap_err().errno, libc::ENOSPC);
    assert_eq!(file.write(u64::MAX, &data, true).unwrap_err().errno, libc::ENOSPC);
    assert_eq!(file.write(size, &[], false).map(|done| done.len), Ok(0));
    assert_eq!(file.allocate(size - 10, 100, PUNCH).map(|done| done.len), Ok(0));
    assert_eq!(file.allocate(size + 10, 100, PUNCH).map(|done| done.len), Ok(0));
    assert_eq!(file.allocate(u64::MAX - 10, 100, PUNCH).map(|done| done.len), Ok(0));
    assert_eq!(file.allocate(0, size, 0).map(|done| done.len), Ok(0), "space is there from the beginning");
    assert_eq!(file.allocate(1, size, 0).unwrap_err().errno, libc::EPERM);
    assert_eq!(file.allocate(1, size, ZERO).unwrap_err().errno, libc::EPERM);
    assert_eq!(file.allocate(1, size, ZERO | libc::FALLOC_FL_KEEP_SIZE).map(|done| done.len), Ok(0));
    assert_eq!(file.allocate(0, 16384, libc::FALLOC_FL_COLLAPSE_RANGE).unwrap_err().errno, libc::EOPNOTSUPP);
}

#[test]
fn a_read_only_file_refuses_every_change() {
    let engine = engine("page-map");
    BlockFile::new(Arc::clone(&engine), 0, false).write(0, b"kept", true).unwrap();
    let file = BlockFile::new(engine, 0, true);
    assert_eq!(file.write(0, b"lost", false).unwrap_err().errno, libc::EROFS);
    assert_eq!(file.allocate(0, 4, PUNCH).unwrap_err().errno, libc::EROFS);
    let mut data = [0; 4];
    assert_eq!(file.read(0, &mut data).map(|done| done.len), Ok(4));
    assert_eq!(&data, b"kept");
    assert_eq!(file.sync().map(|done| done.len), Ok(0));
}
