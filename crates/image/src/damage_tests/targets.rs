//! What can be damaged: every field of every structure of an image.

use super::base::{Base, End, PAGE};
use crate::layout::CONFIG;
use crate::record::{BlockWord, Entry, Kind, Record};
use nandscape_core::rng::{Xoshiro256PlusPlus, below};
use nandscape_core::{BlockId, Lpn, Oob, Ppn};
use std::ops::Range;

/// A structure of the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Structure {
    Header,
    Config,
    State,
    BlockWord,
    /// Record of a programmed page.
    Record,
    /// Record of a page of the journal.
    JournalRecord,
    /// Record of an erased page.
    ErasedRecord,
    /// Both copies of the record of a programmed page, or of a page of the journal.
    BothRecords,
    /// Bytes of a page of the host.
    Data,
    JournalHeader,
    JournalTable,
    JournalMap,
    JournalEnd,
    JournalRecords,
    JournalHeld,
}

impl Structure {
    pub const ALL: [Self; 15] = [
        Self::Header,
        Self::Config,
        Self::State,
        Self::BlockWord,
        Self::Record,
        Self::JournalRecord,
        Self::ErasedRecord,
        Self::BothRecords,
        Self::Data,
        Self::JournalHeader,
        Self::JournalTable,
        Self::JournalMap,
        Self::JournalEnd,
        Self::JournalRecords,
        Self::JournalHeld,
    ];

    /// Kind of the page of the journal, as docs/formats/journal.md has it.
    fn kind(self) -> Option<u16> {
        match self {
            Self::JournalHeader => Some(1),
            Self::JournalTable => Some(2),
            Self::JournalMap => Some(3),
            Self::JournalEnd => Some(4),
            Self::JournalRecords => Some(5),
            Self::JournalHeld => Some(6),
            _ => None,
        }
    }
}

/// A field of a structure, in bytes of the file.
#[derive(Clone, Debug)]
pub struct Field {
    pub structure: Structure,
    pub bytes: Range<u64>,
    /// From there to the same field of the second copy, which is to be damaged too.
    pub to_second: Option<u64>,
}

const HEADER: [u64; 27] = [
    0, 16, 20, 24, 40, 44, 48, 52, 56, 60, 64, 68, 72, 76, 80, 84, 88, 92, 96, 100, 104, 112, 120, 128, 136,
    144, 160,
];
const STATE_FIELDS: [u64; 6] = [0, 4, 8, 12, 16, 32];
const RECORD_FIELDS: [u64; 10] = [0, 4, 6, 7, 8, 16, 20, 24, 28, 32];
const JOURNAL_FIELDS: [u64; 11] = [0, 8, 10, 12, 16, 24, 28, 32, 40, 48, 48 + 64];

/// One of the fields that begin at these offsets.
fn one_of(begins: &[u64], rng: &mut Xoshiro256PlusPlus) -> Range<u64> {
    let index = below(rng, begins.len() as u64 - 1) as usize;
    begins[index]..begins[index + 1]
}

fn shifted(field: Range<u64>, by: u64) -> Range<u64> {
    field.start + by..field.end + by
}

/// Pages of an image by what their records say.
pub struct Pages {
    programmed: Vec<Ppn>,
    journal: Vec<(Ppn, u16)>,
    erased: Vec<Ppn>,
    /// Host pages whose bytes no failure of the machine explains away.
    safe_data: Vec<Ppn>,
}

impl Pages {
    /// Pages of the journal.
    pub fn journal(&self) -> impl Iterator<Item = Ppn> {
        self.journal.iter().map(|(page, _)| *page)
    }

    pub fn of(base: &Base) -> Self {
        let layout = base.header.layout();
        let geometry = base.header.geometry;
        let mut pages =
            Self { programmed: Vec::new(), journal: Vec::new(), erased: Vec::new(), safe_data: Vec::new() };
        let mut data = Vec::new();
        for page in (0..geometry.pages()).map(Ppn) {
            let block = geometry.block_of(page);
            let at = layout.block(block) as usize + if base.end == End::Failed { 0 } else { 8 };
            let which = u32::from(base.end != End::Failed);
            let word = BlockWord::decode(&base.bytes[at..at + 8], block, which).unwrap();
            let place = &base.bytes[layout.record(page) as usize..][..layout.record_bytes as usize];
            match Record::decode(place, page) {
                Entry::Record(record) if record.generation == word.erases => {
                    let oob = Record::oob::<Oob>(place, layout.oob_rest);
                    if oob.lpn == Lpn::META {
                        pages.journal.push((page, oob.stream));
                    } else {
                        pages.programmed.push(page);
                        if record.kind == Kind::Data {
                            data.push((page, record.epoch));
                        }
                    }
                }
                _ => pages.erased.push(page),
            }
        }
        let last = data.iter().map(|(_, epoch)| *epoch).max().unwrap_or(0);
        let safe = data.into_iter().filter(|(_, epoch)| base.end != End::Failed || *epoch < last);
        pages.safe_data = safe.map(|(page, _)| page).collect();
        pages
    }

    /// A field of a structure; `None` where the image has no such structure.
    pub fn draw(&self, base: &Base, structure: Structure, rng: &mut Xoshiro256PlusPlus) -> Option<Field> {
        let layout = base.header.layout();
        let pick = |pages: &[Ppn], rng: &mut Xoshiro256PlusPlus| {
            (!pages.is_empty()).then(|| pages[below(rng, pages.len() as u64) as usize])
        };
        let bytes = match structure {
            Structure::Header => one_of(&HEADER, rng),
            Structure::Config => CONFIG..CONFIG + base.header.config.len() as u64,
            Structure::State => {
                let states = layout.states();
                let state = states[below(rng, states.len() as u64) as usize];
                shifted(one_of(&STATE_FIELDS, rng), state)
            }
            Structure::BlockWord => {
                let block = BlockId(below(rng, u64::from(base.header.geometry.blocks())) as u32);
                let copy = layout.block(block) + below(rng, 2) * layout.to_second_block;
                shifted(one_of(&[0, 4, 8, 12, 16], rng), copy)
            }
            Structure::Record
            | Structure::JournalRecord
            | Structure::ErasedRecord
            | Structure::BothRecords => {
                let journal: Vec<Ppn> = self.journal.iter().map(|(page, _)| *page).collect();
                let page = match structure {
                    Structure::Record => pick(&self.programmed, rng)?,
                    Structure::JournalRecord => pick(&journal, rng)?,
                    Structure::ErasedRecord => pick(&self.erased, rng)?,
                    _ => pick(&[&self.programmed[..], &journal[..]].concat(), rng)?,
                };
                let is_second = u64::from(structure != Structure::BothRecords && below(rng, 2) == 1);
                let copy = layout.record(page) + is_second * layout.to_second_record;
                shifted(one_of(&RECORD_FIELDS, rng), copy)
            }
            Structure::Data => {
                let at = layout.page(pick(&self.safe_data, rng)?);
                at..at + PAGE as u64
            }
            _ => {
                let kind = structure.kind()?;
                let pages: Vec<Ppn> =
                    self.journal.iter().filter(|(_, of)| *of == kind).map(|(page, _)| *page).collect();
                shifted(one_of(&JOURNAL_FIELDS, rng), layout.page(pick(&pages, rng)?))
            }
        };
        let to_second = (structure == Structure::BothRecords).then_some(layout.to_second_record);
        Some(Field { structure, bytes, to_second })
    }
}
