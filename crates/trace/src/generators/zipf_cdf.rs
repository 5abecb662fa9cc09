//! Popularity by Zipf's law through an explicit table of cumulative weights, so that other programs can make
//! the same sequence bit by bit.
//!
//! The weight of rank r, counted from 0, is `1 / (r + 1)^alpha`; weights are added up in order of rank in
//! 64-bit floats. A draw takes the upper 53 bits of the next number of `SplitMix64`, times 2^-53, times the
//! sum; it gives the first rank whose cumulative weight is above it. With alpha = 1 only additions,
//! multiplications and divisions are used.

use super::Generator;
use super::common::{BS, GAP, OFFSET, check_gap, info_of, threshold};
use crate::error::Result;
use crate::options::BoxReader;
use nandscape_core::{Info, IoRecord, ParamError, Params, SimTime, TraceOp, TraceReader, WorkloadInfo, keys};

keys! { PARAMS:
    RANKS: u64 = count() or "1M", "blocks, a count";
    ALPHA: f64 = float(0.0, 10.0) or "1", "skew";
    BS;
    COUNT: u64 = count() or "20M",
        "requests; as many as fill the span once if neither count nor size is given";
    READ: f64 = share() or "100%", "share of reads";
    OFFSET;
    GAP;
    SEED: u64 = int(0, u64::MAX) or "42", "seed";
}

pub const ENTRY: Generator = Generator {
    info: Info {
        name: "zipf-cdf",
        summary: "block of rank r with probability proportional to 1 / (r + 1)^alpha, block 0 the most popular; reproducible in any language",
        source: "nandscape; caches are compared on it",
        params: PARAMS,
    },
    build: |params, _| Ok(Box::new(ZipfCdf::new(params)?) as BoxReader),
};

/// Most ranks, whose table takes 8 B each.
const RANKS_MAX: u64 = 1 << 28;
/// The draw's upper bits that the guide distinguishes.
const GUIDE_BITS: u32 = 18;

struct ZipfCdf {
    cumulative: Vec<f64>,
    /// For each value of a draw's upper bits, the first rank that such a draw can give.
    guide: Vec<u32>,
    total: f64,
    draws: SplitMix64,
    /// Apart from the ranks, so that the share of reads does not change them.
    mix: SplitMix64,
    /// Draws below it are reads; 2^64 is always.
    read: u128,
    bs: u64,
    base: u64,
    gap_ns: u64,
    now_ns: u64,
    left: u64,
    info: WorkloadInfo,
}

impl ZipfCdf {
    fn new(params: &Params) -> Result<Self, ParamError> {
        let (ranks, count) = (params.get(RANKS), params.get(COUNT));
        if ranks == 0 || ranks > RANKS_MAX {
            return Err(params.error(RANKS, format!("1 to {RANKS_MAX}")));
        }
        if count == 0 {
            return Err(params.error(COUNT, "1 request or more"));
        }
        let (bs, base) = (params.get(BS), params.get(OFFSET));
        if ranks * bs > crate::gate::OFFSET_MAX - base.min(crate::gate::OFFSET_MAX) {
            return Err(params.error(RANKS, "an area that ends below 2^49 B"));
        }
        let gap = params.get(GAP);
        check_gap(params, gap.unwrap_or(0), count, 0)?;
        let cumulative = cumulative(ranks, params.get(ALPHA));
        let total = cumulative[cumulative.len() - 1];
        let first = |upper: u64| rank_of(&cumulative, scaled(upper << (53 - GUIDE_BITS), total)) as u32;
        let seed = params.get(SEED);
        Ok(Self {
            guide: (0..1 << GUIDE_BITS).map(first).collect(),
            total,
            draws: SplitMix64(seed),
            mix: SplitMix64(!seed),
            read: threshold(params.get(READ)),
            bs,
            base,
            gap_ns: gap.unwrap_or(0),
            now_ns: 0,
            left: count,
            info: info_of("zipf-cdf", count, gap.is_some()),
            cumulative,
        })
    }

    #[inline]
    fn rank(&mut self) -> u64 {
        let draw = self.draws.next() >> 11;
        let value = scaled(draw, self.total);
        let upper = (draw >> (53 - GUIDE_BITS)) as usize;
        let first = self.guide[upper] as usize;
        let end = self.guide.get(upper + 1).map_or(self.cumulative.len(), |next| *next as usize + 1);
        (first + rank_of(&self.cumulative[first..end], value)) as u64
    }
}

fn cumulative(ranks: u64, alpha: f64) -> Vec<f64> {
    let mut sum = 0.0;
    (1..=ranks)
        .map(|n| {
            let n = n as f64;
            #[expect(clippy::float_cmp, reason = "the default, for which no power is taken")]
            let power = if alpha == 1.0 { n } else { libm::pow(n, alpha) };
            sum += 1.0 / power;
            sum
        })
        .collect()
}

#[inline]
fn rank_of(cumulative: &[f64], value: f64) -> usize {
    cumulative.partition_point(|sum| *sum <= value)
}

#[inline]
fn scaled(draw: u64, total: f64) -> f64 {
    draw as f64 * (1.0 / (1u64 << 53) as f64) * total
}

/// Steele, Lea and Flood, OOPSLA 2014.
struct SplitMix64(u64);

impl SplitMix64 {
    #[inline]
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    }
}

impl Iterator for ZipfCdf {
    type Item = Result<IoRecord>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let offset = self.base + self.rank() * self.bs;
        let is_read = self.read >> 64 != 0 || u128::from(self.mix.next()) < self.read;
        let op = if is_read { TraceOp::Read } else { TraceOp::Write };
        let at = SimTime(self.now_ns);
        self.now_ns += self.gap_ns;
        Some(Ok(IoRecord { at, offset, len: self.bs, volume: 0, hint: 0, op }))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.left).ok();
        (left.unwrap_or(usize::MAX), left)
    }
}

impl TraceReader for ZipfCdf {
    fn info(&self) -> WorkloadInfo {
        let records = self.info.expected_records.unwrap_or(0) - self.left;
        WorkloadInfo { records, ..self.info.clone() }
    }
}

#[cfg(test)]
mod tests {
    use crate::{OpenOptions, Target, open};

    fn ranks(spec: &str) -> impl Iterator<Item = u64> {
        open(spec, &OpenOptions::default(), Target::NONE).unwrap().map(|record| record.unwrap().offset / 4096)
    }

    #[test]
    fn the_sequence_is_the_one_that_caches_are_compared_on() {
        let mut check = 0xcbf2_9ce4_8422_2325u64;
        let mut first = Vec::new();
        for rank in ranks("zipf-cdf:ranks=1000000,alpha=1,seed=42,count=20M") {
            if first.len() < 8 {
                first.push(rank);
            }
            check = (check ^ rank).wrapping_mul(0x0100_0000_01b3);
        }
        assert_eq!(first, [24243, 5, 30, 79, 0, 150_084, 12, 56729]);
        assert_eq!(check, 0x7eac_5cb5_0dbc_ca67);
    }

    #[test]
    fn the_mix_does_not_change_the_places() {
        let [reads, mixed] =
            ["100%", "30%"].map(|read| format!("zipf-cdf:ranks=1k,alpha=0.8,count=1k,read={read}"));
        assert!(ranks(&reads).eq(ranks(&mixed)));
        let records = open(&mixed, &OpenOptions::default(), Target::NONE).unwrap();
        let reads = records.filter(|r| r.as_ref().unwrap().op == nandscape_core::TraceOp::Read).count();
        assert!((250..350).contains(&reads), "{reads} reads of 1000");
    }
}
