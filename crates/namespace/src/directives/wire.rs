//! Command dwords: Directive Send and Receive, and the directive of a write.

/// Opcode of Directive Send (admin).
pub const DIRECTIVE_SEND: u8 = 0x19;
/// Opcode of Directive Receive (admin).
pub const DIRECTIVE_RECEIVE: u8 = 0x1a;
/// A namespace id that means all of them.
pub const BROADCAST: u32 = u32::MAX;
/// Bit of OACS (Identify Controller) that says Directive Send and Receive exist.
pub const OACS_DIRECTIVES: u16 = 1 << 5;

/// Directive type: Identify.
pub const IDENTIFY: u8 = 0x00;
/// Directive type: Streams.
pub const STREAMS: u8 = 0x01;
/// Directive type: Data Placement.
pub const DATA_PLACEMENT: u8 = 0x02;

/// A Directive Send or Directive Receive command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectiveCommand {
    /// Namespace id, from 1, or [`BROADCAST`].
    pub nsid: u32,
    /// Dwords of data, zero-based (CDW10).
    pub numd: u32,
    /// Directive operation (CDW11 bits 7:0).
    pub doper: u8,
    /// Directive type (CDW11 bits 15:8).
    pub dtype: u8,
    /// Directive specific (CDW11 bits 31:16).
    pub dspec: u16,
    /// CDW12, whose meaning is the operation's.
    pub cdw12: u32,
}

impl DirectiveCommand {
    /// From the namespace id and command dwords 10 to 12.
    pub const fn decode(nsid: u32, cdw: [u32; 3]) -> Self {
        Self {
            nsid,
            numd: cdw[0],
            doper: cdw[1] as u8,
            dtype: (cdw[1] >> 8) as u8,
            dspec: (cdw[1] >> 16) as u16,
            cdw12: cdw[2],
        }
    }

    /// Command dwords 10 to 12.
    pub const fn encode(&self) -> [u32; 3] {
        [self.numd, self.doper as u32 | (self.dtype as u32) << 8 | (self.dspec as u32) << 16, self.cdw12]
    }

    /// Bytes of data that the host has room for.
    pub const fn bytes(&self) -> u64 {
        (self.numd as u64 + 1) * 4
    }

    /// Identify: enable or disable a directive type.
    pub const fn enable(nsid: u32, target: u8, enable: bool) -> Self {
        let cdw12 = enable as u32 | (target as u32) << 8;
        Self { nsid, numd: 0, doper: 0x01, dtype: IDENTIFY, dspec: 0, cdw12 }
    }

    /// Return Parameters of a directive type, into so many bytes (a multiple of 4).
    pub const fn parameters(nsid: u32, dtype: u8, bytes: u32) -> Self {
        Self { nsid, numd: bytes / 4 - 1, doper: 0x01, dtype, dspec: 0, cdw12: 0 }
    }

    /// Streams: status of what is open, into so many bytes (a multiple of 4).
    pub const fn stream_status(nsid: u32, bytes: u32) -> Self {
        Self { nsid, numd: bytes / 4 - 1, doper: 0x02, dtype: STREAMS, dspec: 0, cdw12: 0 }
    }

    /// Streams: ask for exclusive resources.
    pub const fn allocate(nsid: u32, requested: u16) -> Self {
        Self { nsid, numd: 0, doper: 0x03, dtype: STREAMS, dspec: 0, cdw12: requested as u32 }
    }

    /// Streams: release an id.
    pub const fn release_id(nsid: u32, id: u16) -> Self {
        Self { nsid, numd: 0, doper: 0x01, dtype: STREAMS, dspec: id, cdw12: 0 }
    }

    /// Streams: give the exclusive resources back.
    pub const fn release_resources(nsid: u32) -> Self {
        Self { nsid, numd: 0, doper: 0x02, dtype: STREAMS, dspec: 0, cdw12: 0 }
    }
}

/// The directive of one write command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteDirective {
    /// Directive type, 4 bits; 0 is none.
    pub dtype: u8,
    /// Stream id or placement identifier.
    pub dspec: u16,
}

impl WriteDirective {
    /// A write without a directive.
    pub const NONE: Self = Self { dtype: 0, dspec: 0 };

    /// A write to a stream; 0 is no stream.
    pub const fn stream(id: u16) -> Self {
        Self { dtype: if id == 0 { 0 } else { STREAMS }, dspec: id }
    }

    /// A write with a placement identifier.
    pub const fn placement(pid: u16) -> Self {
        Self { dtype: DATA_PLACEMENT, dspec: pid }
    }

    /// From CDW12 (bits 23:20) and CDW13 (bits 31:16).
    pub const fn decode(cdw12: u32, cdw13: u32) -> Self {
        Self { dtype: (cdw12 >> 20) as u8 & 0xf, dspec: (cdw13 >> 16) as u16 }
    }

    /// The bits to be set in CDW12 and CDW13.
    pub const fn encode(self) -> [u32; 2] {
        [(self.dtype as u32 & 0xf) << 20, (self.dspec as u32) << 16]
    }
}

/// Copies as much as the host has room for: no more than its buffer and no more than its command says.
pub(crate) fn transfer(source: &[u8], asked: u64, target: &mut [u8]) -> usize {
    let bytes = source.len().min(target.len()).min(usize::try_from(asked).unwrap_or(usize::MAX));
    target[..bytes].copy_from_slice(&source[..bytes]);
    bytes
}
