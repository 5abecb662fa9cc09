//! The logs of a domain: which there are, where their survivors go, and which may lend each other room.
//!
//! Without streams there are three: host writes, moved pages, pages moved by wear levelling. With streams every stream has a host log, and
//! a log of moved pages of its own where it is persistently isolated; initially isolated streams share one (interfaces.md section 5).

use super::config::Config;
use super::domain::Frontier;

/// Log of host writes without a stream.
pub(super) const HOST: usize = 0;

/// What is written to a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogKind {
    /// What the host writes, and survivors where they share the host's log.
    Host,
    /// Survivors of collection.
    Gc,
    /// Cold pages that wear levelling moves.
    Wear,
}

/// One log as it is planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogShape {
    pub kind: LogKind,
    /// Open blocks.
    pub slots: u32,
    /// Logs of one family lend each other room when there is no free block; pages of different families never share a block.
    pub family: u16,
    /// Where survivors of this log's blocks go.
    pub gc: u16,
    /// Where wear levelling moves this log's pages.
    pub wear: u16,
    /// The stream whose pages alone are here.
    pub stream: Option<u16>,
}

/// Open blocks that are written round robin, a program unit at a time.
#[derive(Debug)]
pub(super) struct Log {
    pub slots: Vec<Frontier>,
    pub cursor: usize,
    pub shape: LogShape,
    /// In use, so that its open blocks are kept in reserve.
    pub active: bool,
}

impl Log {
    pub fn new(shape: LogShape, active: bool) -> Self {
        Self { slots: vec![Frontier::default(); shape.slots as usize], cursor: 0, shape, active }
    }

    pub fn step(&mut self) {
        self.cursor = if self.cursor + 1 == self.slots.len() { 0 } else { self.cursor + 1 };
    }

    /// Pages that can be programmed in its open blocks.
    pub fn open_pages(&self) -> u64 {
        self.slots.iter().map(|slot| u64::from(slot.end - slot.next)).sum()
    }
}

/// The logs of each domain, host logs first.
pub(super) fn plan(config: &Config, migrates: bool) -> Vec<LogShape> {
    let slots = config.frontiers;
    let wear_slots = u32::from(migrates);
    let streams = config.persistent.len() as u16;
    let shape = |kind, slots, family, stream| LogShape { kind, slots, family, gc: 0, wear: 0, stream };
    if streams == 0 {
        let gc = u16::from(!config.shared_frontier);
        let log = |kind, slots| LogShape { gc, wear: 2, ..shape(kind, slots, 0, None) };
        let gc_slots = if config.shared_frontier { 0 } else { slots };
        return vec![log(LogKind::Host, slots), log(LogKind::Gc, gc_slots), log(LogKind::Wear, wear_slots)];
    }
    let mut logs: Vec<LogShape> =
        (0..streams).map(|stream| shape(LogKind::Host, slots, stream, Some(stream))).collect();
    // Survivors of initially isolated streams share a log; those of each other stream have one.
    let mut mixed: Option<(u16, u16)> = None;
    for stream in 0..streams {
        let is_apart = config.persistent[usize::from(stream)];
        let targets = mixed.filter(|_| !is_apart).unwrap_or_else(|| {
            let (family, owner) = if is_apart { (stream, Some(stream)) } else { (streams, None) };
            let mut add = |kind, slots| {
                logs.push(shape(kind, slots, family, owner));
                logs.len() as u16 - 1
            };
            let gc = if config.shared_frontier { stream } else { add(LogKind::Gc, slots) };
            let wear = if migrates { add(LogKind::Wear, wear_slots) } else { gc };
            for log in [gc, wear] {
                (logs[usize::from(log)].gc, logs[usize::from(log)].wear) = (gc, wear);
            }
            (gc, wear)
        });
        if !is_apart {
            mixed = Some(targets);
        }
        (logs[usize::from(stream)].gc, logs[usize::from(stream)].wear) = targets;
    }
    logs
}
