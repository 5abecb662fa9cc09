//! The measurements of OFTL, an object-based translation layer, and of the file system above it (OFSS).
//!
//! Measured is `--stack oftl` on the loads of `fast13`, which have the published counts of the traces:
//! objects in the place of files, without a file system for users above. All loads run on the preset
//! `oftl-fast13`, whose times were calibrated to one cell of [OFTL table 3].

mod captured;
mod extensions;
mod page_sizes;
mod table_3;

pub(super) use captured::CAPTURED;
pub(super) use extensions::FIG_9;
pub(super) use page_sizes::FIG_8;
pub(super) use table_3::TABLE_3;

use super::{Context, Table};
use crate::Result;
use nandscape_report::{RowKind, Run};
use nandscape_stack::RunOptions;
use nandscape_stack::config::StackConfig;
use nandscape_trace::generators::Fast13Load as Load;
use std::fmt::Display;

/// What the layer does otherwise than published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    None,
    /// Parts of pages are merged into whole ones at once.
    WholePages,
    /// Places of pages are written with every flush.
    EagerIndex,
    Both,
}

/// A run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Point {
    load: Load,
    is_sync: bool,
    page_kib: u32,
    change: Change,
    /// The load is divided by it.
    divisor: u32,
    /// Overwrites in percent; those of the load if absent.
    overwrites: Option<u32>,
    seed: u64,
}

/// Blocks of the preset, in a plane of each of eight channels.
const BLOCKS: u32 = 8192;

impl Point {
    fn new(context: &Context<'_>, load: Load, is_sync: bool) -> Self {
        let divisor = if load == Load::IPhoto { context.scale(1, 10) } else { 1 };
        let change = if context.is_sabotaged { Change::Both } else { Change::None };
        Self { load, is_sync, page_kib: 4, change, divisor, overwrites: None, seed: context.seed }
    }

    fn mode(&self) -> &'static str {
        if self.is_sync { "sync" } else { "async" }
    }

    /// Load and mode, as rows have them.
    fn name(&self) -> String {
        format!("{}, {}", self.load.title(), self.mode())
    }

    fn spec(&self) -> String {
        let overwrites = self.overwrites.map(|percent| format!(",overwrites={percent}%"));
        let overwrites = overwrites.unwrap_or_default();
        format!("fast13:load={},scale=1/{}{overwrites}", self.load.name(), self.divisor)
    }

    /// On the preset, with more keys.
    fn config(&self, context: &Context<'_>, more: &[(&str, &dyn Display)]) -> Result<StackConfig> {
        // Room enough for any load, in less memory.
        let smaller = if self.load == Load::IPhoto && self.divisor < 10 { 1 } else { 4 };
        let (page, blocks) = (format!("{}KiB", self.page_kib), BLOCKS * 4 / self.page_kib / smaller);
        let (diffs, lazy) = match self.change {
            Change::None => (true, true),
            Change::WholePages => (false, true),
            Change::EagerIndex => (true, false),
            Change::Both => (false, false),
        };
        let keys: [(&str, &dyn Display); 6] = [
            ("stack.kind", &"oftl"),
            ("device.page", &page),
            ("device.blocks_per_plane", &blocks),
            ("ftl.sync", &self.is_sync),
            ("ftl.diffs", &diffs),
            ("ftl.lazy_index", &lazy),
        ];
        Ok(context.config(Some("oftl-fast13"), &[&keys[..], more].concat())?)
    }

    fn run(&self, context: &Context<'_>) -> Result<Run> {
        let label = format!("{}, pages of {} KiB", self.name(), self.page_kib);
        context.replay(&self.config(context, &[])?, &self.spec(), label, RunOptions::default())
    }
}

/// Bytes programmed over bytes written.
fn size_amplification(run: &Run) -> f64 {
    run.result.waf.bytes.unwrap_or(f64::NAN)
}

/// What [OFTL table 2] does not say and the loads have to.
fn inputs(out: &mut Table) {
    for (name, unit, value) in [
        ("overwrites", "% of writes", 20.0),
        ("overwrites, TPC-C", "% of writes", 80.0),
        ("files", "a close", 1.0),
    ] {
        out.row("", format!("chosen: {name}"))
            .figure(unit, value)
            .kind(RowKind::Input)
            .note("not in the source; sizes of single writes are exponential");
    }
}
