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
