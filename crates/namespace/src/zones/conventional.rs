//! Conventional zones: a translation layer over blocks of its own, at the start of the address space.

use super::namespace::ZonedNamespace;
use super::recover::ZoneStartError;
use super::sabotage::Sabotage;
use super::setup::ZoneSetup;
use super::tag::ZoneOob;
use crate::sets::{Order, Part, Shared};
use nandscape_core::divide::split;
use nandscape_core::{
    BlockCommand, Cause, CauseTable, Cost, Extent, FlashDevice, FlashState, Ftl, FtlResult, Hint,
    NamespaceResult, Oob, Op, RecoveryReport, SimTime, Token,
};

/// A device that both kinds of zones share.
type SharedDevice = Shared<dyn FlashDevice + Send>;

/// Some blocks of each plane of such a device.
pub type BlockPart = Part<dyn FlashDevice + Send>;

/// Zones over a device, the first of them conventional, as the flash holds them. The first
/// [`ZoneSetup::conventional_blocks`] blocks of each plane are those of conventional zones, over which `layer`
/// builds a translation layer. The setup was checked.
///
/// Errors: those of `layer`; a layer with less room than its zones; zones that do not start.
pub fn with_conventional<E: From<ZoneStartError>>(
    shared: SharedDevice,
    setup: &ZoneSetup,
    layer: impl FnOnce(BlockPart) -> Result<Box<dyn Ftl + Send>, E>,
    sabotage: Sabotage,
) -> Result<ZonedNamespace<BlockPart, Oob>, E> {
    let of_blocks = |first, count| Part::of_blocks(SharedDevice::clone(&shared), first, count);
    let whole = *shared.lock().expect("nobody panicked while holding the device").geometry();
    let (first, blocks) = (setup.conventional_blocks, whole.blocks_per_plane);
    let order = Order::default();
    let ftl = layer(of_blocks(0, first).ordered(&order))?;
    let zones = ZonedNamespace::broken(of_blocks(first, blocks - first), setup, sabotage)?;
    let layout = zones.table().layout();
    let zone_bytes = layout.capacity * u64::from(layout.block_bytes);
    let room = ftl.logical_pages() * u64::from(ftl.page_bytes());
    let needed = u64::from(layout.conventional) * zone_bytes;
    if room < needed {
        return Err(ZoneStartError::NoRoom { room, needed }.into());
    }
    let whole = of_blocks(0, blocks);
    Ok(zones.beside(Conventional { ftl, order, whole, shared, zone_bytes }))
}

/// The zones that are written anywhere. They follow each other in the logical space of the layer, each as
/// long as can be written of it.
pub(super) struct Conventional {
    pub ftl: Box<dyn Ftl + Send>,
    /// What the layer's operations are issued with.
    order: Order,
    /// The whole device as reports see it: it counts what both parts do.
    whole: BlockPart,
    shared: SharedDevice,
    zone_bytes: u64,
}

impl Conventional {
    /// The layer, for a command that is issued because of `cause` and waits for `after`.
    pub fn layer(&mut self, (cause, after): (Cause, Token)) -> &mut (dyn Ftl + Send) {
        self.order.set(cause, after);
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

    /// The whole device.
    pub const fn whole(&self) -> &dyn FlashState {
        &self.whole
    }

    /// Counts what both parts have done so far.
    pub fn show(&mut self, zones: &CauseTable) {
        self.whole.show([zones, self.ftl.device().counters()]);
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

impl<O: ZoneOob, D: FlashDevice<O>> ZonedNamespace<D, O> {
    /// The same beside conventional zones.
    pub(super) fn beside(mut self, conventional: Conventional) -> Self {
        self.recovery = conventional.recovery(&self.recovery);
        self.conventional = Some(Box::new(conventional));
        self.show_counters();
        self
    }

    /// Reports count what both kinds of zones do.
    #[inline]
    pub(super) fn show_counters(&mut self) {
        if let Some(conventional) = &mut self.conventional {
            conventional.show(self.body.device.counters());
        }
    }

    /// Whether an extent begins in a conventional zone.
    #[inline]
    pub(super) fn is_conventional(&self, extent: Extent) -> bool {
        self.conventional.is_some()
            && extent.offset / self.size_bytes() < u64::from(self.table.layout().conventional)
    }

    /// Trims blocks, or writes zeroes to a conventional zone. What a host deallocates in a zone with a write
    /// pointer stays until the zone is reset.
    #[cold]
    pub(super) fn drop_blocks(&mut self, command: BlockCommand, at: SimTime) -> NamespaceResult<Token> {
        let extent = command.extent;
        let (first, blocks) = self.blocks(extent)?;
        if command.op == Op::WriteZeroes {
            self.table.write(first, blocks)?;
        } else {
            self.table.check_read(first, blocks)?;
        }
        let size = self.size_bytes();
        let mut done = Token::NONE;
        let mut byte = extent.offset;
        while byte < extent.end() {
            let (zone, from) = split(byte, size);
            let len = (size - from).min(extent.end() - byte);
            byte += len;
            if !self.table.is_conventional(zone as u32) {
                continue;
            }
            let Some(conventional) = &mut self.conventional else { continue };
            let inside = conventional.inside(zone as u32, from, len);
            let layer = conventional.layer(self.issued);
            let dropped = match command.op {
                _ if inside.len == 0 => continue,
                Op::WriteZeroes => layer.write_zeroes(inside, at),
                _ => layer.trim(inside, at),
            }?;
            done = self.body.device.join(done, dropped);
        }
        Ok(done)
    }
}
