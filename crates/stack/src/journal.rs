//! `[journal]`: what a device that keeps bytes writes down for its next start.

use crate::keys::{ConfigError, flat, table_of};
use nandscape_core::{Info, Param, Params};
use nandscape_ftl::JournalOptions;

/// Keys of `[journal]`.
pub static JOURNAL: Info = Info {
    name: "journal",
    summary: "checkpoints and records of dropped pages, on devices that keep bytes",
    source: "docs/formats/journal.md",
    params: &[
        Param::count("interval", "").means(
            "programs between two checkpoints, which bounds what a start reads; absent: a quarter of the \
             device's pages, at most 400,000",
        ),
        Param::int("record_pages", 1, 1 << 20, "").means(
            "pages for records of dropped pages after each checkpoint; absent: as many as a checkpoint has",
        ),
    ],
};

/// A checked `[journal]` table.
#[derive(Clone, Debug)]
pub struct JournalKeys {
    params: Params,
}

impl JournalKeys {
    /// Checks the table.
    pub(crate) fn check(table: &toml::Table) -> Result<Self, ConfigError> {
        let params = Params::check(&JOURNAL, "journal.", &flat("journal.", table)?)?;
        if params.get("interval").is_some() && params.count("interval") == 0 {
            return Err(params.error("interval", "at least one program").into());
        }
        Ok(Self { params })
    }

    /// What the journal is opened with.
    pub(crate) fn options(&self) -> JournalOptions {
        let given = |name: &str| self.params.get(name).is_some();
        JournalOptions {
            interval: given("interval").then(|| self.params.count("interval")),
            record_pages: given("record_pages").then(|| self.params.int32("record_pages")),
            ..JournalOptions::default()
        }
    }

    /// The table, for printing, where it says anything.
    pub(crate) fn to_table(&self) -> Option<toml::Table> {
        let table = table_of(&JOURNAL, &self.params);
        (!table.is_empty()).then_some(table)
    }
}
