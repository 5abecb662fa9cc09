//! A process that writes an image is killed, again and again: what it said it had done is there, and the page
//! it was at is whole, absent or torn.
//!
//! The process is this test itself, started with `IMAGE_WRITER` set to the file.

use nandscape_core::{BlockId, BlockState, Capabilities, FlashError, Geometry, Lpn, Oob, Ppn};
use nandscape_image::ImageMedium;
use nandscape_media::{Medium, NandOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

fn geometry() -> Geometry {
    Geometry {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: 16,
        pages_per_block: 16,
        page_bytes: 8192,
        sector_bytes: 512,
        oob_bytes: 16,
    }
    .checked()
    .unwrap()
}

fn bytes(content: u64) -> Vec<u8> {
    (0..8192u64).map(|i| (content.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (i % 56)) as u8 | 1).collect()
}

const fn oob(content: u64) -> Oob {
    Oob { lpn: Lpn(3), stream: 0, seq: content }
}

/// Where the page of a number goes: round and round, each block erased when it is come to again.
fn place(content: u64) -> Ppn {
    Ppn((content % u64::from(geometry().pages())) as u32)
}

/// Programs pages from the number that stands on standard input, and says each when it is done.
#[test]
fn writer() {
    let Some(path) = std::env::var_os("IMAGE_WRITER") else { return };
    let mut image = ImageMedium::open(Path::new(&path)).unwrap();
    let mut first = [0; 8];
    std::io::stdin().read_exact(&mut first).unwrap();
    let mut out = std::fs::OpenOptions::new().write(true).open("/dev/fd/3").unwrap();
    for content in u64::from_le_bytes(first).. {
        let page = place(content);
        if page.0.is_multiple_of(16) {
            image.erase(BlockId(page.0 / 16)).unwrap();
        }
        image.program(page, oob(content), Some(&bytes(content))).unwrap();
        out.write_all(&content.to_le_bytes()).unwrap();
    }
}

/// The pages that must be there when everything below `next` was programmed. The block that the page `next`
/// goes to may be erased already.
fn verify(image: &mut ImageMedium, next: u64) {
    let mut buffer = vec![0; 8192];
    let pages = u64::from(geometry().pages());
    let first = if next.is_multiple_of(16) { next + 16 } else { next - next % 16 + 16 }.saturating_sub(pages);
    for content in first..next {
        let read = image.read(place(content), Some(&mut buffer)).unwrap_or_else(|e| panic!("{content}: {e}"));
        assert_eq!(read, oob(content));
        assert!(buffer == bytes(content), "bytes of {content}");
    }
}

/// Whether the page that was being programmed arrived.
fn arrived(image: &mut ImageMedium, content: u64) -> bool {
    let mut buffer = vec![0; 8192];
    match image.read(place(content), Some(&mut buffer)) {
        Ok(found) if found == oob(content) => {
            assert!(buffer == bytes(content), "bytes of {content}");
            true
        }
        // Its block is still to be erased.
        Ok(found) => {
            assert!(
                content.is_multiple_of(16) && found.seq + u64::from(geometry().pages()) == content,
                "{found:?} for {content}"
            );
            false
        }
        Err(FlashError::Erased { .. } | FlashError::Uncorrectable { .. }) => false,
        Err(error) => panic!("{content}: {error}"),
    }
}

#[test]
fn a_killed_writer_leaves_what_it_had_done() {
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let path = dir.path().join("flash.img");
    let options = NandOptions {
        capabilities: Capabilities { stores_data: true, ..Capabilities::default() },
        ..NandOptions::default()
    };
    drop(ImageMedium::create(&path, &geometry(), &options, "").unwrap());
    let mut next: u64 = 0;
    for round in 0..12u64 {
        // Pages are said on descriptor 3, which the shell makes of the pipe, since the test runner has
        // standard output.
        let mut writer = Command::new("sh")
            .args(["-c", "exec \"$0\" --exact kill::writer --nocapture 3>&1 >/dev/null 2>&1"])
            .arg(std::env::current_exe().unwrap())
            .env("IMAGE_WRITER", &path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        writer.stdin.take().unwrap().write_all(&next.to_le_bytes()).unwrap();
        let mut said = writer.stdout.take().unwrap();
        for _ in 0..100 + round * 37 {
            let mut content = [0; 8];
            said.read_exact(&mut content).expect("the writer goes on until it is killed");
            assert_eq!(u64::from_le_bytes(content), next);
            next += 1;
        }
        writer.kill().unwrap();
        writer.wait().unwrap();
        let mut rest = Vec::new();
        said.read_to_end(&mut rest).unwrap();
        next += rest.len() as u64 / 8;
        let mut image = ImageMedium::open(&path).unwrap();
        verify(&mut image, next);
        if arrived(&mut image, next) {
            next += 1;
        } else if !next.is_multiple_of(16)
            && image.write_pointer(BlockId(place(next).0 / 16)) > place(next).0 % 16
        {
            // Torn: the writer begins the block anew.
            next -= next % 16;
        }
    }
    assert!(next > 3000, "{next}");
}
