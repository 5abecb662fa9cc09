//! The transmission phase without sockets: requests in, replies out, the engine between.
//!
//! * `Header` and `Session::check`: what a request is, and whether this export does it.
//! * [`Plan`]: the requests that have arrived whole, within a batch, and where their replies will stand.
//! * `Worker`: runs a plan on the engine. Payloads of writes are used where they were received; reads go
//!   straight to where their reply is sent from.
//!
//! Replies come in the order of the requests.

mod holes;
mod plan;
mod replies;
mod worker;

#[cfg(test)]
mod tests;

pub(crate) use plan::Entry;
pub use plan::{BatchLimits, Plan, Stop};
pub(crate) use replies::Replies;
pub(crate) use worker::Worker;

use crate::errno::{Errno, Refusal};
use crate::export::Export;
use crate::limits::MAX_REQUEST_BYTES;
use crate::wire::{REQUEST_MAGIC, Take, command, command_flag};

/// The number by which block status of `base:allocation` goes on a connection.
pub(crate) const STATUS_CONTEXT: u32 = 1;

/// Bytes of a request without its payload.
const HEADER_BYTES: usize = 28;

/// What the negotiation agreed on.
#[derive(Clone, Debug)]
pub struct Session {
    pub(crate) export: Export,
    /// Reads are answered in chunks.
    pub(crate) is_structured: bool,
    /// Block status of `base:allocation` may be asked for.
    pub(crate) has_status: bool,
    pub(crate) refuses: Refuses,
}

/// Requests that a session refuses, whatever they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Refuses {
    #[default]
    Nothing,
    /// Writes: there is no memory for the payload of the next one.
    Writes,
    /// All: the server is about to go.
    Everything,
}

/// A request without its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub flags: u16,
    /// The command.
    pub kind: u16,
    /// What the reply repeats.
    pub cookie: u64,
    pub offset: u64,
    pub len: u32,
}

/// The bytes that stand where a request should.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("request begins with {0:#010x}: expected {REQUEST_MAGIC:#010x}")]
pub struct BadMagic(pub u32);

impl Header {
    /// The request at the front of `bytes`; `None` where it has not arrived whole.
    pub fn parse(bytes: &[u8]) -> Result<Option<Self>, BadMagic> {
        let mut take = Take(bytes);
        let Some(magic) = take.u32() else { return Ok(None) };
        if magic != REQUEST_MAGIC {
            return Err(BadMagic(magic));
        }
        let mut parse = || {
            Some(Self {
                flags: take.u16()?,
                kind: take.u16()?,
                cookie: take.u64()?,
                offset: take.u64()?,
                len: take.u32()?,
            })
        };
        Ok(parse())
    }

    const fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    pub const fn is_fua(&self) -> bool {
        self.has(command_flag::FUA)
    }
}

/// What a request comes to. Its flags are those of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Read,
    Write,
    Trim,
    /// Zero a range by unmapping what can be.
    Zero,
    /// Zero a range by writing zeroes, so that it stays allocated.
    WriteZeroes,
    Flush,
    /// Load into a cache: there is none, so this does nothing.
    Cache,
    /// Which parts of a range hold data.
    Status,
    Disconnect,
}

impl Session {
    /// What a request comes to, or why it is refused. Nothing that gets through reaches past the export, or
    /// is longer than [`MAX_REQUEST_BYTES`] where it moves bytes.
    pub(crate) fn check(&self, header: &Header) -> Result<Action, Refusal> {
        if self.refuses == Refuses::Everything && header.kind != command::DISC {
            return Err(Refusal::new(Errno::Shutdown, "the server is stopping"));
        }
        if self.refuses == Refuses::Writes && header.kind == command::WRITE {
            return Err(Refusal::new(Errno::NoMem, "there is no memory for the payload"));
        }
        let (action, allowed) = match header.kind {
            command::READ => (Action::Read, if self.is_structured { command_flag::DF } else { 0 }),
            command::WRITE => (Action::Write, 0),
            command::DISC => return Ok(Action::Disconnect),
            command::FLUSH => (Action::Flush, 0),
            command::TRIM => (Action::Trim, 0),
            command::CACHE => (Action::Cache, 0),
            command::WRITE_ZEROES if header.has(command_flag::NO_HOLE) => {
                (Action::WriteZeroes, command_flag::NO_HOLE | command_flag::FAST_ZERO)
            }
            command::WRITE_ZEROES => (Action::Zero, command_flag::FAST_ZERO),
            command::BLOCK_STATUS if self.has_status => (Action::Status, command_flag::REQ_ONE),
            command::BLOCK_STATUS => {
                return Err(Refusal::new(Errno::Inval, "expected SET_META_CONTEXT before a block status"));
            }
            _ => return Err(Refusal::new(Errno::Inval, "no such command")),
        };
        // Forced unit access may come with every command where announced, and only matters to writes.
        if header.flags & !(allowed | command_flag::FUA) != 0 {
            return Err(Refusal::new(Errno::Inval, "the command does not take these flags"));
        }
        self.check_range(header, action)?;
        if action == Action::WriteZeroes && header.has(command_flag::FAST_ZERO) {
            return Err(Refusal::new(Errno::NotSup, "zeroes without a hole are written: that is not fast"));
        }
        Ok(action)
    }

    fn check_range(&self, header: &Header, action: Action) -> Result<(), Refusal> {
        let writes = matches!(action, Action::Write | Action::Trim | Action::Zero | Action::WriteZeroes);
        if writes && self.export.is_read_only {
            return Err(Refusal::new(Errno::Perm, "the export is read-only"));
        }
        if action == Action::Flush && (header.offset, header.len) != (0, 0) {
            return Err(Refusal::new(Errno::Inval, "expected offset and length 0 with a flush"));
        }
        if action != Action::Flush && header.len == 0 {
            return Err(Refusal::new(Errno::Inval, "expected a length above 0"));
        }
        let moves = matches!(action, Action::Read | Action::Write);
        if moves && header.len > MAX_REQUEST_BYTES {
            return Err(Refusal::new(Errno::Inval, "longer than the greatest block size announced, 32 MiB"));
        }
        let end = header.offset.checked_add(u64::from(header.len));
        if end.is_none_or(|end| end > self.export.size) {
            let errno = if writes && action != Action::Trim { Errno::NoSpc } else { Errno::Inval };
            return Err(Refusal::new(errno, "reaches past the end of the export"));
        }
        Ok(())
    }
}
