//! Conventional and sequential zones in one row of bytes, as the regions of a store: a cache writes each from
//! the first byte to the last and gives it up as a whole ([`nandscape_core::Regions`]). A region is a zone,
//! and a trim of it a reset; nothing is ever moved.
//!
//! With bytes, a write goes where it says: to the write pointer, or behind it, and then what lies between is
//! filled with zeroes. Without bytes, commands come when they begin, in another order than they were applied
//! in: slots that are filled wait for their disk. A write then goes to the write pointer of its zone wherever
//! in it was meant, and a read of what is not written yet to what was written last. So the zone is as full
//! and as busy as it would be, and only which of its dies serves a read can differ.

use nandscape_core::command::Payload;
use nandscape_core::zone::{ZoneAction, ZoneCommand, ZoneError, ZoneFilter, ZoneShape, ZoneState};
use nandscape_core::{
    Allocation, BlockCommand, Command, Extent, Hint, NamespaceError, NamespaceResult, Op, Regions, Reply,
    SimTime, Subsystem, Token,
};

type Device = dyn Subsystem + Send;

/// The zones of a namespace, one behind the other without what cannot be written of each.
pub(crate) struct ZoneRegions {
    namespace: u32,
    zones: ZoneShape,
    keeps_bytes: bool,
    /// By zone: bytes from its first one to its write pointer.
    written: Vec<u64>,
    /// Whole blocks of a read that begins or ends inside of one.
    buffer: Vec<u8>,
}

/// A part of an extent that lies in one zone.
#[derive(Clone, Copy)]
struct Part {
    zone: u32,
    /// First byte in the zone, and in the payload.
    start: u64,
    at: u64,
    len: u64,
}

impl ZoneRegions {
    /// Those of a zoned namespace, as they are.
    pub fn new(
        device: &mut Device,
        namespace: u32,
        zones: ZoneShape,
        keeps_bytes: bool,
    ) -> NamespaceResult<Self> {
        let first = u64::from(zones.conventional);
        let report = ZoneCommand::Report {
            from: first * zones.size,
            filter: ZoneFilter::All,
            room: u64::from(zones.zones),
        };
        let answer = device.submit(namespace, Command::Zone(report), Payload::None, SimTime::ZERO)?;
        let Reply::Zones(report) = answer.reply else {
            return Err(NamespaceError::NotSupported { command: "report zones" });
        };
        let written = report.zones.iter().map(|zone| match zone.state {
            // What became of them shows when they are used.
            ZoneState::ReadOnly | ZoneState::Offline => zones.capacity,
            _ => zone.written_bytes(),
        });
        let written = (0..first).map(|_| 0).chain(written).collect();
        Ok(Self { namespace, zones, keeps_bytes, written, buffer: Vec::new() })
    }

    pub const fn capacity_bytes(&self) -> u64 {
        self.zones.zones as u64 * self.zones.capacity
    }

    /// As a store tells of them.
    pub fn regions(&self) -> Regions {
        Regions {
            first: u64::from(self.zones.conventional) * self.zones.capacity,
            bytes: self.zones.capacity,
            count: self.zones.zones - self.zones.conventional,
        }
    }

    /// The parts of an extent, zone by zone.
    fn parts(&self, extent: Extent) -> impl Iterator<Item = Part> + use<> {
        let capacity = self.zones.capacity;
        let mut next = extent.offset;
        std::iter::from_fn(move || {
            let (zone, start) = (next / capacity, next % capacity);
            let len = (capacity - start).min(extent.end() - next);
            let part = Part { zone: zone as u32, start, at: next - extent.offset, len };
            next += len;
            (len > 0).then_some(part)
        })
    }

    const fn is_conventional(&self, zone: u32) -> bool {
        zone < self.zones.conventional
    }

    /// Carries out a command whose extent lies in the row.
    pub fn submit(
        &mut self,
        device: &mut Device,
        command: BlockCommand,
        mut payload: Payload<'_>,
        at: SimTime,
    ) -> NamespaceResult<Token> {
        if command.op == Op::Flush {
            return Ok(device.submit(self.namespace, Command::FLUSH, Payload::None, at)?.done);
        }
        let mut done = Token::NONE;
        for part in self.parts(command.extent) {
            let range = part.at as usize..(part.at + part.len) as usize;
            let step = match (command.op, &mut payload) {
                (Op::Read, Payload::Read(out)) => self.read(device, part, Some(&mut out[range]), at)?,
                (Op::Read, _) => self.read(device, part, None, at)?,
                (Op::Write, Payload::Write(data)) => self.write(device, part, Some(&data[range]), at)?,
                (Op::Write, _) => self.write(device, part, None, at)?,
                (Op::Trim, _) if part.len == self.zones.capacity && !self.is_conventional(part.zone) => {
                    self.reset(device, part.zone, at)?
                }
                (Op::Trim, _) => Token::NONE,
                _ => return Err(NamespaceError::NotSupported { command: "write zeroes" }),
            };
            done = device.join(done, step);
        }
        Ok(done)
    }

    fn ask(
        &self,
        device: &mut Device,
        op: Op,
        (zone, start, len): (u32, u64, u64),
        payload: Payload<'_>,
        at: SimTime,
    ) -> NamespaceResult<Token> {
        let extent = Extent::new(u64::from(zone) * self.zones.size + start, len);
        let command = BlockCommand::new(op, extent, Hint(0));
        Ok(device.submit(self.namespace, command.into(), payload, at)?.done)
    }

    /// Reads whole logical blocks around a part.
    fn read(
        &mut self,
        device: &mut Device,
        part: Part,
        data: Option<&mut [u8]>,
        at: SimTime,
    ) -> NamespaceResult<Token> {
        let block = u64::from(self.zones.block);
        let mut first = part.start - part.start % block;
        let len = (part.start + part.len).next_multiple_of(block) - first;
        if !self.keeps_bytes && !self.is_conventional(part.zone) {
            let written = self.written[part.zone as usize];
            if written == 0 {
                return Ok(Token::NONE);
            }
            first = first.min(written.saturating_sub(len));
        }
        let place = (part.zone, first, len);
        match data {
            Some(data) if len != part.len => {
                let mut buffer = std::mem::take(&mut self.buffer);
                buffer.resize(len as usize, 0);
                let read = self.ask(device, Op::Read, place, Payload::Read(&mut buffer), at);
                data.copy_from_slice(&buffer[(part.start - first) as usize..][..part.len as usize]);
                self.buffer = buffer;
                read
            }
            data => self.ask(device, Op::Read, place, data.map_or(Payload::None, Payload::Read), at),
        }
    }

    /// Writes anywhere in a conventional zone, or at the write pointer of another one.
    fn write(
        &mut self,
        device: &mut Device,
        part: Part,
        data: Option<&[u8]>,
        at: SimTime,
    ) -> NamespaceResult<Token> {
        let payload = |data: Option<_>| data.map_or(Payload::None, Payload::Write);
        let Part { zone, start, len, .. } = part;
        if self.is_conventional(zone) {
            return self.ask(device, Op::Write, (zone, start, len), payload(data), at);
        }
        let written = self.written[zone as usize];
        if self.keeps_bytes && start < written {
            return Err(ZoneError::InvalidWrite.into());
        }
        let start = if self.keeps_bytes { start } else { written };
        let mut done = Token::NONE;
        if start > written {
            let zeroes = vec![0; (start - written) as usize];
            let gap = (zone, written, start - written);
            done = self.ask(device, Op::Write, gap, Payload::Write(&zeroes), at)?;
            self.written[zone as usize] = start;
        }
        let step = self.ask(device, Op::Write, (zone, start, len), payload(data), at)?;
        self.written[zone as usize] = start + len;
        Ok(device.join(done, step))
    }

    fn reset(&mut self, device: &mut Device, zone: u32, at: SimTime) -> NamespaceResult<Token> {
        if self.written[zone as usize] == 0 {
            return Ok(Token::NONE);
        }
        let start = u64::from(zone) * self.zones.size;
        let command = ZoneCommand::Manage { action: ZoneAction::Reset, zone: Some(start) };
        let answer = device.submit(self.namespace, Command::Zone(command), Payload::None, at)?;
        self.written[zone as usize] = 0;
        Ok(answer.done)
    }

    /// Mapped is what lies below the write pointers, and all of conventional zones.
    pub fn allocation(&self, extent: Extent) -> Allocation {
        let capacity = self.zones.capacity;
        let (zone, start) = ((extent.offset / capacity) as u32, extent.offset % capacity);
        let written = if self.is_conventional(zone) { capacity } else { self.written[zone as usize] };
        let end = if start < written { written } else { capacity };
        Allocation { is_mapped: start < written, bytes: (end - start).min(extent.len) }
    }
}
