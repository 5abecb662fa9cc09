//! A cache that is given up while it is served: taken down by [`Recorder`], and said at once.

use crate::Place;
use nandscape_cache::engine::GiveUp;
use nandscape_cache::manage::Recorder;
use nandscape_core::{Extent, StoreError, StoreResult};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

/// Different messages that are said at most.
const MESSAGES_MAX: usize = 1000;

type Tell = Box<dyn FnMut(&str) + Send>;

/// What is to be said of a cache while it is served, each thing once.
#[derive(Clone, Default)]
pub(super) struct Teller(Arc<Mutex<Said>>);

#[derive(Default)]
struct Said {
    tell: Option<Tell>,
    said: BTreeSet<String>,
}

impl Teller {
    fn get(&self) -> MutexGuard<'_, Said> {
        self.0.lock().expect("nobody panicked while it was said")
    }

    /// Who says it from now on.
    pub(super) fn set(&self, tell: Tell) {
        self.get().tell = Some(tell);
    }

    pub(super) fn say(&self, text: String) {
        let mut said = self.get();
        if said.said.len() >= MESSAGES_MAX || said.said.contains(&text) {
            return;
        }
        if let Some(tell) = &mut said.tell {
            tell(&text);
        }
        said.said.insert(text);
    }
}

/// Takes down, and says, that a cache is given up.
pub(super) struct GivingUp {
    pub fast: Place,
    pub recorder: Recorder,
    pub teller: Teller,
    pub names: Vec<(u16, String)>,
}

impl GivingUp {
    /// A file without a name is never opened again, so nobody has to know.
    fn unless_deleted(&self, done: StoreResult<()>) -> StoreResult<()> {
        done.or_else(|error| if self.fast.store.get().first().is_deleted() { Ok(()) } else { Err(error) })
    }

    fn name(&self, volume: u16) -> String {
        let found = self.names.iter().find(|(id, _)| *id == volume);
        found.map_or_else(|| format!("volume {volume}"), |(_, name)| name.clone())
    }
}

impl GiveUp for GivingUp {
    fn begin(&mut self, volume: u16, why: &StoreError) -> StoreResult<()> {
        let fast = self.fast.path().display();
        self.teller.say(format!(
            "{fast}: the cache device is given up: {why}; dirty blocks go to the disks, and so does everything from now on"
        ));
        let done = self.recorder.begin(volume, why);
        self.unless_deleted(done).inspect_err(|error| {
            self.teller.say(format!(
                "{}: dirty blocks stay on the cache device, since nothing can record that it is given up: {error}",
                self.name(volume)
            ));
        })
    }

    fn record(&mut self, volume: u16, lost: &[Extent]) -> StoreResult<()> {
        let done = self.recorder.record(volume, lost);
        let done = self.unless_deleted(done);
        let name = self.name(volume);
        let bytes: u64 = lost.iter().map(|range| range.len).sum();
        self.teller.say(match &done {
            Ok(()) if bytes == 0 => format!("{name}: the disk has everything"),
            Ok(()) => format!("{name}: {bytes} bytes did not reach the disk and are lost"),
            Err(error) => {
                format!("{name}: writes are refused, since nothing can record that the cache device is given up: {error}")
            }
        });
        done
    }
}
