//! A damaged image. Byte 0 chooses the translation layer and whether checksums are made right again after the
//! damage; then come patches: a place (3 bytes, taken modulo the size), a length (1 byte, at most 16), and
//! that many bytes.
//!
//! Checking and starting may refuse, and must not panic. After a single patch whose checksum was left wrong,
//! every page that was flushed is read as it was written, or is an error.

use nandscape_core::command::Payload;
use nandscape_core::{BlockCommand, Extent, Hint, Op, SimTime};
use nandscape_stack::config::Typed;
use nandscape_stack::storing::{self, Storage};
use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::OnceLock;

const FTLS: [&str; 5] = ["page-map", "pm-gcl", "pm-gcc", "sbm-gcl", "hsbm-gcl"];
const PATCH: usize = 16;
const PAGE: usize = 2048;
const HEADER: usize = 4096;

/// A file in memory under a name of its own, gone when it is dropped.
fn in_memory(bytes: &[u8]) -> (File, PathBuf) {
    let file = rustix::fs::memfd_create("image", rustix::fs::MemfdFlags::CLOEXEC).expect("memory");
    let mut file = File::from(file);
    file.write_all(bytes).expect("memory");
    let path = format!("/proc/self/fd/{}", file.as_raw_fd()).into();
    (file, path)
}

fn page(number: u64, version: u64) -> [u8; PAGE] {
    let mut page = [0; PAGE];
    for (at, byte) in page.iter_mut().enumerate() {
        *byte = (number * 31 + version * 7 + at as u64 % 251) as u8 | 1;
    }
    page
}

fn command(op: Op, number: u64) -> BlockCommand {
    let extent =
        if op == Op::Flush { Extent::new(0, 0) } else { Extent::new(number * PAGE as u64, PAGE as u64) };
    BlockCommand::new(op, extent, Hint::default())
}

struct Used {
    bytes: Vec<u8>,
    /// What each page holds.
    pages: Vec<[u8; PAGE]>,
}

/// An image that was written to, overwritten and flushed, and whose process was then killed.
fn used(ftl: &str) -> Used {
    let mut typed = Typed::new();
    let shape = "device.channels=1 device.dies_per_channel=2 device.planes_per_die=1 device.blocks_per_plane=24 device.pages_per_block=8 \
                 device.page=2KiB device.sector=512B";
    for pair in shape.split_whitespace() {
        typed.set_pair(pair).expect("a key");
    }
    typed.set_pair(&format!("device.out_of_order_program={}", ftl.contains("sbm"))).expect("a key");
    typed.set_ftl(ftl).expect("a layer");
    let config = typed.check().expect("a device");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("image");
    let mut stored = storing::build_stored(&config, &Storage::Image(path.clone())).expect("an image");
    let count = stored.subsystem.namespaces()[0].capacity_bytes / PAGE as u64;
    let mut pages = Vec::new();
    for version in 0..3 {
        for number in (0..count).filter(|number| version == 0 || number % 3 == version) {
            let bytes = page(number, version);
            let done = stored.subsystem.submit(
                0,
                command(Op::Write, number).into(),
                Payload::Write(&bytes),
                SimTime::ZERO,
            );
            done.expect("room");
            pages.resize(pages.len().max(number as usize + 1), bytes);
            pages[number as usize] = bytes;
        }
        stored
            .subsystem
            .submit(0, command(Op::Flush, 0).into(), Payload::None, SimTime::ZERO)
            .expect("a flush");
    }
    let bytes = std::fs::read(&path).expect("the image");
    Used { bytes, pages }
}

fn sum(bytes: &[u8]) -> [u8; 4] {
    (crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32).to_le_bytes()
}

/// Makes the checksums of header and state right (docs/formats/image.md).
fn reseal(bytes: &mut [u8]) {
    bytes[20..24].fill(0);
    let header = sum(&bytes[..HEADER]);
    bytes[20..24].copy_from_slice(&header);
    for at in [HEADER, HEADER + 2048] {
        let state = sum(&bytes[at + 4..at + 48]);
        bytes[at..at + 4].copy_from_slice(&state);
    }
}

pub fn feed(input: &[u8]) {
    static USED: OnceLock<Vec<Used>> = OnceLock::new();
    let Some((choice, mut patches)) = input.split_first() else { return };
    let used = &USED.get_or_init(|| FTLS.iter().map(|ftl| used(ftl)).collect())
        [usize::from(choice & 7) % FTLS.len()];
    let is_resealed = choice & 8 != 0;
    let mut bytes = used.bytes.clone();
    let mut count = 0;
    while let Some(([a, b, c, len], rest)) = patches.split_first_chunk() {
        let at = u32::from_le_bytes([*a, *b, *c, 0]) as usize % (bytes.len() - PATCH);
        let len = (usize::from(*len) % PATCH + 1).min(rest.len());
        bytes[at..at + len].copy_from_slice(&rest[..len]);
        patches = &rest[len..];
        count += 1;
    }
    if is_resealed {
        reseal(&mut bytes);
    }
    let (_checked, path) = in_memory(&bytes);
    let _ = storing::check(&path, &mut |_, _| {});
    let (served, path) = in_memory(&bytes);
    let Ok(held) = storing::look(&path) else { return };
    let Ok(mut stored) = storing::build_stored(&held.config, &Storage::Image(path)) else { return };
    let capacity = stored.subsystem.namespaces()[0].capacity_bytes;
    for (number, meant) in (0..).zip(&used.pages).take((capacity / PAGE as u64) as usize) {
        let mut found = [0; PAGE];
        let done = stored.subsystem.submit(
            0,
            command(Op::Read, number).into(),
            Payload::Read(&mut found),
            SimTime::ZERO,
        );
        assert!(
            is_resealed || count > 1 || done.is_err() || found == *meant,
            "page {number} is not what was flushed"
        );
    }
    drop(stored);
    // The end of the start has changed the file and not its length.
    let mut last = [0];
    served.read_exact_at(&mut last, bytes.len() as u64 - 1).expect("the length stays");
}
