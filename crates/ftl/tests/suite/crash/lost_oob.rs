//! Pages whose OOB is damaged at rest: what a checkpoint tells of is an error, and what none tells of keeps
//! the journal from being opened. Older data never takes their place.

use nandscape_core::{BlockState, Cause, FlashDevice, FlashError, Issue, Lpn, MapJournal, Oob, Ppn, SimTime};
use nandscape_ftl::{Journal, JournalError, JournalOptions};
use nandscape_media::{Breakable as _, Nand, Scheduler as _, Serial, Timed, Timing};
use nandscape_testkit::crash::nand;

type Flash = Journal<Timed<Nand, Serial>>;

const ISSUE: Issue = Issue::new(SimTime::ZERO, Cause::Host);

fn open(nand: Nand) -> Result<Flash, JournalError> {
    let timing =
        Timing { read_ns: 1, program_ns: 1, erase_ns: 1, channel_bytes_per_s: 1 << 30, command_ns: 0 };
    let serial = Serial::new(nand.geometry(), &timing);
    Journal::open(Timed::new(nand, serial), JournalOptions::default())
}

/// A logical page that is written twice, with a checkpoint after the second write or without one, and then
/// the OOB of the second is damaged.
fn damaged(has_checkpoint: bool) -> Result<Flash, JournalError> {
    let mut flash = open(nand((2, 14, 8, 512), false)).unwrap();
    for page in 0..2 {
        let oob = Oob { lpn: Lpn(5), stream: 0, seq: 0 };
        flash.program(Ppn(page), oob, 512, Some(&[page as u8 + 1; 512]), ISSUE).unwrap();
    }
    if has_checkpoint {
        flash.checkpoint(SimTime::ZERO).unwrap();
    }
    let mut nand = flash.into_inner().medium().clone();
    assert!(nand.rot(Ppn(1), 512 * 8 + 3));
    open(nand)
}

#[test]
fn a_page_that_a_checkpoint_tells_of_and_whose_oob_is_damaged_is_an_error() {
    let mut flash = damaged(true).unwrap();
    assert_eq!(flash.newest(Lpn(5)), Some(Ppn(1)));
    let mut data = [0; 512];
    let read = flash.read(Ppn(1), 512, Some(&mut data), ISSUE).map(|read| read.oob);
    assert_eq!(read, Err(FlashError::Uncorrectable { page: Ppn(1) }));
}

#[test]
fn a_page_that_no_checkpoint_tells_of_and_whose_oob_is_damaged_is_not_passed_over_for_older_data() {
    let error = damaged(false).unwrap_err();
    assert_eq!(error, JournalError::Unknown { generation: 1, page: 1 });
    assert!(
        error.to_string().starts_with("page 1 was programmed after checkpoint 1 and its OOB is damaged"),
        "{error}"
    );
}
