//! Numbers of the protocol, and bytes in network order.
//!
//! Names are those of the reference implementation's `doc/proto.md` without the `NBD_` in front.

/// What a server sends first.
pub const MAGIC: u64 = 0x4e42_444d_4147_4943;
/// "IHAVEOPT": newstyle negotiation, and in front of every option.
pub const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
/// In front of every reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// In front of every request.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// In front of a simple reply.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// In front of a chunk of a structured reply.
pub const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

/// Flags of the handshake, server's and client's alike.
pub(crate) mod handshake {
    /// Replies to options, and going on after an unknown one.
    pub const FIXED_NEWSTYLE: u16 = 1 << 0;
    /// No 124 zeroes after the answer to `EXPORT_NAME`.
    pub const NO_ZEROES: u16 = 1 << 1;
}

/// Options of the negotiation.
pub mod option {
    /// Choose an export and begin, with no way to refuse but to hang up.
    pub const EXPORT_NAME: u32 = 1;
    /// Leave.
    pub const ABORT: u32 = 2;
    /// List the exports.
    pub const LIST: u32 = 3;
    /// Go on under TLS.
    pub const STARTTLS: u32 = 5;
    /// What is an export like.
    pub const INFO: u32 = 6;
    /// The same, and begin.
    pub const GO: u32 = 7;
    /// Structured replies from now on.
    pub const STRUCTURED_REPLY: u32 = 8;
    /// Which kinds of block status are there.
    pub const LIST_META_CONTEXT: u32 = 9;
    /// Which kinds of block status the client wants.
    pub const SET_META_CONTEXT: u32 = 10;
}

/// Types of replies to options.
pub(crate) mod option_reply {
    pub const ACK: u32 = 1;
    /// One export of a list.
    pub const SERVER: u32 = 2;
    pub const INFO: u32 = 3;
    pub const META_CONTEXT: u32 = 4;
    /// Unknown option.
    pub const ERR_UNSUP: u32 = 1 << 31 | 1;
    /// Known, and forbidden here.
    pub const ERR_POLICY: u32 = 1 << 31 | 2;
    /// Malformed, or at the wrong moment.
    pub const ERR_INVALID: u32 = 1 << 31 | 3;
    pub const ERR_TLS_REQD: u32 = 1 << 31 | 5;
    /// No such export.
    pub const ERR_UNKNOWN: u32 = 1 << 31 | 6;
    pub const ERR_TOO_BIG: u32 = 1 << 31 | 9;
}

/// Pieces of information about an export.
pub(crate) mod info {
    /// Size and transmission flags.
    pub const EXPORT: u16 = 0;
    pub const NAME: u16 = 1;
    pub const DESCRIPTION: u16 = 2;
    /// Least, preferred and greatest length of a request.
    pub const BLOCK_SIZE: u16 = 3;
}

/// What an export can do.
pub(crate) mod flag {
    pub const HAS_FLAGS: u16 = 1 << 0;
    pub const READ_ONLY: u16 = 1 << 1;
    pub const SEND_FLUSH: u16 = 1 << 2;
    pub const SEND_FUA: u16 = 1 << 3;
    pub const SEND_TRIM: u16 = 1 << 5;
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    /// A read can be asked for in one chunk.
    pub const SEND_DF: u16 = 1 << 7;
    /// A flush on one connection covers what was answered on all.
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    pub const SEND_CACHE: u16 = 1 << 10;
    /// Zeroes can be asked for on condition that they are quick.
    pub const SEND_FAST_ZERO: u16 = 1 << 11;
}

/// Commands.
pub mod command {
    /// Read.
    pub const READ: u16 = 0;
    /// Write.
    pub const WRITE: u16 = 1;
    /// Goodbye.
    pub const DISC: u16 = 2;
    /// Make what was answered durable.
    pub const FLUSH: u16 = 3;
    /// Forget a range.
    pub const TRIM: u16 = 4;
    /// Load a range into a cache.
    pub const CACHE: u16 = 5;
    /// Zero a range.
    pub const WRITE_ZEROES: u16 = 6;
    /// Which parts of a range hold data.
    pub const BLOCK_STATUS: u16 = 7;
}

/// Flags of commands.
pub mod command_flag {
    /// Forced unit access.
    pub const FUA: u16 = 1 << 0;
    /// Zeroes that stay allocated.
    pub const NO_HOLE: u16 = 1 << 1;
    /// The answer in one chunk.
    pub const DF: u16 = 1 << 2;
    /// One extent only.
    pub const REQ_ONE: u16 = 1 << 3;
    /// Zeroes only if that is quicker than writing them.
    pub const FAST_ZERO: u16 = 1 << 4;
}

/// Chunks of structured replies.
pub(crate) mod chunk {
    /// The last chunk of a reply.
    pub const FLAG_DONE: u16 = 1 << 0;
    pub const OFFSET_DATA: u16 = 1;
    /// A range without data, which reads as zeroes.
    pub const OFFSET_HOLE: u16 = 2;
    pub const BLOCK_STATUS: u16 = 5;
    pub const ERROR: u16 = 1 << 15 | 1;
}

/// Bits of the block status `base:allocation`.
pub(crate) mod allocation {
    /// Nothing is stored there.
    pub const HOLE: u32 = 1 << 0;
    pub const ZERO: u32 = 1 << 1;
}

/// The only kind of block status there is here.
pub const BASE_ALLOCATION: &str = "base:allocation";

/// Bytes in network order at the end of a buffer.
pub(crate) trait Put {
    fn put(&mut self, bytes: &[u8]);

    fn put_u16(&mut self, value: u16) {
        self.put(&value.to_be_bytes());
    }

    fn put_u32(&mut self, value: u32) {
        self.put(&value.to_be_bytes());
    }

    fn put_u64(&mut self, value: u64) {
        self.put(&value.to_be_bytes());
    }
}

impl Put for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Takes bytes in network order from the front of a slice; `None` where there are too few.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Take<'a>(pub &'a [u8]);

impl<'a> Take<'a> {
    pub fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(front)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// A string with its length in front.
    pub fn string(&mut self) -> Option<&'a [u8]> {
        let len = self.u32()?;
        self.bytes(len as usize)
    }
}
