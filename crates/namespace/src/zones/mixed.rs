//! Conventional zones beside zones with write pointers.

use super::conventional::{BlockPart, Conventional, SharedDevice};
use super::namespace::ZonedNamespace;
use super::recover::ZoneStartError;
use super::sabotage::Sabotage;
use super::setup::ZoneSetup;
use super::tag::ZoneOob;
use crate::sets::{Order, Part};
use nandscape_core::{BlockCommand, Extent, FlashDevice, Ftl, NamespaceResult, Oob, Op, SimTime, Token};

/// Zones over a device, the first of them conventional, as the flash holds them. The first
/// [`ZoneSetup::conventional_blocks`] blocks of each plane are those of conventional zones, over which
/// `layer` builds a translation layer. The setup was checked.
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
    Ok(zones.beside(Conventional::new(ftl, order, whole, shared, zone_bytes)))
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
            let own = conventional.ftl.device().counters();
            conventional.whole.show([self.body.device.counters(), own]);
        }
    }

    /// Whether an extent begins in a conventional zone.
    #[inline]
    pub(super) fn is_conventional(&self, extent: Extent) -> bool {
        self.conventional.is_some()
            && self.by_zone.quotient(extent.offset) < u64::from(self.table.layout().conventional)
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
        let mut done = Token::NONE;
        let mut byte = extent.offset;
        while byte < extent.end() {
            let (zone, from) = self.by_zone.split(byte);
            let len = (self.by_zone.divisor() - from).min(extent.end() - byte);
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
