//! The header: what an image is. Written once.

use crate::error::{ImageError, Result};
use crate::layout::{CONFIG, CONFIG_BYTES, Layout, OOB_HEAD, OOB_MOST, VERSION};
use crate::locked::open_regular;
use nandscape_core::{Capabilities, Geometry};
use nandscape_media::checksum::sum;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

pub(crate) const MAGIC: [u8; 16] = *b"nandscape image\n";
/// Where the magic stands in a snapshot that is not finished.
pub(crate) const UNFINISHED: [u8; 16] = *b"nandscape copy.\n";
const BYTES: usize = 4096;
const CRC_AT: usize = 20;

/// What an image is: shape and rules of the flash, and the configuration of the stack that it was made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Format version.
    pub version: u32,
    /// Tells images apart.
    pub uuid: [u8; 16],
    /// Shape.
    pub geometry: Geometry,
    /// Bytes of the OOB that it keeps for each page; 14, that of logical pages, before format version 3.
    pub oob_bytes: u32,
    /// Erases a block survives; `None` for endless.
    pub endurance: Option<u32>,
    /// What the medium allows.
    pub capabilities: Capabilities,
    /// When it was made, in seconds since 1970.
    pub created_s: u64,
    /// The whole configuration, as TOML.
    pub config: String,
}

impl Header {
    /// Reads the header of an image, which may be in use.
    ///
    /// Errors name file and offset: not an image, a newer version, a wrong checksum, value or file length.
    pub fn read(path: &Path) -> Result<Self> {
        Self::read_from(&open_regular(path, false)?, path)
    }

    pub(crate) fn layout(&self) -> Layout {
        Layout::new(&self.geometry, self.version, self.oob_bytes)
    }

    /// The UUID as people write it.
    pub fn uuid_text(&self) -> String {
        let hex = format!("{:032x}", u128::from_be_bytes(self.uuid));
        [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
    }

    pub(crate) fn read_from(file: &File, path: &Path) -> Result<Self> {
        let length = file.metadata().map_err(ImageError::io(path, "stat"))?.len();
        let mut page = [0; BYTES];
        let present = length.min(BYTES as u64) as usize;
        file.read_exact_at(&mut page[..present], 0).map_err(ImageError::io(path, "read the header"))?;
        if page[..16] == UNFINISHED {
            let what = "an unfinished snapshot: expected a finished one; delete this file";
            return Err(ImageError::unsuited(path, what));
        }
        if page[..16] != MAGIC {
            return Err(ImageError::unsuited(path, "offset 0: not an image of nandscape"));
        }
        let fields = Fields { page: &page, path };
        let version = fields.u32(16);
        if version > VERSION {
            let what = format!(
                "offset 16: the image has format version {version}: expected version {VERSION} or earlier; a newer nandscape made it"
            );
            return Err(ImageError::unsuited(path, what));
        }
        if version == 0 {
            return Err(ImageError::corrupt(path, 16, "format version", 0, VERSION));
        }
        let what = "checksum of the header";
        fields.check_sum(CRC_AT as u64, what, fields.u32(CRC_AT), checksum(&page))?;
        let header = fields.header(file)?;
        let layout = header.layout();
        fields.check_layout(&layout)?;
        if length != layout.file_bytes {
            return Err(ImageError::corrupt(path, length, "end of the file", length, layout.file_bytes));
        }
        Ok(header)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let layout = self.layout();
        let mut page = vec![0; BYTES];
        let mut put = |at: usize, bytes: &[u8]| page[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &MAGIC);
        put(16, &self.version.to_le_bytes());
        put(24, &self.uuid);
        let geometry = &self.geometry;
        let shape = [
            geometry.channels,
            geometry.dies_per_channel,
            geometry.planes_per_die,
            geometry.blocks_per_plane,
            geometry.pages_per_block,
            geometry.page_bytes,
            geometry.sector_bytes,
            geometry.oob_bytes,
        ];
        for (index, field) in shape.into_iter().enumerate() {
            put(40 + 4 * index, &field.to_le_bytes());
        }
        let capabilities = &self.capabilities;
        let flags =
            u32::from(capabilities.out_of_order_program) | u32::from(capabilities.partial_transfer) << 1;
        let words = [
            self.endurance.unwrap_or(u32::MAX),
            flags,
            capabilities.program_pages,
            layout.units.bytes,
            layout.record_bytes,
            self.config.len() as u32,
            sum(self.config.as_bytes()),
        ];
        for (index, word) in words.into_iter().enumerate() {
            put(72 + 4 * index, &word.to_le_bytes());
        }
        let offsets = [
            layout.block_table,
            layout.page_table,
            layout.data,
            layout.file_bytes,
            self.created_s,
            layout.to_second_block,
            layout.to_second_record,
        ];
        for (index, offset) in offsets.into_iter().enumerate() {
            put(104 + 8 * index, &offset.to_le_bytes());
        }
        if self.version >= 3 {
            put(160, &self.oob_bytes.to_le_bytes());
        }
        let crc = checksum(&page);
        page[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_le_bytes());
        page
    }
}

/// Over the whole page but the checksum itself.
fn checksum(page: &[u8]) -> u32 {
    let mut page = page.to_vec();
    page[CRC_AT..CRC_AT + 4].fill(0);
    sum(&page)
}

/// Typed access to the page of the header.
struct Fields<'a> {
    page: &'a [u8],
    path: &'a Path,
}

impl Fields<'_> {
    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.page[at..at + 4].try_into().expect("four bytes"))
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.page[at..at + 8].try_into().expect("eight bytes"))
    }

    fn check_sum(&self, at: u64, what: &str, found: u32, expected: u32) -> Result<()> {
        if found == expected {
            return Ok(());
        }
        let hex = |sum: u32| format!("{sum:#010x}");
        Err(ImageError::corrupt(self.path, at, what, hex(found), hex(expected)))
    }

    fn header(&self, file: &File) -> Result<Header> {
        let field = |index: usize| self.u32(40 + 4 * index);
        let geometry = Geometry {
            channels: field(0),
            dies_per_channel: field(1),
            planes_per_die: field(2),
            blocks_per_plane: field(3),
            pages_per_block: field(4),
            page_bytes: field(5),
            sector_bytes: field(6),
            oob_bytes: field(7),
        };
        let geometry = geometry
            .checked()
            .map_err(|e| ImageError::corrupt(self.path, 40, "geometry", e, "a possible shape"))?;
        let (endurance, flags) = (self.u32(72), self.u32(76));
        if flags > 3 {
            return Err(ImageError::corrupt(self.path, 76, "flags", flags, "0 to 3"));
        }
        let capabilities = Capabilities {
            out_of_order_program: flags & 1 != 0,
            stores_data: true,
            partial_transfer: flags & 2 != 0,
            program_pages: self.u32(80),
            units_per_page: 1,
            dram_below: None,
            // A failure of the machine loses what was not synced.
            lasting_programs: false,
        };
        if capabilities.program_pages == 0 {
            return Err(ImageError::corrupt(self.path, 80, "pages of a program unit", 0, "1 or more"));
        }
        let version = self.u32(16);
        let oob_bytes = if version >= 3 { self.u32(160) } else { OOB_HEAD as u32 };
        if !(OOB_HEAD..=OOB_MOST).contains(&(oob_bytes as usize)) {
            let expected = format!("{OOB_HEAD} to {OOB_MOST}");
            return Err(ImageError::corrupt(self.path, 160, "bytes of the OOB", oob_bytes, expected));
        }
        Ok(Header {
            version,
            oob_bytes,
            uuid: self.page[24..40].try_into().expect("16 bytes"),
            geometry,
            endurance: (endurance != u32::MAX).then_some(endurance),
            capabilities,
            created_s: self.u64(136),
            config: self.config(file)?,
        })
    }

    fn config(&self, file: &File) -> Result<String> {
        let length = self.u32(92);
        if u64::from(length) > CONFIG_BYTES {
            let expected = format!("at most {CONFIG_BYTES}");
            return Err(ImageError::corrupt(self.path, 92, "length of the configuration", length, expected));
        }
        let mut config = vec![0; length as usize];
        file.read_exact_at(&mut config, CONFIG)
            .map_err(ImageError::io(self.path, "read the configuration"))?;
        self.check_sum(CONFIG, "checksum of the configuration", sum(&config), self.u32(96))?;
        String::from_utf8(config)
            .map_err(|e| ImageError::corrupt(self.path, CONFIG, "configuration", e, "text in UTF-8"))
    }

    fn check_layout(&self, layout: &Layout) -> Result<()> {
        let fields = [
            (84, "bytes of a checksum unit", u64::from(self.u32(84)), u64::from(layout.units.bytes)),
            (88, "bytes of a page record", u64::from(self.u32(88)), u64::from(layout.record_bytes)),
            (104, "offset of the block table", self.u64(104), layout.block_table),
            (112, "offset of the page table", self.u64(112), layout.page_table),
            (120, "offset of the data", self.u64(120), layout.data),
            (128, "length of the file", self.u64(128), layout.file_bytes),
            (144, "bytes from the block table to its second copy", self.u64(144), layout.to_second_block),
            (152, "bytes from the page table to its second copy", self.u64(152), layout.to_second_record),
        ];
        let wrong = fields.into_iter().find(|(_, _, found, expected)| found != expected);
        wrong.map_or(Ok(()), |(at, what, found, expected)| {
            Err(ImageError::corrupt(self.path, at, what, found, expected))
        })
    }
}
