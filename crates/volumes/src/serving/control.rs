//! Other settings while a cache is served.

use super::CachedFiles;
use crate::making::{Files, Making};
use crate::mirror::Mirror;
use crate::{CacheFileError, Result, Settings, refused};
use nandscape_cache::Mode;
use nandscape_cache::compose::{Design, Typed};
use nandscape_cache::manage;
use nandscape_cache::metadata::Area as _;
use nandscape_core::{CacheControl, SimTime};
use std::path::Path;

impl CachedFiles {
    /// Follows other settings from now on. What is refused changes nothing.
    fn change(&mut self, changes: &Typed) -> Result<()> {
        if let Some(why) = &self.read_only {
            return Err(CacheFileError::Refused(format!("served read-only: {why}")));
        }
        let old = self.settings.design()?;
        let mut settings = self.settings.clone();
        settings.change(changes, self.cache.used().into())?;
        let new = settings.design()?;
        if new.mode.makes_dirty() && self.fast.is_none() {
            return Err(CacheFileError::volatile(new.mode));
        }
        if new.mode.makes_dirty() && !old.mode.makes_dirty() && new.metadata == "at-removal" {
            return Err(CacheFileError::Refused(format!(
                "mode {} of a cache that is served, with metadata 'at-removal': expected it before the start, since a kill would lose dirty blocks without a trace",
                new.mode.name()
            )));
        }
        let admission = new.admission(self.cache.slots())?;
        let cleanings = new.cleanings(self.cache.slots(), self.cache.ways())?;
        settings.shares(&new, self.cache.slots())?;
        let is_other = |part: &dyn Fn(&Design) -> Vec<(String, String)>| part(&old) != part(&new);
        if new.flushing != old.flushing {
            self.flush_all()?;
        }
        self.keep(&settings)?;
        // What a policy remembers is lost with it, so one that stays is left alone.
        if is_other(&|design| design.of_eviction()) {
            self.cache.set_evictions(new.policies(), new.seed);
        }
        if is_other(&|design| design.of_admission()) {
            self.cache.set_admission(admission);
        }
        if is_other(&|design| design.of_cleaning()) {
            self.cache.set_cleanings(cleanings);
        }
        self.cache.set_quirks(new.quirks);
        self.cache.set_flushing(new.flushing);
        if changes.contains_key("mode") {
            self.cache.set_mode(new.mode);
        }
        super::shares(&mut self.cache, &settings, &new)?;
        self.live.get().settings = Some((new, settings.clone()));
        self.settings = settings;
        Ok(())
    }

    /// Writes settings down: the next start has them, whatever the end of this one. Nothing is written to a
    /// cache device that is given up.
    fn keep(&mut self, settings: &Settings) -> Result<()> {
        let is_given_up = self.cache.health().bypassed.is_some();
        let (Some(fast), Some(held)) = (&mut self.fast, self.cache.superblock()) else { return Ok(()) };
        if is_given_up {
            return Ok(());
        }
        manage::set_open(fast, held, &settings.text()).map_err(|source| CacheFileError::Manage {
            path: fast.path().to_owned(),
            name: None,
            source,
        })
    }

    /// What the disks have answered is on them from now on: a design that flushed less may have counted on
    /// it.
    fn flush_all(&mut self) -> Result<()> {
        let fast = self.fast.iter_mut();
        for place in fast.chain(self.served.iter_mut().map(|volume| &mut volume.place)) {
            let done = place.flush().map_err(std::io::Error::other);
            done.map_err(refused(place.path(), "flush"))?;
        }
        Ok(())
    }

    /// Does something with the members of the cache device.
    fn with_mirror<T>(&self, act: impl FnOnce(&mut Mirror, &Path) -> Result<T>) -> Result<T, String> {
        if let Some(why) = &self.read_only {
            return Err(format!("served read-only: {why}"));
        }
        let fast = self.fast.as_ref().ok_or("a cache in memory: expected one with a mirror")?;
        act(fast.store.get().first(), fast.path()).map_err(|error| error.to_string())
    }

    /// The mode in force.
    pub fn mode(&self) -> Mode {
        self.cache.mode()
    }
}

impl CacheControl for CachedFiles {
    fn set(&mut self, settings: &Typed) -> Result<(), String> {
        self.change(settings).map_err(|error| error.to_string())
    }

    fn clean(&mut self, blocks: u32, at: SimTime) -> Result<u32, String> {
        if let Some(why) = &self.read_only {
            return Err(format!("served read-only: {why}"));
        }
        self.cache.clean(blocks, at).map_err(|error| error.to_string())
    }

    fn attach(&mut self, disk: &Path, name: &str) -> Result<u32, String> {
        self.attach_disk(disk, name).map_err(|error| error.to_string())
    }

    fn detach(&mut self, name: &str, at: SimTime) -> Result<(), String> {
        self.detach_disk(name, at).map_err(|error| error.to_string())
    }

    fn fail(&mut self, member: &Path) -> Result<(), String> {
        self.with_mirror(|mirror, path| mirror.fail(path, member))
    }

    fn replace(&mut self, member: &Path, new: &Path, force: bool) -> Result<(), String> {
        self.with_mirror(|mirror, path| {
            let mut files = Files::new(Making { replace: force, ..Making::default() });
            let begun = mirror.replace(path, member, &mut files, new, force);
            files.keep_if(begun)
        })
    }

    fn copy_more(&mut self) -> Result<u64, String> {
        self.with_mirror(|mirror, _| mirror.copy_more())
    }
}
