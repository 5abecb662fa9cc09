//! What a zoned namespace is made with.

use super::body::FlashRules;
use super::layout::ZoneLayout;
use super::stripes::ZoneStripes;
use nandscape_core::{Geometry, ParamError};

/// Time that the controller needs for commands, one after the other, in nanoseconds; besides the latencies of
/// the host link.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct CommandTimes {
    pub read_ns: u64,
    pub write_ns: u64,
    pub append_ns: u64,
    /// A command that changes the state of zones or reports them.
    pub manage_ns: u64,
    /// More for a command that takes a zone out of the empty state.
    pub open_ns: u64,
    /// From the start of a reset until its erases, while other commands go on.
    pub reset_ns: u64,
    /// Those of reads, writes and appends are off by up to this share, evenly drawn.
    pub spread: f64,
    /// Bytes of a write or an append for which the controller needs its time, and again for each more of
    /// them; 0: its time is the same for any length.
    pub unit_bytes: u64,
}

impl CommandTimes {
    /// How many times the controller needs its time for so many bytes.
    pub(super) const fn units(&self, bytes: u64) -> u64 {
        if self.unit_bytes == 0 { 1 } else { bytes.div_ceil(self.unit_bytes) }
    }
}

/// What a zoned namespace is made with.
#[derive(Clone, Debug, PartialEq)]
pub struct ZoneSetup {
    /// Its name, by which job files address it.
    pub name: String,
    /// Zones as the host sees them; their number is that of the most that fit if it is 0.
    pub layout: ZoneLayout,
    /// Zones as they lie on the flash.
    pub stripes: ZoneStripes,
    /// How they treat the flash.
    pub rules: FlashRules,
    /// Blocks of each plane, from the first on, that conventional zones have for themselves: the other fields
    /// are about those behind them.
    pub conventional_blocks: u32,
    /// Blocks of each die that no zone gets at first, for those that fail and for the metadata log.
    pub spare_blocks: u32,
    /// Time of commands.
    pub times: CommandTimes,
}

impl ZoneSetup {
    /// The geometry without the blocks of conventional zones.
    pub fn sequential(&self, geometry: &Geometry) -> Result<Geometry, ParamError> {
        let blocks_per_plane = geometry.blocks_per_plane.saturating_sub(self.conventional_blocks);
        if blocks_per_plane == 0 {
            let expected = format!(
                "zones that leave some of the {} blocks of each plane; they need {}",
                geometry.blocks_per_plane, self.conventional_blocks
            );
            let zones = self.layout.conventional.to_string();
            return Err(ParamError::bad("zone.conventional".to_owned(), zones, &expected));
        }
        Ok(Geometry { blocks_per_plane, ..*geometry })
    }

    /// Checks that everything fits together on the blocks that zones with write pointers have; gives the
    /// layout with the number of all zones. The errors name the keys below `zone.`.
    pub fn check(&self, geometry: &Geometry) -> Result<ZoneLayout, ParamError> {
        self.stripes.check(geometry)?;
        let error = |key: &str, value: u64, expected: String| {
            Err(ParamError::bad(format!("zone.{key}"), value.to_string(), &expected))
        };
        let page = u64::from(geometry.page_bytes);
        let per_page = page / u64::from(geometry.sector_bytes);
        let (capacity, most) = (self.layout.capacity, self.stripes.pages(geometry) * per_page);
        if !capacity.is_multiple_of(per_page) || capacity > most {
            let expected = format!(
                "whole pages of {page} bytes, up to the {most} logical blocks of zone.dies x zone.blocks_per_die blocks"
            );
            return error("capacity", capacity, expected);
        }
        if per_page > u64::from(u128::BITS) {
            let expected = format!("at least a 128th of the pages of {page} bytes");
            return Err(ParamError::bad("device.sector", geometry.sector_bytes.to_string(), &expected));
        }
        if geometry.pages_per_block > u32::from(u16::MAX) {
            let pages = geometry.pages_per_block.to_string();
            return Err(ParamError::bad("device.pages_per_block", pages, "at most 65535 for zones"));
        }
        if u64::from(self.layout.extension_bytes) + 64 > page {
            return error(
                "descriptor_bytes",
                self.layout.extension_bytes.into(),
                format!("less than a page of {page} bytes"),
            );
        }
        if let Some(areas) = self.layout.random
            && !areas.granularity.is_multiple_of(per_page)
        {
            return error(
                "zrwa_granularity",
                areas.granularity,
                format!("multiples of the {per_page} logical blocks of a page"),
            );
        }
        let blocks = geometry.blocks_per_unit();
        let room = blocks.saturating_sub(self.spare_blocks) / self.stripes.blocks_per_die;
        let sequential = room * self.stripes.groups(geometry);
        let zones = self.layout.conventional + sequential;
        let layout = ZoneLayout {
            zones: if self.layout.zones == 0 { zones } else { self.layout.zones },
            ..self.layout
        };
        if sequential == 0 || layout.zones > zones {
            let expected = format!(
                "fewer than the {blocks} blocks of a die, so that zones of {} fit",
                self.stripes.blocks_per_die
            );
            return error("spare", self.spare_blocks.into(), expected);
        }
        let pages = u64::from(layout.zones) * (capacity / per_page);
        if pages > u64::from(nandscape_core::Lpn::MAX.0) {
            return error("capacity", capacity, "at most 2^32 pages in all zones".to_owned());
        }
        layout.check()?;
        Ok(layout)
    }
}
