//! Limits on what any cleaning policy may do to the disk.

use super::{Cleaning, Needs, Plan, Setup, View};
use nandscape_core::{Info, SimTime, keys};

keys! { PARAMS:
    CLEAN_BANDWIDTH: Option<u64> = size(1, 1 << 50), "bytes a second at most; absent: no limit";
    CLEAN_IOPS: Option<u64> = int(1, 1_000_000_000), "disk writes a second at most; absent: no limit";
    CLEAN_BURST: u64 = time() or "10ms", "what was not used of a limit is kept for so long";
}

/// Limits that stand beside the parameters of every policy.
pub const CAPS: Info = Info {
    name: "caps",
    summary: "bytes and writes a second that cleaning may send to the disk",
    source: "asked for by users of Open-CAS (open-cas-linux, issue 943)",
    params: PARAMS,
};

/// Puts a policy under the limits that were given, if any.
pub fn wrap(inner: Box<dyn Cleaning + Send>, setup: &Setup<'_>) -> Box<dyn Cleaning + Send> {
    let params = setup.params;
    let burst = params.get(CLEAN_BURST);
    let bytes = params.get(CLEAN_BANDWIDTH);
    let writes = params.get(CLEAN_IOPS);
    if bytes.is_none() && writes.is_none() {
        return inner;
    }
    let block = u64::from(setup.block_bytes);
    Box::new(Capped {
        inner,
        blocks: bytes.map(|rate| Bucket::new(rate, block, burst)),
        writes: writes.map(|rate| Bucket::new(rate, 1, burst)),
    })
}

/// Credit grows with time and is spent by pieces. In any span of `t` seconds at most `rate * t` plus what the
/// bucket holds is spent: `burst` of the rate, or one piece if that is more.
#[derive(Debug)]
struct Bucket {
    /// Units a second, which is also 1e-9 units of credit a nanosecond.
    rate: u64,
    /// Credit for a piece, in 1e-9 units.
    piece: i128,
    most: i128,
    /// Negative where other policies have begun what this one does not know of in advance.
    credit: i128,
    at: SimTime,
    /// Pieces counted so far.
    counted: u64,
    /// Pieces that were let begin at that time.
    granted: u32,
}

const NANO: i128 = 1_000_000_000;

impl Bucket {
    fn new(rate: u64, units: u64, burst_ns: u64) -> Self {
        let piece = i128::from(units) * NANO;
        let most = (i128::from(rate) * i128::from(burst_ns)).max(piece);
        Self { rate, piece, most, credit: most, at: SimTime::ZERO, counted: 0, granted: 0 }
    }

    /// Takes account of `counted` pieces begun since the beginning; how many may begin now.
    fn allowance(&mut self, at: SimTime, counted: u64) -> u32 {
        let begun = counted - self.counted;
        self.counted = counted;
        // What was granted came out of what was there then, and the rest, which other policies have begun,
        // out of what there is now.
        let own = begun.min(u64::from(self.granted));
        self.credit -= i128::from(own) * self.piece;
        let earned = i128::from(at.since(self.at).0) * i128::from(self.rate);
        self.credit = (self.credit + earned).min(self.most) - i128::from(begun - own) * self.piece;
        self.at = self.at.max(at);
        u32::try_from((self.credit / self.piece).max(0)).unwrap_or(u32::MAX)
    }

    /// When there is credit for a piece again, once `granted` are begun.
    fn next(&self, granted: u32) -> SimTime {
        let needed = (i128::from(granted) + 1) * self.piece;
        let missing = u128::try_from(needed - self.credit).unwrap_or(0);
        let wait = missing.div_ceil(u128::from(self.rate));
        SimTime(self.at.0.saturating_add(u64::try_from(wait).unwrap_or(u64::MAX)))
    }
}

struct Capped {
    inner: Box<dyn Cleaning + Send>,
    blocks: Option<Bucket>,
    writes: Option<Bucket>,
}

impl Cleaning for Capped {
    fn plan(&mut self, view: &View) -> Plan {
        let blocks = self.blocks.as_mut().map_or(u32::MAX, |bucket| bucket.allowance(view.at, view.started));
        let writes = self.writes.as_mut().map_or(u32::MAX, |bucket| bucket.allowance(view.at, view.writes));
        let mut plan = self.inner.plan(view);
        let is_held = plan.blocks > blocks || plan.blocks > 0 && writes == 0;
        plan.blocks = if writes == 0 { 0 } else { plan.blocks.min(blocks) };
        plan.writes = plan.writes.min(writes);
        let grant = |bucket: &mut Option<Bucket>, pieces| {
            if let Some(bucket) = bucket {
                bucket.granted = pieces;
            }
        };
        grant(&mut self.blocks, plan.blocks);
        grant(&mut self.writes, plan.blocks.min(plan.writes));
        if is_held {
            // Of the writes at least one will be made; how many more is not known yet.
            let next =
                |bucket: &Option<Bucket>, granted| bucket.as_ref().map_or(view.at, |b| b.next(granted));
            let free = next(&self.blocks, plan.blocks).max(next(&self.writes, plan.blocks.min(1)));
            let free = free.max(view.at + 1);
            plan.again =
                Some(plan.again.filter(|again| *again > view.at).map_or(free, |again| again.min(free)));
        }
        plan
    }

    fn needs(&self) -> Needs {
        self.inner.needs()
    }
}
