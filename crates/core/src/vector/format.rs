//! Addresses as 64-bit numbers: those of version 2.0, whose parts have as many bits as the geometry says, and
//! those of version 1.2 in the generic format and in the format of a device.

use super::SectorAddress;

/// The address format of version 2.0: the bits of each part, together at most 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressFormat {
    group: u8,
    unit: u8,
    chunk: u8,
    sector: u8,
}

/// A number below `1 << bits`, and a higher one cut off.
const fn low(value: u64, bits: u8) -> u64 {
    if bits >= 64 { value } else { value & ((1 << bits) - 1) }
}

const fn bits_for(count: u32) -> u8 {
    if count <= 1 { 0 } else { (32 - (count - 1).leading_zeros()) as u8 }
}

impl AddressFormat {
    /// As few bits as hold the numbers below each count. Panics if they are more than 64 together.
    pub const fn fitting(groups: u16, units: u16, chunks: u32, sectors: u32) -> Self {
        let this = Self {
            group: bits_for(groups as u32),
            unit: bits_for(units as u32),
            chunk: bits_for(chunks),
            sector: bits_for(sectors),
        };
        let [group, unit, chunk, sector] = this.bits();
        assert!(group as u32 + unit as u32 + chunk as u32 + sector as u32 <= u64::BITS);
        this
    }

    /// Bits of group, parallel unit, chunk and sector, from the highest to the lowest.
    pub const fn bits(self) -> [u8; 4] {
        [self.group, self.unit, self.chunk, self.sector]
    }

    /// The number of an address whose parts fit.
    pub const fn encode(self, address: SectorAddress) -> u64 {
        let unit_and_group = (address.group as u64) << self.unit | address.unit as u64;
        let chunk = unit_and_group << self.chunk | address.chunk as u64;
        chunk << self.sector | address.sector as u64
    }

    /// The address of a number; `None` where bits are set that no part has.
    pub const fn decode(self, number: u64) -> Option<SectorAddress> {
        let sector = low(number, self.sector) as u32;
        let number = number >> self.sector;
        let chunk = low(number, self.chunk) as u32;
        let number = number >> self.chunk;
        let unit = low(number, self.unit) as u16;
        let group = number >> self.unit;
        if group != low(group, self.group) {
            return None;
        }
        Some(SectorAddress { group: group as u16, unit, chunk, sector })
    }
}

/// An address of version 1.2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub struct PageAddress {
    pub channel: u8,
    pub lun: u8,
    pub plane: u8,
    /// Block of the plane.
    pub block: u16,
    /// Page of the block.
    pub page: u16,
    /// Sector of the page.
    pub sector: u8,
}

impl PageAddress {
    /// The generic format, from the lowest bit: block 16, page 16, sector 8, plane 8, LUN 8, channel 8 bits.
    pub const fn encode(self) -> u64 {
        self.block as u64
            | (self.page as u64) << 16
            | (self.sector as u64) << 32
            | (self.plane as u64) << 40
            | (self.lun as u64) << 48
            | (self.channel as u64) << 56
    }

    /// The address of a number in the generic format.
    pub const fn decode(number: u64) -> Self {
        Self {
            block: number as u16,
            page: (number >> 16) as u16,
            sector: (number >> 32) as u8,
            plane: (number >> 40) as u8,
            lun: (number >> 48) as u8,
            channel: (number >> 56) as u8,
        }
    }
}

/// A part of an address in the format of a device of version 1.2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Field {
    /// Its lowest bit.
    pub offset: u8,
    /// Its bits.
    pub length: u8,
}

impl Field {
    const fn place(self, value: u64) -> u64 {
        if self.length == 0 { 0 } else { low(value, self.length) << self.offset }
    }

    const fn take(self, number: u64) -> u64 {
        if self.length == 0 { 0 } else { low(number >> self.offset, self.length) }
    }
}

/// The address format of a device of version 1.2: where each part is. The order of the pairs in an identify
/// structure is that of the fields here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct DeviceFormat {
    pub channel: Field,
    pub lun: Field,
    pub plane: Field,
    pub block: Field,
    pub page: Field,
    pub sector: Field,
}

impl DeviceFormat {
    /// Bytes of its wire form.
    pub const BYTES: usize = 12;

    /// The format with the fewest bits for a shape: from the lowest bit sector, plane, page, block, LUN,
    /// channel.
    pub const fn fitting(shape: PageShape, channels: u16, luns: u16, pages: u32) -> Self {
        const fn field(offset: u8, count: u32) -> Field {
            Field { offset, length: bits_for(count) }
        }
        let sector = field(0, shape.sectors);
        let plane = field(sector.length, shape.planes);
        let page = field(plane.offset + plane.length, pages);
        let block = field(page.offset + page.length, shape.blocks);
        let lun = field(block.offset + block.length, luns as u32);
        let channel = field(lun.offset + lun.length, channels as u32);
        Self { channel, lun, plane, block, page, sector }
    }

    const fn fields(&self) -> [Field; 6] {
        [self.channel, self.lun, self.plane, self.block, self.page, self.sector]
    }

    /// Whether no two parts share a bit and all are inside 64 bits.
    pub fn is_possible(&self) -> bool {
        let mut taken = 0u64;
        for field in self.fields() {
            if field.length == 0 {
                continue;
            }
            if u32::from(field.offset) + u32::from(field.length) > u64::BITS {
                return false;
            }
            let mask = low(u64::MAX, field.length) << field.offset;
            if taken & mask != 0 {
                return false;
            }
            taken |= mask;
        }
        true
    }

    /// The pairs of offset and length, as in an identify structure.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        for (pair, field) in bytes.chunks_exact_mut(2).zip(self.fields()) {
            pair.copy_from_slice(&[field.offset, field.length]);
        }
        bytes
    }

    /// The format of such pairs; `None` where it is not possible.
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let field = |at: usize| Field { offset: bytes[2 * at], length: bytes[2 * at + 1] };
        let this = Self {
            channel: field(0),
            lun: field(1),
            plane: field(2),
            block: field(3),
            page: field(4),
            sector: field(5),
        };
        this.is_possible().then_some(this)
    }

    /// The number of an address whose parts fit.
    pub const fn encode(&self, address: PageAddress) -> u64 {
        self.channel.place(address.channel as u64)
            | self.lun.place(address.lun as u64)
            | self.plane.place(address.plane as u64)
            | self.block.place(address.block as u64)
            | self.page.place(address.page as u64)
            | self.sector.place(address.sector as u64)
    }

    /// The address of a number.
    pub const fn decode(&self, number: u64) -> PageAddress {
        PageAddress {
            channel: self.channel.take(number) as u8,
            lun: self.lun.take(number) as u8,
            plane: self.plane.take(number) as u8,
            block: self.block.take(number) as u16,
            page: self.page.take(number) as u16,
            sector: self.sector.take(number) as u8,
        }
    }
}

/// Pages and planes of a parallel unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageShape {
    /// Sectors of a page.
    pub sectors: u32,
    /// Planes of a parallel unit.
    pub planes: u32,
    /// Blocks of a plane.
    pub blocks: u32,
    /// A chunk has a block of each plane; else it is a block of one.
    pub spans_planes: bool,
}

impl PageShape {
    /// Planes of a chunk.
    pub const fn chunk_planes(&self) -> u32 {
        if self.spans_planes { self.planes } else { 1 }
    }

    /// Sectors of a page in every plane of a chunk: what is written together.
    pub const fn row_sectors(&self) -> u32 {
        self.sectors * self.chunk_planes()
    }

    /// The address of version 1.2 of a sector. In a chunk of several planes the sectors of a page are next to
    /// each other, then come the planes, then the pages. `None` where a part does not fit in the bits of
    /// version 1.2.
    pub fn page_address(&self, address: SectorAddress) -> Option<PageAddress> {
        let (row, within) = (address.sector / self.row_sectors(), address.sector % self.row_sectors());
        let (plane, block) = if self.spans_planes {
            (within / self.sectors, address.chunk)
        } else {
            (address.chunk / self.blocks, address.chunk % self.blocks)
        };
        Some(PageAddress {
            channel: address.group.try_into().ok()?,
            lun: address.unit.try_into().ok()?,
            plane: plane.try_into().ok()?,
            block: block.try_into().ok()?,
            page: row.try_into().ok()?,
            sector: (within % self.sectors).try_into().ok()?,
        })
    }

    /// The sector of an address of version 1.2.
    pub const fn sector_address(&self, address: PageAddress) -> SectorAddress {
        let (plane, block) = (address.plane as u32, address.block as u32);
        let row = address.page as u32 * self.row_sectors();
        let (chunk, within) =
            if self.spans_planes { (block, plane * self.sectors) } else { (plane * self.blocks + block, 0) };
        SectorAddress {
            group: address.channel as u16,
            unit: address.lun as u16,
            chunk,
            sector: row + within + address.sector as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{below, seeded};

    #[test]
    fn numbers_of_version_2_have_the_bits_of_the_specification() {
        let format = AddressFormat::fitting(8, 4, 16, 256);
        assert_eq!(format.bits(), [3, 2, 4, 8]);
        let address = SectorAddress { group: 5, unit: 2, chunk: 9, sector: 0x7f };
        assert_eq!(format.encode(address), 0b1_0110_1001_0111_1111);
        assert_eq!(format.decode(0b1_0110_1001_0111_1111), Some(address));
        assert_eq!(format.decode(1 << 17), None);
        // Parts that are alone have no bits, and counts need not be powers of two.
        let odd = AddressFormat::fitting(1, 3, 1, 5);
        assert_eq!(odd.bits(), [0, 2, 0, 3]);
        assert_eq!(odd.decode(0b1_0100).unwrap(), SectorAddress { unit: 2, sector: 4, ..Default::default() });
    }

    #[test]
    fn every_address_of_version_2_comes_back_from_its_number() {
        let mut rng = seeded(1);
        for _ in 0..2_000 {
            let mut count = |most: u64| 1 + below(&mut rng, most) as u32;
            let [groups, units] = [count(0xffff) as u16, count(0xffff) as u16];
            let [chunks, sectors] = [count(1 << 16), count(1 << 16)];
            let format = AddressFormat::fitting(groups, units, chunks, sectors);
            let mut part = |most: u32| below(&mut rng, u64::from(most)) as u32;
            let address = SectorAddress {
                group: part(groups.into()) as u16,
                unit: part(units.into()) as u16,
                chunk: part(chunks),
                sector: part(sectors),
            };
            assert_eq!(format.decode(format.encode(address)), Some(address), "{format:?}");
        }
    }

    #[test]
    fn the_generic_format_of_version_1_has_its_parts_where_liblightnvm_has_them() {
        let address =
            PageAddress { channel: 0x12, lun: 0x34, plane: 0x56, sector: 0x78, page: 0x9abc, block: 0xdef0 };
        assert_eq!(address.encode(), 0x1234_5678_9abc_def0);
        assert_eq!(PageAddress::decode(0x1234_5678_9abc_def0), address);
    }

    #[test]
    fn the_format_of_a_device_comes_back_from_its_pairs_and_so_do_addresses() {
        // The thesis: 8 channels, 4 LUNs, 2 planes, 16 blocks, 32 pages, 4 sectors.
        let shape = PageShape { sectors: 4, planes: 2, blocks: 16, spans_planes: true };
        let format = DeviceFormat::fitting(shape, 8, 4, 32);
        assert_eq!(format.to_bytes(), [14, 3, 12, 2, 2, 1, 8, 4, 3, 5, 0, 2]);
        assert_eq!(DeviceFormat::from_bytes(&format.to_bytes()), Some(format));
        let mut seen = std::collections::BTreeSet::new();
        for number in 0..1u64 << 17 {
            let address = format.decode(number);
            assert_eq!(format.encode(address), number);
            assert_eq!(PageAddress::decode(address.encode()), address);
            let sector = shape.sector_address(address);
            assert_eq!(shape.page_address(sector), Some(address));
            assert!(seen.insert(sector));
        }
        let mut overlapping = format.to_bytes();
        overlapping[0] = 13;
        assert_eq!(DeviceFormat::from_bytes(&overlapping), None);
        assert_eq!(DeviceFormat::from_bytes(&[60, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), None);
    }

    #[test]
    fn a_chunk_of_one_plane_has_the_plane_in_its_number() {
        let shape = PageShape { sectors: 4, planes: 2, blocks: 16, spans_planes: false };
        let address = SectorAddress { group: 1, unit: 2, chunk: 19, sector: 9 };
        let page = PageAddress { channel: 1, lun: 2, plane: 1, block: 3, page: 2, sector: 1 };
        assert_eq!(shape.page_address(address), Some(page));
        assert_eq!(shape.sector_address(page), address);
        assert_eq!(shape.page_address(SectorAddress { group: 256, ..address }), None);
    }
}
