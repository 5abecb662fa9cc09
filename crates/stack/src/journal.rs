//! `[journal]`: what a device that keeps bytes writes down for its next start.

use crate::keys::{Result, flat, table_of};
use nandscape_core::{Info, Params, keys};
use nandscape_ftl::JournalOptions;

keys! { PARAMS:
    INTERVAL: Option<u64> = count(),
        "programs between two checkpoints, which bounds what a start reads; absent: a quarter of the \
         device's pages, at most 400,000";
    RECORD_PAGES: Option<u32> = int(1, 1 << 20),
        "pages for records of dropped pages after each checkpoint; absent: as many as a checkpoint has";
}

/// Keys of `[journal]`.
pub static JOURNAL: Info = Info {
    name: "journal",
    summary: "checkpoints and records of dropped pages, on devices that keep bytes",
    source: "docs/formats/journal.md",
    params: PARAMS,
};

/// A checked `[journal]` table.
#[derive(Clone, Debug)]
pub struct JournalKeys {
    params: Params,
}

impl JournalKeys {
    pub(crate) fn check(table: &toml::Table) -> Result<Self> {
        let params = Params::check(&JOURNAL, "journal.", &flat("journal.", table)?)?;
        if params.get(INTERVAL) == Some(0) {
            return Err(params.error(INTERVAL, "at least one program").into());
        }
        Ok(Self { params })
    }

    pub(crate) fn options(&self) -> JournalOptions {
        JournalOptions {
            interval: self.params.get(INTERVAL),
            record_pages: self.params.get(RECORD_PAGES),
            ..JournalOptions::default()
        }
    }

    pub(crate) fn to_table(&self) -> Option<toml::Table> {
        let table = table_of(&self.params);
        (!table.is_empty()).then_some(table)
    }
}
