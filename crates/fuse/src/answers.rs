//! How calls are answered: now, or when the model's device would have answered.

use crate::client::{Done, Failed};
use crate::later::Later;
use fuser::{Errno, InitFlags, KernelConfig, ReplyData, ReplyEmpty};
use nandscape_engine::budget::{Budget, Grant};
use nandscape_engine::{Due, Engine};
use std::cell::RefCell;
use std::fmt::Display;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// The largest request in bytes; the kernel's default limit is 256 pages.
pub const REQUEST_BYTES: u32 = 1 << 20;

/// Asynchronous requests that the kernel keeps under way before it holds its callers back.
const BACKGROUND: u16 = 256;

/// How long the kernel may remember names and attributes. They change only through this mount.
pub const REMEMBERED: Duration = Duration::from_secs(3600);

thread_local! {
    /// What is read goes through here, once: the kernel copies it to its client.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Called with a message for the operator, which begins with the request that failed. There may be many.
pub type Tell = Box<dyn Fn(&str) + Send + Sync>;

pub struct Answers {
    later: Later,
    tell: Tell,
    budget: Arc<Budget>,
}

impl Answers {
    pub fn start(engine: &Arc<Engine>, tell: Tell, memory_bytes: u64) -> io::Result<Self> {
        Ok(Self { later: Later::start(engine)?, tell, budget: Budget::new(memory_bytes) })
    }

    /// What the kernel is asked for, whatever the files are.
    pub fn configure(config: &mut KernelConfig, more: InitFlags) {
        // Each is the nearest the kernel takes; a smaller one only means smaller requests.
        if let Err(nearest) = config.set_max_write(REQUEST_BYTES) {
            let _ = config.set_max_write(nearest);
        }
        if let Err(nearest) = config.set_max_readahead(REQUEST_BYTES) {
            let _ = config.set_max_readahead(nearest);
        }
        let _ = config.set_max_background(BACKGROUND);
        let _ = config.set_congestion_threshold(BACKGROUND);
        let wanted = InitFlags::FUSE_ASYNC_DIO | InitFlags::FUSE_PARALLEL_DIROPS | more;
        let _ = config.add_capabilities(wanted & config.capabilities());
    }

    /// What the client is told of a failure, and the operator too.
    pub fn failed(&self, call: &str, name: impl Display, failed: &Failed) -> Errno {
        if let Some(cause) = &failed.cause {
            (self.tell)(&format!("{call} of {name}: {cause}"));
        }
        Errno::from_i32(failed.errno)
    }

    /// A copy of what is answered later, in memory that all such answers share; waits for it. The answers
    /// that are waited for go out on another thread.
    fn keep(&self, data: &[u8]) -> Option<(Vec<u8>, Grant)> {
        let grant = self.budget.take(data.len() as u64, None).ok()?;
        let mut copy = Vec::new();
        copy.try_reserve_exact(data.len()).ok()?;
        copy.extend_from_slice(data);
        Some((copy, grant))
    }

    pub fn at(&self, due: Option<Due>, send: impl FnOnce() + Send + 'static) {
        match due {
            None => send(),
            Some(due) => self.later.at(due, send),
        }
    }

    /// Answers a call that only succeeds or fails.
    pub fn done(&self, call: &str, name: impl Display, outcome: Result<Done, Failed>, reply: ReplyEmpty) {
        match outcome {
            Ok(done) => self.at(done.due, move || reply.ok()),
            Err(failed) => reply.error(self.failed(call, name, &failed)),
        }
    }

    /// Answers a read of at most `size` bytes, which `read` puts where it is told to.
    pub fn with_bytes(
        &self,
        name: impl Display,
        size: u32,
        reply: ReplyData,
        read: impl FnOnce(&mut [u8]) -> Result<Done, Failed>,
    ) {
        BUFFER.with_borrow_mut(|buffer| {
            let size = size as usize;
            if buffer.len() < size {
                let more = size.max(REQUEST_BYTES as usize) - buffer.len();
                if buffer.try_reserve_exact(more).is_err() {
                    return reply.error(Errno::ENOMEM);
                }
                buffer.resize(buffer.len() + more, 0);
            }
            match read(&mut buffer[..size]) {
                Ok(Done { len, due: None }) => reply.data(&buffer[..len]),
                Ok(Done { len, due }) => match self.keep(&buffer[..len]) {
                    Some((data, grant)) => self.at(due, move || {
                        reply.data(&data);
                        drop(grant);
                    }),
                    None => reply.error(Errno::ENOMEM),
                },
                Err(failed) => reply.error(self.failed("read", name, &failed)),
            }
        });
    }
}
