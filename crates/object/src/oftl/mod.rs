//! `oftl`: an object-based translation layer. Hosts name objects and bytes; the layer allocates pages.
//!
//! What is on the flash: pages with data of objects; of each object metadata, which has its attributes, the
//! places of its pages and, as differences, what was written of parts of pages; a system log with the index
//! of objects and the states of blocks; and roots, two copies of each, which say where the system log and
//! the update windows are.
//!
//! Invariants:
//! * a write has a number, `tid`, and so have the pages it programs; the last of them says how many they
//!   are. Numbers have no gaps, so a start finds how far the writes are complete, and drops what follows;
//! * whatever the index does not tell of pages in the update windows, their back pointers do. Metadata of an
//!   object is complete as of its own write, but for leaves of the layout, each of which says up to which
//!   write it is;
//! * pages are programmed by turns into the blocks of a window, from the first to the last;
//! * a flush completes when all writes before it are durable;
//! * a block is erased once every write before is durable, and whatever made its pages superfluous with it;
//! * a block is programmed once the root that has it in a window is durable. So a block that the flash calls
//!   free is free;
//! * the flash never counts more invalid pages of a block than there are;
//! * collection leaves blocks of the windows alone;
//! * what objects can take together, written or not, is at most the capacity.
#![expect(clippy::inline_always, reason = "the path of every write")]

mod blocks;
mod check;
mod collect;
mod config;
mod diffs;
mod evict;
mod flush;
mod format;
mod layout;
mod object;
mod oob;
mod patch;
mod program;
mod recover;
mod report;
mod requests;
mod sabotage;
mod system;
mod table;

pub use blocks::{BlockEntry, BlockUse};
pub use config::INFO;
pub use oob::{BackPointer, ObjectOob, PageKind};
pub use sabotage::Sabotage;

use crate::error::ObjectStoreError;
use blocks::Blocks;
use config::Config;
use evict::Eviction;
use nandscape_core::command::HostCounts;
use nandscape_core::{
    FlashDevice, FtlError, Geometry, NamespaceError, NamespaceInfo, NamespaceResult, Params, RecoveryReport,
    SimTime, Token,
};
use nandscape_ftl::victim::VictimSetup;
use object::{Sizes, Spare};
use report::Counts;
use system::System;
use table::Table;

/// An object store over a flash device. It takes [`nandscape_core::ObjectCommand`]s, and a flush of
/// everything as a block command.
pub struct Oftl<D> {
    device: D,
    infos: [NamespaceInfo; 1],
    geometry: Geometry,
    config: Config,
    sizes: Sizes,
    table: Table,
    spare: Spare,
    blocks: Blocks,
    system: System,
    /// The last number that was given to a write.
    tid: u64,
    /// Completes when every program so far does.
    written: Token,
    /// Completes when every erase so far does.
    erased: Token,
    /// Completes when what was read for the command that is being submitted is.
    reading: Token,
    counts: Counts,
    hosts: HostCounts,
    recovery: RecoveryReport,
    /// Why nothing is written any more.
    stopped: Option<&'static str>,
    is_collecting: bool,
    /// What is over the cache's limit is flushed in steps.
    postpones: bool,
    eviction: Option<Eviction>,
    /// Something was programmed for it since the last write.
    has_evicted: bool,
    sabotage: Sabotage,
}

impl<D: FlashDevice<ObjectOob>> Oftl<D> {
    /// A store on a device that is erased, or that holds what such a store wrote.
    ///
    /// # Errors
    ///
    /// Keys that do not fit the device, and a device that holds something else or whose index is damaged.
    pub fn new(device: D, params: &Params) -> Result<Self, ObjectStoreError> {
        Self::with_sabotage(device, params, Sabotage::None)
    }

    /// A store that breaks one of its promises, for tests of the tests.
    #[doc(hidden)]
    pub fn with_sabotage(device: D, params: &Params, sabotage: Sabotage) -> Result<Self, ObjectStoreError> {
        let geometry = *device.geometry();
        if geometry.page_bytes < 512 {
            let reason = format!("its pages have {} bytes; at least 512 are needed", geometry.page_bytes);
            return Err(ObjectStoreError::Device { reason });
        }
        // How many of the blocks are good, or were when the store was made, the start finds out.
        let config = Config::new(params, &geometry, geometry.blocks())?;
        let stores_data = device.capabilities().stores_data;
        let sizes = Sizes::new(geometry.page_bytes, stores_data, config.compression(stores_data));
        let setup = VictimSetup {
            blocks: geometry.blocks(),
            pages_per_block: geometry.pages_per_block,
            domain: 0,
            params,
        };
        let info = NamespaceInfo {
            name: "ns1".to_owned(),
            capacity_bytes: 0,
            page_bytes: geometry.page_bytes,
            set: 0,
            endurance_group: 0,
            zones: None,
            objects: true,
        };
        let mut this = Self {
            device,
            infos: [info],
            geometry,
            sizes,
            table: Table::default(),
            spare: Spare::new((config.cache_bytes / u64::from(geometry.page_bytes)) as usize),
            blocks: Blocks::new(&geometry, config.lanes as usize, (config.victim.build)(&setup)),
            system: System::new(),
            tid: 0,
            written: Token::NONE,
            erased: Token::NONE,
            reading: Token::NONE,
            counts: Counts::default(),
            hosts: HostCounts::default(),
            recovery: RecoveryReport::default(),
            stopped: None,
            is_collecting: false,
            postpones: false,
            eviction: None,
            has_evicted: false,
            sabotage,
            config,
        };
        this.start(params)?;
        this.infos[0].capacity_bytes = this.config.capacity * u64::from(geometry.page_bytes);
        Ok(this)
    }

    /// What the start from the flash found and did.
    pub const fn recovery(&self) -> &RecoveryReport {
        &self.recovery
    }

    fn refuse_if_stopped(&self) -> NamespaceResult<()> {
        self.stopped.map_or(Ok(()), |reason| Err(FtlError::ReadOnly { reason }.into()))
    }

    /// Takes no more writes from now on.
    #[cold]
    fn stop(&mut self, reason: &'static str) -> NamespaceError {
        let reason = *self.stopped.get_or_insert(reason);
        FtlError::ReadOnly { reason }.into()
    }

    /// What follows has to wait for `token`.
    #[inline(always)]
    fn wait_for(&mut self, token: Token) {
        self.reading = self.device.join(self.reading, token);
    }

    /// Ends a command: what has waited long is flushed, and space is collected.
    #[inline]
    fn settle(&mut self, at: SimTime) -> NamespaceResult<()> {
        if self.eviction.is_some() {
            // After it, then.
            return Ok(());
        }
        while let Some(id) = self.table.overdue(at, self.config.flush_after) {
            self.flush_object(id, at)?;
        }
        self.collect_if_short(at)
    }

    /// Collects where fewer blocks are free than should be.
    #[inline]
    fn collect_if_short(&mut self, at: SimTime) -> NamespaceResult<()> {
        if self.blocks.free_count < self.config.gc_low && self.stopped.is_none() {
            self.collect(self.config.gc_low, at)?;
        }
        Ok(())
    }
}
