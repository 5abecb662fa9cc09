//! The root of a cache's metadata: two copies, of which the one with the higher generation counts.

use super::format::{BLOCK, HEADER, NUMBERS_END, items, u16_at, u32_at, u64_at};
use super::{Area, MetadataError, Setup, Write};
use nandscape_core::StoreError;
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: &[u8; 8] = b"NANDSCHE";
const VERSION: u32 = 1;
const VOLUMES_AT: usize = 1536;
const SETTINGS_AT: usize = 160;
// The end of the numbers, in the first sector of any device; what begins a checksum of them alone.
const HEAD_SUM_AT: usize = 116;
// 1 until it is opened.
const NEW_AT: usize = 132;
// 1 while blocks may be dirty of which nothing else here knows.
const MAY_LOSE_AT: usize = 133;
// What is kept of the disks' places.
const WATCH_AT: usize = 124;
// A bit for each volume in their order.
const DAMAGED_AT: usize = 136;
const VOLUME: usize = 64;

/// Bytes of [`Superblock::watch`].
pub const WATCH_BYTES: u64 = 2 * BLOCK as u64;

/// Volumes that a superblock has room for.
pub const VOLUMES_MAX: usize = (BLOCK - VOLUMES_AT) / VOLUME;
/// Bytes of settings that a superblock has room for.
pub const SETTINGS_MAX: usize = VOLUMES_AT - SETTINGS_AT;

/// A volume that is attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// Its number in [`nandscape_policies::BlockKey`].
    pub id: u16,
    /// Of this volume in this cache.
    pub uuid: [u8; 16],
    /// Size of its disk in bytes.
    pub bytes: u64,
    /// What told the disk's state when the cache last wrote to it; all zero where that is unknown.
    pub stamp: [u8; 16],
}

/// Where things lie. A kind says which of them it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Bytes of a cached block.
    pub block_bytes: u32,
    /// Slots.
    pub slots: u32,
    /// Bytes of a table block, of which those that fill 4096 bytes are written together.
    pub unit: u32,
    /// Copies of the table: 0, 1 or 2.
    pub tables: u32,
    /// Blocks of the ring of records; each is there twice.
    pub ring: u32,
    /// Whether a further table is written at a clean removal.
    pub has_closing: bool,
}

impl Shape {
    /// Entries of a table block.
    pub fn per_block(&self) -> u32 {
        items(self.unit as usize)
    }

    /// Blocks of one copy of the table.
    pub fn table_blocks(&self) -> u32 {
        self.slots.div_ceil(self.per_block())
    }

    /// Slots whose entries are in table block `block`.
    pub fn slots_of(&self, block: u32) -> std::ops::Range<u32> {
        let first = block * self.per_block();
        first..self.slots.min(first + self.per_block())
    }

    /// First byte of a table block; copy 2 is the one of a clean removal.
    pub fn table_offset(&self, copy: u32, block: u32) -> u64 {
        let closing = self.tables.min(copy);
        let base = 2 * BLOCK as u64 + if copy == 2 { 2 * u64::from(self.ring) * BLOCK as u64 } else { 0 };
        base + (u64::from(closing) * u64::from(self.table_blocks()) + u64::from(block)) * u64::from(self.unit)
    }

    /// First byte of copy 0 or 1 of a place in the ring.
    pub fn ring_offset(&self, copy: u32, place: u32) -> u64 {
        let tables = u64::from(self.tables) * u64::from(self.table_blocks()) * u64::from(self.unit);
        let blocks = u64::from(copy) * u64::from(self.ring) + u64::from(place);
        2 * BLOCK as u64 + tables + blocks * BLOCK as u64
    }

    /// First byte of the block that says which commit is durable, where there is a ring.
    pub fn confirmation_offset(&self) -> u64 {
        self.table_offset(2, if self.has_closing { self.table_blocks() } else { 0 })
    }

    /// First byte of the data.
    pub fn data_offset(&self) -> u64 {
        if self.tables == 0 {
            return 0;
        }
        let copies = u64::from(self.tables) + u64::from(self.has_closing);
        let tables = copies * u64::from(self.table_blocks()) * u64::from(self.unit);
        let ring = 2 * u64::from(self.ring) * BLOCK as u64;
        let confirmation = if self.ring == 0 { 0 } else { BLOCK as u64 };
        let end = 2 * BLOCK as u64 + tables + ring + confirmation;
        end.next_multiple_of(u64::from(self.block_bytes).max(BLOCK as u64))
    }

    /// First byte of a slot's data.
    pub fn slot_offset(&self, slot: u32) -> u64 {
        self.data_offset() + u64::from(slot) * u64::from(self.block_bytes)
    }

    /// An error unless it is one table and nothing else, as the kinds without commits have it.
    pub(super) fn check_one_table(&self) -> Result<(), MetadataError> {
        if self.tables == 1 && self.ring == 0 && !self.has_closing && self.unit >= 512 {
            return Ok(());
        }
        Err(MetadataError::Superblock(format!("not the shape of one table: {self:?}")))
    }

    fn end(&self) -> u64 {
        self.slot_offset(self.slots)
    }

    /// As many slots as fit, with `shape` giving everything else for a number of slots.
    pub fn fit(setup: &Setup, shape: impl Fn(u32) -> Self) -> Result<Self, MetadataError> {
        let most = (setup.capacity_bytes / u64::from(setup.block_bytes)).min(u64::from(u32::MAX - 1)) as u32;
        let (mut low, mut high) = (0, most);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if shape(middle).end() <= setup.capacity_bytes { low = middle } else { high = middle - 1 }
        }
        if low == 0 {
            let needed = shape(1).end();
            return Err(MetadataError::TooSmall { capacity: setup.capacity_bytes, needed });
        }
        Ok(shape(low))
    }
}

/// The root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Superblock {
    /// Name of the kind of metadata.
    pub kind: String,
    /// Of this cache.
    pub uuid: [u8; 16],
    /// Counts the changes of the superblock.
    pub generation: u64,
    /// Whether it was ever opened to be used.
    pub is_used: bool,
    /// Whether a session may have dirty blocks that only its clean end writes down (`at-removal`).
    pub may_lose: bool,
    /// Whether it was removed cleanly; then [`Superblock::sequence`] is the last commit (journal).
    pub is_clean: bool,
    /// The generation of the last clean removal, which the table of the removal carries. Changes of volumes
    /// and settings leave it as it is.
    pub removal: u64,
    /// The last commit when this was written.
    pub sequence: u64,
    /// Where things lie.
    pub shape: Shape,
    /// First byte of what is kept of the disks' places while the cache is open (8192 bytes); 0: nothing is.
    pub watch: u64,
    /// How the cache is to be used, as text that metadata does not read (TOML).
    pub settings: String,
    /// What is attached.
    pub volumes: Vec<Volume>,
    /// Numbers of volumes of which dirty blocks may be missing, since metadata was damaged.
    pub damaged: Vec<u16>,
}

/// What the first sector of a copy says that is damaged as a whole.
struct Head {
    generation: u64,
    sequence: u64,
    removal: u64,
    is_clean: bool,
}

fn has_possible_numbers(b: &[u8]) -> bool {
    [24, 32, 108].iter().all(|at| u64_at(b, *at) < NUMBERS_END)
}

impl Superblock {
    /// Tells blocks of this cache from what was on the device before.
    pub fn tag(&self) -> u64 {
        xxh3_64(&self.uuid)
    }

    /// Encodes it, as the write of its generation's copy.
    pub fn write(&self) -> Result<Write, MetadataError> {
        let sizes = [
            ("bytes of settings", self.settings.len(), SETTINGS_MAX),
            ("volumes", self.volumes.len(), VOLUMES_MAX),
        ];
        if let Some((what, count, max)) = sizes.into_iter().find(|(_, count, max)| count > max) {
            let detail = format!("{count} {what}: a superblock has room for {max}");
            return Err(MetadataError::Refused(detail));
        }
        Ok(Write { offset: self.generation % 2 * BLOCK as u64, bytes: self.encode() })
    }

    fn encode(&self) -> Vec<u8> {
        let mut b = vec![0; BLOCK];
        b[8..16].copy_from_slice(MAGIC);
        b[16..20].copy_from_slice(&VERSION.to_le_bytes());
        b[20..24].copy_from_slice(&u32::from(self.is_clean).to_le_bytes());
        b[24..32].copy_from_slice(&self.generation.to_le_bytes());
        b[32..40].copy_from_slice(&self.sequence.to_le_bytes());
        b[40..56].copy_from_slice(&self.uuid);
        b[56..56 + self.kind.len()].copy_from_slice(self.kind.as_bytes());
        let s = &self.shape;
        let numbers = [s.block_bytes, s.slots, s.unit, s.tables, s.ring, u32::from(s.has_closing)];
        for (at, number) in (80..).step_by(4).zip(numbers) {
            b[at..at + 4].copy_from_slice(&number.to_le_bytes());
        }
        b[104..106].copy_from_slice(&(self.volumes.len() as u16).to_le_bytes());
        b[106..108].copy_from_slice(&(self.settings.len() as u16).to_le_bytes());
        b[108..116].copy_from_slice(&self.removal.to_le_bytes());
        b[NEW_AT] = u8::from(!self.is_used);
        b[MAY_LOSE_AT] = u8::from(self.may_lose);
        b[WATCH_AT..WATCH_AT + 8].copy_from_slice(&self.watch.to_le_bytes());
        let damaged = |volume: &Volume| self.damaged.contains(&volume.id);
        let bits = (0..).zip(&self.volumes).filter(|(_, volume)| damaged(volume));
        let bits = bits.fold(0, |bits: u64, (at, _)| bits | 1 << at);
        b[DAMAGED_AT..DAMAGED_AT + 8].copy_from_slice(&bits.to_le_bytes());
        b[SETTINGS_AT..SETTINGS_AT + self.settings.len()].copy_from_slice(self.settings.as_bytes());
        for (volume, v) in self.volumes.iter().zip(b[VOLUMES_AT..].chunks_exact_mut(VOLUME)) {
            v[..16].copy_from_slice(&volume.uuid);
            v[16..24].copy_from_slice(&volume.bytes.to_le_bytes());
            v[24..40].copy_from_slice(&volume.stamp);
            v[40..42].copy_from_slice(&volume.id.to_le_bytes());
        }
        let head = xxh3_64(&b[8..HEAD_SUM_AT]);
        b[HEAD_SUM_AT..HEAD_SUM_AT + 8].copy_from_slice(&head.to_le_bytes());
        let sum = xxh3_64(&b[8..]);
        b[..8].copy_from_slice(&sum.to_le_bytes());
        b
    }

    // Of a copy that is damaged as a whole. A loss of power that cuts its write short leaves the first sector
    // whole, of the old or of the new copy.
    fn head(b: &[u8]) -> Option<Head> {
        let is_whole = &b[8..16] == MAGIC && u64_at(b, HEAD_SUM_AT) == xxh3_64(&b[8..HEAD_SUM_AT]);
        (is_whole && has_possible_numbers(b)).then(|| Head {
            generation: u64_at(b, 24),
            sequence: u64_at(b, 32),
            removal: u64_at(b, 108),
            is_clean: u32_at(b, 20) == 1,
        })
    }

    // Takes what the head of the other copy, which is damaged, says of a removal. Whether that is sure.
    fn follow(&mut self, head: Option<&Head>) -> bool {
        match head {
            // An older copy.
            Some(head) if head.generation < self.generation => true,
            // A change of volumes or settings that was cut short leaves a clean removal as it is.
            Some(head) if head.generation == self.generation + 1 && head.is_clean && self.is_clean => true,
            // A removal that was cut short, or damaged since: it changes neither volumes nor settings.
            Some(head) if head.generation == self.generation + 1 && head.is_clean => {
                (self.is_clean, self.sequence, self.removal) = (true, head.sequence, head.removal);
                true
            }
            // In use again.
            Some(head) if head.generation == self.generation + 1 => {
                self.is_clean = false;
                true
            }
            _ => {
                self.is_clean = false;
                false
            }
        }
    }

    // `None` where the copy is damaged or was never written.
    fn decode(b: &[u8], capacity: u64) -> Result<Option<Self>, MetadataError> {
        if &b[8..16] != MAGIC || u64_at(b, 0) != xxh3_64(&b[8..]) || !has_possible_numbers(b) {
            return Ok(None);
        }
        if u32_at(b, 16) != VERSION {
            let detail = format!("the superblock has version {}: expected {VERSION}", u32_at(b, 16));
            return Err(MetadataError::Refused(detail));
        }
        let kind = b[56..80].split(|c| *c == 0).next().unwrap_or_default();
        let shape = Shape {
            block_bytes: u32_at(b, 80),
            slots: u32_at(b, 84),
            unit: u32_at(b, 88),
            tables: u32_at(b, 92),
            ring: u32_at(b, 96),
            has_closing: u32_at(b, 100) != 0,
        };
        let (volumes, settings) = (usize::from(u16_at(b, 104)), usize::from(u16_at(b, 106)));
        let is_sound = shape.block_bytes.is_power_of_two()
            && (512..=1 << 24).contains(&shape.block_bytes)
            && (1..u32::MAX).contains(&shape.slots)
            && shape.unit.is_power_of_two()
            && shape.unit as usize > HEADER
            && shape.unit as usize <= BLOCK
            && (1..=2).contains(&shape.tables)
            && volumes <= VOLUMES_MAX
            && settings <= SETTINGS_MAX;
        if !is_sound {
            return Err(MetadataError::Superblock(format!("impossible shape: {shape:?}")));
        }
        if shape.end() > capacity {
            return Err(MetadataError::TooSmall { capacity, needed: shape.end() });
        }
        let watch = u64_at(b, WATCH_AT);
        let needed = if watch == 0 { 0 } else { watch.saturating_add(WATCH_BYTES) };
        if needed > capacity {
            return Err(MetadataError::TooSmall { capacity, needed });
        }
        let text = |bytes: &[u8]| {
            String::from_utf8(bytes.to_vec())
                .map_err(|_| MetadataError::Superblock("text that is not UTF-8".to_owned()))
        };
        let volume = |v: &[u8]| Volume {
            id: u16_at(v, 40),
            uuid: v[..16].try_into().expect("16 bytes"),
            bytes: u64_at(v, 16),
            stamp: v[24..40].try_into().expect("16 bytes"),
        };
        let volumes: Vec<Volume> = b[VOLUMES_AT..].chunks_exact(VOLUME).take(volumes).map(volume).collect();
        let bits = u64_at(b, DAMAGED_AT);
        let damaged = (0..).zip(&volumes).filter(|(at, _)| bits >> at & 1 == 1);
        Ok(Some(Self {
            damaged: damaged.map(|(_, volume)| volume.id).collect(),
            kind: text(kind)?,
            uuid: b[40..56].try_into().expect("16 bytes"),
            generation: u64_at(b, 24),
            is_used: b[NEW_AT] == 0,
            may_lose: b[MAY_LOSE_AT] == 1,
            is_clean: u32_at(b, 20) == 1,
            removal: u64_at(b, 108),
            sequence: u64_at(b, 32),
            shape,
            watch,
            settings: text(&b[SETTINGS_AT..SETTINGS_AT + settings])?,
            volumes,
        }))
    }

    /// The newest intact copy, and whether the other one is damaged. Then the newest may be the one that is
    /// lost, and unless that can be excluded what is left does not count as clean.
    pub fn read(area: &mut dyn Area) -> Result<(Self, bool), MetadataError> {
        Root::read(area).map(|root| (root.superblock, root.is_damaged))
    }

    /// The same of a cache of which `area` is not all that it has: the bytes of its blocks are elsewhere.
    pub fn read_alone(area: &mut dyn Area) -> Result<Self, MetadataError> {
        Root::read_within(area, u64::MAX).map(|root| root.superblock)
    }
}

pub(crate) struct Root {
    /// The newest intact copy.
    pub superblock: Superblock,
    /// Whether the other one is damaged.
    pub is_damaged: bool,
    /// Whether it is sure that the cache was, or was not, removed cleanly.
    pub is_sure: bool,
    /// Why a copy cannot be read, which may be intact, and the newest.
    pub unreadable: Option<StoreError>,
}

impl Root {
    pub fn read(area: &mut dyn Area) -> Result<Self, MetadataError> {
        let capacity = area.capacity_bytes();
        Self::read_within(area, capacity)
    }

    /// The superblock of a cache that has so many bytes.
    fn read_within(area: &mut dyn Area, capacity: u64) -> Result<Self, MetadataError> {
        if capacity < 2 * BLOCK as u64 {
            return Err(MetadataError::TooSmall { capacity, needed: 2 * BLOCK as u64 });
        }
        let (mut copies, mut damaged, mut unreadable) = (Vec::new(), None, None);
        for copy in 0..2 {
            let mut bytes = vec![0; BLOCK];
            let mut read = || area.read(copy * BLOCK as u64, &mut bytes);
            // Going on without the newest copy costs more than a second try.
            if let Err(error) = read().or_else(|_| read()) {
                (damaged, unreadable) = (Some(None), Some(error));
                continue;
            }
            match Superblock::decode(&bytes, capacity)? {
                Some(intact) => copies.push(intact),
                None => damaged = Some(Superblock::head(&bytes)),
            }
        }
        let mut superblock =
            copies.into_iter().max_by_key(|copy| copy.generation).ok_or(MetadataError::Absent)?;
        let follows = damaged.as_ref().is_none_or(|head| superblock.follow(head.as_ref()));
        // The other copy is of generation 2 then, or was not written yet: the cache was never used.
        let is_sure = follows || superblock.generation == 1;
        Ok(Self { superblock, is_damaged: damaged.is_some(), is_sure, unreadable })
    }
}
