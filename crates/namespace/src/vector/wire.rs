//! Wire forms of vector access: commands, geometry, chunk reports and media events (Open-Channel SSD 2.0),
//! and the identify structure of version 1.2.

use nandscape_core::vector::{
    AddressFormat, ChunkDescriptor, DeviceFormat, MOST_ADDRESSES, MediaEvent, MediaFailure, SectorAddress,
    SectorErrors, VectorCommand, VectorError, VectorGeometry,
};
use nandscape_core::{NvmeResult, NvmeStatus};

/// Opcode of a vector chunk reset (I/O).
pub const RESET: u8 = 0x90;
/// Opcode of a vector chunk write (I/O).
pub const WRITE: u8 = 0x91;
/// Opcode of a vector chunk read (I/O).
pub const READ: u8 = 0x92;
/// Opcode of a vector chunk copy (I/O).
pub const COPY: u8 = 0x93;
/// Opcode of Device Geometry, and of the identify command of version 1.2 (admin).
pub const GEOMETRY: u8 = 0xe2;
/// Log page of chunk information.
pub const CHUNK_LOG: u8 = 0xca;
/// Log page of media events (chunk notifications).
pub const EVENT_LOG: u8 = 0xd0;

/// Bytes of the geometry.
pub const GEOMETRY_BYTES: usize = 4096;
/// Bytes of a chunk descriptor.
pub const CHUNK_BYTES: usize = 32;
/// Bytes of a media event.
pub const EVENT_BYTES: usize = 64;
/// Bytes of an address in a list.
pub const ADDRESS_BYTES: usize = 8;

/// Chunks are written sequentially.
const SEQUENTIAL: u8 = 1;
const COPIES: u32 = 1 << 0;
const RESETS_FREE: u32 = 1 << 1;

const HIGH_ERROR_RATE: u16 = 1 << 2;
const UNRECOVERABLE: u16 = 1 << 3;
const WORN: u16 = 1 << 8;
const OF_SECTORS: u8 = 1;
const OF_CHUNK: u8 = 2;

/// Device Geometry of version 2.0.
pub fn encode_geometry(geometry: &VectorGeometry) -> Box<[u8; GEOMETRY_BYTES]> {
    let mut out = Box::new([0; GEOMETRY_BYTES]);
    let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &[2, 0]);
    put(8, &geometry.format().bits());
    let copies = if geometry.keeps_host_oob { 0 } else { COPIES };
    let capabilities = copies | if geometry.resets_free { RESETS_FREE } else { 0 };
    put(16, &capabilities.to_le_bytes());
    put(64, &geometry.groups.to_le_bytes());
    put(66, &geometry.units.to_le_bytes());
    put(68, &geometry.chunks.to_le_bytes());
    put(72, &geometry.sectors.to_le_bytes());
    put(128, &geometry.write_min.to_le_bytes());
    put(132, &geometry.write_best.to_le_bytes());
    put(136, &geometry.cached.to_le_bytes());
    // Bytes 140 to 147: no limit of open chunks.
    let times = [geometry.times.read_ns, geometry.times.write_ns, geometry.times.reset_ns];
    for (pair, time) in times.into_iter().enumerate() {
        put(192 + 8 * pair, &time.to_le_bytes());
        put(196 + 8 * pair, &time.to_le_bytes());
    }
    out
}

/// Version 1.2: the device corrects errors, the host maps logical addresses.
const CORRECTS_ERRORS: u32 = 1 << 1;

/// The identify structure of version 1.2: the address format of the device and one configuration group. It
/// has no pairs of pages and states no spare bytes, since hosts write pages in their order, and the bytes
/// beside a page go with the command. `None` where a number does not fit in its field, or where the planes
/// that are written together are not one, two or four.
pub fn encode_identify(geometry: &VectorGeometry) -> Option<Box<[u8; GEOMETRY_BYTES]>> {
    let shape = geometry.pages;
    let pages = geometry.sectors / shape.row_sectors();
    let format = DeviceFormat::fitting(shape, geometry.groups, geometry.units, pages);
    let byte = |count: u32| u8::try_from(count).ok();
    let word = |count: u32| u16::try_from(count).ok().map(u16::to_le_bytes);
    let together = Some(shape.chunk_planes()).filter(|planes| [1, 2, 4].contains(planes))? as u8;
    let mut out = Box::new([0; GEOMETRY_BYTES]);
    let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
    // Version, then command set 0, then one group.
    put(0, &[1, 0, 1]);
    put(8, &CORRECTS_ERRORS.to_le_bytes());
    put(12, &format.to_bytes());
    let group = 256;
    put(group + 4, &[byte(geometry.groups.into())?, byte(geometry.units.into())?, byte(shape.planes)?]);
    put(group + 8, &word(shape.blocks)?);
    put(group + 10, &word(pages)?);
    put(group + 12, &word(shape.sectors * geometry.sector_bytes)?);
    put(group + 14, &word(geometry.sector_bytes)?);
    let times = [geometry.times.read_ns, geometry.times.write_ns, geometry.times.reset_ns];
    for (pair, time) in times.into_iter().enumerate() {
        put(group + 20 + 8 * pair, &time.to_le_bytes());
        put(group + 24 + 8 * pair, &time.to_le_bytes());
    }
    // Planes of a read, which may be one, of a program and of an erase: a bit for one, two and four.
    put(group + 44, &[1 | together, together, together]);
    Some(out)
}

/// A descriptor of the chunk information log.
pub fn encode_chunk(chunk: &ChunkDescriptor, format: AddressFormat) -> [u8; CHUNK_BYTES] {
    let mut out = [0; CHUNK_BYTES];
    out[..3].copy_from_slice(&[chunk.state as u8, SEQUENTIAL, chunk.wear]);
    out[8..16].copy_from_slice(&format.encode(chunk.start).to_le_bytes());
    out[16..24].copy_from_slice(&u64::from(chunk.sectors).to_le_bytes());
    out[24..32].copy_from_slice(&u64::from(chunk.write_pointer).to_le_bytes());
    out
}

/// An entry of the chunk notification log.
pub fn encode_event(event: &MediaEvent, nsid: u32, format: AddressFormat) -> [u8; EVENT_BYTES] {
    let mut out = [0; EVENT_BYTES];
    let state = match event.failure {
        MediaFailure::Program => HIGH_ERROR_RATE,
        MediaFailure::Erase | MediaFailure::Read => UNRECOVERABLE,
        MediaFailure::WornOut => UNRECOVERABLE | WORN,
    };
    out[..8].copy_from_slice(&event.number.to_le_bytes());
    out[8..16].copy_from_slice(&format.encode(event.address).to_le_bytes());
    out[16..20].copy_from_slice(&nsid.to_le_bytes());
    out[20..22].copy_from_slice(&state.to_le_bytes());
    out[22] = if event.sectors > 0 { OF_SECTORS } else { OF_CHUNK };
    // Counted from 0.
    out[32..34].copy_from_slice(&(event.sectors.saturating_sub(1) as u16).to_le_bytes());
    out
}

/// Addresses of a list, little-endian.
pub fn encode_list(addresses: &[SectorAddress], format: AddressFormat) -> Vec<u8> {
    addresses.iter().flat_map(|address| format.encode(*address).to_le_bytes()).collect()
}

/// The addresses of a list of 1 to 64. A number with bits that no part has is out of range.
pub fn decode_list(bytes: &[u8], format: AddressFormat) -> Result<Box<[SectorAddress]>, VectorError> {
    let (numbers, rest) = bytes.as_chunks::<ADDRESS_BYTES>();
    if numbers.is_empty() || numbers.len() > MOST_ADDRESSES || !rest.is_empty() {
        return Err(VectorError::InvalidField);
    }
    let decode = |number: &[u8; ADDRESS_BYTES]| {
        format.decode(u64::from_le_bytes(*number)).ok_or(VectorError::OutOfRange)
    };
    numbers.iter().map(decode).collect()
}

/// Of dword 12, how many addresses a command has: the field counts from 0.
pub const fn address_count(cdw12: u32) -> usize {
    (cdw12 & 0x3f) as usize + 1
}

/// The command of an opcode and its lists: of a single address the list is the address itself (dwords 10 and
/// 11). `targets` is the second list of a copy.
pub fn decode_command(
    opcode: u8,
    list: &[u8],
    targets: &[u8],
    format: AddressFormat,
) -> NvmeResult<VectorCommand> {
    let addresses = decode_list(list, format)?;
    Ok(match opcode {
        READ => VectorCommand::Read(addresses),
        WRITE => VectorCommand::Write(addresses),
        RESET => VectorCommand::Reset(addresses),
        COPY => VectorCommand::Copy { sources: addresses, targets: decode_list(targets, format)? },
        _ => return Err(NvmeStatus::InvalidOpcode),
    })
}

/// Dwords 0 and 1 of a completion, a bit for each address that failed, and its status field.
pub fn completion(errors: &SectorErrors) -> (u64, u16) {
    (errors.bitmap(), errors.first().map_or(0, VectorError::status))
}
