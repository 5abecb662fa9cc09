//! How fast host pages may come into the write buffer, so that a long run of writes sees the same latency all
//! the time and not that of each program that ends.
//!
//! Up to half of the buffer is taken at once. From there on the time between two pages grows with what is in
//! the buffer: at three quarters it is the mean time in which one page leaves, measured while the buffer is
//! more than half full, and at the end twice that. So a steady load settles at three quarters, and what is
//! above and below makes up for programs that end early or late. A proportional rule, and no firmware's.

use super::Rules;

/// Buffers that the mean time goes back.
const MEMORY: u64 = 8;

#[derive(Clone, Debug)]
pub(super) struct Pace {
    /// No page comes in before.
    pub from_ns: u64,
    /// Mean time in which a page leaves, in nanoseconds, of so many pages, at most `memory`.
    mean_ns: f64,
    pages: u64,
    memory: u64,
    /// When the last page left, if the buffer has been half full since.
    left_ns: Option<u64>,
    /// Half of the buffer, in bytes.
    half: i64,
}

nandscape_core::state!(impl [] Pace { saved: from_ns, mean_ns, pages, left_ns; fixed: memory, half; });

impl Pace {
    pub fn new(rules: &Rules) -> Self {
        let bytes = rules.options.buffer.bytes;
        let memory = MEMORY * (bytes / u64::from(rules.page_bytes)).max(1);
        Self { from_ns: 0, mean_ns: 0.0, pages: 0, memory, left_ns: None, half: (bytes / 2).cast_signed() }
    }

    /// Forgets what is under way. The mean time stays: it is a property of the device and its fill.
    pub const fn reset(&mut self, at_ns: u64) {
        self.from_ns = at_ns;
        self.left_ns = None;
    }

    /// A page comes in, and leaves `room` bytes.
    pub fn let_in(&mut self, now_ns: u64, room: i64) {
        let over = (self.half - room).max(0) as f64 / self.half as f64;
        self.from_ns = now_ns + (self.mean_ns * 2.0 * over) as u64;
    }

    /// Pages have left; before there were `room` bytes.
    pub fn left(&mut self, now_ns: u64, pages: u32, room: i64) {
        let is_full = room < self.half;
        if pages == 0 || !is_full {
            self.left_ns = self.left_ns.filter(|_| is_full);
            return;
        }
        if let Some(before_ns) = self.left_ns.replace(now_ns) {
            let pages = u64::from(pages);
            self.pages = (self.pages + pages).min(self.memory);
            let each_ns = (now_ns - before_ns) as f64 / pages as f64;
            self.mean_ns += (each_ns - self.mean_ns) * (pages as f64 / self.pages as f64);
        }
    }
}
