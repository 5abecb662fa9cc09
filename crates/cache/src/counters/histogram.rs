//! Histograms of fixed steps, cheap enough for every request.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

macro_rules! histogram {
    ($(#[doc = $doc:literal])+ $name:ident, $len:expr) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name([u64; $len]);

        impl Default for $name {
            fn default() -> Self {
                Self([0; $len])
            }
        }

        impl $name {
            /// Steps that have counts: lower or exact bound as in the type's description, and count,
            /// ascending.
            pub fn steps(&self) -> impl Iterator<Item = (u64, u64)> {
                self.0.iter().enumerate().filter(|(_, count)| **count > 0).map(|(i, count)| (i as u64 * Self::STEP, *count))
            }

            /// Sum of all counts.
            pub fn total(&self) -> u64 {
                self.0.iter().sum()
            }

            pub(super) fn each(&mut self, other: &Self, change: fn(u64, u64) -> u64) {
                for (mine, theirs) in self.0.iter_mut().zip(other.0) {
                    *mine = change(*mine, theirs);
                }
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_map(self.steps())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let mut result = Self::default();
                for (bound, count) in BTreeMap::<u64, u64>::deserialize(deserializer)? {
                    let index = usize::try_from(bound / Self::STEP).unwrap_or(usize::MAX);
                    if bound % Self::STEP != 0 || index >= $len {
                        let last = ($len - 1) * Self::STEP;
                        return Err(D::Error::custom(format!(
                            "histogram step {bound}: expected a multiple of {} up to {last}",
                            Self::STEP
                        )));
                    }
                    result.0[index] = count;
                }
                Ok(result)
            }
        }
    };
}

histogram!(
    /// Sizes in steps of 512 bytes, up to 512 KiB; what is larger counts as 512 KiB. A size that is no
    /// multiple counts for the next smaller one. Its text form maps bytes to counts and leaves out what is 0.
    SizeHistogram,
    1025
);

impl SizeHistogram {
    /// Bytes from one step to the next.
    pub const STEP: u64 = 512;

    /// Counts a size in bytes.
    #[inline]
    pub const fn record(&mut self, bytes: u64) {
        let step = bytes / Self::STEP;
        self.0[if step < 1024 { step as usize } else { 1024 }] += 1;
    }
}

histogram!(
    /// Latencies in steps of 250 us (from 0 to less than 250 us, ...), up to 10 ms; what is longer counts as
    /// 10 ms. Its text form maps nanoseconds to counts and leaves out what is 0.
    LatencyHistogram,
    41
);

impl LatencyHistogram {
    /// Nanoseconds from one step to the next.
    pub const STEP: u64 = 250_000;

    /// Counts a latency in nanoseconds.
    #[inline]
    pub const fn record(&mut self, ns: u64) {
        let step = ns / Self::STEP;
        self.0[if step < 40 { step as usize } else { 40 }] += 1;
    }
}
