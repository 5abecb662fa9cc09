//! A log-linear histogram: 16 equal steps in each power of two, so that a value is known to 1/16.

use serde::Serialize;

const STEPS: u64 = 16;
const STEP_BITS: u32 = STEPS.trailing_zeros();
const BUCKETS: usize = ((64 - STEP_BITS + 1) as usize) * STEPS as usize;

/// Counts of values from 0 to 2^64.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Box<[u64; BUCKETS]>,
    /// Largest value seen in each bucket, so that a load of few distinct sizes is reported exactly.
    largest: Box<[u64; BUCKETS]>,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            counts: Box::new([0; BUCKETS]),
            largest: Box::new([0; BUCKETS]),
            count: 0,
            sum: 0,
            min: u64::MAX,
            max: 0,
        }
    }
}

/// A distribution as it is reported.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Distribution {
    /// Values.
    pub count: u64,
    /// Smallest, exact; 0 if there are none.
    pub min: u64,
    /// Largest, exact.
    pub max: u64,
    /// Mean, exact.
    pub mean: f64,
    /// Median: the largest value of its bucket, so at most 1/16 too high and exact where the bucket holds
    /// one value; the further percentiles likewise.
    pub p50: u64,
    /// 90 % lie at or below.
    pub p90: u64,
    /// 99 % lie at or below.
    pub p99: u64,
    /// 99.9 % lie at or below.
    pub p99_9: u64,
    /// (largest value seen in the bucket, values in it), buckets with none left out.
    pub buckets: Vec<(u64, u64)>,
}

/// Bucket of a value: exact below 16, then 16 steps for each power of two.
fn bucket(value: u64) -> usize {
    if value < STEPS {
        return value as usize;
    }
    let shift = value.ilog2() - STEP_BITS;
    (u64::from(shift + 1) * STEPS + ((value >> shift) - STEPS)) as usize
}

/// Largest value that a bucket can hold.
#[cfg(test)]
fn highest(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < STEPS {
        return bucket;
    }
    let shift = bucket / STEPS - 1;
    let lowest = u128::from(STEPS + bucket % STEPS) << shift;
    (lowest + (1u128 << shift) - 1) as u64
}

impl Histogram {
    /// Counts one value.
    pub fn add(&mut self, value: u64) {
        let bucket = bucket(value);
        self.counts[bucket] += 1;
        self.largest[bucket] = self.largest[bucket].max(value);
        self.count += 1;
        self.sum += u128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Adds the values of another.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts.iter()) {
            *mine += theirs;
        }
        for (mine, theirs) in self.largest.iter_mut().zip(other.largest.iter()) {
            *mine = (*mine).max(*theirs);
        }
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// The value that a share of all values does not exceed, as the largest value of its bucket.
    fn quantile(&self, share: f64) -> u64 {
        let wanted = ((self.count as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return self.largest[index];
            }
        }
        self.max
    }

    /// For the report.
    pub fn distribution(&self) -> Distribution {
        if self.count == 0 {
            return Distribution::default();
        }
        Distribution {
            count: self.count,
            min: self.min,
            max: self.max,
            mean: self.sum as f64 / self.count as f64,
            p50: self.quantile(0.5),
            p90: self.quantile(0.9),
            p99: self.quantile(0.99),
            p99_9: self.quantile(0.999),
            buckets: (0..BUCKETS)
                .filter(|&b| self.counts[b] > 0)
                .map(|b| (self.largest[b], self.counts[b]))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_in_order_and_hold_their_values() {
        let mut values: Vec<u64> =
            (0..64).flat_map(|bit| [1u64 << bit, (1u64 << bit) - 1, (1u64 << bit) + 1]).collect();
        values.extend([u64::MAX, u64::MAX - 1]);
        for value in values {
            let index = bucket(value);
            assert!(index < BUCKETS && highest(index) >= value, "{value}");
            assert!(highest(index) - value <= value / STEPS, "{value} in bucket up to {}", highest(index));
            assert!(index == 0 || highest(index - 1) < value, "{value}");
        }
    }

    #[test]
    fn a_load_of_one_size_is_reported_exactly() {
        let mut histogram = Histogram::default();
        (0..99).for_each(|_| histogram.add(512 << 10));
        histogram.add(576 << 10);
        let d = histogram.distribution();
        assert_eq!((d.p50, d.p99, d.max), (512 << 10, 512 << 10, 576 << 10));
    }

    #[test]
    fn quantiles_of_a_known_distribution() {
        let mut histogram = Histogram::default();
        (1..=1000).for_each(|v| histogram.add(v));
        let d = histogram.distribution();
        assert_eq!((d.count, d.min, d.max), (1000, 1, 1000));
        assert!((d.mean - 500.5).abs() < 1e-9);
        assert!((500..=531).contains(&d.p50) && (990..=1000).contains(&d.p99), "{d:?}");
        assert_eq!(d.buckets.iter().map(|b| b.1).sum::<u64>(), 1000);
    }
}
