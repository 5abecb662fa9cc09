//! Zone Management Send and Receive, and the identify structures of zoned namespaces.
//!
//! Addresses on the wire are logical blocks; those of commands and reports are bytes. Conventional zones have
//! the type, state and reporting option that ZBC-2 gives them, which ZNS reserves.

use super::ZoneLayout;
use nandscape_core::zone::{Zone, ZoneAction, ZoneCommand, ZoneFilter, ZoneReport, ZoneState};
use nandscape_core::{NvmeResult, NvmeStatus};

/// Opcode of Zone Management Send (I/O).
pub const ZONE_SEND: u8 = 0x79;
/// Opcode of Zone Management Receive (I/O).
pub const ZONE_RECEIVE: u8 = 0x7a;
/// Opcode of Zone Append (I/O).
pub const ZONE_APPEND: u8 = 0x7d;
/// Command set identifier of zoned namespaces.
pub const COMMAND_SET: u8 = 0x02;
/// Bytes of the header of a report, and of a descriptor.
pub const DESCRIPTOR_BYTES: usize = 64;
/// Bytes of Identify Namespace and Identify Controller.
pub const IDENTIFY_BYTES: usize = 4096;

const SELECT_ALL: u32 = 1 << 8;
const RANDOM_AREA: u32 = 1 << 9;
const CONVENTIONAL: u8 = 1;
const SEQUENTIAL_WRITE_REQUIRED: u8 = 2;

/// The first logical block of a command: dwords 10 and 11.
const fn address(cdw: &[u32; 6]) -> u64 {
    cdw[0] as u64 | (cdw[1] as u64) << 32
}

/// What Zone Management Send asks for, of dwords 10 to 15.
pub fn decode_send(cdw: &[u32; 6], layout: &ZoneLayout) -> NvmeResult<ZoneCommand> {
    let block = u64::from(layout.block_bytes);
    let zone = address(cdw).saturating_mul(block);
    let is_all = cdw[3] & SELECT_ALL != 0;
    let action = match cdw[3] as u8 {
        0x01 => ZoneAction::Close,
        0x02 => ZoneAction::Finish,
        0x03 if cdw[3] & RANDOM_AREA != 0 => ZoneAction::OpenRandom,
        0x03 => ZoneAction::Open,
        0x04 => ZoneAction::Reset,
        0x05 => ZoneAction::Offline,
        0x10 if !is_all => return Ok(ZoneCommand::Describe { zone }),
        0x11 if !is_all => return Ok(ZoneCommand::FlushRandom { last: zone }),
        _ => return Err(NvmeStatus::InvalidField),
    };
    Ok(ZoneCommand::Manage { action, zone: (!is_all).then_some(zone) })
}

/// What Zone Management Receive asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receive {
    /// The report to be made.
    pub report: ZoneCommand,
    /// Bytes that the host has room for.
    pub bytes: usize,
    /// Each descriptor is followed by its extension.
    pub is_extended: bool,
    /// The header counts the descriptors that are there instead of all that match.
    pub is_partial: bool,
}

/// What Zone Management Receive asks for, of dwords 10 to 15.
pub fn decode_receive(cdw: &[u32; 6], layout: &ZoneLayout) -> NvmeResult<Receive> {
    let is_extended = match cdw[3] as u8 {
        0x00 => false,
        0x01 if layout.extension_bytes > 0 => true,
        _ => return Err(NvmeStatus::InvalidField),
    };
    let filter = match (cdw[3] >> 8) as u8 {
        0 => ZoneFilter::All,
        1 => ZoneFilter::State(ZoneState::Empty),
        2 => ZoneFilter::State(ZoneState::ImplicitlyOpen),
        3 => ZoneFilter::State(ZoneState::ExplicitlyOpen),
        4 => ZoneFilter::State(ZoneState::Closed),
        5 => ZoneFilter::State(ZoneState::Full),
        6 => ZoneFilter::State(ZoneState::ReadOnly),
        7 => ZoneFilter::State(ZoneState::Offline),
        9 => ZoneFilter::Attention,
        0x3f => ZoneFilter::State(ZoneState::NotWritePointer),
        _ => return Err(NvmeStatus::InvalidField),
    };
    let bytes = (cdw[2] as usize + 1) * 4;
    let room = bytes.saturating_sub(DESCRIPTOR_BYTES) / entry_bytes(layout, is_extended);
    let from = address(cdw).saturating_mul(u64::from(layout.block_bytes));
    let report = ZoneCommand::Report { from, filter, room: room as u64 };
    Ok(Receive { report, bytes, is_extended, is_partial: cdw[3] >> 16 & 1 != 0 })
}

const fn entry_bytes(layout: &ZoneLayout, is_extended: bool) -> usize {
    DESCRIPTOR_BYTES + if is_extended { layout.extension_bytes as usize } else { 0 }
}

/// A report as the host gets it, cut off at the room that it has; gives the bytes that were filled.
pub fn encode_report(report: &ZoneReport, receive: &Receive, layout: &ZoneLayout, out: &mut [u8]) -> usize {
    let entry = entry_bytes(layout, receive.is_extended);
    let mut bytes = vec![0; DESCRIPTOR_BYTES + report.zones.len() * entry];
    let count = if receive.is_partial { report.zones.len() as u64 } else { report.matching };
    bytes[..8].copy_from_slice(&count.to_le_bytes());
    for (zone, place) in report.zones.iter().zip(bytes[DESCRIPTOR_BYTES..].chunks_exact_mut(entry)) {
        let (descriptor, extension) = place.split_at_mut(DESCRIPTOR_BYTES);
        encode_descriptor(zone, layout, descriptor);
        if let Some(kept) = zone.extension.as_ref().filter(|_| receive.is_extended) {
            extension.copy_from_slice(kept);
        }
    }
    let filled = bytes.len().min(receive.bytes).min(out.len());
    out[..filled].copy_from_slice(&bytes[..filled]);
    filled
}

fn encode_descriptor(zone: &Zone, layout: &ZoneLayout, out: &mut [u8]) {
    let blocks = |bytes: u64| (bytes / u64::from(layout.block_bytes)).to_le_bytes();
    let is_conventional = zone.state == ZoneState::NotWritePointer;
    out[0] = if is_conventional { CONVENTIONAL } else { SEQUENTIAL_WRITE_REQUIRED };
    out[1] = (zone.state as u8) << 4;
    out[2] = zone.attributes.0;
    out[8..16].copy_from_slice(&blocks(zone.capacity));
    out[16..24].copy_from_slice(&blocks(zone.start));
    // No place: all ones, as in the namespaces that Linux knows.
    out[24..32].copy_from_slice(&zone.write_pointer.map_or([0xff; 8], blocks));
}

/// Identify Namespace of the zoned command set (CNS 05h), with one format.
pub fn identify_namespace(layout: &ZoneLayout, has_variable_capacity: bool) -> Box<[u8; IDENTIFY_BYTES]> {
    let mut out = Box::new([0; IDENTIFY_BYTES]);
    // Limits count from 0; all ones: none.
    let limit = |most: Option<u32>| most.map_or(u32::MAX, |most| most - 1);
    let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &u16::from(has_variable_capacity).to_le_bytes());
    put(2, &(u16::from(layout.reads_across) | u16::from(layout.random.is_some()) << 1).to_le_bytes());
    put(4, &limit(layout.max_active).to_le_bytes());
    put(8, &limit(layout.max_open.or(layout.max_active)).to_le_bytes());
    if let Some(areas) = layout.random {
        put(44, &limit(areas.count).to_le_bytes());
        put(48, &(areas.granularity as u16).to_le_bytes());
        put(50, &(areas.size as u16).to_le_bytes());
        // A write pointer can be moved by a command.
        put(52, &[1]);
    }
    put(2816, &layout.size.to_le_bytes());
    put(2824, &[(layout.extension_bytes / 64) as u8]);
    out
}

/// Identify Controller of the zoned command set (CNS 06h): the largest append as a power of two in units of
/// the smallest memory page; 0 where it is that of any transfer.
pub fn identify_controller(append_limit: u8) -> Box<[u8; IDENTIFY_BYTES]> {
    let mut out = Box::new([0; IDENTIFY_BYTES]);
    out[0] = append_limit;
    out
}
