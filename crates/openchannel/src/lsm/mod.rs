//! A log-structured merge tree on vector access, in virtual time, in the manner of LOCS (Wang et al.,
//! 2014): a key-value store whose sorted tables are chunks, with placement that knows of parallel units.
//!
//! Clients put and get entries, one at a time each, of uniformly random keys, all of which are there from the
//! start. Puts go to a table in memory. Full ones are written to chunks of level 0, several side by side;
//! compaction merges levels, reads all its inputs and then writes all its outputs side by side, and resets
//! the chunks of the inputs. A get reads the sectors of one entry: filters in memory say which table has it.
//! Entries are known by their keys alone; no data is kept, and there is no log of what is in memory.

mod placement;
mod report;
mod run;
mod tree;

pub use placement::Placement;
pub use report::LsmReport;
pub use run::run_lsm;

use nandscape_core::ParamError;
use nandscape_core::vector::VectorGeometry;

/// What a run does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LsmSetup {
    /// Where tables go.
    pub placement: Placement,
    /// Clients side by side.
    pub clients: u32,
    /// Operations of all of them together.
    pub operations: u64,
    /// Of a hundred operations so many are puts, the others gets.
    pub put_percent: u32,
    /// Number of keys.
    pub keys: u32,
    /// Bytes of an entry.
    pub entry_bytes: u32,
    /// Tables in memory that are written side by side.
    pub flushers: u32,
    /// Tables of level 0 that begin a compaction.
    pub level0: u32,
    /// Tables of level 0 at which puts wait for it.
    pub level0_stop: u32,
    /// Most tables of level 1.
    pub level1: u32,
    /// How many times as many tables each next level has.
    pub fanout: u32,
    /// Seed of keys and operations.
    pub seed: u64,
}

impl LsmSetup {
    /// Entries of a table.
    pub const fn entries(&self, geometry: &VectorGeometry) -> u64 {
        geometry.chunk_bytes() / self.entry_bytes as u64
    }

    /// Checks that a device has room. The errors name the key.
    pub fn check(&self, geometry: &VectorGeometry) -> Result<(), ParamError> {
        let bad = |key: &str, value: u64, expected: String| {
            Err(ParamError::bad(key.to_owned(), value.to_string(), expected))
        };
        let most = u32::MAX.into();
        for (key, value, least, most) in [
            ("clients", u64::from(self.clients), 1, most),
            ("flushers", u64::from(self.flushers), 1, most),
            ("put_percent", u64::from(self.put_percent), 0, 100),
            ("keys", u64::from(self.keys), 1, most),
            ("entry_bytes", u64::from(self.entry_bytes), 1, geometry.chunk_bytes()),
            ("level0", u64::from(self.level0), 1, most),
            ("level0_stop", u64::from(self.level0_stop), u64::from(self.level0), most),
            ("level1", u64::from(self.level1), 1, most),
            ("fanout", u64::from(self.fanout), 2, most),
        ] {
            if value < least || value > most {
                return bad(key, value, format!("{least} to {most}"));
            }
        }
        // Besides the data itself: what is not merged yet, and outputs while their inputs are there.
        let tables = u64::from(geometry.all_chunks());
        let beside = u64::from(self.level0_stop) + u64::from(self.flushers) + 2 * u64::from(self.level1);
        let most = tables.saturating_sub(2 * beside) / 2 * self.entries(geometry);
        if u64::from(self.keys) > most {
            return bad(
                "keys",
                self.keys.into(),
                format!("at most {most} on {tables} chunks with these levels"),
            );
        }
        Ok(())
    }
}
