//! Pages of the journal that are damaged while the power is off: of the newest checkpoint, of all of them, of
//! the records.

use nandscape_core::rng::{Xoshiro256PlusPlus, below, seeded};
use nandscape_core::{BlockState, Lpn, Ppn};
use nandscape_media::{Breakable as _, Medium as _, Nand};
use std::collections::BTreeMap;

// Kinds of pages, as docs/formats/journal.md has them.
const HEADER: u16 = 1;
const TABLE: u16 = 2;
const MAP: u16 = 3;
const END: u16 = 4;
const RECORDS: u16 = 5;
const HELD: u16 = 6;

/// A page of the journal.
#[derive(Clone, Copy, Debug)]
struct Meta {
    generation: u64,
    kind: u16,
    part: u32,
    page: Ppn,
}

fn pages(nand: &mut Nand) -> Vec<Meta> {
    let mut data = vec![0; nand.geometry().page_bytes as usize];
    let mut found = Vec::new();
    for page in (0..nand.geometry().pages()).map(Ppn) {
        let Ok(oob) = nand.read(page, Some(&mut data)) else { continue };
        if oob.lpn == Lpn::META {
            let part = u32::from_le_bytes(data[28..32].try_into().expect("four bytes"));
            found.push(Meta { generation: oob.seq >> 32, kind: oob.stream, part, page });
        }
    }
    found
}

/// Flips a bit of the data, or of the OOB.
fn spoil(nand: &mut Nand, page: Ppn, rng: &mut Xoshiro256PlusPlus) {
    let bits = 8 * u64::from(nand.geometry().page_bytes);
    // Logical page, stream and sequence number are 14 bytes.
    let bit = if below(rng, 3) == 0 { bits + below(rng, 8 * 14) } else { below(rng, bits) };
    assert!(nand.rot(page, bit), "bit {bit} of page {}", page.0);
}

fn spoil_one(nand: &mut Nand, pages: &[Meta], rng: &mut Xoshiro256PlusPlus) {
    if !pages.is_empty() {
        spoil(nand, pages[below(rng, pages.len() as u64) as usize].page, rng);
    }
}

/// Damages something. Of what is there twice one page at most, of the rest any.
pub fn damage(nand: &mut Nand, number: u64) {
    let mut rng = seeded(number);
    let all = pages(nand);
    let complete: Vec<u64> = all.iter().filter(|page| page.kind == END).map(|page| page.generation).collect();
    let Some(newest) = complete.iter().max().copied() else { return };
    let of = |generation: u64, kinds: &[u16]| -> Vec<Meta> {
        let is_one = |page: &&Meta| page.generation == generation && kinds.contains(&page.kind);
        all.iter().filter(is_one).copied().collect()
    };
    let spoil_all = |nand: &mut Nand, rng: &mut Xoshiro256PlusPlus| {
        all.iter()
            .filter(|page| matches!(page.kind, TABLE | MAP))
            .for_each(|page| spoil(nand, page.page, rng));
    };
    match below(&mut rng, 7) {
        0 => spoil_one(nand, &of(newest, &[HEADER, TABLE, MAP, END, HELD]), &mut rng),
        1 => of(newest, &[TABLE, MAP]).iter().for_each(|page| spoil(nand, page.page, &mut rng)),
        2 => {
            for generation in complete {
                spoil_one(nand, &of(generation, &[TABLE]), &mut rng);
            }
        }
        3 => spoil_one(nand, &of(newest, &[RECORDS]), &mut rng),
        4 => spoil_all(nand, &mut rng),
        way => {
            let mut twins: BTreeMap<(u16, u32), Vec<Meta>> = BTreeMap::new();
            for page in of(newest, &[HEADER, END, RECORDS, HELD]) {
                twins.entry((page.kind, page.part)).or_default().push(page);
            }
            for twins in twins.values().filter(|twins| twins.len() > 1) {
                spoil_one(nand, twins, &mut rng);
            }
            if way == 6 {
                spoil_all(nand, &mut rng);
            }
        }
    }
}
