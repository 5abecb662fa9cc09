//! The file system model against a plain picture of a volume.

use super::*;
use crate::hints::HintError;
use nandscape_core::SimTime;
use nandscape_core::rng::{below, seeded};

const S: u64 = 1_000_000_000;

fn op(at_s: u64, kind: FileOpKind, file: u32, offset: u64, len: u64) -> FileOp {
    FileOp { at: SimTime(at_s * S), kind, writer: 7, file, offset, len }
}

fn plain() -> FsOptions {
    FsOptions { journal: None, ..FsOptions::default() }
}

/// Requests after each operation, and at the end, as `letter:first block+blocks`.
fn run(options: FsOptions, ops: &[FileOp]) -> Vec<String> {
    let mut fs = FileSystem::new(options, FileNames::default()).unwrap();
    let mut out = Vec::new();
    let mut drain = |fs: &mut FileSystem| {
        let mut line = Vec::new();
        while let Some(record) = fs.next_request() {
            assert_eq!((record.offset % BLOCK, record.len % BLOCK), (0, 0));
            line.push(match record.op {
                TraceOp::Flush => "F".to_owned(),
                op => format!("{}:{}+{}", op.letter(), record.offset / BLOCK, record.len / BLOCK),
            });
        }
        out.push(line.join(" "));
    };
    for op in ops {
        fs.apply(op).unwrap();
        drain(&mut fs);
    }
    fs.finish().unwrap();
    drain(&mut fs);
    out
}

#[test]
fn writes_wait_for_a_sync_and_then_lie_one_behind_the_other() {
    use FileOpKind::*;
    let ops = [
        op(0, Create, 1, 0, 0),
        op(0, Write, 1, 0, 5000),
        op(0, Write, 1, 4096, 100),
        op(1, Fsync, 1, 0, 0),
        op(1, Create, 2, 0, 0),
        op(1, Write, 2, 0, 4096),
        op(1, Fdatasync, 2, 0, 0),
        // The end of file 1 is taken: its next piece lies behind file 2. Overwrites stay in place.
        op(2, Write, 1, 4096, 8192),
        op(2, Fsync, 1, 0, 0),
        op(3, Write, 2, 0, 1),
        op(3, SyncRange, 2, 0, 0),
        op(4, Fsync, 2, 0, 0),
    ];
    assert_eq!(
        run(plain(), &ops),
        ["", "", "", "W:0+2 F", "", "", "W:2+1 F", "", "W:1+1 W:3+1 F", "", "W:2+1", "F", "F"]
    );
}

#[test]
fn what_is_deleted_before_it_is_written_out_never_is() {
    use FileOpKind::*;
    let ops = [
        op(0, Create, 1, 0, 0),
        op(0, Write, 1, 0, 1 << 20),
        op(1, Truncate, 1, 8192, 0),
        op(1, Fsync, 1, 0, 0),
        op(2, Write, 1, 8192, 4096),
        op(2, Delete, 1, 0, 12288),
        op(3, Write, 1, 0, 4096),
    ];
    assert_eq!(run(plain(), &ops), ["", "", "", "W:0+2 F", "", "D:0+2", "", "F"]);
    let through = FsOptions { write_back: false, ..plain() };
    assert_eq!(run(through, &ops[..4]), ["", "W:0+256", "D:2+254", "F", "F"]);
}

#[test]
fn dirty_data_is_written_at_the_look_after_it_expired() {
    use FileOpKind::*;
    let ops = [
        op(0, Create, 1, 0, 0),
        op(1, Write, 1, 0, 4096),
        op(28, Write, 1, 4096, 4096),
        op(34, Open, 2, 0, 0),
        op(35, Open, 3, 0, 0),
        // Centuries later: no loop over every look.
        op(9_000_000_000, Open, 4, 0, 0),
    ];
    assert_eq!(run(plain(), &ops), ["", "", "", "", "W:0+2", "", "F"]);
}

#[test]
fn too_much_dirty_data_is_written_oldest_file_first_down_to_half() {
    use FileOpKind::*;
    let options = FsOptions { dirty_limit: 10 * BLOCK, ..plain() };
    let mut ops: Vec<_> = (1..=4).map(|file| op(0, Create, file, 0, 0)).collect();
    ops.extend((1..=4).map(|file| op(u64::from(file), Write, file, 0, 3 * BLOCK)));
    let out = run(options, &ops);
    assert_eq!(out[4..], ["", "", "", "W:0+3 W:3+3 W:6+3", "W:9+3 F"]);
}

#[test]
fn allocation_keeps_a_file_in_one_run_and_punching_gives_back() {
    use FileOpKind::*;
    let ops = [
        op(0, Create, 1, 0, 0),
        op(0, Allocate, 1, 0, 8 * BLOCK),
        op(0, Create, 2, 0, 0),
        op(0, Write, 2, 0, BLOCK),
        op(0, Fsync, 2, 0, 0),
        op(0, Write, 1, BLOCK, 2 * BLOCK),
        op(0, Fsync, 1, 0, 0),
        op(0, Punch, 1, BLOCK + 1, 3 * BLOCK),
        op(0, Write, 2, BLOCK, 3 * BLOCK),
        op(0, Fsync, 2, 0, 0),
    ];
    let out = run(plain(), &ops);
    // The hole is two blocks; the file goes on behind its own end.
    assert_eq!(out[4..], ["W:8+1 F", "", "W:1+2 F", "D:2+2", "", "W:9+3 F", "F"]);
}

#[test]
fn reads_of_old_files_find_blocks_and_holes_of_new_ones_do_not() {
    use FileOpKind::*;
    let options = FsOptions { reads: true, ..plain() };
    let ops =
        [op(0, Open, 1, 0, 0), op(0, Read, 1, 8192, 100), op(0, Create, 2, 0, 0), op(0, Read, 2, 0, 4096)];
    assert_eq!(run(options, &ops), ["", "R:0+1", "", "", "F"]);
}

#[test]
fn a_full_volume_a_wild_offset_and_a_wrong_hint_are_refused() {
    use FileOpKind::*;
    let options = FsOptions { size: Some(4 * BLOCK), write_back: false, ..plain() };
    let mut fs = FileSystem::new(options, FileNames::default()).unwrap();
    fs.apply(&op(0, Create, 1, 0, 0)).unwrap();
    let error = fs.apply(&op(0, Write, 1, 0, 5 * BLOCK)).unwrap_err();
    assert_eq!(error, FsError::Full { needed: 1, free: 0 });
    assert_eq!(fs.apply(&op(0, Write, 2, 0, 1)), Err(FsError::UnknownFile(2)));
    assert_eq!(fs.apply(&op(0, Create, 1, 0, 0)), Err(FsError::FileAgain(1)));
    assert_eq!(fs.apply(&op(0, Hint, 1, 0, 6)), Err(FsError::Hint(HintError::Hint(6))));
    let far = FsError::TooFar { offset: u64::MAX, len: 1 };
    assert_eq!(fs.apply(&op(0, Write, 1, u64::MAX, 1)), Err(far));
    let small = FsOptions { size: Some(4 * BLOCK), ..FsOptions::default() };
    assert!(matches!(FileSystem::new(small, FileNames::default()), Err(FsError::Full { .. })));
}

/// Blocks written by kind.
fn kinds(fs: &mut FileSystem) -> BTreeMap<BlockKind, u64> {
    let mut out = BTreeMap::new();
    while let Some(record) = fs.next_request() {
        if record.op == TraceOp::Write {
            *out.entry(fs.origin().kind).or_default() += record.len / BLOCK;
        }
    }
    out
}

#[test]
fn fsync_commits_what_changed_and_fdatasync_only_new_blocks() {
    use FileOpKind::*;
    let mut fs = FileSystem::new(FsOptions::default(), FileNames::default()).unwrap();
    fs.apply(&op(0, Create, 1, 0, 0)).unwrap();
    fs.apply(&op(0, Write, 1, 0, BLOCK)).unwrap();
    fs.apply(&op(0, Fsync, 1, 0, 0)).unwrap();
    // Superblock, inode, its bitmap, descriptors, directory, block bitmap: six blocks between descriptor
    // and commit.
    assert_eq!(kinds(&mut fs), BTreeMap::from([(BlockKind::FileData, 1), (BlockKind::Journal, 8)]));
    fs.apply(&op(1, Write, 1, 0, BLOCK)).unwrap();
    fs.apply(&op(1, Fdatasync, 1, 0, 0)).unwrap();
    assert_eq!(kinds(&mut fs), BTreeMap::from([(BlockKind::FileData, 1)]));
    fs.apply(&op(1, Fsync, 1, 0, 0)).unwrap();
    assert_eq!(kinds(&mut fs), BTreeMap::from([(BlockKind::Journal, 3)]));
    fs.apply(&op(2, Write, 1, BLOCK, BLOCK)).unwrap();
    fs.apply(&op(2, Fdatasync, 1, 0, 0)).unwrap();
    assert_eq!(kinds(&mut fs), BTreeMap::from([(BlockKind::FileData, 1), (BlockKind::Journal, 5)]));
    // Half a minute later all of it is at home, each block once.
    fs.apply(&op(60, Open, 2, 0, 0)).unwrap();
    let home = kinds(&mut fs);
    assert_eq!(home.values().sum::<u64>(), 6, "{home:?}");
    assert_eq!(home.get(&BlockKind::Directory), Some(&1));
}

#[test]
fn every_kind_of_metadata_is_written_and_hints_and_names_reach_the_requests() {
    use FileOpKind::*;
    let mut names = FileNames::default();
    names.insert(1, "db/a.tmp -> db/a.sst");
    let mut fs = FileSystem::new(FsOptions::default(), names).unwrap();
    for op in [
        op(0, Create, 1, 0, 0),
        op(0, Hint, 1, 0, 4),
        op(0, Write, 1, 0, BLOCK),
        op(0, Rename, 1, 0, 0),
        op(0, Fsync, 1, 0, 0),
    ] {
        fs.apply(&op).unwrap();
    }
    fs.finish().unwrap();
    let mut seen = BTreeSet::new();
    while let Some(record) = fs.next_request() {
        let origin = fs.origin();
        if record.op != TraceOp::Write {
            continue;
        }
        seen.insert(origin.kind);
        if origin.kind == BlockKind::FileData {
            assert_eq!(
                origin,
                Origin { kind: BlockKind::FileData, file: 1, path: Some("db/a.sst"), writer: 7, volume: 0 }
            );
            assert_eq!(record.hint, 4);
        } else {
            assert_eq!((origin.file, origin.path, record.hint), (0, None, 0));
        }
    }
    assert_eq!(seen.len(), BlockKind::ALL.len(), "{seen:?}");
}

/// Blocks of data and of metadata at home, and blocks of the journal, for some operations.
fn written(transactions: Transactions, ops: &[FileOp]) -> [u64; 3] {
    let options = FsOptions { transactions, ..FsOptions::default() };
    let mut fs = FileSystem::new(options, FileNames::default()).unwrap();
    let mut counts = [0; 3];
    for op in ops {
        fs.apply(op).unwrap();
        while let Some(record) = fs.next_request().filter(|record| record.op != TraceOp::Trim) {
            let kind = match fs.origin().kind {
                BlockKind::FileData => 0,
                BlockKind::Journal => 2,
                _ => 1,
            };
            counts[kind] += record.len / BLOCK;
        }
    }
    counts
}

#[test]
fn a_transaction_is_written_once_or_twice_or_with_its_data() {
    use FileOpKind::*;
    let mut ops = vec![op(0, Create, 1, 0, 0), op(0, Write, 1, 0, 8 * BLOCK), op(1, Fsync, 1, 0, 0)];
    // Superblock, inode table and bitmap, descriptors, directory, block bitmap.
    let metadata = 6;
    assert_eq!(written(Transactions::Ordered, &ops), [8, 0, metadata + 2]);
    assert_eq!(written(Transactions::DataJournal, &ops), [0, 0, 8 + metadata + 2]);
    assert_eq!(written(Transactions::Atomic, &ops), [8, metadata, 0]);
    ops.push(op(100, Open, 2, 0, 0));
    assert_eq!(written(Transactions::Ordered, &ops), [8, metadata, metadata + 2]);
    assert_eq!(written(Transactions::DataJournal, &ops), [8, metadata, 8 + metadata + 2]);
    assert_eq!(written(Transactions::Atomic, &ops), [8, metadata, 0]);
}

#[test]
fn data_in_the_journal_take_each_interval_and_do_not_go_home_once_they_are_deleted() {
    use FileOpKind::*;
    let ops = [
        op(0, Create, 1, 0, 0),
        op(0, Write, 1, 0, 600 * BLOCK),
        op(0, Create, 2, 0, 0),
        op(0, Write, 2, 0, BLOCK),
        op(7, Delete, 1, 0, 0),
        op(100, Open, 3, 0, 0),
    ];
    let [data, _, journal] = written(Transactions::DataJournal, &ops);
    assert_eq!(data, 1, "file 2 alone goes home");
    // At 5 s: 601 blocks of data, 6 of metadata, two descriptors and a commit. At 10 s the deletion: inode
    // table and bitmap, descriptors, directory, block bitmap, and two more.
    assert_eq!(journal, 601 + 6 + 2 + 1 + 5 + 2);
    assert_eq!(written(Transactions::Ordered, &ops)[0], 1, "nothing of file 1 is ever written");
}

/// Random operations: no two files ever share a block, what is written last is what the volume holds, and
/// trims free exactly what no file has any more.
#[test]
fn the_volume_always_holds_what_the_files_do() {
    use FileOpKind::*;
    for seed in 0..36 {
        let mut rng = seeded(seed);
        let options = FsOptions {
            size: Some((8 << 20) + 400 * BLOCK),
            fit: if seed % 2 == 0 { Fit::First } else { Fit::Next },
            write_back: seed % 3 > 0,
            dirty_limit: 40 * BLOCK,
            journal: (seed % 4 > 0).then_some(8 << 20),
            transactions: [Transactions::Ordered, Transactions::DataJournal, Transactions::Atomic]
                [seed as usize / 12],
            largest_request: 8 * BLOCK,
            delete_at_end: true,
            ..FsOptions::default()
        };
        let mut fs = FileSystem::new(options, FileNames::default()).unwrap();
        // Volume block -> file that wrote it; 0 is metadata.
        let mut volume: BTreeMap<u64, u32> = BTreeMap::new();
        let (mut live, mut next_file, mut at) = (Vec::new(), 1, 0);
        let mut drain = |fs: &mut FileSystem| {
            while let Some(record) = fs.next_request() {
                let file = fs.origin().file;
                assert!(record.len <= 8 * BLOCK || record.op != TraceOp::Write);
                for block in record.offset / BLOCK..(record.offset + record.len) / BLOCK {
                    assert!(block < (8 << 20) / BLOCK + 400);
                    match record.op {
                        TraceOp::Write => {
                            let before = volume.insert(block, file);
                            assert!(
                                before.is_none_or(|before| before == file),
                                "block {block}: {before:?} {file}"
                            );
                        }
                        TraceOp::Trim => drop(volume.remove(&block)),
                        other => panic!("{other:?}"),
                    }
                }
                if record.op == TraceOp::Flush {
                    assert_eq!(record.len, 0);
                }
            }
            volume.clone()
        };
        for _ in 0..1500 {
            at += below(&mut rng, 3);
            let (offset, len) = (below(&mut rng, 30 * BLOCK), 1 + below(&mut rng, 6 * BLOCK));
            if live.len() < 6 && below(&mut rng, 8) == 0 {
                live.push(next_file);
                fs.apply(&op(at, Create, next_file, 0, 0)).unwrap();
                next_file += 1;
            }
            let Some(&file) = live.get(below(&mut rng, live.len().max(1) as u64) as usize) else { continue };
            let kind = [Write, Write, Write, Truncate, Punch, Allocate, Fdatasync, SyncRange, Rename, Delete]
                [below(&mut rng, 10) as usize];
            if kind == Delete {
                live.retain(|other| *other != file);
            }
            fs.apply(&op(at, kind, file, offset, len)).unwrap();
            while fs.out.front().is_some_and(|placed| placed.record.op == TraceOp::Flush) {
                fs.out.pop_front();
            }
            fs.out.retain(|placed| placed.record.op != TraceOp::Flush);
            drain(&mut fs);
        }
        fs.finish().unwrap();
        fs.out.retain(|placed| placed.record.op != TraceOp::Flush);
        let left = drain(&mut fs);
        assert!(left.values().all(|file| *file == 0), "seed {seed}: files left behind");
        let ring = if options.transactions == Transactions::Atomic { 0 } else { (8 << 20) / BLOCK };
        let metadata = fs.journal.as_ref().map_or(0, |journal| journal.homes.len() as u64 + ring);
        assert_eq!(fs.space.free + metadata, (8 << 20) / BLOCK + 400, "seed {seed}");
        assert_eq!(fs.dirty_blocks, 0);
    }
}

/// What comes out of a page cache over a store of objects, as `letter file:offset+bytes hint`.
fn objects(options: FsOptions, ops: &[FileOp]) -> Vec<String> {
    let mut fs =
        FileSystem::new(FsOptions { below: Below::Objects, journal: None, ..options }, FileNames::default())
            .unwrap();
    let mut out = Vec::new();
    let mut drain = |fs: &mut FileSystem| {
        let mut line = Vec::new();
        while let Some(IoRecord { op, volume, offset, len, hint, .. }) = fs.next_request() {
            assert_eq!(fs.origin().file, volume);
            line.push(format!("{} {volume}:{offset}+{len} {hint}", op.letter()));
        }
        out.push(line.join(", "));
    };
    for op in ops {
        fs.apply(op).unwrap();
        drain(&mut fs);
    }
    fs.finish().unwrap();
    drain(&mut fs);
    out
}

#[test]
fn over_a_store_of_objects_only_the_page_cache_is_left() {
    use FileOpKind::*;
    let options = FsOptions { largest_request: 8192, reads: true, ..FsOptions::default() };
    let ops = [
        op(0, Create, 1, 0, 0),
        op(0, Hint, 1, 0, 3),
        op(0, Write, 1, 0, 9000),
        op(0, Fsync, 1, 0, 0),
        // In the cache until it expires; sizes are to the byte.
        op(1, Write, 1, 9000, 1000),
        op(1, Truncate, 1, 9500, 0),
        op(1, Read, 1, 100, 50),
        op(1, Punch, 1, 10, 20),
        op(1, Allocate, 1, 0, 20_000),
        op(1, Rename, 1, 0, 0),
        op(40, Create, 2, 0, 0),
        // Deleted before it is ever written.
        op(41, Write, 2, 0, 100),
        op(41, Delete, 2, 0, 0),
    ];
    assert_eq!(
        objects(options, &ops),
        [
            "c 1:0+0 0",
            "",
            "",
            "w 1:0+8192 3, w 1:8192+808 3, f 1:0+0 0",
            "",
            "t 1:9500+0 0",
            "r 1:100+50 0",
            "p 1:10+20 0",
            "t 1:20000+0 0",
            "",
            "w 1:8192+4096 3, c 2:0+0 0",
            "",
            "d 2:0+0 0",
            "f 0:0+1 0",
        ]
    );
}
