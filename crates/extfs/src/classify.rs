//! The map of a whole image.

use crate::bytes::le32;
use crate::group::{Group, fixed_layout, read_groups};
use crate::inode::Inode;
use crate::kind::Kind;
use crate::superblock::{self, Feature, Superblock};
use crate::walk::{Met, walk};
use crate::{ExtError, ReadAt};
use nandscape_core::ranges::Ranges;
use serde::Serialize;

/// Inode table blocks read at a time.
const CHUNK_BLOCKS: u32 = 64;

/// Blocks of one kind, end to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Run {
    /// First block.
    pub block: u64,
    /// How many.
    pub count: u64,
    /// What they hold.
    pub kind: Kind,
}

/// All blocks of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct KindTotal {
    /// What they hold.
    pub kind: Kind,
    /// How many blocks.
    pub blocks: u64,
    /// In how many runs.
    pub runs: u64,
}

/// What each block of an image holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSystemMap {
    /// The file system.
    pub superblock: Superblock,
    /// Every block once, in order.
    pub runs: Vec<Run>,
    /// Every kind, in the order of their numbers.
    pub totals: Vec<KindTotal>,
    /// Inodes in use.
    pub inodes: u64,
    /// Of these, directories.
    pub directories: u64,
    /// What does not fit together, for people.
    pub notes: Vec<String>,
}

/// Maps the file system that begins at byte 0 of what `read` reads and has at most `device_bytes`. `read`
/// fills the buffer from an offset, or says why not.
pub fn classify(device_bytes: u64, read: &mut ReadAt<'_>) -> Result<FileSystemMap, ExtError> {
    let shape = read_superblock(device_bytes, read)?;
    if shape.features.has(Feature::JOURNAL_DEVICE) {
        let mut all = Ranges::default();
        all.fill(0, superblock::OFFSET / u64::from(shape.block_bytes), Kind::Boot);
        let at = superblock::OFFSET / u64::from(shape.block_bytes);
        all.fill(at, at + 1, Kind::Superblock);
        all.fill(at + 1, shape.blocks, Kind::Journal);
        return Ok(FileSystemMap::new(shape, &all, &Census::default()));
    }
    let groups = read_groups(&shape, read, true)?;
    let mut all = fixed_layout(&shape, &groups);
    let mut census = Census::default();
    claim_all(&shape, &groups, &mut all, &mut census, read)?;
    fill_by_bitmaps(&shape, &groups, &mut all, &mut census, read)?;
    Ok(FileSystemMap::new(shape, &all, &census))
}

fn read_superblock(device_bytes: u64, read: &mut ReadAt<'_>) -> Result<Superblock, ExtError> {
    let mut bytes = [0; superblock::BYTES];
    let offset = superblock::OFFSET;
    if device_bytes < offset + superblock::BYTES as u64 {
        return Err(ExtError::field(0, "size", format_args!("{device_bytes} bytes"), "at least 2048 bytes"));
    }
    read(offset, &mut bytes).map_err(|message| ExtError::read(offset, &message))?;
    Superblock::parse(&bytes, device_bytes)
}

/// What was counted on the way.
#[derive(Clone, Debug, Default)]
struct Census {
    inodes: u64,
    directories: u64,
    /// Blocks that inodes claim although the bitmap has them as free.
    free_but_claimed: u64,
    claimed: u64,
    overlap: Option<u32>,
}

/// Gives blocks of inodes their kinds.
fn claim_all(
    shape: &Superblock,
    groups: &[Group],
    all: &mut Ranges<Kind>,
    census: &mut Census,
    read: &mut ReadAt<'_>,
) -> Result<(), ExtError> {
    each_inode(shape, groups, read, true, &mut |number, inode, read| {
        census.inodes += 1;
        census.directories += u64::from(inode.is_directory());
        let kind = inode.kind(number, shape);
        if inode.xattr_block > 0 && inode.xattr_block < shape.blocks {
            all.fill(inode.xattr_block, inode.xattr_block + 1, Kind::Xattr);
        }
        let mut failed = None;
        let mut meet = |met| match met {
            // A block that already is something is not looked into: so each is at most once.
            Met::Node { block, .. } => all.fill(block, block + 1, Kind::Mapping) > 0,
            Met::Leaf { block, count } => {
                // What the inode for growth has is reserved by the descriptors already.
                if kind != Kind::ReservedDescriptors {
                    census.claimed = census.claimed.saturating_add(count);
                    if census.claimed > shape.blocks {
                        census.overlap.get_or_insert(number);
                    } else {
                        all.fill(block, block + count, kind);
                    }
                }
                false
            }
        };
        let mut node = |block: u64| {
            let mut bytes = vec![0; shape.block_bytes as usize];
            let offset = block * u64::from(shape.block_bytes);
            match read(offset, &mut bytes) {
                Ok(()) => Some(bytes),
                Err(message) => {
                    failed.get_or_insert(ExtError::read(offset, &message));
                    None
                }
            }
        };
        walk(inode, shape.blocks, &mut meet, &mut node);
        match (failed, census.overlap) {
            (Some(error), _) => Err(error),
            (None, Some(inode)) => Err(ExtError(format!(
                "inode {inode}: inodes claim more than the {} blocks there are: expected each block to have one owner (e2fsck repairs that)",
                shape.blocks
            ))),
            (None, None) => Ok(()),
        }
    })
}

/// Called with the number of an inode, the inode, and what reads more.
type OnInode<'a> = dyn FnMut(u32, &Inode, &mut ReadAt<'_>) -> Result<(), ExtError> + 'a;

/// Calls back for every inode in use. What cannot be read is an error for an image, and passed over for a
/// device in use.
pub(crate) fn each_inode(
    shape: &Superblock,
    groups: &[Group],
    read: &mut ReadAt<'_>,
    is_strict: bool,
    each: &mut OnInode<'_>,
) -> Result<(), ExtError> {
    let block_bytes = shape.block_bytes as usize;
    let per_block = shape.block_bytes / shape.inode_bytes;
    let mut bitmap = vec![0; block_bytes];
    let mut table = vec![0; CHUNK_BLOCKS as usize * block_bytes];
    for (group, place) in (0_u32..).zip(groups) {
        if place.has_no_inodes || place.inode_bitmap == 0 || place.inode_table == 0 {
            continue;
        }
        let get = |block: u64, bytes: &mut [u8], read: &mut ReadAt<'_>| {
            let offset = block * u64::from(shape.block_bytes);
            match read(offset, bytes) {
                Ok(()) => Ok(true),
                Err(message) if is_strict => Err(ExtError::read(offset, &message)),
                Err(_) => Ok(false),
            }
        };
        if !get(place.inode_bitmap, &mut bitmap, read)? {
            continue;
        }
        let is_used =
            |index: u32| index < shape.inodes_per_group && bitmap[index as usize / 8] & 1 << (index % 8) != 0;
        let has_used = |block: u32| (block * per_block..(block + 1) * per_block).any(is_used);
        let mut first = 0;
        while first < shape.inode_table_blocks() {
            if !has_used(first) {
                first += 1;
                continue;
            }
            let most = CHUNK_BLOCKS.min(shape.inode_table_blocks() - first);
            let count = (1..most).find(|n| !has_used(first + n)).unwrap_or(most);
            let bytes = &mut table[..count as usize * block_bytes];
            if get(place.inode_table + u64::from(first), bytes, read)? {
                for (index, bytes) in (first * per_block..).zip(bytes.chunks(shape.inode_bytes as usize)) {
                    let inode = Inode::parse(bytes).filter(|inode| is_used(index) && inode.is_used());
                    if let Some(inode) = inode {
                        each(group * shape.inodes_per_group + index + 1, &inode, read)?;
                    }
                }
            }
            first += count;
        }
    }
    Ok(())
}

/// Gives the blocks that nobody has the kinds that the block bitmaps tell.
fn fill_by_bitmaps(
    shape: &Superblock,
    groups: &[Group],
    all: &mut Ranges<Kind>,
    census: &mut Census,
    read: &mut ReadAt<'_>,
) -> Result<(), ExtError> {
    let mut bitmap = vec![0; shape.block_bytes as usize];
    for (number, group) in (0_u32..).zip(groups) {
        let (start, end) = (shape.group_start(number), shape.group_end(number));
        if group.has_no_bitmap {
            all.fill(start, end, Kind::Free);
            continue;
        }
        if group.block_bitmap == 0 {
            all.fill(start, end, Kind::Unknown);
            continue;
        }
        let offset = group.block_bitmap * u64::from(shape.block_bytes);
        read(offset, &mut bitmap).map_err(|message| ExtError::read(offset, &message))?;
        let clusters = (end - start).div_ceil(u64::from(shape.cluster_blocks));
        for_each_run(&bitmap, clusters as u32, |from, to, is_used| {
            let block = |cluster: u32| start + u64::from(cluster) * u64::from(shape.cluster_blocks);
            let (from, to) = (block(from), block(to).min(end));
            if is_used {
                // The end of a cluster whose beginning holds data belongs to that file.
                let has_tails = shape.cluster_blocks > 1;
                all.fill(from, to, if has_tails { Kind::Data } else { Kind::Unknown });
            } else {
                let is_claimed = |kind| {
                    matches!(kind, Kind::Data | Kind::Directory | Kind::Mapping | Kind::Xattr | Kind::Journal)
                };
                census.free_but_claimed += all
                    .within(from, to)
                    .filter(|run| is_claimed(run.2))
                    .map(|run| run.1 - run.0)
                    .sum::<u64>();
                all.fill(from, to, Kind::Free);
            }
        });
    }
    all.fill(0, shape.blocks, Kind::Unknown);
    Ok(())
}

/// Runs of equal bits among the first `bits` of a bitmap.
fn for_each_run(bitmap: &[u8], bits: u32, mut run: impl FnMut(u32, u32, bool)) {
    let is_set = |bit: u32| bitmap.get(bit as usize / 8).is_some_and(|byte| byte & 1 << (bit % 8) != 0);
    let mut from = 0;
    while from < bits {
        let value = is_set(from);
        let word = if value { u32::MAX } else { 0 };
        let mut to = from + 1;
        while to < bits {
            if to.is_multiple_of(32) && to + 32 <= bits && le32(bitmap, to as usize / 8) == word {
                to += 32;
            } else if is_set(to) == value {
                to += 1;
            } else {
                break;
            }
        }
        run(from, to, value);
        from = to;
    }
}

impl FileSystemMap {
    fn new(shape: Superblock, all: &Ranges<Kind>, census: &Census) -> Self {
        let mut totals: Vec<KindTotal> =
            Kind::ALL.map(|kind| KindTotal { kind, blocks: 0, runs: 0 }).into_iter().collect();
        let mut runs = Vec::new();
        for (start, end, kind) in all.within(0, shape.blocks) {
            runs.push(Run { block: start, count: end - start, kind });
            let total = &mut totals[kind as usize];
            total.blocks += end - start;
            total.runs += 1;
        }
        let mut notes = Vec::new();
        if shape.needs_recovery {
            notes.push(
                "the journal was not replayed: what is newer than its last checkpoint is not seen".into(),
            );
        }
        if census.free_but_claimed > 0 {
            let blocks = census.free_but_claimed;
            notes
                .push(format!("{blocks} blocks belong to inodes although the block bitmap has them as free"));
        }
        let Census { inodes, directories, .. } = *census;
        Self { superblock: shape, runs, totals, inodes, directories, notes }
    }

    /// What a block holds; `None` beyond the file system.
    pub fn kind(&self, block: u64) -> Option<Kind> {
        let at = self.runs.partition_point(|run| run.block + run.count <= block);
        self.runs.get(at).map(|run| run.kind)
    }
}
