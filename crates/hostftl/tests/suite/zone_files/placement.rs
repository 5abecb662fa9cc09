//! Data of files that die together lies together.

use super::space::large;
use super::{create, report, space, submit, write};
use nandscape_core::command::Payload;
use nandscape_core::rng::{below, seeded};
use nandscape_core::{Hint, ObjectCommand, ObjectId, SimTime, Subsystem};
use std::collections::VecDeque;
use std::io::Write as _;

/// Pages of a file.
const PAGES: u64 = 40;

/// Long-lived files take half of the capacity; while a few of them are replaced at random, short-lived ones
/// come and go in order, four times the capacity in all. Gives the bytes moved for a byte written.
fn moved(keys: &[(&str, &str)], hints: [Hint; 2]) -> f64 {
    let mut files = large(keys);
    let capacity = space(&mut files).capacity / 4096 / PAGES;
    let mut rng = seeded(7);
    let (mut long, mut short) = (Vec::new(), VecDeque::new());
    for (next, round) in (1..).zip(0..5 * capacity) {
        let is_long =
            (long.len() as u64) < capacity * 70 / 100 && round % 2 == 0 || below(&mut rng, 100) == 0;
        create(&mut files, next, hints[usize::from(is_long)]);
        // Files are written in turns with others, a few pages at a time.
        for page in 0..PAGES {
            write(&mut files, next, page * 4096, 4096, SimTime::ZERO).unwrap();
        }
        let gone = if is_long {
            long.push(next);
            let is_much = long.len() as u64 > capacity * 70 / 100;
            is_much.then(|| long.swap_remove(below(&mut rng, long.len() as u64) as usize))
        } else {
            short.push_back(next);
            if short.len() as u64 > capacity / 6 { short.pop_front() } else { None }
        };
        if let Some(gone) = gone {
            submit(
                &mut files,
                ObjectCommand::Delete { object: ObjectId(gone) },
                Payload::None,
                SimTime::ZERO,
            )
            .unwrap();
        }
    }
    files.check_invariants();
    let written = files.inspect().host_counts(0).write_bytes;
    let moved = report(&files).moved_bytes as f64 / written as f64;
    let _ = writeln!(
        std::io::stderr(),
        "{keys:?} {hints:?}: {moved:.4} bytes moved a byte written; {:?}",
        report(&files)
    );
    moved
}

#[test]
fn lifetimes_keep_reclaim_from_moving_data() {
    // By its rule, files without a lifetime have zones of their own.
    let hints = [Hint::SHORT, Hint::NONE];
    let none = moved(&[("placement", "none")], hints);
    let zenfs = moved(&[("placement", "zenfs")], hints);
    assert!(zenfs * 3.0 < none, "zenfs moves {zenfs:.3}, none {none:.3}");
    let learned = moved(&[], hints);
    assert!(learned * 3.0 < none, "learned moves {learned:.3}, none {none:.3}");
    // Where the hint of some is longer, the rule puts the short-lived ones into their zones, and leaves holes
    // there. Numbers that say nothing of lifetimes are learned like any others.
    for classes in [[Hint::SHORT, Hint::EXTREME], [Hint(40), Hint(7)]] {
        let zenfs = moved(&[("placement", "zenfs")], classes);
        let learned = moved(&[], classes);
        assert!(
            learned * 3.0 < none.min(zenfs),
            "learned moves {learned:.3}, zenfs {zenfs:.3}, none {none:.3}"
        );
    }
}

/// Files as large as 0.95 of a zone, some of them shorter, `writers` at a time side by side; random ones are
/// replaced while all take 70 % of the capacity. Gives the bytes moved for a byte written.
fn side_by_side(keys: &[(&str, &str)], writers: usize) -> f64 {
    let mut files = large(keys);
    let pages = 128 * 95 / 100;
    let capacity = space(&mut files).capacity / 4096;
    let mut rng = seeded(11);
    let (mut done, mut live, mut written) = (Vec::new(), 0, 0);
    let mut open: Vec<(u64, u64, u64)> = vec![(0, 0, 0); writers];
    let mut next = 0;
    while written < 6 * capacity {
        let writer = below(&mut rng, writers as u64) as usize;
        let (object, at, end) = open[writer];
        if at == end {
            if end > 0 {
                done.push((object, end));
            }
            next += 1;
            create(&mut files, next, Hint::EXTREME);
            // One in six ends early, as the last file of a merge does.
            let end = if below(&mut rng, 6) == 0 { 1 + below(&mut rng, pages) } else { pages };
            open[writer] = (next, 0, end);
            live += end;
            while live > capacity * 70 / 100 && !done.is_empty() {
                let (gone, len) = done.swap_remove(below(&mut rng, done.len() as u64) as usize);
                let delete = ObjectCommand::Delete { object: ObjectId(gone) };
                submit(&mut files, delete, Payload::None, SimTime::ZERO).unwrap();
                live -= len;
            }
            continue;
        }
        let piece = (end - at).min(4);
        write(&mut files, object, at * 4096, piece * 4096, SimTime::ZERO).unwrap();
        open[writer].1 += piece;
        written += piece;
    }
    files.check_invariants();
    report(&files).moved_bytes as f64 / (written * 4096) as f64
}

#[test]
fn files_that_fill_a_zone_get_one_each_and_reclaim_leaves_zones_for_that() {
    let keys = [("open_zones", "8")];
    let none = side_by_side(&[("open_zones", "8"), ("placement", "none")], 5);
    let learned = side_by_side(&keys, 5);
    let late = side_by_side(&[("open_zones", "8"), ("gc_low", "1")], 5);
    assert!(learned * 2.0 < none, "moved for each byte written: {learned:.3}, none {none:.3}");
    assert!(
        learned < late,
        "moved for each byte written: {learned:.3}; with reclaim at the last zone {late:.3}"
    );
}
