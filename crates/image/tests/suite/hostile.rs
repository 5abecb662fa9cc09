//! Images that somebody or something has changed: an error that names file and offset, or pages that say they
//! cannot be read; never a panic, never wrong bytes. And the golden images of each format version.

use nandscape_core::{BlockId, BlockState, Capabilities, FlashError, Geometry, Lpn, Oob, Ppn};
use nandscape_image::{Header, ImageFlash, ImageMedium};
use nandscape_media::{BadBlocks, Medium, MediumState, NandOptions};
use nandscape_object::oftl::{ObjectOob, PageKind};
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
        ages: Vec::new(),
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

/// First byte and length of every table of the small image: both copies of the state, of three block entries
/// and of twelve records.
const TABLES: [(u64, u64); 6] =
    [(4096, 48), (6144, 48), (64 << 10, 48), (68 << 10, 48), (72 << 10, 384), (76 << 10, 384)];

#[test]
fn every_flipped_byte_of_header_is_refused_and_of_tables_is_mended() {
    let dir = scratch();
    let path = dir.path().join("flash.img");
    fill(&path);
    let header = Header::read(&path).unwrap();
    assert_eq!((header.geometry, header.version), (geometry(), 2));
    let config = 8192..8192 + header.config.len() as u64;
    for at in (0..4096).chain(config) {
        flip(&path, at);
        let message = ImageMedium::open_aside(&path).unwrap_err().to_string();
        assert!(message.contains("flash.img: offset "), "byte {at}: {message}");
        flip(&path, at);
    }
    for at in TABLES.into_iter().flat_map(|(first, len)| first..first + len) {
        flip(&path, at);
        let label = format!("byte {at}");
        let mut image = ImageMedium::open_aside(&path).unwrap_or_else(|error| panic!("{label}: {error}"));
        assert_eq!(look(&mut image, &label), 0, "{label}");
        let findings = ImageMedium::open_aside(&path).unwrap().check(&path, &mut |_, _| {}).unwrap();
        assert!(findings.problem_count > 0, "{label}: not found by the check");
        flip(&path, at);
    }
    let findings = ImageMedium::open_aside(&path).unwrap().check(&path, &mut |_, _| {}).unwrap();
    assert_eq!(findings.problem_count, 0);
}

#[test]
fn a_record_with_both_copies_damaged_is_an_error_that_is_not_a_torn_page() {
    let dir = scratch();
    let path = dir.path().join("flash.img");
    fill(&path);
    let page = 1;
    for copy in [72 << 10, 76 << 10] {
        flip(&path, copy + page * 32);
    }
    let mut image = ImageMedium::open_aside(&path).unwrap();
    let page = Ppn(page as u32);
    assert_eq!(image.read(page, None), Err(FlashError::Damaged { page }));
    assert_eq!(look(&mut image, "both copies"), 1);
    let findings = ImageMedium::open_aside(&path).unwrap().check(&path, &mut |_, _| {}).unwrap();
    assert_eq!(findings.problem_count, 1);
}

#[test]
fn a_block_whose_last_word_is_lost_is_known_from_the_settled_one_and_one_without_either_is_refused_by_name() {
    let dir = scratch();
    let path = dir.path().join("flash.img");
    fill(&path);
    // Block 1 was erased once and is half full.
    for copy in [64 << 10, 68 << 10] {
        flip(&path, copy + 16 + 8);
    }
    let mut image = ImageMedium::open(&path).unwrap();
    assert_eq!(look(&mut image, "last word"), 0);
    assert_eq!((image.erase_count(BlockId(1)), image.write_pointer(BlockId(1))), (1, 2));
    drop(image);
    assert_eq!(look(&mut ImageMedium::open_aside(&path).unwrap(), "written again"), 0);
    for copy in [64 << 10, 68 << 10] {
        flip(&path, copy + 16);
        flip(&path, copy + 16 + 8);
    }
    let message = ImageMedium::open_aside(&path).unwrap_err().to_string();
    assert!(message.contains("flash.img: offset 65552: block table entry of block 1 is "), "{message}");
    assert!(message.ends_with("expected a word with its checksum, here or in the second copy"), "{message}");
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
        assert_eq!(image.tally().health.checksum_errors, 1);
        drop(image);
        let findings = ImageMedium::open_aside(&path).unwrap().check(&path, &mut |_, _| {}).unwrap();
        assert_eq!(findings.problem_count, 1);
        let page = (at - data) / PAGE;
        assert_eq!(
            (findings.problems[0].page, findings.problems[0].offset),
            (Some(page as u32), (data + page * PAGE) as u64)
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
    bytes[16] = 4;
    fs::write(&path, &bytes).unwrap();
    let message = ImageMedium::open(&path).unwrap_err().to_string();
    assert!(message.contains("offset 16: the image has format version 4: expected version 3"), "{message}");
}

fn golden(version: u32) -> PathBuf {
    let file = format!("../../tests/golden/image/version-{version}.img.txt");
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
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
fn the_golden_image_of_every_version_opens() {
    let dir = scratch();
    let path = dir.path().join("golden.img");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fill(&path);
        let version = Header::read(&path).unwrap().version;
        fs::create_dir_all(golden(version).parent().unwrap()).unwrap();
        fs::write(golden(version), pack(&fs::read(&path).unwrap())).unwrap();
    }
    for version in [1, 2] {
        let packed = fs::read_to_string(golden(version)).unwrap();
        fs::write(&path, unpack(&packed)).unwrap();
        let header = Header::read(&path).unwrap();
        assert_eq!((header.version, header.geometry, header.endurance), (version, geometry(), Some(3000)));
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
        // It is written in its own version.
        image.program(Ppn(6), oob(6), Some(&content(6))).unwrap();
        drop(image);
        assert_eq!(Header::read(&path).unwrap().version, version);
        let mut image = ImageMedium::open_aside(&path).unwrap();
        let mut data = vec![0; PAGE];
        assert_eq!(image.read(Ppn(6), Some(&mut data)), Ok(oob(6)));
        assert_eq!(data, content(6));
    }
}

fn back_pointer(page: u32) -> ObjectOob {
    ObjectOob {
        kind: PageKind::Data,
        is_copy: page == 2,
        tcnt: 3,
        version: 0x1122_3344_5566_7788 + u64::from(page),
        object: 0x99AA_BBCC_DDEE_FF00 + u64::from(page),
        offset: 1 << 30 | page,
        len: PAGE as u32,
        tid: 0x0102_0304_0506_0708 + u64::from(page),
    }
}

/// Version 3 is that of images with a longer OOB than logical pages have.
#[test]
fn the_golden_image_with_back_pointers_opens_for_layers_that_have_them() {
    let dir = scratch();
    let path = dir.path().join("golden.img");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let geometry = Geometry { oob_bytes: 64, ..geometry() };
        let capabilities = Capabilities { stores_data: true, ..Capabilities::default() };
        let options = NandOptions { capabilities, ..NandOptions::default() };
        let mut image = ImageFlash::<ObjectOob>::create(&path, &geometry, &options, "").unwrap();
        for page in 0..3 {
            image.program(Ppn(page), back_pointer(page), Some(&content(page))).unwrap();
        }
        drop(image);
        fs::write(golden(3), pack(&fs::read(&path).unwrap())).unwrap();
    }
    fs::write(&path, unpack(&fs::read_to_string(golden(3)).unwrap())).unwrap();
    let header = Header::read(&path).unwrap();
    assert_eq!((header.version, header.oob_bytes), (3, 40));
    let refused = ImageMedium::open(&path).unwrap_err().to_string();
    assert!(refused.contains("offset 160: bytes of the OOB is 40: expected 14"), "{refused}");
    let mut image = ImageFlash::<ObjectOob>::open(&path).unwrap();
    for page in 0..3 {
        let mut data = vec![0; PAGE];
        assert_eq!(image.read(Ppn(page), Some(&mut data)), Ok(back_pointer(page)));
        assert_eq!(data, content(page));
    }
    let findings = image.check(&path, &mut |_, _| {}).unwrap();
    assert_eq!((findings.problem_count, findings.verified_pages), (0, 3));
}
