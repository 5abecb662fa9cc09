//! What is told of a cache that is served.

use nandscape_cache::status::Health;
use nandscape_cache::{Counters, Gauges};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use crate::{LostRange, MirrorMember, Settings, VolumeStat};
use nandscape_cache::compose::Design;

/// How a cache stood when it was looked at last.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub gauges: Gauges,
    pub counters: Counters,
    /// Of these what belongs to no volume.
    pub shared: Counters,
    pub health: Health,
    pub trouble: Option<String>,
    pub given_up: Option<String>,
    pub lost: Vec<LostRange>,
    pub mirror: Vec<MirrorMember>,
    pub volumes: Vec<VolumeStat>,
}

/// What the server and the namespaces tell each other.
#[derive(Debug, Default)]
pub(super) struct State {
    pub seen: Option<Seen>,
    /// The next shutdown is the last.
    pub is_closing: bool,
    /// Settings as they are now, where they were changed.
    pub settings: Option<(Design, Settings)>,
}

#[derive(Debug, Default)]
pub(super) struct Live {
    state: Mutex<State>,
    /// Whoever runs the commands waits for the completion of a batch before it answers.
    waits: AtomicBool,
}

impl Live {
    pub(super) fn get(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panicked with it in hand")
    }

    pub(super) fn set_waits(&self) {
        self.waits.store(true, Ordering::Relaxed);
    }

    pub(super) fn waits(&self) -> bool {
        self.waits.load(Ordering::Relaxed)
    }

    pub(super) fn is_closing(&self) -> bool {
        self.get().is_closing
    }
}
