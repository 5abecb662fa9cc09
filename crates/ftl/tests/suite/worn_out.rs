//! A device that wears out: the thesis strategies retire what can no longer be erased, keep every byte
//! readable, and end read-only; in the order of the thesis with a full device or, where a superblock is
//! rewritten in place, with the medium's own error.

use nandscape_core::rng::{below, seeded};
use nandscape_core::{BlockId, Capabilities, Extent, FlashError, FtlError, Geometry, Hint, Params, SimTime};
use nandscape_media::{Nand, NandOptions, Scheduler, Serial, Timed, Timing};

const ENDURANCE: u32 = 5;
const PAGE: u64 = 512;

const GEOMETRY: Geometry = Geometry {
    channels: 2,
    dies_per_channel: 2,
    planes_per_die: 1,
    blocks_per_plane: 8,
    pages_per_block: 4,
    page_bytes: PAGE as u32,
    sector_bytes: 512,
    oob_bytes: 16,
};

const TIMING: Timing =
    Timing { read_ns: 1, program_ns: 1, erase_ns: 1, channel_bytes_per_s: 1_000_000_000, command_ns: 0 };

fn wears_out(name: &str, share_percent: u64) {
    wears_out_in_order(name, "copy-first", share_percent);
    wears_out_in_order(name, "erase-first", share_percent);
}

fn wears_out_in_order(name: &str, order: &str, share_percent: u64) {
    let entry = nandscape_ftl::find(name).unwrap();
    let capabilities =
        Capabilities { out_of_order_program: true, stores_data: true, ..Capabilities::default() };
    let options = NandOptions { endurance: Some(ENDURANCE), capabilities, ..NandOptions::default() };
    let device = Timed::new(Nand::new(GEOMETRY, &options).unwrap(), Serial::new(&GEOMETRY, &TIMING));
    let typed = [("gc_order", order), ("unsafe_order", "true")];
    let typed = typed.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let mut ftl =
        (entry.build)(Box::new(device), &Params::check(entry.info, "ftl.", &typed).unwrap()).unwrap();
    let pages = ftl.logical_pages() * share_percent / 100;
    let mut written = vec![0u8; pages as usize];
    let mut rng = seeded(9);
    let mut requests = 0u32;
    let error = loop {
        let page = below(&mut rng, pages);
        let fill = (requests % 251) as u8 + 1;
        let data = [fill; PAGE as usize];
        let result = ftl.write(Extent::new(page * PAGE, PAGE), Some(&data), Hint::default(), SimTime::ZERO);
        match result {
            Ok(_) => written[page as usize] = fill,
            Err(error) => break error,
        }
        requests += 1;
        assert!(requests < 100_000, "{name} writes for ever on a device with an endurance of {ENDURANCE}");
    };
    if order == "copy-first" {
        assert!(matches!(error, FtlError::ReadOnly { .. }), "{name}: {error}");
        assert!(ftl.read_only().is_some(), "{name} is read-only for good");
        assert_eq!(ftl.trim(Extent::new(0, PAGE), SimTime::ZERO).unwrap_err(), error, "{name}: trim");
    } else {
        assert!(
            matches!(
                error,
                FtlError::DeviceFull { .. }
                    | FtlError::Flash(FlashError::WornOut { endurance: ENDURANCE, .. })
            ),
            "{name}: {error}"
        );
    }
    ftl.check_invariants();
    let counts: Vec<u32> =
        (0..GEOMETRY.blocks()).map(|block| ftl.device().erase_count(BlockId(block))).collect();
    assert!(counts.iter().max() == Some(&ENDURANCE), "{name}: {counts:?}");
    for (page, fill) in written.iter().enumerate() {
        let mut data = [0xEE; PAGE as usize];
        ftl.read(Extent::new(page as u64 * PAGE, PAGE), Some(&mut data), SimTime::ZERO).unwrap();
        assert_eq!(data, [*fill; PAGE as usize], "{name}: page {page}");
    }
}

#[test]
fn pm_gcl_wears_out_without_losing_a_page() {
    wears_out("pm-gcl", 60);
}

#[test]
fn pm_gcc_wears_out_without_losing_a_page() {
    wears_out("pm-gcc", 60);
    wears_out("pm-gcc", 95);
}

#[test]
fn sbm_gcl_wears_out_without_losing_a_page() {
    wears_out("sbm-gcl", 60);
    wears_out("sbm-gcl", 100);
}

#[test]
fn hsbm_gcl_wears_out_without_losing_a_page() {
    wears_out("hsbm-gcl", 60);
}
