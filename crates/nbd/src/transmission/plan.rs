//! Which requests run together, and where their replies stand.

use super::{Action, BadMagic, HEADER_BYTES, Header, Session};
use crate::errno::Refusal;
use crate::wire::command;

/// One request of a batch.
#[derive(Clone, Debug)]
pub struct Entry {
    pub(crate) header: Header,
    pub(crate) action: Result<Action, Refusal>,
    /// Where its payload begins in the input.
    pub(crate) payload: usize,
    /// Bytes set aside for its reply.
    pub(crate) reply_bytes: usize,
}

/// Why a plan ends where it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The next request has not arrived whole: so many bytes are needed from its first.
    Needs(usize),
    /// The batch is full.
    Full,
    /// The payload of the last request is too long to be taken; so many bytes of it are to be skipped.
    Skip(u64),
    /// The client says goodbye.
    Disconnect,
}

/// As many requests as have arrived whole and fit a batch.
#[derive(Debug, Default)]
pub struct Plan {
    /// In the order they came.
    pub entries: Vec<Entry>,
    /// Bytes set aside for all replies.
    pub(crate) reply_bytes: usize,
}

/// Bounds of a batch, which one request alone may exceed.
#[derive(Clone, Copy, Debug)]
pub struct BatchLimits {
    /// Requests.
    pub requests: usize,
    /// Payload bytes, of writes and reads together.
    pub bytes: usize,
}

impl Plan {
    /// Plans the requests at the front of `input`. Gives how many bytes they take.
    ///
    /// A request that is not one engine request (block status, written zeroes) is a batch by itself.
    pub fn fill(
        &mut self,
        session: &Session,
        input: &[u8],
        limits: BatchLimits,
    ) -> Result<(usize, Stop), BadMagic> {
        self.entries.clear();
        self.reply_bytes = 0;
        let mut moved = 0;
        let mut taken = 0;
        loop {
            let rest = &input[taken..];
            let Some(header) = Header::parse(rest)? else { return Ok((taken, Stop::Needs(HEADER_BYTES))) };
            let action = session.check(&header);
            let bytes = match action {
                Ok(Action::Disconnect) => return Ok((taken, Stop::Disconnect)),
                Ok(Action::Read | Action::Write) => header.len as usize,
                _ => 0,
            };
            let is_full = self.entries.len() >= limits.requests || moved + bytes > limits.bytes;
            let is_alone = matches!(action, Ok(Action::Status | Action::WriteZeroes));
            if !self.entries.is_empty() && (is_full || is_alone) {
                return Ok((taken, Stop::Full));
            }
            let payload_bytes = if header.kind == command::WRITE { header.len as usize } else { 0 };
            if action.is_err() && payload_bytes > 0 {
                // Refused before its payload has come, which then need not be kept.
                let here = payload_bytes.min(rest.len() - HEADER_BYTES);
                self.push(session, header, action, taken + HEADER_BYTES);
                taken += HEADER_BYTES + here;
                let skip = (payload_bytes - here) as u64;
                if skip > 0 {
                    return Ok((taken, Stop::Skip(skip)));
                }
                continue;
            }
            if rest.len() < HEADER_BYTES + payload_bytes {
                return Ok((taken, Stop::Needs(HEADER_BYTES + payload_bytes)));
            }
            self.push(session, header, action, taken + HEADER_BYTES);
            taken += HEADER_BYTES + payload_bytes;
            moved += bytes;
            if is_alone {
                return Ok((taken, Stop::Full));
            }
        }
    }

    fn push(&mut self, session: &Session, header: Header, action: Result<Action, Refusal>, payload: usize) {
        let reply_bytes = match action {
            Ok(Action::Read) => {
                super::replies::read_header_bytes(session.is_structured) + header.len as usize
            }
            _ => super::replies::SIMPLE_BYTES,
        };
        self.reply_bytes += reply_bytes;
        self.entries.push(Entry { header, action, payload, reply_bytes });
    }
}
