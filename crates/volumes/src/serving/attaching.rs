//! Disks that come and go while a cache in memory is served.

use super::{CachedFiles, over_disk};
use crate::{CacheFileError, Result};
use nandscape_core::{SimTime, Store as _};
use std::path::Path;

impl CachedFiles {
    /// Only the cache knows of its disks where nothing is kept of them.
    fn check_volatile(&self) -> Result<()> {
        match &self.fast {
            None => Ok(()),
            Some(fast) => {
                let detail = "a cache in a file: expected it not served, or one in memory";
                Err(CacheFileError::refused(fast.path(), detail))
            }
        }
    }

    /// Puts a disk behind the cache, and gives the number of its namespace.
    pub(super) fn attach_disk(&mut self, disk: &Path, name: &str) -> Result<u32> {
        self.check_volatile()?;
        let design = self.settings.design()?;
        let (mut volume, member) = over_disk(0, name, disk, &self.served, false)?;
        let attached = self.cache.attach(member.store);
        volume.id = attached.map_err(|error| CacheFileError::refused(disk, error))?;
        self.unit = self.unit.max(volume.place.store.block_bytes().into());
        let info = volume.info(design.block_bytes);
        // A number that is free again is that of a namespace without a volume.
        let namespace = self.numbers.iter().position(Option::is_none).unwrap_or(self.numbers.len());
        if namespace == self.numbers.len() {
            self.numbers.push(None);
            self.infos.push(info.clone());
        }
        self.numbers[namespace] = Some(volume.id);
        self.infos[namespace] = info;
        self.hearts.lock().expect("nobody panicked with the disks in hand").push(volume.place.clone());
        self.settings.volumes.insert(volume.id, volume.named());
        self.served.push(volume);
        self.follow_settings()?;
        Ok(namespace as u32)
    }

    /// Takes a disk away.
    pub(super) fn detach_disk(&mut self, name: &str, at: SimTime) -> Result<()> {
        self.check_volatile()?;
        let id = self.settings.id(name)?;
        self.cache.end_group();
        let taken = self.cache.drain(Some(id), u32::MAX, at).and_then(|_| self.cache.detach(id, at));
        let disk = taken.map_err(|error| CacheFileError::Refused(format!("volume {name}: {error}")))?;
        drop(disk);
        self.served.retain(|volume| volume.id != id);
        self.settings.volumes.remove(&id);
        for (number, info) in self.numbers.iter_mut().zip(&mut self.infos).filter(|(n, _)| **n == Some(id)) {
            *number = None;
            info.capacity_bytes = 0;
        }
        let here = |path: &Path| self.served.iter().any(|volume| volume.place.path() == path);
        self.hearts.lock().expect("nobody panicked with the disks in hand").retain(|disk| here(disk.path()));
        self.grouped.retain(|volume| *volume != id);
        self.follow_settings()
    }

    /// What the server tells of its settings follows them.
    fn follow_settings(&self) -> Result<()> {
        self.live.get().settings = Some((self.settings.design()?, self.settings.clone()));
        Ok(())
    }
}
