//! How a server is told to end.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// Set once, by a signal, a command or a front end that cannot go on; whoever waits for it is woken.
#[derive(Debug, Default)]
pub struct Stop {
    why: Mutex<Option<String>>,
    changed: Condvar,
}

impl Stop {
    /// Not yet.
    pub const fn new() -> Self {
        Self { why: Mutex::new(None), changed: Condvar::new() }
    }

    /// Tells the server to end. Only the first reason counts.
    pub fn request(&self, why: &str) {
        self.lock().get_or_insert_with(|| why.to_owned());
        self.changed.notify_all();
    }

    /// Whether the server is to end.
    pub fn is_requested(&self) -> bool {
        self.lock().is_some()
    }

    /// Waits until the server is to end, and says why.
    pub fn wait(&self) -> String {
        let mut why = self.lock();
        loop {
            if let Some(why) = &*why {
                return why.clone();
            }
            why = self.changed.wait(why).expect(UNBROKEN);
        }
    }

    /// Waits for at most so long. Whether the server is to end.
    pub fn wait_for(&self, most: Duration) -> bool {
        let why = self.lock();
        let (why, _) = self.changed.wait_timeout_while(why, most, |why| why.is_none()).expect(UNBROKEN);
        why.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, Option<String>> {
        self.why.lock().expect(UNBROKEN)
    }
}

const UNBROKEN: &str = "nobody panicked while holding a reason";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_wakes_whoever_waits() {
        let stop = Stop::new();
        assert!(!stop.is_requested() && !stop.wait_for(Duration::ZERO));
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| stop.wait());
            stop.request("first");
            stop.request("second");
            assert_eq!(waiter.join().unwrap(), "first");
        });
        assert!(stop.is_requested() && stop.wait_for(Duration::from_secs(60)));
    }
}
