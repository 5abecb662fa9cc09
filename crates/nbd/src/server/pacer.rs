//! On a paced clock: replies wait until the model's device would have given them, and go out in that order.

use super::transport::Transport;
use crate::transmission::Replies;
use nandscape_engine::Engine;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Instant;

/// Bytes of replies that wait; with more, or with [`MAX_REPLIES`], no more requests are taken.
const MAX_BYTES: usize = 64 << 20;

/// Replies that wait.
const MAX_REPLIES: usize = 1024;

/// Replies that are sent with one call, in bytes, unless one alone is longer.
const SEND_BYTES: usize = 256 << 10;

/// Replies of one connection that wait for their time.
pub(super) struct Pacer<'a> {
    engine: &'a Engine,
    transport: &'a dyn Transport,
    queue: Mutex<Queue>,
    /// A reply has come or gone, or the end has.
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    /// The earliest first; those due at the same time in the order they came.
    waiting: BinaryHeap<Reverse<Waiting>>,
    bytes: usize,
    came: u64,
    is_closed: bool,
    /// Nothing can be sent any more.
    failed: Option<io::ErrorKind>,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    due: Instant,
    number: u64,
    bytes: Vec<u8>,
    /// It was not due yet when it came.
    is_late_counted: bool,
}

impl<'a> Pacer<'a> {
    pub fn new(engine: &'a Engine, transport: &'a dyn Transport) -> Self {
        Self { engine, transport, queue: Mutex::default(), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("nothing panics while it holds the queue of replies")
    }

    /// Takes the replies of a batch; waits while too many wait already.
    pub fn push(&self, replies: &Replies) -> io::Result<()> {
        let mut queue = self.lock();
        while queue.bytes > MAX_BYTES || queue.waiting.len() > MAX_REPLIES {
            if queue.failed.is_some() {
                break;
            }
            queue = self.changed.wait(queue).expect("see `lock`");
        }
        if let Some(kind) = queue.failed {
            return Err(kind.into());
        }
        let now = Instant::now();
        let mut start = 0;
        for (end, due) in replies.due() {
            let due = due.unwrap_or(now);
            let bytes = replies.bytes()[start..*end].to_vec();
            start = *end;
            queue.bytes += bytes.len();
            queue.came += 1;
            let number = queue.came;
            queue.waiting.push(Reverse(Waiting { due, number, bytes, is_late_counted: due > now }));
        }
        drop(queue);
        self.changed.notify_all();
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
        let mut dues = Vec::new();
        let mut queue = self.lock();
        loop {
            let now = Instant::now();
            while let Some(Reverse(next)) = queue.waiting.peek()
                && next.due <= now
                && (out.is_empty() || out.len() + next.bytes.len() <= SEND_BYTES)
            {
                let Some(Reverse(reply)) = queue.waiting.pop() else { break };
                queue.bytes -= reply.bytes.len();
                out.extend(reply.bytes);
                if reply.is_late_counted {
                    dues.push(reply.due);
                }
            }
            if !out.is_empty() {
                drop(queue);
                self.changed.notify_all();
                let sent = self.transport.send(&out);
                dues.drain(..).for_each(|due| self.engine.answered(due));
                out.clear();
                queue = self.lock();
                if let Err(error) = sent {
                    queue.failed = Some(error.kind());
                    queue.waiting.clear();
                    self.changed.notify_all();
                    return;
                }
                continue;
            }
            let next = queue.waiting.peek().map(|Reverse(next)| next.due);
            queue = match next {
                Some(due) => self.changed.wait_timeout(queue, due - now).expect("see `lock`").0,
                None if queue.is_closed => return,
                None => self.changed.wait(queue).expect("see `lock`"),
            };
        }
    }
}
