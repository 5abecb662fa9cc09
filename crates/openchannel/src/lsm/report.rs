//! What a run gives.

/// What a run measured, from the end of the loading on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LsmReport {
    /// Puts that were done.
    pub puts: u64,
    /// Gets that read from a table; the others found their key in memory.
    pub gets: u64,
    /// From the first operation to the end of the last.
    pub elapsed_ns: u64,
    /// Time that puts waited, of all clients together.
    pub stalled_ns: u64,
    /// Latency of each get that read, in the order in which they ended.
    pub get_ns: Vec<u64>,
    /// Tables written from memory.
    pub flushes: u64,
    /// Compactions that were finished.
    pub compactions: u64,
    /// Tables that compactions read and wrote.
    pub tables_read: u64,
    /// See `tables_read`.
    pub tables_written: u64,
    /// Tables written to each parallel unit.
    pub written_per_unit: Vec<u64>,
    /// Tables of each level at the end.
    pub levels: Vec<usize>,
}

impl LsmReport {
    /// Puts in a second.
    pub fn puts_per_s(&self) -> f64 {
        self.puts as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }

    /// Tables written by anybody for each that was written from memory.
    pub fn write_amplification(&self) -> f64 {
        (self.flushes + self.tables_written) as f64 / self.flushes.max(1) as f64
    }

    /// Mean latency of the gets that read.
    pub fn get_ns_mean(&self) -> f64 {
        self.get_ns.iter().sum::<u64>() as f64 / self.get_ns.len().max(1) as f64
    }

    /// The latency that a share of the gets stays at or below; 0 without gets.
    pub fn get_ns_at(&self, share: f64) -> u64 {
        let mut sorted = self.get_ns.clone();
        sorted.sort_unstable();
        let at = ((sorted.len() as f64 * share).ceil() as usize).clamp(1, sorted.len().max(1)) - 1;
        sorted.get(at).copied().unwrap_or(0)
    }
}
