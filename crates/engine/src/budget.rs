//! Memory for requests that are longer than what a connection keeps for itself: one budget for all
//! connections.
//!
//! * A request that finds no memory waits. Those that wait are served in the order in which they came, so
//!   none starves.
//! * Whoever holds memory never waits for more ([`Budget::take`] says how), so nobody waits for themselves.
//! * A client that holds memory which others wait for must move its bytes at [`LEAST_RATE`]; one that does
//!   not is ended ([`Grant::client_is_due`]).
//! * Memory is mapped for one request. Some of it is kept for the next one of the same length, within the
//!   budget; the rest goes back to the system. What the system refuses is an error, not the end of the
//!   process.

use memmap2::MmapMut;
use std::collections::{BTreeMap, VecDeque};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Memory for long requests, where nothing is said.
pub const DEFAULT_MEMORY_BYTES: u64 = 256 << 20;

/// Bytes a second that a client must send or take while others wait for the memory of its request.
pub const LEAST_RATE: u64 = 1 << 20;

/// How long a client may do nothing before [`LEAST_RATE`] counts, and how long a request waits for memory
/// that the system refuses.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Address space that a long request leaves to everything else, since a short allocation that fails would
/// end the process.
const HEADROOM_BYTES: usize = 8 << 20;

/// Mapped bytes that are kept while nobody uses them: to map and touch them anew takes longer than to fill
/// them.
const SPARE_BYTES: u64 = 64 << 20;

/// Lengths of mappings are multiples of this, so that one does for requests of about the same length.
const UNIT_BYTES: usize = 1 << 20;

/// Why a request gets no memory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum NoMemory {
    #[error("{bytes} bytes for a request: expected at most {total}, the memory for requests")]
    TooLong { bytes: u64, total: u64 },
    /// The system gives none, and no other request has any to return.
    #[error("{bytes} bytes for a request: {error}")]
    System { bytes: u64, error: std::io::Error },
    #[error("the server is stopping")]
    Closed,
}

/// Ends a client that keeps others waiting.
pub type Evict = Arc<dyn Fn() + Send + Sync>;

/// The memory for long requests.
pub struct Budget {
    total: u64,
    patience: Duration,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    free: u64,
    /// Who waits, the first come first.
    waiting: VecDeque<u64>,
    holders: BTreeMap<u64, Holder>,
    /// Names those that wait and hold.
    next: u64,
    /// Mappings that were returned so far, and those that are out.
    returned: u64,
    mapped: u64,
    is_closed: bool,
    /// Mappings that nobody uses, the oldest first, and their bytes; never more than are free.
    spare: VecDeque<MmapMut>,
    spare_bytes: u64,
}

struct Holder {
    /// When its client must be done, where the client's part has begun.
    due: Option<Instant>,
    evict: Option<Evict>,
}

impl Budget {
    /// So many bytes for all.
    pub fn new(total: u64) -> Arc<Self> {
        Self::with_patience(total, PATIENCE)
    }

    /// The same, with another time than [`PATIENCE`].
    pub fn with_patience(total: u64, patience: Duration) -> Arc<Self> {
        let state = State { free: total, ..State::default() };
        Arc::new(Self { total, patience, state: Mutex::new(state), changed: Condvar::new() })
    }

    /// Takes bytes off the budget; waits until there are so many, and all who came earlier have theirs. Only
    /// for a thread that holds none, except for grants that others give back without it. `evict` ends the
    /// client for which they are.
    pub fn take(self: &Arc<Self>, bytes: u64, evict: Option<&Evict>) -> Result<Grant, NoMemory> {
        if bytes > self.total {
            return Err(NoMemory::TooLong { bytes, total: self.total });
        }
        let mut state = self.lock();
        let id = state.next;
        state.next += 1;
        state.waiting.push_back(id);
        loop {
            if state.is_closed {
                state.waiting.retain(|other| *other != id);
                return Err(NoMemory::Closed);
            }
            if state.waiting.front() == Some(&id) && state.free >= bytes {
                break;
            }
            state = match state.evict_overdue(Instant::now()) {
                Some(due) => {
                    let left = due.saturating_duration_since(Instant::now());
                    self.changed.wait_timeout(state, left).expect(UNBROKEN).0
                }
                None => self.changed.wait(state).expect(UNBROKEN),
            };
        }
        state.waiting.pop_front();
        state.free -= bytes;
        state.shrink_spare();
        state.holders.insert(id, Holder { due: None, evict: evict.cloned() });
        drop(state);
        // What is left may do for the next.
        self.changed.notify_all();
        Ok(Grant { budget: Arc::clone(self), id, bytes })
    }

    /// Takes bytes off the budget, with memory. Where the system refuses to map it, it is asked again when
    /// another request has returned its own.
    pub fn room(self: &Arc<Self>, bytes: usize, evict: Option<&Evict>) -> Result<Room, NoMemory> {
        let deadline = Instant::now() + self.patience;
        let mapped = bytes.next_multiple_of(UNIT_BYTES);
        loop {
            // The longest request need not be a multiple of the unit.
            let grant = self.take((mapped as u64).min(self.total).max(bytes as u64), evict)?;
            let (found, returned) = {
                let mut state = self.lock();
                state.mapped += 1;
                (state.take_spare(mapped), state.returned)
            };
            match found.map_or_else(|| self.map(mapped), Ok) {
                Ok(map) => return Ok(Room { map: Some(map), len: bytes, grant }),
                Err(error) => {
                    self.lock().mapped -= 1;
                    // Its end also wakes those that wait for a mapping.
                    drop(grant);
                    if !self.wait_for_return(returned, deadline)? {
                        return Err(NoMemory::System { bytes: bytes as u64, error });
                    }
                }
            }
        }
    }

    /// Maps memory, if need be in place of what is spare.
    fn map(&self, bytes: usize) -> std::io::Result<MmapMut> {
        map(bytes).or_else(|_| {
            let mut state = self.lock();
            state.spare.clear();
            state.spare_bytes = 0;
            drop(state);
            map(bytes)
        })
    }

    /// Waits until a mapping has been returned since. `false` if none can be, or it takes too long.
    fn wait_for_return(&self, since: u64, deadline: Instant) -> Result<bool, NoMemory> {
        let mut state = self.lock();
        loop {
            if state.is_closed {
                return Err(NoMemory::Closed);
            }
            if state.returned != since {
                return Ok(true);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if state.mapped == 0 || left.is_zero() {
                return Ok(false);
            }
            state = self.changed.wait_timeout(state, left).expect(UNBROKEN).0;
        }
    }

    /// Whoever waits, and whoever comes, is refused from now on.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// How many requests wait.
    pub fn waiting(&self) -> usize {
        self.lock().waiting.len()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect(UNBROKEN)
    }
}

const UNBROKEN: &str = "nothing panics while it holds the budget";

impl State {
    fn take_spare(&mut self, len: usize) -> Option<MmapMut> {
        let at = self.spare.iter().position(|map| map.len() == len)?;
        let found = self.spare.remove(at)?;
        self.spare_bytes -= len as u64;
        Some(found)
    }

    /// Keeps a mapping that was returned, in place of the oldest ones if it must be.
    fn keep_spare(&mut self, map: MmapMut) {
        let (len, most) = (map.len() as u64, SPARE_BYTES.min(self.free));
        if len > most {
            return;
        }
        while self.spare_bytes + len > most {
            let oldest = self.spare.pop_front().expect("there are spare bytes");
            self.spare_bytes -= oldest.len() as u64;
        }
        self.spare_bytes += len;
        self.spare.push_back(map);
    }

    /// Gives spare mappings back to the system until there are no more of them than are free.
    fn shrink_spare(&mut self) {
        while self.spare_bytes > self.free
            && let Some(map) = self.spare.pop_front()
        {
            self.spare_bytes -= map.len() as u64;
        }
    }

    /// Ends the clients that have had their time; when the next one will have.
    fn evict_overdue(&mut self, now: Instant) -> Option<Instant> {
        for holder in self.holders.values_mut().filter(|holder| holder.due.is_some_and(|due| due <= now)) {
            holder.due = None;
            if let Some(evict) = holder.evict.take() {
                evict();
            }
        }
        self.holders.values().filter_map(|holder| holder.due).min()
    }
}

/// Memory of the system for one request, if there is some and [`HEADROOM_BYTES`] besides.
fn map(bytes: usize) -> std::io::Result<MmapMut> {
    let map = MmapMut::map_anon(bytes)?;
    drop(MmapMut::map_anon(HEADROOM_BYTES)?);
    Ok(map)
}

/// Bytes taken off a budget, until they are dropped.
pub struct Grant {
    budget: Arc<Budget>,
    id: u64,
    bytes: u64,
}

impl Grant {
    /// From now on it is the client that sends or takes; it has time for `bytes` from `begin` on.
    pub fn client_is_due(&self, begin: Instant, bytes: u64) {
        let patience = self.budget.patience;
        self.set_due(Some(begin + patience + Duration::from_millis(bytes * 1000 / LEAST_RATE)));
    }

    /// The client has done its part.
    pub fn client_is_done(&self) {
        self.set_due(None);
    }

    fn set_due(&self, due: Option<Instant>) {
        let mut state = self.budget.lock();
        let is_waited_for = !state.waiting.is_empty();
        if let Some(holder) = state.holders.get_mut(&self.id) {
            holder.due = due;
        }
        drop(state);
        if is_waited_for && due.is_some() {
            // Whoever waits looks at the time anew.
            self.budget.changed.notify_all();
        }
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        let mut state = self.budget.lock();
        state.free += self.bytes;
        state.holders.remove(&self.id);
        drop(state);
        self.budget.changed.notify_all();
    }
}

impl std::fmt::Debug for Grant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Grant").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Budget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Budget").field("total", &self.total).finish_non_exhaustive()
    }
}

/// Memory for one request, until it is dropped. What it holds at first may be left from another request, so
/// nobody may see a byte that has not been written.
#[derive(Debug)]
pub struct Room {
    /// Gone in `drop` only.
    map: Option<MmapMut>,
    len: usize,
    grant: Grant,
}

impl Room {
    /// What it was taken with.
    pub const fn grant(&self) -> &Grant {
        &self.grant
    }
}

impl Deref for Room {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.map.as_ref().expect("it is there until the end")[..self.len]
    }
}

impl DerefMut for Room {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.map.as_mut().expect("it is there until the end")[..self.len]
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut state = self.grant.budget.lock();
        state.mapped -= 1;
        state.returned += 1;
        // The grant gives back its bytes only then, and wakes those that wait.
        if let Some(map) = self.map.take() {
            let bytes = self.grant.bytes;
            state.free += bytes;
            state.keep_spare(map);
            state.free -= bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
    use std::sync::mpsc::channel;

    /// Waits until so many requests wait.
    fn until_waiting(budget: &Budget, count: usize) {
        while budget.waiting() != count {
            std::thread::yield_now();
        }
    }

    #[test]
    fn those_that_wait_have_their_turn_in_the_order_they_came_and_never_more_than_there_is() {
        let budget = Budget::new(100);
        let (sender, receiver) = channel();
        let held = budget.take(100, None).unwrap();
        let out = Arc::new(AtomicU64::new(0));
        std::thread::scope(|scope| {
            for (number, bytes) in [(0, 90), (1, 20), (2, 100), (3, 1)] {
                let (budget, sender, out) = (&budget, sender.clone(), Arc::clone(&out));
                scope.spawn(move || {
                    let grant = budget.take(bytes, None).unwrap();
                    assert!(out.fetch_add(bytes, Ordering::SeqCst) + bytes <= 100);
                    sender.send(number).unwrap();
                    out.fetch_sub(bytes, Ordering::SeqCst);
                    drop(grant);
                });
                // One after the other, so that the order is known.
                until_waiting(budget, number + 1);
            }
            drop(held);
            // The last would fit beside the first and the second.
            let order: Vec<usize> = (0..4).map(|_| receiver.recv().unwrap()).collect();
            assert_eq!(order, [0, 1, 2, 3]);
        });
        assert_eq!(budget.lock().free, 100);
    }

    #[test]
    fn many_threads_that_take_at_random_all_end_and_return_everything() {
        let budget = Budget::new(1000);
        let out = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for seed in 0..8_u64 {
                let (budget, out) = (&budget, &out);
                scope.spawn(move || {
                    for round in 0..500 {
                        let bytes = 1 + (seed * 7919 + round * 104_729) % 1000;
                        let grant = budget.take(bytes, None).unwrap();
                        assert!(out.fetch_add(bytes, Ordering::SeqCst) + bytes <= 1000);
                        out.fetch_sub(bytes, Ordering::SeqCst);
                        drop(grant);
                    }
                });
            }
        });
        let state = budget.lock();
        assert_eq!((state.free, state.waiting.len(), state.holders.len()), (1000, 0, 0));
    }

    #[test]
    fn a_request_longer_than_all_memory_is_refused_and_one_that_waits_is_woken_by_the_end() {
        let budget = Budget::new(100);
        assert!(matches!(budget.take(101, None), Err(NoMemory::TooLong { bytes: 101, total: 100 })));
        let held = budget.take(60, None).unwrap();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| budget.take(50, None).map(drop));
            until_waiting(&budget, 1);
            budget.close();
            assert!(matches!(waiter.join().unwrap(), Err(NoMemory::Closed)));
        });
        drop(held);
        assert!(matches!(budget.take(1, None), Err(NoMemory::Closed)));
        assert_eq!(budget.lock().free, 100);
    }

    #[test]
    fn a_client_that_does_nothing_is_ended_only_while_others_wait() {
        let budget = Budget::with_patience(100, Duration::from_millis(1));
        let evicted = Arc::new(AtomicUsize::new(0));
        let (sender, receiver) = channel();
        let count = Arc::clone(&evicted);
        let evict: Evict = Arc::new(move || {
            count.fetch_add(1, Ordering::SeqCst);
            sender.send(()).unwrap();
        });
        let idle = budget.take(80, Some(&evict)).unwrap();
        idle.client_is_due(Instant::now(), 0);
        // There is room, so nobody looks.
        drop(budget.take(20, None).unwrap());
        assert_eq!(evicted.load(Ordering::SeqCst), 0);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| budget.take(30, None).map(drop));
            receiver.recv().unwrap();
            drop(idle);
            waiter.join().unwrap().unwrap();
        });
        assert_eq!(evicted.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn a_client_whose_part_has_not_begun_or_is_over_is_never_ended() {
        let budget = Budget::with_patience(100, Duration::ZERO);
        let evict: Evict = Arc::new(|| panic!("it had nothing to do"));
        let first = budget.take(50, Some(&evict)).unwrap();
        let second = budget.take(50, Some(&evict)).unwrap();
        second.client_is_due(Instant::now() + Duration::from_secs(3600), 0);
        second.client_is_done();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| budget.take(30, None).map(drop));
            until_waiting(&budget, 1);
            drop((first, second));
            waiter.join().unwrap().unwrap();
        });
    }

    #[test]
    fn what_the_system_refuses_is_an_error_and_everything_is_returned() {
        // No machine has so much.
        let budget = Budget::with_patience(u64::MAX, Duration::from_secs(3600));
        let refused = budget.room(usize::MAX >> 8, None);
        assert!(matches!(refused, Err(NoMemory::System { .. })), "{refused:?}");
        let mut room = budget.room(5 << 20, None).unwrap();
        room[5] = 1;
        assert_eq!((room.len(), room[5], room[6]), (5 << 20, 1, 0));
        drop(room);
        let state = budget.lock();
        assert_eq!((state.free, state.mapped, state.returned), (u64::MAX, 0, 1));
    }

    #[test]
    fn what_is_kept_for_the_next_request_is_never_more_than_is_free() {
        let total = 100 << 20;
        let budget = Budget::new(total);
        let room = |mib: usize| budget.room((mib << 20) - 7, None).unwrap();
        let spare = || {
            let state = budget.lock();
            assert!(state.spare_bytes <= state.free.min(SPARE_BYTES));
            assert_eq!(state.spare_bytes, state.spare.iter().map(|map| map.len() as u64).sum::<u64>());
            state.spare_bytes >> 20
        };
        let held = [room(10), room(20), room(30), room(40)];
        assert_eq!((spare(), budget.lock().free), (0, 0));
        drop(held);
        assert_eq!((spare(), budget.lock().free), (40, total), "the last was kept in place of the others");
        let other = room(20);
        assert_eq!((other.len(), spare()), ((20 << 20) - 7, 40), "of another length");
        let most = budget.take(70 << 20, None).unwrap();
        assert_eq!(spare(), 0, "10 are free");
        drop((other, most));
        assert_eq!((spare(), budget.lock().free), (20, total));
        let same = room(20);
        assert_eq!(spare(), 0, "of the same length");
        drop(same);
        drop(room(7));
        assert_eq!((spare(), budget.lock().free), (27, total));
    }
}
