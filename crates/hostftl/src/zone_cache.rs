//! `zone-cache`: conventional and sequential zones in one row of bytes, for a cache that writes each region of
//! its slots from the first to the last and gives up a region as a whole
//! ([`nandscape_core::Regions`]). A region is a zone, and a trim of it a reset; nothing is ever moved.
//!
//! With bytes, a write goes where it says: at the write pointer, or behind it, and then what lies between is
//! filled with zeroes. Without bytes, commands come when they begin, in another order than they were applied
//! in: slots that are filled wait for their disk. A write then goes to the write pointer of its zone wherever
//! in it was meant, and a read of what is not written yet to what was written last. So the zone is as full
//! and as busy as it would be, and only which of its dies serves a read can differ.

use crate::below::{Below, zoned};
use crate::error::HostFtlError;
use nandscape_core::command::Payload;
use nandscape_core::zone::{ZoneAction, ZoneError, ZoneShape, ZoneState};
use nandscape_core::{
    Allocation, BlockCommand, Cause, Command, Control, Extent, Inspect, Issue, NamespaceError, NamespaceInfo,
    NamespaceResult, Op, SimTime, Submitted, Subsystem, Token,
};

const LAYER: &str = "zone-cache";

/// Zones of a zoned namespace, one behind the other without what cannot be written of each.
pub struct ZoneCache<S> {
    below: Below<S>,
    infos: [NamespaceInfo; 1],
    /// Of the namespace below.
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

impl<S: Subsystem> ZoneCache<S> {
    /// The zones of namespace 0 of a subsystem, some of which are conventional, as they are.
    ///
    /// # Errors
    ///
    /// No zoned namespace, or one without conventional zones, which the metadata of a cache need.
    pub fn new(mut below: S) -> Result<Self, HostFtlError> {
        let (info, zones) = zoned(LAYER, &mut below)?;
        if zones.conventional == 0 || zones.conventional == zones.zones {
            let reason = format!(
                "{} of its {} zones are conventional: expected some, for the metadata of the cache, and others (zone.conventional)",
                zones.conventional, zones.zones
            );
            return Err(HostFtlError::Device { layer: LAYER, reason });
        }
        let keeps_bytes = below.inspect().device(0).capabilities().stores_data;
        let mut below = Below { device: below };
        let sequential = u64::from(zones.conventional);
        let found = below.report(sequential * zones.size, u64::from(zones.zones), SimTime::ZERO)?;
        let written = found.iter().map(|zone| match zone.state {
            // What became of them shows when they are used.
            ZoneState::Full | ZoneState::ReadOnly | ZoneState::Offline => zones.capacity,
            _ => zone.write_pointer.map_or(0, |pointer| pointer - zone.start),
        });
        let written = (0..sequential).map(|_| 0).chain(written).collect();
        let compact = ZoneShape { size: zones.capacity, ..zones };
        let capacity_bytes = u64::from(zones.zones) * zones.capacity;
        let infos = [NamespaceInfo { capacity_bytes, zones: Some(compact), ..info }];
        Ok(Self { below, infos, zones, keeps_bytes, written, buffer: Vec::new() })
    }

    /// The parts of an extent, zone by zone.
    fn parts(&self, extent: Extent) -> NamespaceResult<impl Iterator<Item = Part> + use<S>> {
        let capacity = self.zones.capacity;
        if extent.end() > self.infos[0].capacity_bytes {
            return Err(ZoneError::OutOfRange.into());
        }
        let mut next = extent.offset;
        Ok(std::iter::from_fn(move || {
            let (zone, start) = (next / capacity, next % capacity);
            let len = (capacity - start).min(extent.end() - next);
            let part = Part { zone: zone as u32, start, at: next - extent.offset, len };
            next += len;
            (len > 0).then_some(part)
        }))
    }

    const fn place(&self, zone: u32, start: u64) -> u64 {
        zone as u64 * self.zones.size + start
    }

    const fn is_conventional(&self, zone: u32) -> bool {
        zone < self.zones.conventional
    }

    fn block(
        &mut self,
        command: BlockCommand,
        mut payload: Payload<'_>,
        at: SimTime,
    ) -> NamespaceResult<Token> {
        let issue = Issue::new(at, Cause::Host);
        let mut done = Token::NONE;
        match command.op {
            Op::Flush => return self.below.flush(issue),
            Op::Read => {
                for part in self.parts(command.extent)? {
                    let data = match &mut payload {
                        Payload::Read(out) => Some(&mut out[part.at as usize..][..part.len as usize]),
                        _ => None,
                    };
                    let read = self.read(part, data, issue)?;
                    done = self.below.device.join(done, read);
                }
            }
            Op::Write => {
                for part in self.parts(command.extent)? {
                    let data = match &payload {
                        Payload::Write(data) => Some(&data[part.at as usize..][..part.len as usize]),
                        _ => None,
                    };
                    let written = if self.is_conventional(part.zone) {
                        let extent = Extent::new(self.place(part.zone, part.start), part.len);
                        self.below.write(extent, data, issue)?
                    } else {
                        self.append(part, data, issue)?
                    };
                    done = self.below.device.join(done, written);
                }
            }
            Op::Trim => {
                for part in self.parts(command.extent)? {
                    if part.len == self.zones.capacity && !self.is_conventional(part.zone) {
                        let reset = self.reset(part.zone, issue)?;
                        done = self.below.device.join(done, reset);
                    }
                }
            }
            Op::WriteZeroes => return Err(NamespaceError::NotSupported { command: "write zeroes" }),
        }
        Ok(done)
    }

    /// Reads whole logical blocks around a part.
    fn read(&mut self, part: Part, data: Option<&mut [u8]>, issue: Issue) -> NamespaceResult<Token> {
        let block = u64::from(self.zones.block);
        let first = part.start - part.start % block;
        let len = (part.start + part.len).next_multiple_of(block) - first;
        let mut first = first;
        if !self.keeps_bytes && !self.is_conventional(part.zone) {
            let written = self.written[part.zone as usize];
            if written == 0 {
                return Ok(Token::NONE);
            }
            first = first.min(written.saturating_sub(len));
        }
        let extent = Extent::new(self.place(part.zone, first), len);
        match data {
            Some(data) if len != part.len => {
                self.buffer.resize(len as usize, 0);
                let read = self.below.read(extent, Some(&mut self.buffer), issue)?;
                data.copy_from_slice(&self.buffer[(part.start - first) as usize..][..part.len as usize]);
                Ok(read)
            }
            data => self.below.read(extent, data, issue),
        }
    }

    /// Writes at the write pointer of a sequential zone.
    fn append(&mut self, part: Part, data: Option<&[u8]>, issue: Issue) -> NamespaceResult<Token> {
        let written = self.written[part.zone as usize];
        let mut done = Token::NONE;
        if self.keeps_bytes && part.start < written {
            return Err(ZoneError::InvalidWrite.into());
        }
        let start = if self.keeps_bytes { part.start } else { written };
        if start > written {
            let zeroes = vec![0; (start - written) as usize];
            let extent = Extent::new(self.place(part.zone, written), start - written);
            done = self.below.write(extent, Some(&zeroes), issue)?;
            self.written[part.zone as usize] = start;
        }
        let extent = Extent::new(self.place(part.zone, start), part.len);
        let written = self.below.write(extent, data, issue)?;
        self.written[part.zone as usize] = start + part.len;
        Ok(self.below.device.join(done, written))
    }

    fn reset(&mut self, zone: u32, issue: Issue) -> NamespaceResult<Token> {
        if self.written[zone as usize] == 0 {
            return Ok(Token::NONE);
        }
        let reset = self.below.manage(ZoneAction::Reset, self.place(zone, 0), issue)?;
        self.written[zone as usize] = 0;
        Ok(reset)
    }
}

impl<S: Subsystem> nandscape_core::Clocked for ZoneCache<S> {
    nandscape_core::delegate_clock!(self, self.below.device);
}

impl<S: Subsystem + Send> Subsystem for ZoneCache<S> {
    fn namespaces(&self) -> &[NamespaceInfo] {
        &self.infos
    }

    fn prepare(&self, _: u32, _: Op, _: Extent) {}

    #[inline]
    fn submit(&mut self, _: u32, command: Command, payload: Payload<'_>, at: SimTime) -> Submitted {
        Ok(self.block(command.into_block()?, payload, at)?.into())
    }

    #[inline]
    fn join(&mut self, a: Token, b: Token) -> Token {
        self.below.device.join(a, b)
    }

    fn idle(&mut self, at: SimTime, until: SimTime) -> NamespaceResult<()> {
        self.below.device.idle(at, until)
    }

    fn shutdown(&mut self, at: SimTime) -> NamespaceResult<Token> {
        self.below.device.shutdown(at)
    }

    /// Mapped is what lies below the write pointers, and all of conventional zones.
    fn allocation(&self, _: u32, extent: Extent) -> Allocation {
        let capacity = self.zones.capacity;
        let (zone, start) = ((extent.offset / capacity) as u32, extent.offset % capacity);
        let written = if self.is_conventional(zone) { capacity } else { self.written[zone as usize] };
        let end = if start < written { written } else { capacity };
        Allocation { is_mapped: start < written, bytes: (end - start).min(extent.len) }
    }

    fn inspect(&self) -> Inspect<'_> {
        self.below.device.inspect()
    }

    fn control(&mut self) -> Control<'_> {
        self.below.device.control()
    }

    fn reset_counters(&mut self, at: SimTime) {
        self.below.device.reset_counters(at);
    }

    fn check_invariants(&self) {
        self.below.device.check_invariants();
    }
}
