//! Answers that are not due yet: on a paced clock a request is answered when the model's device would have
//! answered it.

use nandscape_engine::{Clock, Engine};
use std::collections::BTreeMap;
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
    /// By time; those due at the same time in the order in which they came.
    waiting: BTreeMap<(Instant, u64), Box<dyn FnOnce() + Send>>,
    count: u64,
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

    pub fn at(&self, due: Instant, send: impl FnOnce() + Send + 'static) {
        let mut queue = self.shared.lock();
        let number = queue.count;
        queue.count += 1;
        queue.waiting.insert((due, number), Box::new(send));
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
            let due = queue.waiting.first_key_value().map(|((due, _), _)| *due);
            queue = match due {
                Some(due) if due > now && !queue.is_closed => {
                    let (queue, _) =
                        self.changed.wait_timeout(queue, due - now).unwrap_or_else(PoisonError::into_inner);
                    queue
                }
                None if queue.is_closed => return,
                None => self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner),
                Some(due) => {
                    let answer = queue.waiting.pop_first();
                    drop(queue);
                    if let Some((_, send)) = answer {
                        send();
                        self.engine.answered(due);
                    }
                    self.lock()
                }
            };
        }
    }
}
