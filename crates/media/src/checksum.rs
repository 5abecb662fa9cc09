//! Checksums of what a page holds. A page is divided into units with a checksum each, so that a read of a
//! part touches no more than that part; the OOB has one of its own. All are CRC-32C, which finds every flip
//! of one bit, of two, and of any odd number.

use nandscape_core::{Geometry, OutOfBand, Ppn};
use std::ops::Range;

/// The checksum of a run of bytes.
#[inline]
pub fn sum(bytes: &[u8]) -> u32 {
    if is_one_run_faster() { crc32c::crc32c(bytes) } else { crc_fast::crc32_iscsi(bytes) }
}

/// Without vectors of 512 bits, `crc-fast` reads several runs of a page side by side, which the processor
/// does not load ahead: for bytes far away it takes twice the time of `crc32c` (169 and 87 us a MiB on a
/// Zen 3). With them it is three times as fast.
#[cfg(target_arch = "x86_64")]
#[inline]
fn is_one_run_faster() -> bool {
    !(is_x86_feature_detected!("avx512vl") && is_x86_feature_detected!("vpclmulqdq"))
}

#[cfg(not(target_arch = "x86_64"))]
const fn is_one_run_faster() -> bool {
    false
}

/// The most bytes that an OOB is stored in.
pub const MOST_OOB: usize = 64;

/// The checksum of a page's OOB, bound to the page so that the OOB of another is not taken for it.
#[inline]
pub fn oob_sum<O: OutOfBand>(page: Ppn, oob: &O) -> u32 {
    let mut bytes = [0; MOST_OOB + 4];
    oob.encode(&mut bytes[..O::BYTES]);
    bytes[O::BYTES..O::BYTES + 4].copy_from_slice(&page.0.to_le_bytes());
    sum(&bytes[..O::BYTES + 4])
}

/// How a page is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Units {
    /// Bytes of a unit.
    pub bytes: u32,
    /// Units of a page.
    pub count: u32,
}

impl Units {
    /// Units of 4 KiB, doubled until a page has at most 64; a page that is no multiple of that is one unit.
    pub const fn new(geometry: &Geometry) -> Self {
        let page = geometry.page_bytes;
        let mut bytes = 4096;
        while page / bytes > 64 {
            bytes *= 2;
        }
        if page.is_multiple_of(bytes) {
            Self { bytes, count: page / bytes }
        } else {
            Self { bytes: page, count: 1 }
        }
    }

    /// The units that some bytes of a page lie in.
    pub const fn covering(&self, start: u32, len: u32) -> Range<u32> {
        start / self.bytes..(start + len).div_ceil(self.bytes)
    }

    /// The bytes of a page that a unit covers.
    pub const fn range(&self, unit: u32) -> Range<usize> {
        let start = unit as usize * self.bytes as usize;
        start..start + self.bytes as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_core::{Lpn, Oob};

    #[test]
    fn the_polynomial_is_that_of_the_standard() {
        // The check value of CRC-32C in the catalogue of parametrised CRC algorithms.
        assert_eq!(sum(b"123456789"), 0xE306_9283);
    }

    #[test]
    fn it_is_the_same_on_every_processor() {
        let bytes: Vec<u8> = (0..9000_u32).map(|byte| (byte * byte / 7) as u8).collect();
        for len in (0..300).chain([511, 512, 1023, 4095, 4096, 4097, 8192, 8993]) {
            let bytes = &bytes[len % 7..][..len];
            assert_eq!(crc32c::crc32c(bytes), crc_fast::crc32_iscsi(bytes), "{len} bytes");
        }
    }

    #[test]
    fn units_cover_a_page_of_any_size() {
        let units = |page_bytes| {
            let geometry = Geometry {
                channels: 1,
                dies_per_channel: 1,
                planes_per_die: 1,
                blocks_per_plane: 1,
                pages_per_block: 1,
                page_bytes,
                sector_bytes: page_bytes,
                oob_bytes: 0,
            };
            Units::new(&geometry.checked().unwrap())
        };
        assert_eq!(units(512), Units { bytes: 512, count: 1 });
        assert_eq!(units(4096), Units { bytes: 4096, count: 1 });
        assert_eq!(units(5120), Units { bytes: 5120, count: 1 });
        assert_eq!(units(16384), Units { bytes: 4096, count: 4 });
        assert_eq!(units(1 << 24), Units { bytes: 1 << 18, count: 64 });
        for page in (512..200_000).step_by(512) {
            let units = units(page);
            assert_eq!(units.bytes * units.count, page);
            assert!(units.count <= 64);
            assert_eq!(units.covering(0, page), 0..units.count);
        }
        assert_eq!(units(16384).covering(4095, 2), 0..2);
        assert_eq!(units(16384).covering(8192, 4096), 2..3);
    }

    #[test]
    fn the_oob_of_another_page_does_not_pass() {
        let oob = Oob { lpn: Lpn(7), stream: 1, seq: 9 };
        assert_ne!(oob_sum(Ppn(1), &oob), oob_sum(Ppn(2), &oob));
        assert_ne!(oob_sum(Ppn(1), &oob), oob_sum(Ppn(1), &Oob { stream: 2, ..oob }));
    }
}
