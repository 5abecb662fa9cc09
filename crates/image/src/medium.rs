//! The medium: rules as in [`nandscape_media::Nand`], state and bytes in a [`Store`].

use crate::error::ImageError;
use crate::file::FileStore;
use crate::header::Header;
use crate::layout::{Layout, STATE};
use crate::record::{BlockWord, Entry, Kind, MOST_ERASES, Record};
use crate::snapshot::ImageHandle;
use crate::state::State;
use crate::store::Store;
use nandscape_core::{
    BlockId, Capabilities, Divider, FlashError, Geometry, Lpn, MediumHealth, Oob, OpCounts, Ppn,
};
use nandscape_media::checksum::sum;
use nandscape_media::{Medium, NandOptions};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

/// Space of erased blocks that is kept for the blocks that are programmed next, in bytes.
const SPARE_BYTES: u64 = 64 << 20;

/// What a write that the file system has no room for gives.
const FULL: &str = "the file system that holds the image is full";
/// What a failed write or sync gives, for ever: what became of the data is not known.
const FAILED: &str = "the image could not be written";

/// Flash in a file. One process at a time has it.
///
/// Dropping it closes it cleanly; after anything else the next start looks at what was open.
#[derive(Debug)]
pub struct ImageMedium {
    pub(crate) inner: Flash<FileStore>,
}

/// Flash in a store.
#[derive(Debug)]
pub(crate) struct Flash<S: Store> {
    pub store: S,
    pub layout: Layout,
    pub header: Header,
    pub state: State,
    pub blocks: Vec<Block>,
    pages_per_block: Divider,
    endurance: u32,
    /// Blocks whose erase is not settled.
    pub unsettled: Vec<BlockId>,
    /// Erased blocks whose space is still taken, and their erases then, first erased first.
    vacant: VecDeque<(BlockId, u32)>,
    /// Something changed since the last sync.
    pub is_dirty: bool,
    failed: Option<&'static str>,
    totals: OpCounts,
    pub health: MediumHealth,
    /// The last process closed the image.
    pub was_clean: bool,
    program_counts: Option<Vec<u32>>,
    sums: Vec<u32>,
    buffer: Vec<u8>,
}

/// The state of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Block {
    pub erases: u32,
    /// One past the highest programmed page.
    pub write_pointer: u32,
    pub is_bad: bool,
    /// Its records are cleared and some page is programmed.
    pub is_open: bool,
    /// The erase may not have happened after a failure of the machine.
    pub is_unsettled: bool,
}

impl Block {
    fn word(self, pages_per_block: u32) -> BlockWord {
        BlockWord {
            erases: self.erases,
            is_full: self.write_pointer == pages_per_block,
            is_open: self.is_open,
            is_bad: self.is_bad,
        }
    }
}

impl ImageMedium {
    /// Makes an image in a new file, wholly erased; `config` is kept in it as text.
    ///
    /// Errors: the file exists or cannot be made or locked, a bad block outside the device, a configuration above 56 KiB.
    pub fn create(
        path: &Path,
        geometry: &Geometry,
        options: &NandOptions,
        config: &str,
    ) -> Result<Self, ImageError> {
        Ok(Self { inner: crate::start::create(path, geometry, options, config)? })
    }

    /// Opens an image for this process alone. What the last process left open is looked at first; after a failure of the machine that is
    /// every record.
    ///
    /// Errors name file and offset: not an image, a newer version, in use, whatever stands in header or block table and cannot be.
    pub fn open(path: &Path) -> Result<Self, ImageError> {
        Ok(Self { inner: crate::start::open(path)? })
    }

    /// Opens an image to look at it: whatever is written to the medium stays in memory, and the file is not changed. Refused while a
    /// server has it.
    pub fn open_aside(path: &Path) -> Result<Self, ImageError> {
        Ok(Self { inner: crate::start::open_aside(path)? })
    }

    /// What snapshots are made with.
    pub fn handle(&self, path: &Path) -> ImageHandle {
        ImageHandle {
            file: Arc::downgrade(&self.inner.store.file),
            hold: Arc::clone(&self.inner.store.hold),
            header: self.inner.header.clone(),
            path: path.to_owned(),
        }
    }

    /// What the image is.
    pub fn header(&self) -> &Header {
        &self.inner.header
    }

    /// Counts programs per page from now on (4 B a page).
    pub fn count_programs(&mut self) {
        self.inner.program_counts = Some(vec![0; self.inner.layout.geometry.pages() as usize]);
    }
}

impl<S: Store> Flash<S> {
    /// A medium over a store that holds `header`, with the state of each block.
    pub fn new(store: S, header: Header, state: State, blocks: Vec<Block>) -> Self {
        let geometry = header.geometry;
        let layout = Layout::new(&geometry);
        let bad_blocks = blocks.iter().filter(|block| block.is_bad).count() as u64;
        let unsettled = (0..geometry.blocks()).map(BlockId);
        Self {
            unsettled: unsettled.filter(|block| blocks[block.index()].is_unsettled).collect(),
            blocks,
            pages_per_block: Divider::new(geometry.pages_per_block),
            endurance: header.endurance.unwrap_or(u32::MAX).min(MOST_ERASES),
            vacant: VecDeque::new(),
            is_dirty: true,
            failed: None,
            totals: OpCounts::default(),
            health: MediumHealth { bad_blocks, ..MediumHealth::default() },
            was_clean: true,
            program_counts: None,
            sums: vec![0; layout.units.count as usize],
            buffer: vec![0; geometry.page_bytes as usize],
            store,
            layout,
            header,
            state,
        }
    }

    /// The block of a page, which is good, and the page's number in it.
    #[inline]
    fn locate(&self, page: Ppn) -> Result<(BlockId, u32), FlashError> {
        let (block, index) = self.pages_per_block.split(page.0);
        let block = BlockId(block);
        match self.blocks.get(block.index()) {
            Some(state) if !state.is_bad => Ok((block, index)),
            Some(_) => Err(FlashError::BadBlock { block }),
            None => {
                let limit = u64::from(self.layout.geometry.pages());
                Err(FlashError::OutOfRange { address: u64::from(page.0), limit })
            }
        }
    }

    /// The bytes of a page's record.
    #[inline]
    pub fn record(&self, page: Ppn) -> &[u8] {
        let at = self.layout.record(page) as usize;
        &self.store.tables()[at..at + self.layout.record_bytes as usize]
    }

    /// What a page holds, as its record says.
    pub fn entry(&self, page: Ppn, generation: u32) -> Entry {
        match Record::decode(self.record(page), page) {
            // What was programmed before the last erase.
            Entry::Record(record) if record.generation < generation => Entry::Empty,
            Entry::Record(record) if record.generation > generation => Entry::Broken,
            entry => entry,
        }
    }

    /// The OOB of a page and bytes of it.
    fn read_any(&mut self, page: Ppn, start: u32, data: Option<&mut [u8]>) -> Result<Oob, FlashError> {
        let (block, index) = self.locate(page)?;
        let state = self.blocks[block.index()];
        if index >= state.write_pointer {
            return Err(FlashError::Erased { page });
        }
        let record = match self.entry(page, state.erases) {
            Entry::Record(record) => record,
            Entry::Empty if self.header.capabilities.out_of_order_program => {
                return Err(FlashError::Erased { page });
            }
            Entry::Empty => return Err(self.refuse_torn(page)),
            Entry::Broken => return Err(self.refuse(page)),
        };
        if record.kind == Kind::Torn {
            return Err(self.refuse_torn(page));
        }
        self.totals.reads += 1;
        let is_good = match data {
            None => true,
            Some(data) if record.kind == Kind::Blank => {
                data.fill(0);
                true
            }
            Some(data) => self.read_bytes(page, start, data),
        };
        if !is_good {
            self.health.checksum_errors += 1;
            return Err(FlashError::Uncorrectable { page });
        }
        Ok(record.oob)
    }

    #[cold]
    fn refuse(&mut self, page: Ppn) -> FlashError {
        self.totals.reads += 1;
        self.health.checksum_errors += 1;
        FlashError::Uncorrectable { page }
    }

    #[cold]
    fn refuse_torn(&mut self, page: Ppn) -> FlashError {
        self.totals.reads += 1;
        self.health.torn_pages += 1;
        FlashError::Uncorrectable { page }
    }

    /// Reads bytes of a page and verifies the units that they lie in; `false` where one is wrong or cannot be read.
    pub fn read_bytes(&mut self, page: Ppn, start: u32, data: &mut [u8]) -> bool {
        let units = self.layout.units.covering(start, data.len() as u32);
        let (first, end) = (units.start * self.layout.units.bytes, units.end * self.layout.units.bytes);
        let offset = self.layout.page(page) + u64::from(first);
        if first == start && (end - first) as usize == data.len() {
            return self.store.read_at(offset, data).is_ok() && self.verify(page, units.start, data);
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        let whole = &mut buffer[..(end - first) as usize];
        let is_good = self.store.read_at(offset, whole).is_ok() && self.verify(page, units.start, whole);
        data.copy_from_slice(&whole[(start - first) as usize..][..data.len()]);
        self.buffer = buffer;
        is_good
    }

    fn verify(&self, page: Ppn, first: u32, bytes: &[u8]) -> bool {
        let record = self.record(page);
        bytes
            .chunks_exact(self.layout.units.bytes as usize)
            .zip(first..)
            .all(|(unit, index)| sum(unit) == Record::unit_sum(record, index))
    }

    /// Checks the rules, and makes the block ready for its first page.
    fn begin_program(&mut self, page: Ppn) -> Result<(BlockId, u32), FlashError> {
        let (block, index) = self.locate(page)?;
        if let Some(reason) = self.failed {
            return Err(FlashError::ReadOnly { reason });
        }
        let state = self.blocks[block.index()];
        if index != state.write_pointer {
            let expected = state.write_pointer;
            if index < expected && self.entry(page, state.erases) != Entry::Empty {
                return Err(FlashError::NotErased { page });
            }
            if !self.header.capabilities.out_of_order_program {
                // A page that a failure of the machine passed over is as good as torn.
                return Err(if index < expected {
                    FlashError::NotErased { page }
                } else {
                    FlashError::OutOfOrder { page, expected }
                });
            }
        }
        if !state.is_open {
            self.open_block(block)?;
        }
        Ok((block, index))
    }

    /// Clears the records of an erased block. What it held before goes for good, so the erase must be settled first.
    fn open_block(&mut self, block: BlockId) -> Result<(), FlashError> {
        if self.blocks[block.index()].is_unsettled {
            self.sync_all()?;
        }
        self.store.before_overwrite(block, &self.layout);
        let pages = self.layout.geometry.pages_per_block;
        let first = self.layout.record(self.layout.geometry.page(block, 0)) as usize;
        let len = pages as usize * self.layout.record_bytes as usize;
        self.store.tables_mut()[first..first + len].fill(0);
        self.blocks[block.index()].is_open = true;
        self.put_word(block);
        Ok(())
    }

    /// Writes the word that holds what is true now.
    pub fn put_word(&mut self, block: BlockId) {
        let word = self.blocks[block.index()].word(self.layout.geometry.pages_per_block);
        self.put(self.layout.block(block) + 8, &word.encode(block, 1));
    }

    /// Writes the word that holds what is true after a failure of the machine.
    pub fn settle(&mut self, block: BlockId) {
        let state = &mut self.blocks[block.index()];
        state.is_unsettled = false;
        let word = BlockWord { erases: state.erases, is_bad: state.is_bad, ..BlockWord::default() };
        self.put(self.layout.block(block), &word.encode(block, 0));
    }

    pub fn put_state(&mut self) {
        let state = self.state.encode();
        self.put(STATE, &state);
    }

    fn put(&mut self, offset: u64, bytes: &[u8]) {
        self.is_dirty = true;
        self.store.tables_mut()[offset as usize..][..bytes.len()].copy_from_slice(bytes);
    }

    /// The record, after its bytes, and with it the page is programmed.
    pub fn put_record(&mut self, page: Ppn, (block, index): (BlockId, u32), oob: Oob, kind: Kind) {
        let state = &mut self.blocks[block.index()];
        let record = Record { oob, kind, generation: state.erases, epoch: self.state.epoch };
        let is_last = index + 1 == self.layout.geometry.pages_per_block && state.write_pointer <= index;
        state.write_pointer = state.write_pointer.max(index + 1);
        let at = self.layout.record(page) as usize;
        let place = &mut self.store.tables_mut()[at..at + self.layout.record_bytes as usize];
        record.encode(page, if kind == Kind::Data { &self.sums } else { &[] }, place);
        self.is_dirty = true;
        if is_last {
            self.put_word(block);
        }
    }

    fn write_bytes(&mut self, page: Ppn, data: &[u8]) -> Result<(), FlashError> {
        for (sum_of_unit, unit) in
            self.sums.iter_mut().zip(data.chunks_exact(self.layout.units.bytes as usize))
        {
            *sum_of_unit = sum(unit);
        }
        self.store.write_at(self.layout.page(page), data).map_err(|error| self.write_failed(&error))
    }

    #[cold]
    fn write_failed(&mut self, error: &std::io::Error) -> FlashError {
        // Room may come back; the page is still erased.
        if matches!(error.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded) {
            return FlashError::ReadOnly { reason: FULL };
        }
        self.failed = Some(FAILED);
        FlashError::ReadOnly { reason: FAILED }
    }

    /// Makes everything safe, then the erases that waited for it.
    pub fn sync_all(&mut self) -> Result<(), FlashError> {
        if let Some(reason) = self.failed {
            return Err(FlashError::ReadOnly { reason });
        }
        if !self.is_dirty {
            return Ok(());
        }
        self.sync_store()?;
        self.is_dirty = false;
        self.state.epoch = self.state.epoch.wrapping_add(1);
        let state = self.state.encode();
        self.store.tables_mut()[STATE as usize..][..state.len()].copy_from_slice(&state);
        if !self.unsettled.is_empty() {
            for block in std::mem::take(&mut self.unsettled) {
                self.settle(block);
            }
            self.sync_store()?;
            self.is_dirty = false;
            self.vacate();
        }
        Ok(())
    }

    fn sync_store(&mut self) -> Result<(), FlashError> {
        self.store.sync().map_err(|_| {
            self.failed = Some(FAILED);
            FlashError::ReadOnly { reason: FAILED }
        })
    }

    /// Gives up the space of the blocks that were erased longest ago, but for those that will be programmed next.
    fn vacate(&mut self) {
        let block_bytes = self.layout.geometry.block_bytes();
        let spare = (SPARE_BYTES / block_bytes).max(8) as usize;
        while self.vacant.len() > spare {
            let Some((block, erases)) = self.vacant.pop_front() else { break };
            let state = self.blocks[block.index()];
            if state.erases == erases && !state.is_open {
                self.store.before_overwrite(block, &self.layout);
                // Space that cannot be given up is only lost.
                let _ = self.store.punch(self.layout.block_data(block), block_bytes);
            }
        }
    }

    /// Everything safe, and marked so.
    pub fn close(&mut self) -> Result<(), FlashError> {
        self.sync_all()?;
        self.state.is_clean = true;
        self.put_state();
        self.sync_store()
    }
}

impl<S: Store> Medium for Flash<S> {
    fn geometry(&self) -> &Geometry {
        &self.layout.geometry
    }

    fn capabilities(&self) -> Capabilities {
        self.header.capabilities
    }

    fn read(&mut self, page: Ppn, data: Option<&mut [u8]>) -> Result<Oob, FlashError> {
        self.read_any(page, 0, data)
    }

    fn read_part(&mut self, page: Ppn, start: u32, data: &mut [u8]) -> Result<Oob, FlashError> {
        self.read_any(page, start, Some(data))
    }

    fn note_unmapped_read(&mut self) {
        self.totals.reads += 1;
    }

    fn program(&mut self, page: Ppn, oob: Oob, data: Option<&[u8]>) -> Result<(), FlashError> {
        assert!(oob.lpn != Lpn::NONE, "page {page:?} programmed with the mark of an erased page");
        let place = self.begin_program(page)?;
        let kind = match data {
            Some(data) if !is_zero(data) => {
                assert_eq!(
                    data.len(),
                    self.layout.geometry.page_bytes as usize,
                    "a page is programmed whole"
                );
                self.write_bytes(page, data)?;
                Kind::Data
            }
            _ => Kind::Blank,
        };
        self.put_record(page, place, oob, kind);
        self.totals.programs += 1;
        if let Some(counts) = &mut self.program_counts {
            counts[page.index()] += 1;
        }
        Ok(())
    }

    fn erase(&mut self, block: BlockId) -> Result<(), FlashError> {
        let limit = self.blocks.len() as u64;
        let Some(state) = self.blocks.get_mut(block.index()) else {
            return Err(FlashError::OutOfRange { address: u64::from(block.0), limit });
        };
        if state.is_bad {
            return Err(FlashError::BadBlock { block });
        }
        if let Some(reason) = self.failed {
            return Err(FlashError::ReadOnly { reason });
        }
        if state.erases >= self.endurance {
            return Err(FlashError::WornOut { block, endurance: self.endurance });
        }
        let was_open = state.is_open;
        let was_unsettled = std::mem::replace(&mut state.is_unsettled, true);
        *state = Block { erases: state.erases + 1, write_pointer: 0, is_open: false, ..*state };
        let erases = state.erases;
        self.put_word(block);
        if !was_unsettled {
            self.unsettled.push(block);
        }
        if was_open {
            self.vacant.push_back((block, erases));
        }
        self.totals.erases += 1;
        Ok(())
    }

    fn sync(&mut self) -> Result<(), FlashError> {
        self.sync_all()
    }

    fn mark_bad(&mut self, block: BlockId) {
        let state = &mut self.blocks[block.index()];
        if std::mem::replace(&mut state.is_bad, true) {
            return;
        }
        self.health.bad_blocks += 1;
        self.put_word(block);
        // With the next sync it is bad whatever happens. An erase that waits is settled by then, since what was copied is synced first.
        if !std::mem::replace(&mut self.blocks[block.index()].is_unsettled, true) {
            self.unsettled.push(block);
        }
    }

    fn tear_program(&mut self, page: Ppn) -> Result<(), FlashError> {
        let place = self.begin_program(page)?;
        self.put_record(page, place, Oob { lpn: Lpn::PADDING, stream: 0, seq: 0 }, Kind::Torn);
        self.totals.programs += 1;
        Ok(())
    }

    fn tear_erase(&mut self, block: BlockId) {
        let torn = Oob { lpn: Lpn::PADDING, stream: 0, seq: 0 };
        self.blocks[block.index()].is_open = true;
        for index in 0..self.layout.geometry.pages_per_block {
            let page = self.layout.geometry.page(block, index);
            self.put_record(page, (block, index), torn, Kind::Torn);
        }
        self.put_word(block);
    }

    fn rot(&mut self, page: Ppn, bit: u64) -> bool {
        let (byte, mask) = (bit / 8, 1 << (bit % 8));
        let page_bytes = u64::from(self.layout.geometry.page_bytes);
        let (block, index) = self.pages_per_block.split(page.0);
        let state = self.blocks[block as usize];
        let Entry::Record(record) = self.entry(page, state.erases) else { return false };
        if index >= state.write_pointer || byte < page_bytes && record.kind != Kind::Data {
            return false;
        }
        if byte < page_bytes {
            let offset = self.layout.page(page) + byte;
            let mut bytes = [0];
            if self.store.read_at(offset, &mut bytes).is_err() {
                return false;
            }
            bytes[0] ^= mask;
            return self.store.write_at(offset, &bytes).is_ok();
        }
        // The OOB as it stands in the record: logical page and stream, two bytes of other things, the sequence number.
        let at = match byte - page_bytes {
            byte @ 0..6 => byte,
            byte @ 6..14 => byte + 2,
            _ => return false,
        };
        let offset = self.layout.record(page) + at;
        self.store.tables_mut()[offset as usize] ^= mask;
        true
    }

    fn health(&self) -> MediumHealth {
        self.health
    }

    fn is_programmed(&self, page: Ppn) -> bool {
        let (block, index) = self.pages_per_block.split(page.0);
        let state = self.blocks[block as usize];
        index < state.write_pointer
            && (!self.header.capabilities.out_of_order_program
                || self.entry(page, state.erases) != Entry::Empty)
    }

    fn write_pointer(&self, block: BlockId) -> u32 {
        self.blocks[block.index()].write_pointer
    }

    fn erase_count(&self, block: BlockId) -> u32 {
        self.blocks[block.index()].erases
    }

    fn is_bad(&self, block: BlockId) -> bool {
        self.blocks[block.index()].is_bad
    }

    fn totals(&self) -> OpCounts {
        self.totals
    }

    fn reset_totals(&mut self) {
        self.totals = OpCounts::default();
        if let Some(counts) = &mut self.program_counts {
            counts.fill(0);
        }
    }

    fn program_counts(&self) -> Option<&[u32]> {
        self.program_counts.as_deref()
    }
}

/// Whether all bytes are 0; most pages say no in their first bytes.
pub(crate) fn is_zero(data: &[u8]) -> bool {
    let (head, rest) = data.split_at(data.len().min(64));
    head.iter().all(|byte| *byte == 0) && rest.chunks(64).all(|chunk| chunk.iter().all(|byte| *byte == 0))
}

impl Drop for ImageMedium {
    fn drop(&mut self) {
        // An error is told by the next start: the image is not marked as closed.
        let _ = self.inner.close();
    }
}

impl Medium for ImageMedium {
    fn geometry(&self) -> &Geometry {
        self.inner.geometry()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn read(&mut self, page: Ppn, data: Option<&mut [u8]>) -> Result<Oob, FlashError> {
        self.inner.read(page, data)
    }

    fn read_part(&mut self, page: Ppn, start: u32, data: &mut [u8]) -> Result<Oob, FlashError> {
        self.inner.read_part(page, start, data)
    }

    fn note_unmapped_read(&mut self) {
        self.inner.note_unmapped_read();
    }

    fn program(&mut self, page: Ppn, oob: Oob, data: Option<&[u8]>) -> Result<(), FlashError> {
        self.inner.program(page, oob, data)
    }

    fn erase(&mut self, block: BlockId) -> Result<(), FlashError> {
        self.inner.erase(block)
    }

    fn sync(&mut self) -> Result<(), FlashError> {
        self.inner.sync()
    }

    fn mark_bad(&mut self, block: BlockId) {
        self.inner.mark_bad(block);
    }

    fn tear_program(&mut self, page: Ppn) -> Result<(), FlashError> {
        self.inner.tear_program(page)
    }

    fn tear_erase(&mut self, block: BlockId) {
        self.inner.tear_erase(block);
    }

    fn rot(&mut self, page: Ppn, bit: u64) -> bool {
        self.inner.rot(page, bit)
    }

    fn health(&self) -> MediumHealth {
        self.inner.health()
    }

    fn is_programmed(&self, page: Ppn) -> bool {
        self.inner.is_programmed(page)
    }

    fn write_pointer(&self, block: BlockId) -> u32 {
        self.inner.write_pointer(block)
    }

    fn erase_count(&self, block: BlockId) -> u32 {
        self.inner.erase_count(block)
    }

    fn is_bad(&self, block: BlockId) -> bool {
        self.inner.is_bad(block)
    }

    fn totals(&self) -> OpCounts {
        self.inner.totals()
    }

    fn reset_totals(&mut self) {
        self.inner.reset_totals();
    }

    fn program_counts(&self) -> Option<&[u32]> {
        self.inner.program_counts()
    }
}
