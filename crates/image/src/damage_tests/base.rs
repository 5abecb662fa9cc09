//! Images to damage: written through a layer, then closed, killed or cut off, and what each logical page may
//! hold.

use crate::header::Header;
use crate::layout::STATE;
use crate::model::{Disk, Watch};
use crate::start::{format, head, load};
use crate::state::{BYTES, State};
use nandscape_core::rng::{Xoshiro256PlusPlus, below, seeded};
use nandscape_core::{Capabilities, Extent, Ftl, Geometry, Hint, Oob, OutOfBand as _, SimTime};
use nandscape_ftl::{Journal, JournalOptions, find};
use nandscape_media::{NandOptions, Scheduler as _, Serial, Timed, Timing};
use std::path::Path;

pub const PAGE: usize = 512;
const BOOT: [u8; 16] = [1; 16];
const NEVER: u64 = u64::MAX;
const ZERO: SimTime = SimTime::ZERO;

/// How the last process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It closed the image.
    Clean,
    /// It was killed.
    Killed,
    /// The machine failed.
    Failed,
}

pub type Flash = crate::flash::Flash<Disk>;
pub type Layer = Box<dyn Ftl + Send>;

/// One content of a logical page, and how many operations of the store there were when it was asked for,
/// answered, and made durable.
#[derive(Clone, Copy, Debug)]
struct Version {
    tag: u64,
    asked: u64,
    answered: u64,
    flushed: u64,
    is_drop: bool,
}

/// An image at rest.
pub struct Base {
    pub label: String,
    pub layer: &'static str,
    pub end: End,
    pub header: Header,
    pub bytes: Vec<u8>,
    /// Contents that each logical page may have.
    pub allowed: Vec<Vec<u64>>,
}

/// The bytes of a content; 0 is a page that holds nothing.
pub fn bytes_of(tag: u64) -> [u8; PAGE] {
    let mut bytes = [0; PAGE];
    if tag > 0 {
        for (index, word) in bytes.chunks_exact_mut(8).enumerate() {
            let mixed = (tag << 8 | index as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
            word.copy_from_slice(&mixed.to_le_bytes());
        }
    }
    bytes
}

fn header(layer: &str, version: u32) -> Header {
    let geometry = Geometry {
        channels: 2,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: 14,
        pages_per_block: 8,
        page_bytes: PAGE as u32,
        sector_bytes: 512,
        oob_bytes: 16,
    };
    let out_of_order_program = layer.contains("sbm");
    let capabilities = Capabilities { out_of_order_program, stores_data: true, ..Capabilities::default() };
    Header {
        version,
        uuid: [7; 16],
        geometry: geometry.checked().unwrap(),
        oob_bytes: Oob::BYTES as u32,
        endurance: None,
        capabilities,
        created_s: 0,
        config: "[ftl]\nname = \"x\"\n".into(),
    }
}

/// The layer over an image that is open.
pub fn build(layer: &str, flash: Flash) -> Result<Layer, String> {
    let timing =
        Timing { read_ns: 1, program_ns: 1, erase_ns: 1, channel_bytes_per_s: 1 << 30, command_ns: 0 };
    let serial = Serial::new(&flash.header.geometry, &timing);
    let options = JournalOptions { interval: Some(40), ..JournalOptions::default() };
    let journal = Journal::open(Timed::new(flash, serial), options).map_err(|error| error.to_string())?;
    let entry = find(layer).unwrap();
    let params = entry.tiny(&[]).unwrap();
    (entry.build)(Box::new(journal), &params).map_err(|error| error.to_string())
}

pub fn extent(lpn: usize, pages: usize) -> Extent {
    Extent::new((lpn * PAGE) as u64, (pages * PAGE) as u64)
}

/// A host that writes, drops and flushes.
struct Host<'a> {
    ftl: Layer,
    watch: &'a Watch,
    versions: Vec<Vec<Version>>,
    tag: u64,
    rng: Xoshiro256PlusPlus,
}

impl Host<'_> {
    fn draw(&mut self, limit: usize) -> usize {
        below(&mut self.rng, limit as u64) as usize
    }

    fn push(&mut self, pages: std::ops::Range<usize>, first_tag: u64, asked: u64) {
        let answered = self.watch.operations();
        for (index, page) in pages.enumerate() {
            let tag = if first_tag == 0 { 0 } else { first_tag + index as u64 };
            let version = Version { tag, asked, answered, flushed: NEVER, is_drop: tag == 0 };
            self.versions[page].push(version);
        }
    }

    fn write(&mut self, first: usize, pages: usize) {
        let asked = self.watch.operations();
        let tag = self.tag + 1;
        self.tag += pages as u64;
        let data: Vec<u8> = (0..pages as u64).flat_map(|index| bytes_of(tag + index)).collect();
        self.ftl.write(extent(first, pages), Some(&data), Hint::default(), ZERO).unwrap();
        self.push(first..first + pages, tag, asked);
    }

    fn drop_pages(&mut self, first: usize, pages: usize) {
        let asked = self.watch.operations();
        self.ftl.trim(extent(first, pages), ZERO).unwrap();
        self.push(first..first + pages, 0, asked);
    }

    fn flush(&mut self) {
        self.ftl.flush(ZERO).unwrap();
        self.settle();
    }

    fn settle(&mut self) {
        let now = self.watch.operations();
        for version in self.versions.iter_mut().flatten() {
            version.flushed = version.flushed.min(now);
        }
    }

    fn step(&mut self) {
        let capacity = self.versions.len();
        let spread = if self.draw(3) == 0 { capacity } else { capacity / 4 };
        let first = self.draw(spread);
        let pages = (self.draw(4) + 1).min(capacity - first);
        match self.draw(20) {
            0..=14 => self.write(first, pages),
            15 | 16 => self.drop_pages(first, pages),
            _ => self.flush(),
        }
    }
}

impl Base {
    /// An image of this format version that was written through a layer.
    pub fn new(layer: &'static str, end: End, version: u32, seed: u64) -> Self {
        let header = header(layer, version);
        let layout = header.layout();
        let mut bytes = vec![0; layout.file_bytes as usize];
        let head = head(&header);
        bytes[..head.len()].copy_from_slice(&head);
        let watch = Watch::new();
        let disk = Disk::new(bytes, layout.data, seed).watched(&watch);
        let flash = format(disk, header.clone(), BOOT, &[], &NandOptions::default()).unwrap();
        let ftl = build(layer, flash).unwrap();
        let capacity = ftl.logical_pages() as usize;
        let fresh = Version { tag: 0, asked: 0, answered: 0, flushed: 0, is_drop: false };
        let versions = vec![vec![fresh]; capacity];
        let mut host = Host { ftl, watch: &watch, versions, tag: 0, rng: seeded(seed) };
        for first in (0..capacity).step_by(4) {
            host.write(first, 4.min(capacity - first));
        }
        host.flush();
        let steps = 20 + host.draw(160);
        for _ in 0..steps {
            host.step();
        }
        if end == End::Clean {
            host.ftl.shutdown(ZERO).unwrap();
            host.settle();
        } else {
            watch.cut_at(watch.operations() + 1 + host.draw(12) as u64);
            while !watch.is_kept() {
                host.step();
            }
        }
        let Host { ftl, versions, .. } = host;
        drop(ftl);
        let kept = watch.take().unwrap();
        let mut bytes = kept.now;
        if end == End::Failed {
            let mut disk = Disk::new(bytes, layout.data, seed ^ 0xFA11);
            disk.durable.clone_from(&kept.durable);
            bytes = disk.fail().now.clone();
        }
        if end == End::Clean {
            let state = State::decode(&bytes[STATE as usize..][..BYTES]).unwrap();
            let state = State { is_clean: true, ..state }.encode();
            for at in layout.states() {
                bytes[at as usize..][..BYTES].copy_from_slice(&state);
            }
        }
        let allowed = versions.iter().map(|versions| allowed(versions, end, kept.operations)).collect();
        let label = format!("{layer}, {end:?}, version {version}, seed {seed}");
        Self { label, layer, end, header, bytes, allowed }
    }

    /// Opens the flash of an image.
    pub fn load(&self, bytes: Vec<u8>) -> Result<Flash, String> {
        let boot = if self.end == End::Failed { [2; 16] } else { BOOT };
        let disk = Disk::new(bytes, self.header.layout().data, 1);
        load(disk, self.header.clone(), boot, Path::new("disk")).map_err(|error| error.to_string())
    }
}

/// The contents that a page may have after the operation of number `cut` was the last.
fn allowed(versions: &[Version], end: End, cut: u64) -> Vec<u64> {
    let is_settled = |version: &Version| match end {
        End::Clean => true,
        End::Killed if !version.is_drop => version.answered < cut,
        End::Killed | End::Failed => version.flushed < cut,
    };
    let first = versions.iter().rposition(is_settled).unwrap_or(0);
    let asked = versions[first..].iter().filter(|version| end == End::Clean || version.asked < cut);
    let mut tags: Vec<u64> = asked.map(|version| version.tag).collect();
    // After a clean end only the last one.
    if end == End::Clean {
        tags.drain(..tags.len() - 1);
    }
    tags
}
