//! Images that somebody or something has changed: an error that names file and offset, or pages that say they cannot be read; never a
//! panic, never wrong bytes. And the golden image of format version 1.

use nandscape_core::{BlockId, Capabilities, Geometry, Lpn, Oob, Ppn};
use nandscape_image::{Header, ImageMedium};
use nandscape_media::{BadBlocks, Medium, NandOptions};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const PAGE: usize = 512;

fn geometry() -> Geometry {
    Geometry {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: 3,
        pages_per_block: 4,
        page_bytes: PAGE as u32,
        sector_bytes: 512,
        oob_bytes: 16,
    }
    .checked()
    .unwrap()
}

fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

fn content(page: u32) -> Vec<u8> {
    (0..PAGE).map(|i| (i as u32 * 3 + page * 17) as u8).collect()
}

const fn oob(page: u32) -> Oob {
    Oob { lpn: Lpn(page + 40), stream: 2, seq: 1000 + page as u64 }
}

/// A block that is full, one that was erased and is half full, a bad one.
fn fill(path: &Path) {
    let options = NandOptions {
        endurance: Some(3000),
        bad_blocks: BadBlocks::List(vec![BlockId(2)]),
        capabilities: Capabilities { stores_data: true, ..Capabilities::default() },
        count_programs: false,
    };
    let mut image = ImageMedium::create(path, &geometry(), &options, "[device]\npage = \"512\"\n").unwrap();
    for page in 0..4 {
        image.program(Ppn(page), oob(page), Some(&content(page))).unwrap();
    }
    image.program(Ppn(4), oob(9), None).unwrap();
    image.erase(BlockId(1)).unwrap();
    image.program(Ppn(4), oob(4), Some(&content(4))).unwrap();
    image.program(Ppn(5), oob(5), None).unwrap();
}

/// What every page of [`fill`] may give: its bytes or an error, and never other bytes. Gives the errors.
fn look(image: &mut ImageMedium, label: &str) -> u32 {
    let mut errors = 0;
    for page in 0..12 {
        let mut data = vec![0; PAGE];
        let expected = if page == 5 { vec![0; PAGE] } else { content(page) };
        match image.read(Ppn(page), Some(&mut data)) {
            Ok(found) => {
                assert!(page < 6, "{label}: page {page} holds something");
                assert_eq!((found, &data), (oob(page), &expected), "{label}: page {page}");
            }
            Err(_) => errors += u32::from(page < 6),
        }
    }
    errors
}

/// Flips a bit of a byte of a file.
fn flip(path: &Path, at: u64) {
    let file = fs::File::options().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    byte[0] ^= 1 << (at % 8);
    file.write_all_at(&byte, at).unwrap();
}

/// Bytes of the small image that are not holes for certain.
fn table_bytes(path: &Path) -> u64 {
    // One entry of 16 bytes a block and one of 32 a page, the page table at the next 4 KiB.
    assert_eq!(Header::read(path).unwrap().geometry, geometry());
    (64 << 10) + 4096 + 12 * 32
}

#[test]
fn every_flipped_byte_of_header_and_tables_is_an_error_or_an_unreadable_page() {
    let dir = scratch();
    let path = dir.path().join("flash.img");
    fill(&path);
    let mut refused = 0;
    let mut unreadable = 0;
    let config_bytes = Header::read(&path).unwrap().config.len() as u64;
    let config = 8192 + config_bytes;
    let interesting =
        (0..4096).chain(4096..4096 + 48).chain(8192..config).chain(64 << 10..table_bytes(&path));
    for at in interesting {
        flip(&path, at);
        let label = format!("byte {at}");
        match ImageMedium::open_aside(&path) {
            Err(error) => {
                let message = error.to_string();
                assert!(message.contains("flash.img: offset "), "{label}: {message}");
                refused += 1;
            }
            Ok(mut image) => unreadable += look(&mut image, &label),
        }
        flip(&path, at);
    }
    // The header, the configuration, the three entries of the block table.
    assert_eq!(refused, 4096 + config_bytes + 3 * 16);
    // Every byte of the records of six pages.
    assert_eq!(unreadable, 6 * 32);
}

#[test]
fn every_flipped_byte_of_data_is_found_by_reads_and_by_the_check() {
    let dir = scratch();
    let path = dir.path().join("flash.img");
    fill(&path);
    let data = fs::metadata(&path).unwrap().len() as usize - 12 * PAGE;
    for at in (data..data + 5 * PAGE).step_by(37) {
        flip(&path, at as u64);
        let mut image = ImageMedium::open_aside(&path).unwrap();
        assert_eq!(look(&mut image, &format!("byte {at}")), 1, "byte {at}");
        assert_eq!(image.health().checksum_errors, 1);
        drop(image);
        let findings = ImageMedium::open_aside(&path).unwrap().check(&path, &mut |_, _| {}).unwrap();
        assert_eq!(findings.problem_count, 1);
        let page = (at - data) / PAGE;
        assert_eq!(
            (findings.problems[0].page, findings.problems[0].offset),
            (page as u32, (data + page * PAGE) as u64)
        );
        assert_eq!(findings.verified_pages, 4);
        flip(&path, at as u64);
    }
}

#[test]
fn a_file_of_another_length_is_refused() {
    let dir = scratch();
    let path = dir.path().join("flash.img");
    fill(&path);
    let good = fs::read(&path).unwrap();
    let lengths = (0..8192).step_by(61).chain((8192..good.len()).step_by(40_009)).chain([good.len() - 1]);
    for length in lengths {
        fs::write(&path, &good[..length]).unwrap();
        let message = ImageMedium::open(&path).unwrap_err().to_string();
        assert!(message.contains("flash.img: "), "{length}: {message}");
    }
    fs::write(&path, [&good[..], &[0]].concat()).unwrap();
    let message = ImageMedium::open(&path).unwrap_err().to_string();
    let expected = format!("end of the file is {}: expected {}", good.len() + 1, good.len());
    assert!(message.ends_with(&expected), "{message}");
    fs::write(&path, b"LUKS, say").unwrap();
    let message = ImageMedium::open(&path).unwrap_err().to_string();
    assert!(message.ends_with("flash.img: offset 0: not an image of nandscape"), "{message}");
}

#[test]
fn a_newer_version_is_refused_by_name() {
    let dir = scratch();
    let path = dir.path().join("flash.img");
    fill(&path);
    let mut bytes = fs::read(&path).unwrap();
    bytes[16] = 2;
    fs::write(&path, &bytes).unwrap();
    let message = ImageMedium::open(&path).unwrap_err().to_string();
    assert!(message.contains("offset 16: the image has format version 2: expected version 1"), "{message}");
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/image/version-1.img.txt")
}

/// The golden file without the holes: a line `offset length` and the bytes, for each run.
fn pack(image: &[u8]) -> Vec<u8> {
    let mut packed = format!("length {}\n", image.len()).into_bytes();
    for (at, chunk) in image.chunks(64).enumerate().filter(|(_, chunk)| chunk.iter().any(|byte| *byte != 0)) {
        packed.extend_from_slice(format!("{}", at * 64).as_bytes());
        for byte in chunk {
            packed.extend_from_slice(format!(" {byte:02x}").as_bytes());
        }
        packed.push(b'\n');
    }
    packed
}

fn unpack(packed: &str) -> Vec<u8> {
    let mut lines = packed.lines();
    let length = lines.next().unwrap().strip_prefix("length ").unwrap().parse().unwrap();
    let mut image = vec![0; length];
    for line in lines {
        let mut words = line.split(' ');
        let at: usize = words.next().unwrap().parse().unwrap();
        for (byte, word) in image[at..].iter_mut().zip(words) {
            *byte = u8::from_str_radix(word, 16).unwrap();
        }
    }
    image
}

#[test]
fn the_golden_image_of_version_1_opens() {
    let dir = scratch();
    let path = dir.path().join("golden.img");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fill(&path);
        fs::create_dir_all(golden().parent().unwrap()).unwrap();
        fs::write(golden(), pack(&fs::read(&path).unwrap())).unwrap();
    }
    let packed = fs::read_to_string(golden()).unwrap();
    fs::write(&path, unpack(&packed)).unwrap();
    let header = Header::read(&path).unwrap();
    assert_eq!((header.geometry, header.endurance), (geometry(), Some(3000)));
    assert_eq!(header.config, "[device]\npage = \"512\"\n");
    let mut image = ImageMedium::open(&path).unwrap();
    assert_eq!(look(&mut image, "golden"), 0);
    assert_eq!((image.erase_count(BlockId(1)), image.write_pointer(BlockId(1))), (1, 2));
    assert!(image.is_bad(BlockId(2)));
    let findings = image.check(&path, &mut |_, _| {}).unwrap();
    assert_eq!((findings.problem_count, findings.verified_pages), (0, 5));
    let contents = findings.contents;
    assert!(contents.is_clean);
    assert_eq!((contents.programmed_pages, contents.blank_pages, contents.torn_pages), (6, 1, 0));
    assert_eq!((contents.bad_blocks, contents.erases_min, contents.erases_max), (vec![2], 0, 1));
}
