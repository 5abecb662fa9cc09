//! Making an image, and finding out what an image holds.

use crate::error::ImageError;
use crate::file::FileStore;
use crate::flash::{Block, Flash};
use crate::header::Header;
use crate::layout::{CONFIG, CONFIG_BYTES, Layout, STATE};
use crate::record::{BlockWord, Entry, Kind};
use crate::session::session_of;
use crate::state::{self, State};
use crate::store::Store;
use nandscape_core::{BlockId, Geometry, Lpn, Oob};
use nandscape_files::os;
use nandscape_media::NandOptions;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// How often a page is read that the file refuses to read, before it counts as unreadable.
const READS: u32 = 3;

/// Makes an image, synced.
pub(crate) fn create(
    path: &Path,
    geometry: &Geometry,
    options: &NandOptions,
    config: &str,
) -> Result<Flash<FileStore>, ImageError> {
    let header = header(path, geometry, options, config)?;
    let layout = Layout::new(geometry);
    let bad = options.bad_blocks.of(geometry.blocks());
    let bad = bad.map_err(|error| ImageError::Unsuited { path: path.to_owned(), what: error.to_string() })?;
    let head = head(&header);
    let store = FileStore::create(path, layout.file_bytes, layout.data, &head)?;
    let session = session_of(&store.file);
    let flash =
        format(store, header, session, &bad).and_then(|flash| os::sync_directory_of(path).map(|()| flash));
    // Half an image would only be in the way of the next attempt.
    flash.map_err(|source| {
        drop(std::fs::remove_file(path));
        ImageError::Io { path: path.to_owned(), what: "sync", source }
    })
}

/// Header and configuration as they stand in the file.
pub(crate) fn head(header: &Header) -> Vec<u8> {
    let mut head = header.encode();
    head.resize(CONFIG as usize, 0);
    head.extend_from_slice(header.config.as_bytes());
    head
}

/// Fills the tables of a store that holds `header`.
pub(crate) fn format<S: Store>(
    store: S,
    header: Header,
    boot: [u8; 16],
    bad: &[BlockId],
) -> std::io::Result<Flash<S>> {
    let mut blocks = vec![Block::default(); header.geometry.blocks() as usize];
    for block in bad {
        blocks[block.index()].is_bad = true;
    }
    let state = State { is_clean: false, epoch: 1, opens: 1, boot };
    let mut flash = Flash::new(store, header, state, blocks);
    for block in (0..flash.blocks.len() as u32).map(BlockId) {
        flash.settle(block);
        flash.put_word(block);
    }
    flash.put_state();
    flash.sync_first()?;
    Ok(flash)
}

fn header(
    path: &Path,
    geometry: &Geometry,
    options: &NandOptions,
    config: &str,
) -> Result<Header, ImageError> {
    if config.len() as u64 > CONFIG_BYTES {
        let what = format!("the configuration has {} bytes: expected at most {CONFIG_BYTES}", config.len());
        return Err(ImageError::Unsuited { path: path.to_owned(), what });
    }
    let uuid = os::draw_uuid().map_err(ImageError::io(path, "draw a UUID"))?;
    let created_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let mut capabilities = options.capabilities;
    capabilities.stores_data = true;
    Ok(Header {
        uuid,
        geometry: *geometry,
        endurance: options.endurance,
        capabilities,
        created_s,
        config: config.to_owned(),
    })
}

/// Opens an image without changing it.
pub(crate) fn open_aside(path: &Path) -> Result<Flash<FileStore>, ImageError> {
    let file = FileStore::open_to_read(path)?;
    let header = Header::read_from(&file, path)?;
    let store = FileStore::map_aside(file, Layout::new(&header.geometry).data, path)?;
    let session = session_of(&store.file);
    load(store, header, session, path)
}

/// Opens an image in a file.
pub(crate) fn open(path: &Path) -> Result<Flash<FileStore>, ImageError> {
    let file = FileStore::open(path)?;
    let header = Header::read_from(&file, path)?;
    let store = FileStore::map(file, Layout::new(&header.geometry).data, path)?;
    let session = session_of(&store.file);
    load(store, header, session, path)
}

/// Opens an image in a store, on a machine that was started as `boot` says.
pub(crate) fn load<S: Store>(
    store: S,
    header: Header,
    boot: [u8; 16],
    path: &Path,
) -> Result<Flash<S>, ImageError> {
    let found = State::decode(&store.tables()[STATE as usize..][..state::BYTES]);
    // Whatever was stored is there, unless the machine failed.
    let is_whole = found.is_some_and(|state| state.is_clean || state.boot == boot && boot != [0; 16]);
    let mut blocks = Vec::with_capacity(header.geometry.blocks() as usize);
    for block in (0..header.geometry.blocks()).map(BlockId) {
        let words = words(&store, &header.geometry, block, path)?;
        blocks.push(if is_whole {
            as_left(words, header.geometry.pages_per_block)
        } else {
            as_settled(words)
        });
    }
    let before = found.unwrap_or(State { is_clean: false, epoch: 0, opens: 0, boot });
    let state = State { is_clean: false, boot, opens: before.opens.wrapping_add(1), epoch: before.epoch };
    let mut flash = Flash::new(store, header, state, blocks);
    flash.was_clean = before.is_clean;
    if is_whole {
        flash.find_write_pointers();
    } else {
        // No session: a sync failed, and what the system read from its cache may not be on the disk.
        let rewrites = before.boot == [0; 16];
        flash.scan(found.map(|state| state.epoch), rewrites);
        if rewrites {
            flash.store.rewrite_tables();
        }
    }
    flash.put_state();
    flash.sync_first().map_err(ImageError::io(path, "sync"))?;
    flash.check_whole(path)?;
    Ok(flash)
}

/// Both words of a block: what is true after a failure of the machine, and what was true last.
fn words<S: Store>(
    store: &S,
    geometry: &Geometry,
    block: BlockId,
    path: &Path,
) -> Result<[BlockWord; 2], ImageError> {
    let offset = Layout::new(geometry).block(block);
    let word = |which: u32| {
        let offset = offset + u64::from(which) * 8;
        let bytes = &store.tables()[offset as usize..][..8];
        BlockWord::decode(bytes, block, which).ok_or_else(|| {
            let found = format!("{:#018x}", u64::from_le_bytes(bytes.try_into().expect("eight bytes")));
            let what = format!("block table entry of block {}", block.0);
            ImageError::corrupt(path, offset, what, found, "a word with its checksum")
        })
    };
    Ok([word(0)?, word(1)?])
}

/// A block as the last process left it; the write pointer is known where it needs no look at the records.
fn as_left([settled, last]: [BlockWord; 2], pages_per_block: u32) -> Block {
    Block {
        erases: last.erases,
        write_pointer: if last.is_full { pages_per_block } else { 0 },
        is_bad: last.is_bad,
        is_open: last.is_open,
        is_unsettled: settled.erases != last.erases || settled.is_bad != last.is_bad,
    }
}

/// A block after a failure of the machine.
fn as_settled([settled, _]: [BlockWord; 2]) -> Block {
    Block { erases: settled.erases, is_bad: settled.is_bad, ..Block::default() }
}

impl<S: Store> Flash<S> {
    /// Finds the write pointers of blocks that were open.
    fn find_write_pointers(&mut self) {
        let pages = self.layout.geometry.pages_per_block;
        for block in (0..self.blocks.len() as u32).map(BlockId) {
            let state = self.blocks[block.index()];
            if state.is_open && state.write_pointer < pages {
                self.blocks[block.index()].write_pointer = self.last_programmed(block);
            }
        }
    }

    /// One past the highest page of a block that is not empty.
    fn last_programmed(&self, block: BlockId) -> u32 {
        let generation = self.blocks[block.index()].erases;
        (0..self.layout.geometry.pages_per_block)
            .rev()
            .find(|index| self.entry(self.layout.geometry.page(block, *index), generation) != Entry::Empty)
            .map_or(0, |index| index + 1)
    }

    /// After a failure of the machine: looks at every record, and at the bytes of pages that no sync is known to have covered. Those whose
    /// bytes did not arrive become torn, so that their OOB is not believed. `rewrites`: the bytes of those that did are written again.
    fn scan(&mut self, epoch: Option<u32>, rewrites: bool) {
        let pages = self.layout.geometry.pages_per_block;
        for block in (0..self.blocks.len() as u32).map(BlockId) {
            let write_pointer = self.last_programmed(block);
            let state = &mut self.blocks[block.index()];
            state.write_pointer = write_pointer;
            state.is_open = write_pointer > 0;
            for index in 0..write_pointer.min(pages) {
                self.distrust((block, index), epoch, rewrites);
            }
            self.put_word(block);
        }
    }

    fn distrust(&mut self, (block, index): (BlockId, u32), epoch: Option<u32>, rewrites: bool) {
        let page = self.layout.geometry.page(block, index);
        let Entry::Record(record) = self.entry(page, self.blocks[block.index()].erases) else { return };
        let is_covered = epoch.is_some_and(|epoch| record.epoch.wrapping_sub(epoch) > u32::MAX / 2);
        if is_covered || record.kind != Kind::Data {
            return;
        }
        let mut bytes = vec![0; self.layout.geometry.page_bytes as usize];
        for _ in 0..READS {
            if self.read_bytes(page, 0, &mut bytes) {
                if rewrites {
                    self.rewrite(page, &bytes);
                }
                return;
            }
            if !self.was_refused() {
                let torn = Oob { lpn: Lpn::PADDING, stream: 0, seq: 0 };
                self.put_record(page, (block, index), torn, Kind::Torn);
                return;
            }
        }
        // The bytes may be there: without them the page is an error, and never older data.
    }
}
