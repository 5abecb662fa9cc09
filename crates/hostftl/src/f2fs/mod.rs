//! `f2fs`: a log-structured file system over blocks or zones, by the rules of Linux' f2fs, as a store of
//! objects for replays. It keeps no bytes.
//!
//! The main area is divided into sections. Blocks go to one of up to six logs: those of data by the lifetime
//! hint of their file, names as hot ones, moved ones as cold ones; nodes by what they belong to. A *node*
//! points to blocks of a file; where nodes are stands in a table (NAT), which blocks are in use in another
//! (SIT), whose they are in summaries (SSA). These and the checkpoints lie in an area of their own that is
//! overwritten in place: the first blocks of a block device, conventional zones of a zoned one.
//!
//! * `flush` of an object writes its nodes (f2fs would find them again by rolling forward); a checkpoint
//!   writes all nodes, names and tables. What was freed can be written again after a checkpoint only.
//! * When few sections are free, those with the fewest valid blocks are cleaned, and writers wait. Cleaning
//!   in the background takes old ones first, while no host asks for anything.
//! * In adaptive mode logs fill the holes of used sections when sections are short (SSR), and overwrites of
//!   at most `IN_PLACE` blocks stay where they are, as f2fs does for small syncs.
//!
//! Simplifications: nodes and tables are cached whole; names are in one directory; nodes between inode and
//! direct nodes are not written; no roll-forward, quota, compression, inline data or pinned files.
//!
//! Invariants:
//! * a block is valid exactly when a pointer of a node, or the place of a node, is its number; its owner says
//!   which;
//! * a free section has no block that is valid, or was at the last checkpoint;
//! * `reserved` sections are filled by cleaning alone.
//!
//! Memory: 8 B a block for owners, two bits a block, a pointer of 4 B a block of a file.

mod check;
mod checkpoint;
mod clean;
mod config;
mod nodes;
mod report;
mod requests;
mod sabotage;
mod sections;
mod volume;

pub use config::{INFO, MODE, Mode};
pub use sabotage::Sabotage;

use crate::error::HostFtlError;
use config::Config;
use nandscape_core::command::HostCounts;
use nandscape_core::{
    Cause, FtlError, Hint, Issue, NamespaceError, NamespaceInfo, NamespaceResult, ObjectReport, Op, Params,
    SimTime, Subsystem, Token,
};
use nodes::Nodes;
use sections::{NODE, NONE, Owner, Sections};
use volume::Volume;

/// Overwrites of at most so many blocks stay in place in adaptive mode.
const IN_PLACE: u32 = 8;

/// The kinds of logs, in the order of their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    HotData = 0,
    WarmData = 1,
    ColdData = 2,
    HotNode = 3,
    WarmNode = 4,
}

/// A log-structured file system over namespace 0 of a subsystem. It takes [`nandscape_core::ObjectCommand`]s,
/// and a flush of everything as a block command.
pub struct F2fs {
    volume: Volume,
    infos: [NamespaceInfo; 1],
    config: Config,
    sections: Sections,
    nodes: Nodes,
    /// Which of the two copies of each block of tables is the present one, and of the checkpoints.
    copies: checkpoint::Copies,
    /// Cleaning or a checkpoint is going on.
    is_busy: bool,
    next_checkpoint: SimTime,
    /// Completes when what was cleaned for the command that is being submitted is.
    pace: Token,
    stats: ObjectReport,
    hosts: HostCounts,
    stopped: Option<&'static str>,
    sabotage: Sabotage,
}

impl F2fs {
    /// An empty file system.
    ///
    /// # Errors
    ///
    /// Keys that do not fit the device, and devices that cannot hold it.
    pub fn new(below: Box<dyn Subsystem + Send>, params: &Params) -> Result<Self, HostFtlError> {
        Self::with_sabotage(below, params, Sabotage::None)
    }

    /// One that breaks a rule, for tests of the tests.
    #[doc(hidden)]
    pub fn with_sabotage(
        below: Box<dyn Subsystem + Send>,
        params: &Params,
        sabotage: Sabotage,
    ) -> Result<Self, HostFtlError> {
        let volume = Volume::new(below)?;
        let info = volume.device.namespaces()[0].clone();
        let config = Config::new(params, &info)?;
        let layout = &config.layout;
        let capacity_bytes = layout.user_blocks * layout.block;
        Ok(Self {
            infos: [NamespaceInfo { capacity_bytes, zones: None, objects: true, ..info }],
            sections: Sections::new(layout),
            nodes: Nodes::new(),
            copies: checkpoint::Copies::new(layout),
            is_busy: false,
            next_checkpoint: SimTime(config.checkpoint_ns),
            pace: Token::NONE,
            stats: ObjectReport::default(),
            hosts: HostCounts::default(),
            stopped: None,
            sabotage,
            volume,
            config,
        })
    }

    /// The log for a kind of block, of as many as there are.
    fn log(&self, kind: Kind) -> usize {
        if self.sabotage == Sabotage::OneLog {
            return if kind as usize >= Kind::HotNode as usize { 3 } else { 0 };
        }
        let by_count = match (self.config.logs, kind) {
            (6, kind) => kind,
            (4, Kind::WarmData) => Kind::ColdData,
            (2, Kind::WarmData | Kind::ColdData) => Kind::HotData,
            (_, Kind::HotNode | Kind::WarmNode) if self.config.logs == 2 => Kind::HotNode,
            (_, kind) => kind,
        };
        by_count as usize
    }

    /// The log for data with a lifetime hint.
    fn data_log(&self, hint: Hint) -> usize {
        self.log(match hint {
            Hint::SHORT => Kind::HotData,
            Hint::EXTREME => Kind::ColdData,
            _ => Kind::WarmData,
        })
    }

    fn stream(&self, log: usize) -> Hint {
        if self.config.streams { Hint(log as u16 + 1) } else { Hint(0) }
    }

    /// Writes blocks next to each other to a log, at most as many as its section has room for there. Returns
    /// the first and how many; who owns them is for the caller to say.
    #[inline]
    fn put(&mut self, log: usize, most: u32, issue: Issue) -> NamespaceResult<(u32, u32, Token)> {
        if self.sections.is_full(log) {
            self.open(log)?;
        }
        let (place, blocks) = self.sections.run(log, most);
        let stream = self.stream(log);
        let written = self.volume.main(&self.config.layout, Op::Write, (place, blocks), stream, issue);
        let done = written.map_err(|error| self.stop("a write of blocks failed", error))?;
        self.sections.written(log, blocks);
        self.summarize(log, place, blocks, issue.at)?;
        Ok((place, blocks, done))
    }

    /// Finds a section for a log.
    fn open(&mut self, log: usize) -> NamespaceResult<()> {
        self.sections.close(log);
        let fills_holes =
            self.config.mode == Mode::Adaptive && self.sections.free <= 2 * self.config.layout.reserved;
        let opened = if fills_holes {
            self.sections.open_holes(log).or_else(|| self.sections.open_free(log))
        } else {
            self.sections.open_free(log)
        };
        opened.ok_or_else(|| {
            let layout = &self.config.layout;
            FtlError::DeviceFull {
                reason: "no section is free, and none can be cleaned",
                needed_pages: 1,
                free_pages: 0,
                live_pages: self.sections.live,
                total_pages: u64::from(layout.sections) * u64::from(layout.section_blocks),
            }
            .into()
        })
    }

    /// Writes the summaries of segments whose end a log has reached.
    fn summarize(&mut self, log: usize, place: u32, blocks: u32, at: SimTime) -> NamespaceResult<()> {
        let layout = &self.config.layout;
        let segment = layout.segment_blocks;
        let (section, index) = (place / layout.section_blocks, place % layout.section_blocks);
        let mut ended = (index + blocks) / segment - index / segment;
        let is_full = self.sections.is_full(log);
        if is_full && (self.sections.logs[log].in_holes || !layout.section_blocks.is_multiple_of(segment)) {
            ended += 1;
        }
        if ended > 0 {
            let per_section = u64::from(layout.section_blocks.div_ceil(segment));
            let first = layout.summaries + u64::from(section) * per_section + u64::from(index / segment);
            self.volume.meta(layout, first, ended.into(), Issue::new(at, Cause::Meta).by_host())?;
        }
        Ok(())
    }

    /// Writes a node that changed.
    fn write_node(&mut self, number: u32, issue: Issue) -> NamespaceResult<Token> {
        let is_directory = self.nodes.node(number).file == nodes::DIRECTORY;
        let log = self.log(if is_directory { Kind::HotNode } else { Kind::WarmNode });
        let (place, _, done) = self.put(log, 1, issue)?;
        self.sections.owners[place as usize] = Owner { node: number, slot: NODE };
        let before = self.nodes.written(number, place);
        if before != NONE {
            self.sections.invalidate(before);
        }
        Ok(done)
    }

    /// Writes blocks of a file to a log.
    fn write_data(
        &mut self,
        file: u32,
        (from, to): (u32, u32),
        log: usize,
        issue: Issue,
    ) -> NamespaceResult<Token> {
        let mut done = Token::NONE;
        let mut block = from;
        while block < to {
            self.balance(issue.at)?;
            let (index, slot, room) = Nodes::split(&self.config.layout, block);
            let node = self.nodes.need(&self.config.layout, file, index);
            let (place, blocks, written) = self.put(log, room.min(to - block), issue)?;
            done = self.volume.device.join(done, written);
            let mut added = 0;
            for offset in 0..blocks {
                let pointer = &mut self.nodes.node_mut(node).pointers[(slot + offset) as usize];
                let before = std::mem::replace(pointer, place + offset);
                self.sections.owners[(place + offset) as usize] = Owner { node, slot: slot + offset };
                if before == NONE {
                    added += 1;
                } else {
                    self.sections.invalidate(before);
                }
            }
            self.nodes.node_mut(node).used += added;
            self.nodes.file_mut(file).blocks += u64::from(added);
            self.nodes.touch(node);
            block += blocks;
        }
        Ok(done)
    }

    /// What is durable may not be what was answered any more: nothing is written from now on.
    #[cold]
    fn stop(&mut self, reason: &'static str, error: NamespaceError) -> NamespaceError {
        self.stopped.get_or_insert(reason);
        error
    }

    fn refuse_if_stopped(&self) -> NamespaceResult<()> {
        self.stopped.map_or(Ok(()), |reason| Err(FtlError::ReadOnly { reason }.into()))
    }
}
