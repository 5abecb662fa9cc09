//! Where a logical page may be written: anywhere, or on a plane that its number fixes.
//!
//! The lookup is made for every page, so the choice is an enum and not a trait object.

use nandscape_core::{Geometry, Info, Lpn, keys};

keys! { STATIC:
    pub ALLOCATION_ORDER: String = text() or "cwdp",
        "static allocation: a permutation of c (channel), w (die of the channel), d (always 1 here), p \
         (plane), fastest first";
}

/// Every placement.
pub static PLACEMENTS: &[Info] = &[
    Info {
        name: "dynamic",
        summary: "any die with room, round robin; one collection domain",
        source: "",
        params: &[],
    },
    Info {
        name: "static",
        summary: "striped over planes by logical page number; each plane is written and collected by itself",
        source: "MQSim, FAST 2018, section 4.2.1 (page allocation schemes)",
        params: STATIC,
    },
];

/// Where logical pages may be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Anywhere.
    Dynamic,
    /// On the plane that the page number gives.
    Static(Stripe),
}

impl Placement {
    /// The collection domain of a page.
    #[inline]
    pub fn domain(&self, lpn: Lpn) -> usize {
        match self {
            Self::Dynamic => 0,
            Self::Static(stripe) => stripe.plane(lpn) as usize,
        }
    }
}

/// Static striping: logical page to plane. Planes count `unit * planes_per_die + plane`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stripe {
    /// `(count, stride)`, fastest first: `page % count` is the next digit, worth `stride` planes.
    digits: [(u32, u32); 3],
    planes: u32,
}

impl Stripe {
    /// Striping in an order such as `cwdp`; `None` if it is not a permutation of these letters.
    pub fn new(geometry: &Geometry, order: &str) -> Option<Self> {
        let mut sorted: Vec<u8> = order.bytes().collect();
        sorted.sort_unstable();
        if sorted != *b"cdpw" {
            return None;
        }
        let mut digits = [(1, 0); 3];
        // MQSim has dies inside chips; here a chip and its dies are one level (w), so d has a single value
        // and drops out.
        for (slot, letter) in digits.iter_mut().zip(order.bytes().filter(|letter| *letter != b'd')) {
            *slot = match letter {
                b'c' => (geometry.channels, geometry.planes_per_die),
                b'w' => (geometry.dies_per_channel, geometry.channels * geometry.planes_per_die),
                _ => (geometry.planes_per_die, 1),
            };
        }
        Some(Self { digits, planes: geometry.planes() })
    }

    /// The plane of a logical page.
    #[inline]
    pub fn plane(&self, lpn: Lpn) -> u32 {
        let mut rest = lpn.0;
        let mut plane = 0;
        for (count, stride) in self.digits {
            plane += rest % count * stride;
            rest /= count;
        }
        plane
    }

    /// How many of `logical_pages` pages fall on the fullest plane.
    pub const fn pages_on_fullest_plane(&self, logical_pages: u64) -> u64 {
        logical_pages.div_ceil(self.planes as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn geometry() -> Geometry {
        Geometry {
            channels: 4,
            dies_per_channel: 3,
            planes_per_die: 2,
            blocks_per_plane: 8,
            pages_per_block: 4,
            page_bytes: 4096,
            sector_bytes: 4096,
            oob_bytes: 0,
        }
    }

    #[test]
    fn cwdp_walks_channels_then_dies_then_planes() {
        let stripe = Stripe::new(&geometry(), "cwdp").unwrap();
        let planes: Vec<u32> = (0..13).map(|lpn| stripe.plane(Lpn(lpn))).collect();
        // Plane 2u is plane 0 of unit u; units 0..12 are channel-fastest.
        assert_eq!(planes[..12], (0..12).map(|u| 2 * u).collect::<Vec<_>>());
        assert_eq!(planes[12], 1);
    }

    #[test]
    fn every_order_spreads_pages_evenly() {
        for order in ["cwdp", "pdwc", "wcpd", "dpcw"] {
            let stripe = Stripe::new(&geometry(), order).unwrap();
            let mut counts = [0; 24];
            for lpn in 0..48 {
                counts[stripe.plane(Lpn(lpn)) as usize] += 1;
            }
            assert_eq!(counts, [2; 24], "{order}");
        }
        for wrong in ["", "cwd", "cwdd", "cwdpp", "abcd"] {
            assert_eq!(Stripe::new(&geometry(), wrong), None, "{wrong}");
        }
    }
}
