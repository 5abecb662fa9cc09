//! How requests arrive at their time stamps, and how far behind they are issued.

/// Counts of arrivals.
#[derive(Clone, Debug, Default)]
pub struct Arrivals {
    requests: u64,
    stamps: u64,
    last_ns: u64,
    /// All stamps are multiples of it; 0 while all are 0.
    step_ns: u64,
    crowded: u64,
    most: usize,
    late: u64,
    latest_ns: u64,
}

impl Arrivals {
    /// A request that finds more than so many others under way finds a crowd: Linux keeps at most 1023 in a
    /// queue of a drive.
    pub const CROWD: usize = 1024;

    /// A request arrives, so long after the first, with so many others under way.
    #[inline]
    pub fn arrive(&mut self, at_ns: u64, under_way: usize) {
        if at_ns != self.last_ns || self.requests == 0 {
            self.stamps += 1;
            if self.step_ns != 1 && (self.step_ns == 0 || !at_ns.is_multiple_of(self.step_ns)) {
                self.step_ns = common_divisor(at_ns, self.step_ns);
            }
        }
        self.last_ns = at_ns;
        self.requests += 1;
        self.crowded += u64::from(under_way > Self::CROWD);
        self.most = self.most.max(under_way);
    }

    /// The request that arrived last is issued so long after its time; 0 if on time.
    #[inline]
    pub fn issue(&mut self, late_ns: u64) {
        self.late += u64::from(late_ns > 0);
        self.latest_ns = self.latest_ns.max(late_ns);
    }

    /// Share of requests that were issued after their time.
    pub fn late_share(&self) -> f64 {
        self.late as f64 / self.requests.max(1) as f64
    }

    /// The longest time that one was late, in nanoseconds.
    pub const fn latest_ns(&self) -> u64 {
        self.latest_ns
    }

    /// The largest step of which all stamps are multiples, in nanoseconds; 0 if all are the same.
    pub const fn step_ns(&self) -> u64 {
        self.step_ns
    }

    /// Requests for each time stamp, in the mean.
    pub fn requests_per_stamp(&self) -> f64 {
        self.requests as f64 / self.stamps.max(1) as f64
    }

    /// Share of requests that found a crowd.
    pub fn crowded_share(&self) -> f64 {
        self.crowded as f64 / self.requests.max(1) as f64
    }

    /// Most requests that were under way when another one arrived.
    pub const fn most(&self) -> usize {
        self.most
    }

    /// From the first to the last arrival, in nanoseconds.
    pub const fn span_ns(&self) -> u64 {
        self.last_ns
    }
}

const fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_step_is_what_all_stamps_are_multiples_of() {
        let mut arrivals = Arrivals::default();
        for at in [0, 0, 3_000, 3_000, 9_000, 15_000] {
            arrivals.arrive(at, 2_000);
        }
        assert_eq!((arrivals.step_ns(), arrivals.span_ns(), arrivals.most()), (3_000, 15_000, 2_000));
        assert!((arrivals.requests_per_stamp() - 1.5).abs() < 1e-9);
        assert!((arrivals.crowded_share() - 1.0).abs() < 1e-9);
        arrivals.arrive(15_001, 0);
        assert_eq!(arrivals.step_ns(), 1);
        assert_eq!(Arrivals::default().step_ns(), 0);
    }
}
