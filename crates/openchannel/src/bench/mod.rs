//! A benchmark of pages in virtual time, with the engines of FOX (the benchmark of open-channel SSDs of the
//! IT University of Copenhagen): sequential, round-robin and isolated.
//!
//! The parallel units are dealt to jobs in turn. A job does one page at a time, jobs run side by side. A run
//! is one iteration: every page of each job's chunks is written, or in a job that only reads, read once.
//! Chunks that are to be read are written before, and all are erased afterwards; neither counts in the
//! throughput. A page is a write unit: a page in each plane of the chunk.

mod job;
mod log;
mod run;

pub use log::{IoKind, Log, PageIo, Summary};
pub use run::run;

use nandscape_core::vector::VectorGeometry;
use nandscape_core::{ParamError, words};

/// The order in which a job goes over its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// The pages of a block, then its next block, then its next parallel unit.
    Sequential,
    /// A page of each parallel unit, then of the next block of each, then the next page.
    RoundRobin,
    /// As round-robin, and a job does only reads or only writes.
    Isolated,
}

words!(pub Engine: Sequential = "sequential", RoundRobin = "round-robin", Isolated = "isolated");

/// What a run does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Order of the pages.
    pub engine: Engine,
    /// Jobs side by side.
    pub jobs: u32,
    /// Channels that are used, from the first on.
    pub channels: u16,
    /// Parallel units of each channel that are used.
    pub luns: u16,
    /// Chunks of each parallel unit that are used.
    pub blocks: u32,
    /// Pages of each chunk that are used.
    pub pages: u32,
    /// Of a hundred operations so many are reads, the others writes; in the isolated engine, of a hundred
    /// jobs.
    pub read_percent: u32,
    /// Writes carry data, and reads compare it; for a device that keeps data.
    pub compares: bool,
}

impl Workload {
    /// Checks that a device has what is used. The errors name the key.
    pub fn check(&self, geometry: &VectorGeometry) -> Result<(), ParamError> {
        let rows = geometry.sectors / geometry.write_min;
        let units = u32::from(self.channels) * u32::from(self.luns);
        for (key, value, most) in [
            ("channels", u32::from(self.channels), u32::from(geometry.groups)),
            ("luns", u32::from(self.luns), u32::from(geometry.units)),
            ("blocks", self.blocks, geometry.chunks),
            ("pages", self.pages, rows),
            ("jobs", self.jobs, units),
        ] {
            if value == 0 || value > most {
                return Err(ParamError::bad(key.to_owned(), value.to_string(), format!("1 to {most}")));
            }
        }
        if self.read_percent > 100 {
            let percent = self.read_percent.to_string();
            return Err(ParamError::bad("read_percent".to_owned(), percent, "0 to 100"));
        }
        Ok(())
    }

    /// Jobs of the isolated engine that read: the first ones.
    pub const fn readers(&self) -> u32 {
        (self.jobs * self.read_percent + 50) / 100
    }
}
