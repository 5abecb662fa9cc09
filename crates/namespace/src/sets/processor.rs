//! The processor that runs translation layers.

use nandscape_core::{SimTime, state};
use std::sync::{Arc, Mutex};

/// A processor that is busy for a while with each operation of flash that a translation layer asks for, one
/// after the other. What hosts ask for goes first, and waits at most for one operation of another cause,
/// which is not interrupted. Layers on the same processor have clones of it.
#[derive(Clone, Debug, Default)]
pub struct Processor {
    each_ns: u64,
    free: Arc<Mutex<Free>>,
}

state!(impl [] Processor { saved: free; fixed: each_ns; });

/// When it has done what it was asked for.
#[derive(Clone, Copy, Debug, Default)]
struct Free {
    of_hosts: SimTime,
    of_all: SimTime,
}

state!(impl [] Free { saved: of_hosts, of_all; });

impl Processor {
    /// One that needs so long for each operation; with 0 there is none to wait for.
    pub fn new(each_ns: u64) -> Self {
        Self { each_ns, ..Self::default() }
    }

    /// When an operation that is asked for at a time leaves the processor.
    #[inline]
    pub(super) fn run(&self, at: SimTime, is_of_host: bool) -> SimTime {
        if self.each_ns == 0 { at } else { self.take(at, is_of_host) }
    }

    fn take(&self, at: SimTime, is_of_host: bool) -> SimTime {
        let mut free = self.free.lock().expect("nobody panicked while holding it");
        let each = self.each_ns;
        let start = if is_of_host {
            let start = at.max(free.of_hosts);
            // Of what is queued for other causes, the operation under way is finished first.
            let others = free.of_all.0.saturating_sub(start.0) % each;
            SimTime(start.0 + others)
        } else {
            at.max(free.of_all)
        };
        let end = SimTime(start.0 + each);
        if is_of_host {
            free.of_hosts = end;
        }
        free.of_all = SimTime((free.of_all.0 + each).max(end.0));
        end
    }

    /// Nothing is queued at this time.
    pub(super) fn reset(&self, at: SimTime) {
        *self.free.lock().expect("nobody panicked while holding it") = Free { of_hosts: at, of_all: at };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(each_ns: u64, asked: &[(u64, bool)]) -> Vec<u64> {
        let processor = Processor::new(each_ns);
        asked.iter().map(|(at, is_of_host)| processor.run(SimTime(*at), *is_of_host).0).collect()
    }

    #[test]
    fn one_operation_after_the_other_and_those_of_hosts_first() {
        assert_eq!(ends(0, &[(5, true), (5, false)]), [5, 5]);
        assert_eq!(ends(10, &[(5, true), (5, true), (40, true)]), [15, 25, 50]);
        // Three of another cause are queued at 0: a host waits for the first of them, the others wait for it.
        assert_eq!(
            ends(10, &[(0, false), (0, false), (0, false), (4, true), (4, true)]),
            [10, 20, 30, 20, 30]
        );
        assert_eq!(ends(10, &[(0, false), (0, false), (4, true), (4, false)]), [10, 20, 20, 40]);
    }

    #[test]
    fn clones_are_one_processor() {
        let one = Processor::new(10);
        let other = one.clone();
        assert_eq!([one.run(SimTime(0), true), other.run(SimTime(0), true)], [SimTime(10), SimTime(20)]);
        other.reset(SimTime(100));
        assert_eq!(one.run(SimTime(100), false), SimTime(110));
    }
}
