//! Faults of stores by the number of an operation, and the operations that each store has seen.

use crate::shrink::Outcome;
use nandscape_core::{Word as _, words};
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard};

/// Operations for which [`Kind::IoWhile`] lasts.
const WHILE: u64 = 24;

/// What an operation does to a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads bytes.
    Read,
    /// Writes, zeroes or discards bytes.
    Write {
        /// Whether the store needs more space below for it: a full file system refuses only these.
        grows: bool,
    },
    /// Makes earlier writes durable, or opens, renames or removes something.
    Sync,
}

/// How a store fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// No space is left, from the operation on.
    NoSpace,
    /// One input/output error.
    IoOnce,
    /// Input/output errors for 24 operations.
    IoWhile,
    /// Input/output errors from the operation on.
    IoForever,
    /// One read gets only a part of its bytes.
    ShortRead,
    /// One write writes only a part of its bytes.
    ShortWrite,
    /// The store is gone, from the operation on.
    Gone,
    /// The store takes no writes, from the operation on.
    ReadOnly,
}

words! { pub Kind:
    NoSpace = "no-space", IoOnce = "io-once", IoWhile = "io-while", IoForever = "io-forever",
    ShortRead = "short-read", ShortWrite = "short-write", Gone = "gone", ReadOnly = "read-only",
}

impl Kind {
    /// Whether such an operation fails with it.
    pub const fn fits(self, access: Access) -> bool {
        match self {
            Self::NoSpace => matches!(access, Access::Write { grows: true }),
            Self::ShortRead => matches!(access, Access::Read),
            Self::ShortWrite | Self::ReadOnly => matches!(access, Access::Write { .. }),
            Self::IoOnce | Self::IoWhile | Self::IoForever | Self::Gone => true,
        }
    }

    /// Whether it lasts until the store is mended.
    pub const fn stays(self) -> bool {
        matches!(self, Self::NoSpace | Self::IoForever | Self::Gone | Self::ReadOnly)
    }

    const fn refusal(self) -> Refusal {
        match self {
            Self::NoSpace => Refusal::NoSpace,
            Self::IoOnce | Self::IoWhile | Self::IoForever => Refusal::Io,
            Self::ShortRead | Self::ShortWrite => Refusal::Short,
            Self::Gone => Refusal::Gone,
            Self::ReadOnly => Refusal::ReadOnly,
        }
    }
}

/// What an operation that fails gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No space is left; nothing was written.
    NoSpace,
    /// An input/output error; a write may have written a part.
    Io,
    /// A part was read or written.
    Short,
    /// The store is gone, with what was not durable.
    Gone,
    /// No writes are taken.
    ReadOnly,
}

/// A fault of one store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which store, from 0.
    pub store: usize,
    /// The first operation of that store that can fail.
    pub at: u64,
    /// How.
    pub kind: Kind,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}:{}", self.store, self.at, self.kind.name())
    }
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Outcome<Self> {
        let parts = || {
            let (store, rest) = text.split_once('@')?;
            let (at, name) = rest.split_once(':')?;
            Some(Self { store: store.parse().ok()?, at: at.parse().ok()?, kind: Kind::of_word(name)? })
        };
        parts().ok_or_else(|| format!("'{text}': expected STORE@OPERATION:KIND, such as 0@57:io-once"))
    }
}

struct Armed {
    fault: Fault,
    begun: Option<u64>,
}

#[derive(Default)]
struct State {
    armed: Vec<Armed>,
    /// By store, its operations in order.
    seen: Vec<Vec<Access>>,
    refused: u64,
    /// For people: what happens, where that is asked for.
    story: Option<Vec<String>>,
}

/// The faults of all stores of a subject. Every store asks it before each operation.
#[derive(Clone, Default)]
pub struct Faults(Arc<Mutex<State>>);

impl Faults {
    /// These faults, each to come at its operation.
    pub fn new(faults: &[Fault]) -> Self {
        let armed = faults.iter().map(|fault| Armed { fault: *fault, begun: None }).collect();
        Self(Arc::new(Mutex::new(State { armed, ..State::default() })))
    }

    fn get(&self) -> MutexGuard<'_, State> {
        // A test that panicked elsewhere says why by itself.
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Counts an operation of a store, and says how it fails.
    pub fn next(&self, store: usize, access: Access) -> Option<Refusal> {
        let state = &mut *self.get();
        if state.seen.len() <= store {
            state.seen.resize_with(store + 1, Vec::new);
        }
        let number = state.seen[store].len() as u64;
        state.seen[store].push(access);
        let mut refusal = None;
        for Armed { fault, begun } in &mut state.armed {
            let is_due = fault.store == store && number >= fault.at && fault.kind.fits(access);
            if !is_due || refusal.is_some() {
                continue;
            }
            let first = *begun.get_or_insert(number);
            let lasts = match fault.kind {
                kind if kind.stays() => u64::MAX,
                Kind::IoWhile => WHILE,
                _ => 1,
            };
            if number - first < lasts {
                refusal = Some(fault.kind.refusal());
            }
        }
        state.refused += u64::from(refusal.is_some());
        if let Some(story) = &mut state.story {
            let outcome = refusal.map_or_else(String::new, |refusal| format!(": {refusal:?}"));
            story.push(format!("    store {store}, operation {number}: {access:?}{outcome}"));
        }
        refusal
    }

    /// One more fault.
    pub fn arm(&self, fault: Fault) {
        self.get().armed.push(Armed { fault, begun: None });
    }

    /// All stores work from now on.
    pub fn mend(&self) {
        self.get().armed.clear();
    }

    /// The faults that are left, whether they have begun or not.
    pub fn armed(&self) -> Vec<Fault> {
        self.get().armed.iter().map(|armed| armed.fault).collect()
    }

    /// Operations that were refused so far.
    pub fn refused(&self) -> u64 {
        self.get().refused
    }

    /// By store, the operations so far.
    pub fn seen(&self) -> Vec<Vec<Access>> {
        self.get().seen.clone()
    }

    /// From now on every operation and [`Faults::tell`] is noted, for people.
    pub(super) fn begin_story(&self) {
        self.get().story = Some(Vec::new());
    }

    /// Notes something that happened.
    pub(super) fn tell(&self, what: impl FnOnce() -> String) {
        if let Some(story) = &mut self.get().story {
            story.push(what());
        }
    }

    pub(super) fn story(&self) -> Vec<String> {
        self.get().story.take().unwrap_or_default()
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faults").field("armed", &self.armed()).finish_non_exhaustive()
    }
}
