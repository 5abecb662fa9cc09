//! Conventional zones: a translation layer over blocks of its own, at the start of the address space.

use crate::sets::{Order, Part, Shared};
use nandscape_core::{
    Cause, Cost, Extent, FlashDevice, Ftl, FtlResult, Hint, IssueControl, RecoveryReport, SimTime, Token,
};

/// A device that both kinds of zones share.
pub(super) type SharedDevice = Shared<dyn FlashDevice + Send>;

/// Some blocks of each plane of such a device.
pub type BlockPart = Part<dyn FlashDevice + Send>;

/// The zones that are written anywhere. They follow each other in the logical space of the layer, each as
/// long as can be written of it.
pub(super) struct Conventional {
    pub ftl: Box<dyn Ftl + Send>,
    /// What the layer's operations are issued with.
    order: Order,
    /// The whole device as reports see it: it counts what both parts do.
    pub whole: BlockPart,
    shared: SharedDevice,
    zone_bytes: u64,
}

impl Conventional {
    pub const fn new(
        ftl: Box<dyn Ftl + Send>,
        order: Order,
        whole: BlockPart,
        shared: SharedDevice,
        zone_bytes: u64,
    ) -> Self {
        Self { ftl, order, whole, shared, zone_bytes }
    }

    /// The layer, for a command that is issued because of `cause` and waits for `after`.
    pub fn layer(&mut self, (cause, after): (Cause, Token)) -> &mut (dyn Ftl + Send) {
        self.order.issue(cause, after);
        &mut *self.ftl
    }

    /// Bytes of a zone in the space of the layer, `from` counted in the zone; none of those that cannot be
    /// written.
    pub fn inside(&self, zone: u32, from: u64, len: u64) -> Extent {
        let end = (from + len).min(self.zone_bytes);
        Extent::new(u64::from(zone) * self.zone_bytes + from, end.saturating_sub(from))
    }

    /// Reads bytes of a zone. What cannot be written reads as zeroes.
    pub fn read(
        &mut self,
        zone: u32,
        (from, len): (u64, u64),
        data: Option<&mut [u8]>,
        issued: (Cause, Token),
        at: SimTime,
    ) -> FtlResult<Token> {
        let inside = self.inside(zone, from, len);
        let data = data.map(|data| {
            let (data, beyond) = data.split_at_mut(inside.len as usize);
            beyond.fill(0);
            data
        });
        if inside.len == 0 { Ok(Token::NONE) } else { self.layer(issued).read(inside, data, at) }
    }

    pub fn write(
        &mut self,
        zone: u32,
        (from, len): (u64, u64),
        data: Option<&[u8]>,
        issued: (Cause, Token),
        at: SimTime,
    ) -> FtlResult<Token> {
        let inside = self.inside(zone, from, len);
        self.layer(issued).write(inside, data, Hint::default(), at)
    }

    /// Counters start anew, and nothing is queued from `at` on.
    pub fn reset_counters(&mut self, at: SimTime) {
        self.ftl.reset_stats();
        self.ftl.device_mut().reset_counters();
        let mut shared = self.shared.lock().expect("nobody panicked while holding the device");
        shared.reset_counters();
        shared.reset_time(at);
    }

    /// The cost of both.
    pub fn cost(&self, zones: Cost) -> Cost {
        let own = self.ftl.cost();
        Cost {
            map_table_bytes: zones.map_table_bytes + own.map_table_bytes,
            dram_bytes: zones.dram_bytes + own.dram_bytes,
            total_blocks: zones.total_blocks + own.total_blocks,
            reserve_blocks: zones.reserve_blocks + own.reserve_blocks,
            ..zones
        }
    }

    /// What the start of both found.
    pub fn recovery(&self, zones: &RecoveryReport) -> RecoveryReport {
        let Some(own) = self.ftl.recovery() else { return zones.clone() };
        RecoveryReport {
            checkpoint: zones.checkpoint,
            source: own.source,
            damage: own.damage.clone(),
            was_clean: zones.was_clean && own.was_clean,
            map_entries: zones.map_entries + own.map_entries,
            scanned_blocks: zones.scanned_blocks + own.scanned_blocks,
            scanned_pages: zones.scanned_pages + own.scanned_pages,
            torn_pages: zones.torn_pages + own.torn_pages,
            drop_records: zones.drop_records + own.drop_records,
            live_pages: zones.live_pages + own.live_pages,
            metadata_pages: zones.metadata_pages + own.metadata_pages,
        }
    }
}
