//! A small logarithmic histogram for the series: 16 buckets an octave, so a quantile is within 6.25 % below
//! the true value. Cheap to keep by the thousand and to merge, which is what the series needs; the run's own
//! percentiles come from a finer one.

/// Buckets per octave.
const SUB: u32 = 16;
/// Values below this are counted exactly.
const LINEAR: u64 = SUB as u64;
/// Octaves above the linear part: 2^4 to 2^48 ns (78 hours); longer ones share the last bucket.
const OCTAVES: usize = 44;
const BUCKETS: usize = LINEAR as usize + OCTAVES * SUB as usize;

/// Counts of latencies in nanoseconds.
#[derive(Clone, Debug)]
pub struct LogHistogram {
    counts: Box<[u32]>,
    total: u64,
}

impl Default for LogHistogram {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS].into_boxed_slice(), total: 0 }
    }
}

fn bucket(ns: u64) -> usize {
    if ns < LINEAR {
        return ns as usize;
    }
    let octave = ns.ilog2() - SUB.ilog2();
    let sub = (ns >> octave) - u64::from(SUB);
    ((octave * SUB) as usize + LINEAR as usize + sub as usize).min(BUCKETS - 1)
}

fn lower_bound(bucket: usize) -> u64 {
    if bucket < LINEAR as usize {
        return bucket as u64;
    }
    let rest = bucket - LINEAR as usize;
    let (octave, sub) = (rest / SUB as usize, rest % SUB as usize);
    (u64::from(SUB) + sub as u64) << octave
}

impl LogHistogram {
    /// Counts one latency.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.counts[bucket(ns)] += 1;
        self.total += 1;
    }

    /// Adds another histogram.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.total += other.total;
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        if self.total > 0 {
            self.counts.fill(0);
            self.total = 0;
        }
    }

    /// The buckets that are not empty, as bucket number and count, in order.
    pub fn sparse(&self) -> Box<[(u16, u32)]> {
        let filled = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        filled.map(|(bucket, count)| (bucket as u16, *count)).collect()
    }

    /// Adds what [`Self::sparse`] gave.
    pub fn add_sparse(&mut self, buckets: &[(u16, u32)]) {
        for (bucket, count) in buckets {
            self.counts[usize::from(*bucket)] += count;
            self.total += u64::from(*count);
        }
    }

    /// Number of latencies counted.
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// Lower bound of the bucket that holds quantile `q` (0 to 1), 0 if empty.
    pub fn quantile(&self, q: f64) -> u64 {
        let rank = ((self.total as f64 * q).ceil() as u64).clamp(1, self.total.max(1));
        let mut seen = 0;
        for (i, count) in self.counts.iter().enumerate() {
            seen += u64::from(*count);
            if seen >= rank {
                return lower_bound(i);
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_a_sixteenth() {
        let mut histogram = LogHistogram::default();
        for ns in 1..=100_000u64 {
            histogram.record(ns);
        }
        for q in [0.01, 0.5, 0.9, 0.999, 1.0] {
            let exact = q * 100_000.0;
            let got = histogram.quantile(q) as f64;
            assert!(got <= exact && got >= exact * (1.0 - 1.0 / 16.0) - 1.0, "{q}: {got} for {exact}");
        }
    }

    #[test]
    fn buckets_are_monotonic_and_absurd_values_share_the_last() {
        for shift in 0..63 {
            assert!(bucket(1 << shift) < bucket(1 << (shift + 1)) || bucket(1 << shift) == BUCKETS - 1);
            assert!(lower_bound(bucket(1 << shift)) <= 1 << shift);
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }
}
