//! On a paced clock: replies wait until the model's device would have given them, and go out in that order.

use super::transport::Transport;
use crate::transmission::Replies;
use nandscape_engine::budget::{Budget, Evict, Grant, NoMemory, Room};
use nandscape_engine::{Answer, Due, DueQueue, Engine};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Instant;

/// Bytes of replies that wait; with more, or with [`MAX_REPLIES`], no more requests are taken.
const MAX_BYTES: usize = 64 << 20;

/// Bytes of replies that wait in memory of the connection's own; more draw on the memory of all.
const OWN_BYTES: usize = 1 << 20;

const MAX_REPLIES: usize = 1024;

/// Replies that are sent with one call, in bytes, unless one alone is longer.
const SEND_BYTES: usize = 256 << 10;

/// Replies of one connection that wait for their time.
pub(super) struct Pacer<'a> {
    engine: &'a Engine,
    transport: &'a dyn Transport,
    budget: &'a Arc<Budget>,
    evict: &'a Evict,
    queue: Mutex<Queue>,
    /// A reply has come or gone, or the end has.
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: DueQueue<Bytes>,
    bytes: usize,
    is_closed: bool,
    /// Nothing can be sent any more.
    failed: Option<io::ErrorKind>,
}

enum Bytes {
    Short(Vec<u8>, Option<Grant>),
    Long(Room, usize),
}

impl Bytes {
    fn get(&self) -> &[u8] {
        match self {
            Self::Short(bytes, _) => bytes,
            Self::Long(room, len) => &room[..*len],
        }
    }

    const fn grant(&self) -> Option<&Grant> {
        match self {
            Self::Short(_, grant) => grant.as_ref(),
            Self::Long(room, _) => Some(room.grant()),
        }
    }
}

impl<'a> Pacer<'a> {
    pub fn new(
        engine: &'a Engine,
        transport: &'a dyn Transport,
        budget: &'a Arc<Budget>,
        evict: &'a Evict,
    ) -> Self {
        Self { engine, transport, budget, evict, queue: Mutex::default(), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("nothing panics while it holds the queue of replies")
    }

    /// Takes the replies of a batch; waits while too many wait already, and for memory.
    pub fn push(&self, replies: &mut Replies) -> io::Result<()> {
        let mut queue = self.lock();
        while queue.bytes > MAX_BYTES || queue.waiting.len() > MAX_REPLIES {
            if queue.failed.is_some() {
                break;
            }
            queue = self.changed.wait(queue).expect("see `lock`");
        }
        drop(queue);
        let now = Instant::now();
        if let Some((room, len)) = replies.take_long() {
            // A long reply is a batch of its own.
            let due = replies.due.pop().and_then(|(_, due)| due);
            self.add(due, now, Bytes::Long(room, len))?;
        } else {
            let mut start = 0;
            let mut dues = std::mem::take(&mut replies.due);
            for (end, due) in dues.drain(..) {
                let bytes = self.copy(&replies.bytes()[start..end])?;
                start = end;
                self.add(due, now, bytes)?;
            }
            // For its room.
            replies.due = dues;
        }
        self.changed.notify_all();
        Ok(())
    }

    /// A copy in memory of the connection's own as long as there is some, then in that of all.
    fn copy(&self, reply: &[u8]) -> io::Result<Bytes> {
        let mut copy = Vec::new();
        copy.try_reserve_exact(reply.len()).map_err(|_| io::ErrorKind::OutOfMemory)?;
        copy.extend_from_slice(reply);
        if self.lock().bytes + reply.len() <= OWN_BYTES {
            return Ok(Bytes::Short(copy, None));
        }
        // What was added before goes out meanwhile, whoever waits here.
        self.changed.notify_all();
        match self.budget.take(reply.len() as u64, Some(self.evict)) {
            Ok(grant) => Ok(Bytes::Short(copy, Some(grant))),
            // The server stops, and this is the last batch.
            Err(NoMemory::Closed) => Ok(Bytes::Short(copy, None)),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    fn add(&self, due: Option<Due>, now: Instant, bytes: Bytes) -> io::Result<()> {
        let mut queue = self.lock();
        if let Some(kind) = queue.failed {
            return Err(kind.into());
        }
        queue.bytes += bytes.get().len();
        let waits = queue.bytes;
        queue.waiting.push(due, now, bytes, |bytes, at| client_is_due(bytes, at.max(now), waits));
        Ok(())
    }

    /// No more replies come; [`Pacer::run`] returns when those that wait are sent.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Sends replies at their time until there are no more.
    pub fn run(&self) {
        let mut out = Vec::new();
        // Replies that go out with one call; their memory is theirs until they have.
        let mut sending: Vec<Answer<Bytes>> = Vec::new();
        let mut queue = self.lock();
        loop {
            let now = Instant::now();
            let waits = queue.bytes;
            let next = queue.waiting.look(self.engine, |bytes, at| client_is_due(bytes, at.max(now), waits));
            let mut bytes = 0;
            while let Some(reply) =
                queue.waiting.pop(now, |reply| sending.is_empty() || bytes + reply.get().len() <= SEND_BYTES)
            {
                bytes += reply.what.get().len();
                sending.push(reply);
            }
            if !sending.is_empty() {
                queue.bytes -= bytes;
                drop(queue);
                self.changed.notify_all();
                let sent = match &sending[..] {
                    [alone] => self.transport.send(alone.what.get()),
                    several => {
                        out.clear();
                        for reply in several {
                            out.extend_from_slice(reply.what.get());
                        }
                        self.transport.send(&out)
                    }
                };
                for due in sending.drain(..).filter_map(|reply| reply.counted) {
                    self.engine.answered(due);
                }
                queue = self.lock();
                if let Err(error) = sent {
                    queue.failed = Some(error.kind());
                    queue.waiting.clear();
                    queue.bytes = 0;
                    self.changed.notify_all();
                    return;
                }
                continue;
            }
            queue = match next {
                Some(due) => {
                    let left = due.saturating_duration_since(now);
                    self.changed.wait_timeout(queue, left).expect("see `lock`").0
                }
                None if queue.is_closed => return,
                None => self.changed.wait(queue).expect("see `lock`"),
            };
        }
    }
}

/// From then on it is the client that takes this reply; it goes out behind what is in the queue.
fn client_is_due(reply: &Bytes, from: Instant, queued: usize) {
    if let Some(grant) = reply.grant() {
        grant.client_is_due(from, queued as u64);
    }
}
