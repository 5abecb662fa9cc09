//! The table line of the device mapper from which FIU's dm-cache made a cache.
//!
//! The original reads `0 SECTORS cache ORIGIN CACHE PERSIST BLOCK_SECTORS BLOCKS WAYS WRITE_BACK`; everything
//! behind CACHE may be left out. A backslash takes the next character of a path as it is, as in the kernel.

use super::Facts;
use nandscape_core::ParamError;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// What the fields are called, in the order of the line.
const FIELDS: [&str; 10] = [
    "start",
    "sectors",
    "target",
    "origin",
    "cache device",
    "persist",
    "block size in sectors",
    "blocks",
    "associativity",
    "write-back",
];
const SECTOR: u32 = 512;
/// The largest block of the preset, 1 MiB.
const MOST_SECTORS: u32 = 2048;
/// Defaults of the original (`DEFAULT_BLOCK_SIZE` and others of dm-cache.c).
const BLOCK_SECTORS: u32 = 8;
const BLOCKS: u32 = 65_536;
const WAYS: u32 = 1024;

/// Places of fields, counted from 1 as they are in errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum TableField {
    Start = 1,
    Sectors,
    Target,
    Origin,
    CacheDevice,
    Persist,
    BlockSectors,
    Blocks,
    Ways,
    WriteBack,
}

impl TableField {
    /// The error for a wrong value of this field.
    pub fn wrong(self, value: impl fmt::Display, expected: impl Into<String>) -> ParamError {
        ParamError::bad(self.to_string(), value, expected)
    }
}

impl fmt::Display for TableField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = *self as usize;
        write!(f, "table field {place} ({})", FIELDS[place - 1])
    }
}

/// A line, checked by itself: whether it fits its devices shows when they are opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableLine {
    /// Sectors of 512 bytes of the origin.
    pub sectors: u64,
    /// The disk.
    pub origin: String,
    /// The fast file or device.
    pub cache: String,
    /// Whether the cache that is on the cache device is taken; otherwise a new one is made.
    pub is_persistent: bool,
    /// Cache block in sectors; `None`: left out.
    pub block_sectors: Option<u32>,
    /// Slots; `None`: left out.
    pub blocks: Option<u32>,
    /// Slots of a set; `None`: left out.
    pub ways: Option<u32>,
    /// Mode; `None`: left out.
    pub is_write_back: Option<bool>,
}

impl TableLine {
    /// Reads a line.
    ///
    /// # Errors
    ///
    /// The field that is wrong, its value and what was expected.
    pub fn parse(line: &str) -> Result<Self, ParamError> {
        use TableField::{
            BlockSectors, Blocks, CacheDevice, Origin, Persist, Sectors, Start, Target, Ways, WriteBack,
        };
        let words = words(line);
        if let Some(word) = words.get(FIELDS.len()) {
            let key = format!("table field {}", FIELDS.len() + 1);
            return Err(ParamError::bad(
                key,
                word,
                format!("the end of the line after {} fields", FIELDS.len()),
            ));
        }
        let word = |field: TableField| words.get(field as usize - 1).map(String::as_str);
        let given = |field: TableField, expected: &str| {
            word(field).ok_or_else(|| field.wrong("", format!("{expected}, and the line ends before it")))
        };
        for (field, expected) in [(Start, "0"), (Target, "cache")] {
            let word = given(field, expected)?;
            if word != expected {
                return Err(field.wrong(word, expected));
            }
        }
        let sectors = number(Sectors, given(Sectors, "sectors of the origin")?, 1..=u64::MAX / 512)?;
        let small = |field: TableField, most: u32| {
            let word = word(field).map(|word| number(field, word, 1..=u64::from(most)));
            word.transpose().map(|number| number.map(|number| number as u32))
        };
        let flag = |field: TableField| {
            let read = |word| match word {
                "0" => Ok(false),
                "1" => Ok(true),
                _ => Err(field.wrong(word, "0 or 1")),
            };
            word(field).map(read).transpose()
        };
        let line = Self {
            sectors,
            origin: given(Origin, "the path of the disk")?.to_owned(),
            cache: given(CacheDevice, "the path of the cache")?.to_owned(),
            is_persistent: flag(Persist)?.unwrap_or(false),
            block_sectors: small(BlockSectors, MOST_SECTORS)?,
            blocks: small(Blocks, u32::MAX)?,
            ways: small(Ways, 1 << 30)?,
            is_write_back: flag(WriteBack)?,
        };
        if !line.block_sectors().is_power_of_two() {
            let expected = format!("a power of two from 1 to {MOST_SECTORS}");
            return Err(BlockSectors.wrong(line.block_sectors(), expected));
        }
        if !line.is_persistent && !line.blocks().is_multiple_of(line.ways()) {
            // The default associativity is not what was typed; the blocks are.
            let (blocks, ways) = (line.blocks(), line.ways());
            return Err(match line.ways {
                Some(_) => Ways.wrong(ways, format!("a number that divides {blocks} blocks into sets")),
                None => Blocks.wrong(blocks, format!("a multiple of the default associativity, {ways}")),
            });
        }
        Ok(line)
    }

    /// The line that makes such a cache; `None` without a disk or slots. A design that this one cannot be is
    /// described as `table` describes it.
    pub(super) fn of(facts: &Facts<'_>) -> Option<Self> {
        let blocks = u32::try_from(facts.gauges.slots).ok().filter(|blocks| *blocks > 0)?;
        let has_disk = !facts.disk_name.is_empty() && facts.block_bytes >= SECTOR;
        has_disk.then(|| Self {
            sectors: facts.volume_bytes / u64::from(SECTOR),
            origin: facts.disk_name.to_owned(),
            cache: facts.fast_name.to_owned(),
            is_persistent: false,
            block_sectors: Some(facts.block_bytes / SECTOR),
            blocks: Some(blocks),
            ways: Some(if facts.ways == 0 { blocks } else { facts.ways }),
            is_write_back: Some(facts.mode.makes_dirty()),
        })
    }

    /// Cache block in sectors.
    pub fn block_sectors(&self) -> u32 {
        self.block_sectors.unwrap_or(BLOCK_SECTORS)
    }

    /// Slots.
    pub fn blocks(&self) -> u32 {
        self.blocks.unwrap_or(BLOCKS)
    }

    /// Slots of a set.
    pub fn ways(&self) -> u32 {
        self.ways.unwrap_or(WAYS)
    }

    /// Whether writes make blocks dirty.
    pub fn is_write_back(&self) -> bool {
        self.is_write_back.unwrap_or(false)
    }

    /// The keys of the design that it means, for [`crate::Design::parse`].
    pub fn typed(&self) -> BTreeMap<String, String> {
        let mode = if self.is_write_back() { "write-back" } else { "write-through" };
        let pairs = [
            ("preset", "dm-cache-fiu".to_owned()),
            ("block", (self.block_sectors() * SECTOR).to_string()),
            ("size", format!("{}b", self.blocks())),
            ("ways", self.ways().to_string()),
            ("mode", mode.to_owned()),
        ];
        pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }
}

impl fmt::Display for TableLine {
    /// With every field, defaults included.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (origin, cache) = (escaped(&self.origin), escaped(&self.cache));
        write!(f, "0 {} cache {origin} {cache} {}", self.sectors, u8::from(self.is_persistent))?;
        let (block, blocks, ways) = (self.block_sectors(), self.blocks(), self.ways());
        write!(f, " {block} {blocks} {ways} {}", u8::from(self.is_write_back()))
    }
}

impl FromStr for TableLine {
    type Err = ParamError;

    fn from_str(line: &str) -> Result<Self, ParamError> {
        Self::parse(line)
    }
}

fn number(field: TableField, word: &str, range: std::ops::RangeInclusive<u64>) -> Result<u64, ParamError> {
    let is_plain = word.bytes().all(|byte| byte.is_ascii_digit());
    let number = word.parse().ok().filter(|number| is_plain && range.contains(number));
    number.ok_or_else(|| field.wrong(word, format!("a number from {} to {}", range.start(), range.end())))
}

fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        if letter.is_whitespace() {
            words.extend(word.take());
            continue;
        }
        let letter = if letter == '\\' { letters.next().unwrap_or(letter) } else { letter };
        word.get_or_insert_default().push(letter);
    }
    words.extend(word);
    words
}

fn escaped(path: &str) -> String {
    let mut text = String::new();
    for letter in path.chars() {
        if letter.is_whitespace() || letter == '\\' {
            text.push('\\');
        }
        text.push(letter);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARTICLE: &str = "0 20971520 cache /dev/sda3 /dev/sdb 0 8 65536 16 1";

    #[test]
    fn the_line_of_the_article_comes_back_as_it_was_read() {
        let line: TableLine = ARTICLE.parse().unwrap();
        let paths = (line.origin.as_str(), line.cache.as_str());
        assert_eq!((line.sectors, paths), (20_971_520, ("/dev/sda3", "/dev/sdb")));
        assert_eq!((line.block_sectors(), line.blocks(), line.ways()), (8, 65_536, 16));
        assert!(line.is_write_back() && !line.is_persistent);
        assert_eq!(line.to_string(), ARTICLE);
    }

    #[test]
    fn what_is_left_out_is_as_in_the_original() {
        for (line, whole) in [
            ("0 9 cache a b", "0 9 cache a b 0 8 65536 1024 0"),
            (" 0  9\tcache a b 1\n", "0 9 cache a b 1 8 65536 1024 0"),
            ("0 9 cache a b 0 16", "0 9 cache a b 0 16 65536 1024 0"),
            ("0 9 cache a b 0 16 2048", "0 9 cache a b 0 16 2048 1024 0"),
            ("0 9 cache a b 0 16 2048 64", "0 9 cache a b 0 16 2048 64 0"),
        ] {
            assert_eq!(TableLine::parse(line).unwrap().to_string(), whole, "{line}");
        }
        assert_eq!(TableLine::parse("0 9 cache a b").unwrap().blocks, None);
    }

    #[test]
    fn every_wrong_field_is_named_by_its_place() {
        for (line, expected) in [
            ("", "table field 1 (start) = '': expected 0, and the line ends before it"),
            ("8 9 cache a b", "table field 1 (start) = '8': expected 0"),
            ("0 x cache a b", "table field 2 (sectors) = 'x': expected a number from 1"),
            ("0 +9 cache a b", "table field 2 (sectors) = '+9'"),
            ("0 9 flashcache a b", "table field 3 (target) = 'flashcache': expected cache"),
            ("0 9 cache", "table field 4 (origin) = '': expected the path of the disk"),
            ("0 9 cache a", "table field 5 (cache device) = '': expected the path of the cache"),
            ("0 9 cache a b 2", "table field 6 (persist) = '2': expected 0 or 1"),
            ("0 9 cache a b 0 12", "table field 7 (block size in sectors) = '12': expected a power of two"),
            (
                "0 9 cache a b 0 0",
                "table field 7 (block size in sectors) = '0': expected a number from 1 to 2048",
            ),
            ("0 9 cache a b 0 4096", "table field 7 (block size in sectors) = '4096'"),
            ("0 9 cache a b 0 8 0", "table field 8 (blocks) = '0': expected a number from 1"),
            ("0 9 cache a b 0 8 5000000000", "table field 8 (blocks) = '5000000000'"),
            ("0 9 cache a b 0 8 1000", "table field 8 (blocks) = '1000': expected a multiple of the default"),
            ("0 9 cache a b 0 8 64 0", "table field 9 (associativity) = '0'"),
            (
                "0 9 cache a b 0 8 64 128",
                "table field 9 (associativity) = '128': expected a number that divides 64",
            ),
            ("0 9 cache a b 0 8 64 16 wb", "table field 10 (write-back) = 'wb': expected 0 or 1"),
            ("0 9 cache a b 0 8 64 16 1 x", "table field 11 = 'x': expected the end of the line"),
        ] {
            let error = TableLine::parse(line).expect_err(line).to_string();
            assert!(error.starts_with(expected), "{line}: {error}");
        }
    }

    #[test]
    fn paths_with_spaces_and_backslashes_come_back() {
        let line = TableLine { origin: "/srv/my disk".to_owned(), ..TableLine::parse(ARTICLE).unwrap() };
        let line = TableLine { cache: "C:\\fast\t1".to_owned(), ..line };
        assert_eq!(line.to_string().parse(), Ok(line));
    }
}
