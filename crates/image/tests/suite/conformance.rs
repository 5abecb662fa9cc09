//! The image and the medium in memory answer every operation alike: the same random programs, reads, erases,
//! tears, rot and bad blocks on both, legal and not, with the image closed and opened again in between.

use nandscape_core::rng::{below, seeded};
use nandscape_core::{BlockId, BlockState, Capabilities, FlashError, Geometry, Lpn, Oob, Ppn};
use nandscape_image::ImageMedium;
use nandscape_media::{BadBlocks, Breakable as _, Medium, MediumState, Nand, NandOptions};
use std::path::Path;

fn geometry(page_bytes: u32, sector_bytes: u32) -> Geometry {
    Geometry {
        channels: 2,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: 5,
        pages_per_block: 6,
        page_bytes,
        sector_bytes,
        oob_bytes: 16,
    }
    .checked()
    .unwrap()
}

fn options(out_of_order_program: bool) -> NandOptions {
    NandOptions {
        endurance: Some(40),
        bad_blocks: BadBlocks::List(vec![BlockId(3)]),
        capabilities: Capabilities { out_of_order_program, stores_data: true, ..Capabilities::default() },
        count_programs: false,
        ages: vec![0, 7],
    }
}

/// A directory in memory where there is one: most of the time would go into waiting for the disk.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Everything that can be seen of a medium.
fn observe(medium: &mut dyn Medium) -> Vec<String> {
    let geometry = *medium.geometry();
    let mut seen = Vec::new();
    for block in (0..geometry.blocks()).map(BlockId) {
        seen.push(format!(
            "{block:?}: {} erases, {} programmed, bad {}",
            medium.erase_count(block),
            medium.write_pointer(block),
            medium.is_bad(block)
        ));
    }
    let mut data = vec![0; geometry.page_bytes as usize];
    for page in (0..geometry.pages()).map(Ppn) {
        let read = medium.read(page, Some(&mut data));
        let sum = nandscape_media::checksum::sum(&data);
        let bytes = read.is_ok().then_some(sum);
        seen.push(format!("{page:?}: {} {read:?} {bytes:?}", medium.is_programmed(page)));
    }
    seen
}

fn run(seed: u64, dir: &Path, page_bytes: u32, out_of_order: bool, steps: usize) {
    let geometry = geometry(page_bytes, 512);
    let path = dir.join(format!("{seed}.img"));
    let mut nand = Nand::new(geometry, &options(out_of_order)).unwrap();
    let mut image = ImageMedium::create(&path, &geometry, &options(out_of_order), "a = 1\n").unwrap();
    let mut rng = seeded(seed);
    let mut draw = |limit: u32| below(&mut rng, u64::from(limit)) as u32;
    for step in 0..steps {
        let block = BlockId(draw(geometry.blocks() + 1));
        // Mostly the next page of the block, so that blocks fill.
        let index = if draw(4) > 0 && block.0 < geometry.blocks() {
            nand.write_pointer(block).min(geometry.pages_per_block - 1)
        } else {
            draw(geometry.pages_per_block)
        };
        let page = Ppn(block.0 * geometry.pages_per_block + index);
        let what = match draw(24) {
            0..=11 => {
                let oob =
                    Oob { lpn: Lpn(draw(1000)), stream: draw(3) as u16, seq: u64::from(draw(u32::MAX)) << 7 };
                let fill = draw(3);
                let data: Vec<u8> =
                    (0..page_bytes).map(|i| if fill == 0 { 0 } else { (i * fill + index) as u8 }).collect();
                let data = (draw(8) > 0).then_some(&data[..]);
                (
                    format!("{:?}", nand.program(page, oob, data)),
                    format!("{:?}", image.program(page, oob, data)),
                )
            }
            12..=16 => {
                let start = draw(page_bytes);
                let len = draw(page_bytes - start) + 1;
                let mut part = [vec![1; len as usize], vec![1; len as usize]];
                let answers = (
                    format!("{:?}", nand.read_part(page, start, &mut part[0])),
                    format!("{:?}", image.read_part(page, start, &mut part[1])),
                );
                if answers.0.starts_with("Ok") {
                    assert!(part[0] == part[1], "seed {seed}, step {step}: bytes of {page:?} from {start}");
                }
                answers
            }
            17 | 18 => (format!("{:?}", nand.erase(block)), format!("{:?}", image.erase(block))),
            19 => (format!("{:?}", nand.tear_program(page)), format!("{:?}", image.tear_program(page))),
            20 if draw(4) == 0 && block.0 < geometry.blocks() && !nand.is_bad(block) => {
                nand.tear_erase(block);
                image.tear_erase(block);
                (String::new(), String::new())
            }
            21 if draw(30) == 0 && block.0 < geometry.blocks() => {
                nand.mark_bad(block);
                image.mark_bad(block);
                (String::new(), String::new())
            }
            22 if block.0 < geometry.blocks() => {
                let bit = u64::from(draw(page_bytes * 8 + 14 * 8));
                // What is torn or blank holds no bits in one of them.
                let mut data = vec![0; page_bytes as usize];
                let is_data = nand.read(page, Some(&mut data)).is_ok() && data.iter().any(|byte| *byte != 0);
                let also = image.read(page, None).is_ok();
                let rots = is_data && (nand.rot(page, bit), image.rot(page, bit)) == (true, true);
                (format!("{is_data} {rots}"), format!("{} {is_data}", also && is_data))
            }
            _ => (format!("{:?}", nand.sync()), format!("{:?}", image.sync())),
        };
        assert_eq!(what.0, what.1, "seed {seed}, step {step}, {page:?}");
        if draw(40) == 0 {
            drop(image);
            image = ImageMedium::open(&path).unwrap();
        }
    }
    assert_eq!(observe(&mut nand), observe(&mut image), "seed {seed}");
    drop(image);
    let mut again = ImageMedium::open(&path).unwrap();
    assert_eq!(observe(&mut nand), observe(&mut again), "seed {seed}, opened again");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn image_and_memory_answer_alike() {
    let dir = scratch();
    for seed in 0..12 {
        run(seed, dir.path(), [512, 8192, 4608][seed as usize % 3], seed % 2 == 1, 1500);
    }
}

#[test]
fn an_image_in_use_is_refused_and_one_that_is_there_is_not_made_again() {
    let dir = scratch();
    let path = dir.path().join("flash.img");
    let image = ImageMedium::create(&path, &geometry(512, 512), &options(false), "").unwrap();
    let message = ImageMedium::open(&path).unwrap_err().to_string();
    assert!(message.ends_with("flash.img: the image is in use by another process"), "{message}");
    drop(image);
    let message =
        ImageMedium::create(&path, &geometry(512, 512), &options(false), "").unwrap_err().to_string();
    assert!(message.contains("flash.img: create: File exists"), "{message}");
    ImageMedium::open(&path).unwrap();
}

#[test]
fn erased_pages_are_not_read_from_the_file() {
    let dir = scratch();
    let path = dir.path().join("flash.img");
    let mut image = ImageMedium::create(&path, &geometry(512, 512), &options(false), "").unwrap();
    image.program(Ppn(0), Oob { lpn: Lpn(1), stream: 0, seq: 1 }, Some(&[7; 512])).unwrap();
    image.erase(BlockId(0)).unwrap();
    assert_eq!(image.read(Ppn(0), None), Err(FlashError::Erased { page: Ppn(0) }));
    // The erase is not yet settled: a program makes it so first.
    image.program(Ppn(0), Oob { lpn: Lpn(2), stream: 0, seq: 2 }, None).unwrap();
    let mut data = [1; 512];
    assert_eq!(image.read(Ppn(0), Some(&mut data)).unwrap().lpn, Lpn(2));
    assert_eq!(data, [0; 512]);
}
