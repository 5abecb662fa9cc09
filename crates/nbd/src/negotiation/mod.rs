//! The negotiation (fixed newstyle) without sockets: bytes in, bytes out, and in the end a [`Session`].
//!
//! Invariants: an answer depends on nothing a client sends but its length and names within the limits; an
//! option changes the state only when well formed; nothing said before TLS counts after it.

mod options;

#[cfg(test)]
mod tests;

use crate::export::Export;
use crate::limits::{MAX_OPTION_BYTES, MAX_OPTIONS, MAX_SKIPPED_OPTION_BYTES};
use crate::transmission::{Refuses, Session};
use crate::wire::{MAGIC, OPTION_MAGIC, OPTION_REPLY_MAGIC, Put, Take, handshake, option, option_reply};
use std::sync::Arc;

/// How a connection stands to TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsState {
    /// There is none.
    Absent,
    /// The client must begin it before it may ask anything.
    Required,
    /// It is on.
    Active,
}

/// What comes next in a connection.
#[derive(Debug)]
pub enum Progress {
    /// More bytes are needed.
    More,
    /// One element was handled; there may be more in the input.
    Again,
    /// TLS begins with the next byte; then [`Negotiation::secured`].
    StartTls,
    /// The negotiation is over, and requests follow.
    Transmit(Session),
    /// The client is leaving, in good order.
    Close,
}

/// Why a connection is ended during the negotiation: flags or an option that cannot be, or an option that has
/// no answer for errors. With what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NegotiationError(String);

/// The negotiation of one connection.
#[derive(Debug)]
pub struct Negotiation {
    exports: Arc<[Export]>,
    tls: TlsState,
    has_flags: bool,
    sends_zeroes: bool,
    is_structured: bool,
    /// The export for which the client chose the block status `base:allocation`.
    status_of: Option<usize>,
    options: u32,
    /// Bytes of an oversized option that are still to be skipped.
    skip: usize,
}

impl Negotiation {
    /// The negotiation of a new connection. The first export is also the one without a name.
    pub fn new(exports: Arc<[Export]>, tls: TlsState) -> Self {
        Self {
            exports,
            tls,
            has_flags: false,
            sends_zeroes: true,
            is_structured: false,
            status_of: None,
            options: 0,
            skip: 0,
        }
    }

    /// What the server says before anything comes in.
    pub fn greet(out: &mut Vec<u8>) {
        out.put_u64(MAGIC);
        out.put_u64(OPTION_MAGIC);
        out.put_u16(handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES);
    }

    /// TLS is on: whatever was agreed in the clear is forgotten.
    pub fn secured(&mut self) {
        self.tls = TlsState::Active;
        self.is_structured = false;
        self.status_of = None;
    }

    /// Takes one element from the front of `input` and appends what is to be sent. Gives how many bytes it
    /// took; where it needs more to go on, those it took are none, or part of what is skipped.
    pub fn advance(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(usize, Progress), NegotiationError> {
        if self.skip > 0 {
            let skipped = self.skip.min(input.len());
            self.skip -= skipped;
            return Ok((skipped, if self.skip > 0 { Progress::More } else { Progress::Again }));
        }
        let mut take = Take(input);
        if !self.has_flags {
            let Some(flags) = take.u32() else { return Ok((0, Progress::More)) };
            self.client_flags(flags)?;
            return Ok((4, Progress::Again));
        }
        let Some(magic) = take.u64() else { return Ok((0, Progress::More)) };
        if magic != OPTION_MAGIC {
            let expected = format!("expected {OPTION_MAGIC:#018x}");
            return Err(NegotiationError(format!("option begins with {magic:#018x}: {expected}")));
        }
        let (Some(option), Some(len)) = (take.u32(), take.u32()) else { return Ok((0, Progress::More)) };
        let len_bytes = len as usize;
        if len_bytes > MAX_SKIPPED_OPTION_BYTES {
            let expected = format!("expected at most {MAX_SKIPPED_OPTION_BYTES}");
            return Err(NegotiationError(format!("option {option} of {len} bytes: {expected}")));
        }
        let is_oversized = len_bytes > MAX_OPTION_BYTES;
        let data = take.bytes(if is_oversized { 0 } else { len_bytes });
        let Some(data) = data else { return Ok((0, Progress::More)) };
        let taken = input.len() - take.0.len();
        self.options += 1;
        if self.options > MAX_OPTIONS {
            let expected = "expected the client to choose an export";
            return Err(NegotiationError(format!("more than {MAX_OPTIONS} options: {expected}")));
        }
        if is_oversized {
            self.skip = len_bytes;
            refuse(out, option, option_reply::ERR_TOO_BIG, "the option is too long");
            return Ok((taken, Progress::Again));
        }
        Ok((taken, self.option(option, data, out)?))
    }

    fn client_flags(&mut self, flags: u32) -> Result<(), NegotiationError> {
        let fixed = u32::from(handshake::FIXED_NEWSTYLE);
        let no_zeroes = u32::from(handshake::NO_ZEROES);
        if flags & fixed == 0 || flags & !(fixed | no_zeroes) != 0 {
            let expected = "expected 1 (fixed newstyle) or 3 (and no zeroes)";
            return Err(NegotiationError(format!("client flags {flags:#x}: {expected}")));
        }
        self.has_flags = true;
        self.sends_zeroes = flags & no_zeroes == 0;
        Ok(())
    }

    fn option(&mut self, option: u32, data: &[u8], out: &mut Vec<u8>) -> Result<Progress, NegotiationError> {
        if option == option::ABORT {
            acknowledge(out, option);
            return Ok(Progress::Close);
        }
        if self.tls == TlsState::Required && option != option::STARTTLS {
            if option == option::EXPORT_NAME {
                return Err(unknown_export(data));
            }
            refuse(out, option, option_reply::ERR_TLS_REQD, "expected STARTTLS first");
            return Ok(Progress::Again);
        }
        match option {
            option::EXPORT_NAME => return self.export_name(data, out),
            option::STARTTLS => return Ok(self.start_tls(data, out)),
            option::GO | option::INFO => {
                if let Some(session) = self.info_or_go(option, data, out) {
                    return Ok(Progress::Transmit(session));
                }
            }
            option::LIST => self.list(data, out),
            option::STRUCTURED_REPLY => {
                if has_no_data(data, option, out) {
                    self.is_structured = true;
                    acknowledge(out, option);
                }
            }
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => self.meta_context(option, data, out),
            _ => refuse(out, option, option_reply::ERR_UNSUP, "no such option here"),
        }
        Ok(Progress::Again)
    }

    fn start_tls(&mut self, data: &[u8], out: &mut Vec<u8>) -> Progress {
        let option = option::STARTTLS;
        match self.tls {
            TlsState::Absent => {
                refuse(out, option, option_reply::ERR_POLICY, "TLS is not set up on this address");
            }
            TlsState::Active => refuse(out, option, option_reply::ERR_INVALID, "TLS is on already"),
            TlsState::Required => {
                if has_no_data(data, option, out) {
                    acknowledge(out, option);
                    return Progress::StartTls;
                }
            }
        }
        Progress::Again
    }

    /// The index of an export by its name; the first has the empty name too.
    fn find(&self, name: &[u8]) -> Option<usize> {
        if name.is_empty() {
            return (!self.exports.is_empty()).then_some(0);
        }
        self.exports.iter().position(|export| export.name.as_bytes() == name)
    }

    fn session(&self, index: usize) -> Session {
        let export = self.exports[index].clone();
        let has_status = self.status_of == Some(index);
        Session { export, is_structured: self.is_structured, has_status, refuses: Refuses::Nothing }
    }
}

fn unknown_export(name: &[u8]) -> NegotiationError {
    let shown = String::from_utf8_lossy(&name[..name.len().min(100)]);
    let expected = "expected one of those listed, and TLS where it is required";
    NegotiationError(format!("export '{shown}' asked for by EXPORT_NAME: {expected}"))
}

/// Appends a reply to an option.
fn reply(out: &mut Vec<u8>, option: u32, kind: u32, data: &[u8]) {
    out.put_u64(OPTION_REPLY_MAGIC);
    out.put_u32(option);
    out.put_u32(kind);
    out.put_u32(data.len() as u32);
    out.put(data);
}

fn acknowledge(out: &mut Vec<u8>, option: u32) {
    reply(out, option, option_reply::ACK, &[]);
}

/// An error with words for people.
fn refuse(out: &mut Vec<u8>, option: u32, kind: u32, message: &str) {
    reply(out, option, kind, message.as_bytes());
}

/// Whether an option that takes no data has none; refuses it otherwise.
fn has_no_data(data: &[u8], option: u32, out: &mut Vec<u8>) -> bool {
    if !data.is_empty() {
        refuse(out, option, option_reply::ERR_INVALID, "expected no data with this option");
    }
    data.is_empty()
}
