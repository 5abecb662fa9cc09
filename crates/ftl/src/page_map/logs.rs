//! The logs of a domain: which there are, where their survivors go, and which may lend each other room.
//!
//! Without streams there are three: host writes, moved pages, pages moved by wear levelling; and one of
//! translation pages, where the map lies on the flash. With streams these are in the default log, and
//! every stream has a host log, and a log of moved pages of its own where it is persistently isolated;
//! initially isolated streams share one (base specification 2.2, section 8.1.10).

use super::config::Config;

/// Log of host writes without a stream.
pub(super) const HOST: usize = 0;
/// Log of translation pages, where there are no streams.
pub(super) const MAP: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogKind {
    /// What the host writes, and survivors where they share the host's log.
    Host,
    Gc,
    /// Cold pages that wear levelling moves.
    Wear,
    /// Translation pages.
    Map,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogShape {
    pub kind: LogKind,
    /// Open blocks once every log is in use.
    pub slots: u32,
    /// Logs of one family lend each other room when there is no free block; pages of different families
    /// never share a block.
    pub family: u16,
    /// Where survivors of this log's blocks go.
    pub gc: u16,
    /// Where wear levelling moves this log's pages.
    pub wear: u16,
    /// The stream whose pages alone are here.
    pub stream: Option<u16>,
}

/// Open blocks, written round robin by program units; a part of the list of all logs.
#[derive(Debug)]
pub(super) struct Log {
    /// The open block that is written next.
    pub cursor: u32,
    first: u32,
    end: u32,
    pub shape: LogShape,
    /// In use, so that its open blocks are kept in reserve.
    pub active: bool,
}

nandscape_core::state!(impl [] Log { saved: cursor, first, end, active; fixed: shape; });

impl Log {
    /// The logs. Those that are in use have their part of the list of open blocks, the others none yet.
    pub fn lay_out(shapes: &[LogShape], active: bool) -> Vec<Self> {
        let mut end = 0;
        let log = |shape: &LogShape| {
            let first = end;
            end += if active { shape.slots } else { 0 };
            Self { cursor: first, first, end, shape: *shape, active }
        };
        shapes.iter().map(log).collect()
    }

    /// Comes into use, with so many slots at the end of the list.
    pub fn begin(&mut self, first: u32, slots: u32) {
        (self.cursor, self.first, self.end, self.active) = (first, first, first + slots, true);
    }

    /// Slots that it has.
    pub const fn width(&self) -> u32 {
        self.end - self.first
    }

    /// Its last slot.
    pub const fn last(&self) -> usize {
        self.end as usize - 1
    }

    /// Gives up its last slot, which has no block.
    pub fn narrow(&mut self) {
        assert!(self.width() > 0, "a log gives up a slot that it does not have: {self:?}");
        self.end -= 1;
        if self.cursor == self.end {
            self.cursor = self.first;
        }
    }

    #[inline]
    pub fn step(&mut self) {
        self.cursor = if self.cursor + 1 == self.end { self.first } else { self.cursor + 1 };
    }

    pub fn rewind(&mut self) {
        self.cursor = self.first;
    }

    /// Its part of the list.
    pub fn range(&self) -> std::ops::Range<usize> {
        self.first as usize..self.end as usize
    }
}

/// The logs of each domain, host logs first.
pub(super) fn plan(config: &Config, migrates: bool) -> Vec<LogShape> {
    let slots = config.frontiers.of_all();
    let wear_slots = u32::from(migrates);
    let streams = config.persistent.len() as u16;
    let shape = |kind, slots, family, stream| LogShape { kind, slots, family, gc: 0, wear: 0, stream };
    if streams == 0 {
        let gc = u16::from(!config.shared_frontier);
        let log = |kind, slots| LogShape { gc, wear: 2, ..shape(kind, slots, 0, None) };
        let gc_slots = if config.shared_frontier { 0 } else { slots };
        let mut logs =
            vec![log(LogKind::Host, slots), log(LogKind::Gc, gc_slots), log(LogKind::Wear, wear_slots)];
        if config.map.is_some() {
            logs.push(log(LogKind::Map, slots.div_ceil(8)));
        }
        return logs;
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
