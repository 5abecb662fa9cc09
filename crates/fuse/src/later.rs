//! Answers that are not due yet: on a paced clock a request is answered when the model's device would have
//! answered it.

use nandscape_engine::{Clock, Due, DueQueue, Engine};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Sends answers in the order in which they are due, from a thread of its own, so that those that run
/// requests need not wait.
pub struct Later {
    shared: Arc<Shared>,
}

struct Shared {
    engine: Arc<Engine>,
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: DueQueue<Box<dyn FnOnce() + Send>>,
    is_closed: bool,
}

impl Later {
    /// A queue of answers; without a thread where nothing is ever due later.
    pub fn start(engine: &Arc<Engine>) -> io::Result<Self> {
        let queue = Mutex::new(Queue::default());
        let shared = Arc::new(Shared { engine: Arc::clone(engine), queue, changed: Condvar::new() });
        if engine.clock() == Clock::Paced {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new().name("answers".to_owned()).spawn(move || shared.run())?;
        }
        Ok(Self { shared })
    }

    pub fn at(&self, due: Due, send: impl FnOnce() + Send + 'static) {
        let mut queue = self.shared.lock();
        queue.waiting.push(Some(due), Instant::now(), Box::new(send), |_, _| ());
        drop(queue);
        self.shared.changed.notify_one();
    }
}

impl Drop for Later {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.changed.notify_one();
    }
}

impl Shared {
    /// Nothing that happens under the lock can leave the queue half changed.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends what is due until the end, and then what is left.
    fn run(&self) {
        let mut queue = self.lock();
        loop {
            let now = Instant::now();
            let next = queue.waiting.look(&self.engine, |_, _| ());
            let is_closed = queue.is_closed;
            let answer = if is_closed { queue.waiting.pop_any() } else { queue.waiting.pop(now, |_| true) };
            if let Some(answer) = answer {
                drop(queue);
                (answer.what)();
                if let Some(due) = answer.counted {
                    self.engine.answered(due);
                }
                queue = self.lock();
                continue;
            }
            queue = match next {
                _ if is_closed => return,
                Some(due) => {
                    let left = due.saturating_duration_since(now);
                    self.changed.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}
