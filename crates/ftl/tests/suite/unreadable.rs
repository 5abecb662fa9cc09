//! Pages that cannot be read any more: every layer answers with an error for them, before and after they were
//! to be moved, and never with other bytes; every other page stays what it was.

use nandscape_core::rng::{below, seeded};
use nandscape_core::{
    AnyDevice, Capabilities, Extent, FlashError, FtlError, Geometry, Hint, Params, SimTime,
};
use nandscape_ftl::{FtlEntry, boxed_ftls};
use nandscape_media::faults::{FaultPlan, Faults};
use nandscape_media::{Nand, NandOptions, Scheduler, Serial, Timed, Timing};

const PAGE: u64 = 512;

const GEOMETRY: Geometry = Geometry {
    channels: 2,
    dies_per_channel: 1,
    planes_per_die: 1,
    blocks_per_plane: 16,
    pages_per_block: 4,
    page_bytes: PAGE as u32,
    sector_bytes: 512,
    oob_bytes: 16,
};

const TIMING: Timing =
    Timing { read_ns: 1, program_ns: 1, erase_ns: 1, channel_bytes_per_s: 1_000_000_000, command_ns: 0 };

fn loses_only_what_cannot_be_read(entry: &FtlEntry<AnyDevice>) {
    let name = entry.info.name;
    let capabilities =
        Capabilities { out_of_order_program: true, stores_data: true, ..Capabilities::default() };
    let nand = Nand::new(GEOMETRY, &NandOptions { capabilities, ..NandOptions::default() }).unwrap();
    let plan = FaultPlan { seed: 5, unreadable: 0.02, ..FaultPlan::default() };
    let device = Timed::new(Faults::new(nand, plan).unwrap(), Serial::new(&GEOMETRY, &TIMING));
    let mut ftl = (entry.build)(Box::new(device), &Params::defaults(entry.info)).unwrap();
    let pages = ftl.logical_pages();
    let mut written = vec![0u8; pages as usize];
    let mut rng = seeded(11);
    let (mut lost, mut lost_and_written_anew) = (0, 0);
    let mut was_lost = vec![false; pages as usize];
    for request in 0..6000u32 {
        let page = below(&mut rng, pages);
        let extent = Extent::new(page * PAGE, PAGE);
        if below(&mut rng, 3) > 0 {
            let fill = (request % 251) as u8 + 1;
            ftl.write(extent, Some(&[fill; PAGE as usize]), Hint::default(), SimTime::ZERO)
                .unwrap_or_else(|error| panic!("{name}: a whole page needs no read: {error}"));
            written[page as usize] = fill;
            lost_and_written_anew += u32::from(std::mem::take(&mut was_lost[page as usize]));
        } else {
            let mut data = [0xEE; PAGE as usize];
            match ftl.read(extent, Some(&mut data), SimTime::ZERO) {
                Ok(_) => {
                    assert_eq!(data, [written[page as usize]; PAGE as usize], "{name}: page {page}");
                    assert!(!was_lost[page as usize], "{name}: page {page} came back");
                }
                Err(FtlError::Flash(FlashError::Uncorrectable { .. })) => {
                    lost += u32::from(!std::mem::replace(&mut was_lost[page as usize], true));
                }
                Err(error) => panic!("{name}: page {page}: {error}"),
            }
        }
    }
    ftl.check_invariants();
    assert!(
        lost > 10 && lost_and_written_anew > 10,
        "{name}: {lost} lost, {lost_and_written_anew} written anew"
    );
    assert_eq!(ftl.read_only(), None, "{name}");
}

#[test]
fn a_page_that_cannot_be_read_is_an_error_until_it_is_written_anew() {
    boxed_ftls().iter().for_each(loses_only_what_cannot_be_read);
}
