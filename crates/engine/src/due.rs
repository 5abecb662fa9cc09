//! When answers are due on a paced clock, where completions that only events of the model tell are still to
//! come.

use crate::Engine;
use nandscape_core::SimTime;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// With completions still to come, a queue looks at least so often, since what other clients ask for can
/// bring new events, and at most so often: a transfer alone has several events.
const LOOK: [Duration; 2] = [Duration::from_micros(200), Duration::from_micros(50)];

/// The completion of a request of which only events tell.
#[derive(Clone, Debug)]
pub(crate) struct Promise(Arc<AtomicU64>);

impl Promise {
    const OPEN: u64 = u64::MAX;

    pub fn open() -> Self {
        Self(Arc::new(AtomicU64::new(Self::OPEN)))
    }

    pub fn keep(&self, done: SimTime) {
        self.0.store(done.0, Ordering::Release);
    }

    fn kept(&self) -> Option<SimTime> {
        Some(self.0.load(Ordering::Acquire)).filter(|done| *done != Self::OPEN).map(SimTime)
    }
}

/// When an answer is due: when the last of some requests completes in the model, whose time is the real one.
#[derive(Clone, Debug)]
pub struct Due {
    /// When the model's time was 0.
    start: Instant,
    /// The last completion that is known.
    done: SimTime,
    promises: Vec<Promise>,
}

impl Due {
    pub(crate) fn new(start: Instant, done: SimTime, promise: Option<&Promise>) -> Self {
        Self { start, done, promises: promise.into_iter().cloned().collect() }
    }

    /// The later of two; `None` is now.
    pub fn last_of(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(mut one), Some(other)) => {
                one.done = one.done.max(other.done);
                one.promises.extend(other.promises);
                Some(one)
            }
            (one, other) => one.or(other),
        }
    }

    /// The time; `None` while events are to come that tell. [`DueQueue`] runs them.
    pub fn at(&mut self) -> Option<Instant> {
        let done = &mut self.done;
        self.promises.retain(|promise| match promise.kept() {
            Some(kept) => {
                *done = kept.max(*done);
                false
            }
            None => true,
        });
        self.promises.is_empty().then(|| self.start + Duration::from_nanos(self.done.0))
    }
}

/// Answers that wait until they are due, and go out in that order; of those due at the same time the first
/// that came goes first.
#[derive(Debug)]
pub struct DueQueue<T> {
    known: BTreeMap<(Instant, u64), Answer<T>>,
    promised: Vec<(u64, Due, T)>,
    came: u64,
}

/// An answer that is due.
#[derive(Debug)]
pub struct Answer<T> {
    /// What waited.
    pub what: T,
    /// When it was due, where [`Engine::answered`] has to be told: that was not known when its batch had run,
    /// or not yet so.
    pub counted: Option<Instant>,
}

impl<T> Default for DueQueue<T> {
    fn default() -> Self {
        Self { known: BTreeMap::new(), promised: Vec::new(), came: 0 }
    }
}

impl<T> DueQueue<T> {
    /// How many wait.
    pub fn len(&self) -> usize {
        self.known.len() + self.promised.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One more, which came at `now`; `None` is due then. Tells `became_known`, if it is known, when that is.
    pub fn push(&mut self, due: Option<Due>, now: Instant, what: T, became_known: impl FnOnce(&T, Instant)) {
        self.came += 1;
        // Of a promise that was kept meanwhile nothing was counted when the batch had run.
        let was_promised = due.as_ref().is_some_and(|due| !due.promises.is_empty());
        let at = match due {
            None => now,
            Some(mut due) => match due.at() {
                Some(at) => at,
                None => return self.promised.push((self.came, due, what)),
            },
        };
        became_known(&what, at);
        let counted = (was_promised || at > now).then_some(at);
        self.known.insert((at, self.came), Answer { what, counted });
    }

    /// Runs what events there are up to now, if answers wait for them, and tells `became_known` of each whose
    /// time that has found. When to look again; `None` if nothing waits.
    pub fn look(&mut self, engine: &Engine, mut became_known: impl FnMut(&T, Instant)) -> Option<Instant> {
        let mut next = None;
        if !self.promised.is_empty() {
            let event = engine.run_events();
            let known = &mut self.known;
            let found = self.promised.extract_if(.., |(_, due, _)| due.at().is_some());
            for (came, mut due, what) in found {
                let at = due.at().expect("it was just known");
                became_known(&what, at);
                known.insert((at, came), Answer { what, counted: Some(at) });
            }
            if !self.promised.is_empty() {
                let now = Instant::now();
                let [latest, earliest] = LOOK.map(|after| now + after);
                next = Some(event.map_or(latest, |event| event.clamp(earliest, latest)));
            }
        }
        let first = self.known.first_key_value().map(|((at, _), _)| *at);
        next.into_iter().chain(first).min()
    }

    /// The first that is due by `now`, if `take` wants it.
    pub fn pop(&mut self, now: Instant, take: impl FnOnce(&T) -> bool) -> Option<Answer<T>> {
        let first = self.known.first_entry()?;
        (first.key().0 <= now && take(&first.get().what)).then(|| first.remove())
    }

    /// One that waits, whether it is due or not.
    pub fn pop_any(&mut self) -> Option<Answer<T>> {
        let first = self.known.pop_first().map(|(_, answer)| answer);
        first.or_else(|| self.promised.pop().map(|(_, _, what)| Answer { what, counted: None }))
    }

    /// Drops all.
    pub fn clear(&mut self) {
        self.known.clear();
        self.promised.clear();
    }
}
