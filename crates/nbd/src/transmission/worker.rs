//! Runs planned requests on the engine.

use super::holes;
use super::replies::{put_error, put_status, read_header_bytes, write_read_header, write_simple};
use super::{Action, BadMagic, BatchLimits, Entry, Plan, Refuses, Replies, STATUS_CONTEXT, Session, Stop};
use crate::errno::{Errno, Refusal};
use crate::limits::MAX_EXTENTS;
use crate::wire::{allocation, command_flag};
use nandscape_core::{Extent, Op};
use nandscape_engine::budget::NoMemory;
use nandscape_engine::{Data, Engine, Request, Served};
use std::sync::Arc;

/// What zeroes are written from.
static ZEROES: [u8; 64 << 10] = [0; 64 << 10];

/// Requests of [`ZEROES`] that run without letting others at the engine.
const ZERO_REQUESTS: usize = 16;

/// Serves the requests of one connection.
#[derive(Debug)]
pub struct Worker {
    engine: Arc<Engine>,
    session: Session,
    limits: BatchLimits,
    plan: Plan,
    /// Kept for its allocation.
    requests: Vec<Request<'static>>,
    /// What became of the entries of the plan.
    outcomes: Vec<Result<Served, Refusal>>,
}

impl Worker {
    /// Serves what was negotiated, in batches of at most this.
    pub fn new(engine: Arc<Engine>, session: Session, limits: BatchLimits) -> Self {
        Self { engine, session, limits, plan: Plan::default(), requests: Vec::new(), outcomes: Vec::new() }
    }

    /// From now on every request is refused.
    pub fn stop(&mut self) {
        self.session.refuses = Refuses::Everything;
    }

    /// The write at the front is refused, since there is no memory for its payload.
    pub fn refuse_next_write(&mut self) {
        if self.session.refuses == Refuses::Nothing {
            self.session.refuses = Refuses::Writes;
        }
    }

    /// Runs the requests at the front of `input` and puts their replies in the place of what `replies` held.
    /// Gives how many bytes it took and why it took no more.
    pub fn step(&mut self, input: &[u8], replies: &mut Replies) -> Result<(usize, Stop), BadMagic> {
        let planned = self.plan.fill(&self.session, input, self.limits)?;
        if self.session.refuses == Refuses::Writes {
            self.session.refuses = Refuses::Nothing;
        }
        if let Err(error) = replies.prepare(self.plan.reply_bytes) {
            self.refuse_all(&error, replies);
            return Ok(planned);
        }
        match self.plan.entries.first() {
            None => {}
            Some(Entry { action: Ok(Action::Status), .. }) => self.status(replies),
            Some(Entry { action: Ok(Action::WriteZeroes), .. }) => {
                self.outcomes.clear();
                self.outcomes.push(self.write_zeroes());
                write_simple(replies.bytes_mut(), self.plan.entries[0].header.cookie);
                self.finish(replies);
            }
            Some(_) => {
                self.run(input, replies);
                self.finish(replies);
            }
        }
        Ok(planned)
    }

    /// Runs the plan as one batch, each reply filled in as if all went well.
    fn run(&mut self, input: &[u8], replies: &mut Replies) {
        let Session { ref export, is_structured, .. } = self.session;
        let mut requests = recycle(std::mem::take(&mut self.requests));
        let mut room = replies.bytes_mut();
        for entry in &self.plan.entries {
            let (reply, rest) = room.split_at_mut(entry.reply_bytes);
            room = rest;
            let header = entry.header;
            let extent = Extent::new(header.offset, u64::from(header.len));
            let namespace = export.namespace;
            if let Ok(Action::Read) = entry.action {
                let (front, data) = reply.split_at_mut(read_header_bytes(is_structured));
                write_read_header(front, is_structured, header.cookie, header.offset, header.len);
                requests.push(Request::read(namespace, header.offset, data));
                continue;
            }
            write_simple(reply, header.cookie);
            let request = match entry.action {
                Ok(Action::Write) => {
                    Request::write(namespace, header.offset, &input[entry.payload..][..header.len as usize])
                }
                Ok(Action::Trim) => Request::plain(namespace, Op::Trim, extent),
                Ok(Action::Zero) => Request::plain(namespace, Op::WriteZeroes, extent),
                Ok(Action::Flush) => {
                    requests.push(Request::plain(namespace, Op::Flush, Extent::new(0, 0)));
                    continue;
                }
                // Nothing to run; `finish` knows.
                _ => continue,
            };
            requests.push(request.durable(header.is_fua()));
        }
        self.engine.run(&mut requests);
        self.outcomes.clear();
        let mut ran = requests.drain(..);
        for entry in &self.plan.entries {
            self.outcomes.push(match &entry.action {
                Ok(Action::Cache) => Ok(Served::default()),
                Ok(_) => {
                    let request = ran.next().expect("one request each");
                    request.outcome.map_err(|error| Refusal::of(&request.command, &error))
                }
                Err(refusal) => Err(refusal.clone()),
            });
        }
        drop(ran);
        self.requests = recycle(requests);
    }

    /// Answers the whole plan with one error: there is no room for its replies.
    #[cold]
    fn refuse_all(&mut self, error: &NoMemory, replies: &mut Replies) {
        let errno = if matches!(error, NoMemory::Closed) { Errno::Shutdown } else { Errno::NoMem };
        let refusal = Refusal { errno, message: error.to_string().into() };
        self.outcomes.clear();
        self.outcomes.extend(self.plan.entries.iter().map(|_| Err(refusal.clone())));
        self.finish_with_errors(replies);
    }

    /// Puts errors in the place of what did not go well, and notes when each reply is due.
    fn finish(&mut self, replies: &mut Replies) {
        if self.outcomes.iter().any(Result::is_err) {
            return self.finish_with_errors(replies);
        }
        if self.session.is_structured && self.may_have_holes(replies.bytes()) {
            self.leave_out_holes(replies);
        }
        let mut end = 0;
        for (entry, outcome) in self.plan.entries.iter().zip(&self.outcomes) {
            end += entry.reply_bytes;
            replies.due.push((end, outcome.as_ref().ok().and_then(|served| self.engine.due(served))));
        }
    }

    /// Whether some read gave zeroes where a page begins.
    fn may_have_holes(&self, replies: &[u8]) -> bool {
        let mut at = 0;
        self.plan.entries.iter().any(|entry| {
            let reply = &replies[at..at + entry.reply_bytes];
            at += entry.reply_bytes;
            matches!(entry.action, Ok(Action::Read))
                && holes::may_be_in(entry.header.offset, &reply[read_header_bytes(true)..])
        })
    }

    /// Moves the replies of a batch together, reads without what holds no data.
    #[cold]
    fn leave_out_holes(&mut self, replies: &mut Replies) {
        let namespace = self.session.export.namespace;
        let (mut from, mut to) = (0, 0);
        let mut parts = Vec::new();
        for entry in &mut self.plan.entries {
            let next = from + entry.reply_bytes;
            let data = &replies.bytes()[from..next];
            let data = data.get(read_header_bytes(true)..).unwrap_or_default();
            parts.clear();
            if matches!(entry.action, Ok(Action::Read)) && holes::may_be_in(entry.header.offset, data) {
                self.engine
                    .look(|stack| holes::parts(stack, namespace, entry.header.offset, data, &mut parts));
            }
            let end = if holes::can_be_cut(entry, &parts) {
                holes::write(replies.bytes_mut(), from, to, entry, &parts)
            } else {
                replies.bytes_mut().copy_within(from..next, to);
                to + entry.reply_bytes
            };
            entry.reply_bytes = end - to;
            (from, to) = (next, end);
        }
        replies.cut(to);
    }

    #[cold]
    fn finish_with_errors(&mut self, replies: &mut Replies) {
        let mut bytes = Vec::new();
        let mut at = 0;
        for (entry, outcome) in self.plan.entries.iter().zip(&self.outcomes) {
            let due = match outcome {
                Ok(served) => {
                    bytes.extend_from_slice(&replies.bytes()[at..][..entry.reply_bytes]);
                    self.engine.due(served)
                }
                Err(refusal) => {
                    put_error(&mut bytes, self.session.is_structured, entry.header.cookie, refusal);
                    None
                }
            };
            at += entry.reply_bytes;
            replies.due.push((bytes.len(), due));
        }
        replies.replace(bytes);
    }

    /// Writes zeroes over the only entry of the plan, a piece at a time.
    fn write_zeroes(&self) -> Result<Served, Refusal> {
        let header = self.plan.entries[0].header;
        let is_fua = header.is_fua();
        let namespace = self.session.export.namespace;
        let end = header.offset + u64::from(header.len);
        let mut at = header.offset;
        let mut last = Served::default();
        while at < end {
            let mut batch = Vec::with_capacity(ZERO_REQUESTS);
            while batch.len() < ZERO_REQUESTS && at < end {
                // Pieces end where the zeroes in a row of them would, so all but the first begin at a page.
                let piece = ZEROES.len() as u64 - at % ZEROES.len() as u64;
                let len = piece.min(end - at);
                let request = Request::write(namespace, at, &ZEROES[..len as usize]);
                at += len;
                let is_whole = len == end - header.offset;
                batch.push(request.durable(is_fua && is_whole));
                if is_fua && at == end && !is_whole {
                    batch.push(Request::plain(namespace, Op::Flush, Extent::new(0, 0)));
                }
            }
            self.engine.run(&mut batch);
            for request in batch {
                last = request.outcome.map_err(|error| Refusal::of(&request.command, &error))?;
            }
        }
        Ok(last)
    }

    /// Answers a block status, the only entry of the plan.
    fn status(&mut self, replies: &mut Replies) {
        let header = self.plan.entries[0].header;
        let namespace = self.session.export.namespace;
        let most = if header.has(command_flag::REQ_ONE) { 1 } else { MAX_EXTENTS };
        let mut extents: Vec<(u32, u32)> = Vec::new();
        let mut left = Extent::new(header.offset, u64::from(header.len));
        self.engine.look(|subsystem| {
            while left.len > 0 {
                let run = subsystem.allocation(namespace, left);
                let flags = if run.is_mapped { 0 } else { allocation::HOLE | allocation::ZERO };
                // Runs lie inside a request, whose length has 32 bits.
                let len = run.bytes as u32;
                if let Some((sum, same)) = extents.last_mut()
                    && *same == flags
                {
                    *sum += len;
                } else if extents.len() < most {
                    extents.push((len, flags));
                } else {
                    break;
                }
                left = Extent::new(left.offset + run.bytes, left.len - run.bytes);
            }
        });
        let mut bytes = Vec::new();
        put_status(&mut bytes, header.cookie, STATUS_CONTEXT, &extents);
        replies.due.push((bytes.len(), None));
        replies.replace(bytes);
    }
}

/// An empty vector with the same allocation: collecting a vector's iterator into the same layout keeps it.
fn recycle<'b>(mut requests: Vec<Request<'_>>) -> Vec<Request<'b>> {
    requests.clear();
    requests
        .into_iter()
        .map(|Request { namespace, command, outcome, .. }| Request {
            namespace,
            command,
            outcome,
            payload: Data::None,
        })
        .collect()
}
