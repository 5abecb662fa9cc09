//! A device in a file that is opened again, after a shutdown and without one.

use nandscape_core::command::Payload;
use nandscape_core::{BlockCommand, Extent, Hint, Op, RecoveryReport, SimTime, Subsystem};
use nandscape_stack::{Storage, Typed, build_stored};

const PAGE: u64 = 4096;
const PAGES: u64 = 2000;

fn open(path: &std::path::Path, keys: &[(&str, &str)]) -> Result<Box<dyn Subsystem + Send>, String> {
    let mut typed = Typed::new();
    let small = [
        ("device.channels", "2"),
        ("device.dies_per_channel", "2"),
        ("device.planes_per_die", "1"),
        ("device.blocks_per_plane", "32"),
        ("device.pages_per_block", "32"),
        ("device.page", "4KiB"),
        ("journal.interval", "1500"),
    ];
    for (key, value) in small.iter().chain(keys) {
        typed.set(key, value).unwrap();
    }
    let config = typed.check().map_err(|e| e.to_string())?;
    build_stored(&config, &Storage::Image(path.to_owned()))
        .map(|stored| stored.subsystem)
        .map_err(|e| e.to_string())
}

fn submit(device: &mut (dyn Subsystem + Send), op: Op, page: u64, count: u64, payload: Payload<'_>) {
    let extent = Extent::new(page * PAGE, count * PAGE);
    device.submit(0, BlockCommand::new(op, extent, Hint(0)).into(), payload, SimTime::ZERO).unwrap();
}

fn report(device: &(dyn Subsystem + Send)) -> RecoveryReport {
    device.inspect().device(0).journal().unwrap().recovery().clone()
}

#[test]
fn a_device_in_a_file_opens_with_what_it_held() {
    for keys in [&[][..], &[("sets.layout", "vertical"), ("namespaces.count", "1"), ("namespaces.sets", "0")]]
    {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("device.img");
        let pages = if keys.is_empty() { PAGES } else { PAGES / 2 };
        let mut model = vec![0u8; pages as usize];
        for round in 0..6u64 {
            let mut device = open(&path, keys).unwrap();
            let found = report(&*device);
            assert_eq!(found.checkpoint == 0, round == 0, "{found:?}");
            if round > 0 {
                let is_clean = round % 2 == 0;
                assert_eq!(found.was_clean, is_clean, "round {round}: {found:?}");
                assert_eq!(found.scanned_pages == 0, is_clean, "round {round}: {found:?}");
                assert!(found.scanned_pages < 2500, "round {round}: {found:?}");
                assert!(found.summary().starts_with(if is_clean { "clean:" } else { "not shut down:" }));
            }
            for (page, fill) in (0..).zip(&model) {
                let mut data = [0xEE; PAGE as usize];
                submit(&mut *device, Op::Read, page, 1, Payload::Read(&mut data));
                assert_eq!(data, [*fill; PAGE as usize], "round {round}, page {page}");
            }
            for step in 0..4000u64 {
                let page = (step * 7919 + round * 31) % pages;
                let fill = (round * 40 + step % 37 + 1) as u8;
                submit(&mut *device, Op::Write, page, 1, Payload::Write(&[fill; PAGE as usize]));
                model[page as usize] = fill;
            }
            let dropped = round * 97 % (pages - 50);
            submit(&mut *device, Op::Trim, dropped, 50, Payload::None);
            model[dropped as usize..dropped as usize + 50].fill(0);
            submit(&mut *device, Op::Flush, 0, 0, Payload::None);
            if round % 2 == 1 {
                device.shutdown(SimTime::ZERO).unwrap();
            }
        }
    }
}

#[test]
fn keys_of_the_journal_are_checked_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("device.img");
    let error = open(&path, &[("journal.interval", "0")]).map(|_| ()).unwrap_err();
    assert!(error.contains("journal.interval"), "{error}");
    let error = open(&path, &[("device.blocks_per_plane", "1")]).map(|_| ()).unwrap_err();
    assert!(error.contains("needs") && error.contains("blocks"), "{error}");
}
