//! Mirrors of files: made, found from any of their members, and with other members.

use super::label::{AREA, COPY, Label, Listed, Regions};
use super::{Found, Member, Mirror, Rebuild, command, read_label};
use crate::making::{Files, check_blank};
use crate::{CacheFileError, Result, draw_uuid, is_same_file, refused};
use nandscape_core::command::Payload;
use nandscape_core::{BlockCommand, Op, Store as _, StoreError};
use nandscape_files::{Condition, FileError, FileOptions, FileStore};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Labels have room for paths of some 400 bytes each.
const TOO_LONG: &str = "paths of the members of the mirror: expected shorter ones";

/// A member of a mirror, as it is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MirrorMember {
    /// Its file or device.
    pub path: PathBuf,
    /// Why it is used no more; `None` if it is current.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// What is about to take its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<Replacement>,
}

/// A file or device that gets what a mirror has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replacement {
    /// Where it is.
    pub path: PathBuf,
    /// What it has already.
    pub copied_bytes: u64,
    /// What it is to have.
    pub bytes: u64,
}

impl std::fmt::Display for MirrorMember {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = self.path.display();
        match &self.failed {
            None => write!(f, "{path}: current"),
            Some(why) => write!(f, "{path}: used no more: {why}"),
        }?;
        let Some(Replacement { path, copied_bytes, bytes }) = &self.replaced_by else { return Ok(()) };
        write!(f, "; {} takes its place, {copied_bytes} of {bytes} bytes copied", path.display())
    }
}

fn failed(file: &FileStore, error: &StoreError) -> CacheFileError {
    CacheFileError::refused(file.path(), error)
}

/// Whether two paths lead to the same file, or would.
fn is_same(a: &Path, b: &Path) -> bool {
    match std::fs::metadata(a).ok().zip(std::fs::metadata(b).ok()) {
        Some((a, b)) => is_same_file(&a, &b),
        None => std::path::absolute(a).ok() == std::path::absolute(b).ok(),
    }
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(refused(path, "find"))
}

fn found(file: FileStore) -> Result<Result<Found<FileStore>, FileStore>> {
    let path = file.path().to_owned();
    let found = Found::of(file).map_err(|error| CacheFileError::refused(&path, error))?;
    if let Ok(found) = &found {
        check_size(&found.store, AREA + found.label.bytes)?;
    }
    Ok(found)
}

/// Opens a file with all others of its mirror, if it is a member of one. Members that may differ after a
/// loss of power are made equal, unless nothing may be changed; then it is enough that one is there. The
/// member `absent` need not be there in any case.
pub(crate) fn open(path: &Path, options: FileOptions, absent: Option<&Path>) -> Result<Mirror> {
    let first = match found(FileStore::open(path, options)?)? {
        Ok(first) => first,
        Err(file) => return Ok(Mirror::single(file)),
    };
    let (mut label, mut all, mut missing) = (first.label.clone(), vec![first], Vec::new());
    loop {
        missing.clear();
        for listed in label.members.iter().filter(|listed| listed.failed.is_none()) {
            if all.iter().any(|found| found.uuid == listed.uuid) {
                continue;
            }
            match FileStore::open(&listed.path, options).map_err(CacheFileError::from).and_then(found) {
                Ok(Ok(other)) if other.uuid == listed.uuid => all.push(other),
                Ok(_) => {
                    missing.push((listed.path.clone(), "another file, or one without its label".to_owned()));
                }
                Err(CacheFileError::File(error @ FileError::InUse { .. })) => return Err(error.into()),
                Err(error) => missing.push((listed.path.clone(), error.to_string())),
            }
        }
        // Any member may know better, and know of others.
        let newest = all.iter().max_by_key(|found| found.label.generation).expect("the first one");
        if newest.label.generation <= label.generation {
            break;
        }
        label = newest.label.clone();
    }
    let mut mirror = Mirror::assemble(all, options.is_read_only);
    let Some(label) = &mut mirror.label else { return Ok(mirror) };
    for Member { place, store, .. } in &mirror.members {
        let listed = &mut label.members[*place].path;
        if !is_same(listed, store.path()) {
            *listed = absolute(store.path())?;
        }
    }
    if !label.fits() {
        return Err(CacheFileError::refused(path, TOO_LONG));
    }
    for (place, listed) in label.members.iter().enumerate() {
        let is_there = listed.failed.is_some() || mirror.members.iter().any(|member| member.place == place);
        if !is_there && missing.iter().all(|(other, _)| *other != listed.path) {
            missing.push((listed.path.clone(), "an older copy".to_owned()));
        }
    }
    if let Some(absent) = absent {
        missing.retain(|(other, _)| !is_same(absent, other));
    }
    if mirror.members.is_empty() {
        let detail = "no member of its mirror is left: expected one that did not fail";
        return Err(CacheFileError::refused(path, detail));
    }
    if let Some((other, why)) = missing.first().filter(|_| !options.is_read_only) {
        let (all, other) = (path.display(), other.display());
        return Err(CacheFileError::refused(
            path,
            format!(
                "member {other} of its mirror: {why}: expected it, or 'nandscape cache fail {all} {other}' to go on without it"
            ),
        ));
    }
    mirror.absent = missing;
    if !options.is_read_only {
        mirror.resync().map_err(|error| CacheFileError::refused(path, error))?;
    }
    Ok(mirror)
}

/// Writes zeroes over the labels, and what else there could be instead of them.
fn wipe(file: &mut FileStore) -> Result<()> {
    let done = file.apply(command(Op::Write, 0, 2 * COPY as u64), Payload::Write(&[0; 2 * COPY]));
    let done = done.and_then(|_| file.apply(BlockCommand::FLUSH, Payload::None));
    done.map(drop).map_err(|error| failed(file, &error))
}

/// What a file that is to become a member is for.
const MEMBER: &str = "a member of a mirror";

fn check_size(file: &FileStore, needed: u64) -> Result<()> {
    if file.capacity_bytes() < needed {
        let detail =
            format!("{} bytes: expected {needed} or more, as the mirror needs", file.capacity_bytes());
        return Err(CacheFileError::refused(file.path(), detail));
    }
    Ok(())
}

impl Mirror {
    /// A mirror of files without anything in it, of which so many bytes are used. Each of them gets its label
    /// with the first write.
    pub(crate) fn create(mut files: Vec<FileStore>, bytes: Option<u64>, replace: bool) -> Result<Self> {
        let least = files.iter().map(nandscape_core::Store::capacity_bytes).chain(bytes).min().unwrap_or(0);
        let first = files[0].path().to_owned();
        let mut members = Vec::new();
        for file in &mut files {
            check_size(file, AREA + (1 << 20))?;
            if !replace {
                check_blank(file, AREA, MEMBER)?;
            }
            members.push(Listed { uuid: draw_uuid(&first)?, path: absolute(file.path())?, failed: None });
        }
        let (uuid, bytes) = (draw_uuid(&first)?, (least - AREA) / 4096 * 4096);
        let label = Label { uuid, generation: 0, settled: 0, bytes, members, unsettled: Regions::NONE };
        if !label.fits() {
            return Err(CacheFileError::refused(&first, TOO_LONG));
        }
        files.iter_mut().try_for_each(wipe)?;
        let members =
            files.into_iter().enumerate().map(|(place, store)| Member { place, store, copy: 0, repairs: 0 });
        Ok(Self::with(members.collect(), Some(label), false))
    }

    /// The member at a path.
    fn find(&self, path: &Path, member: &Path) -> Result<usize> {
        let Some(label) = &self.label else {
            return Err(CacheFileError::refused(
                path,
                "no mirror: expected a cache that was made with --mirror",
            ));
        };
        let found = label.members.iter().position(|listed| is_same(&listed.path, member));
        found.ok_or_else(|| {
            let all: Vec<_> = label.members.iter().map(|listed| listed.path.display().to_string()).collect();
            let detail = format!("no member of the mirror: expected one of {}", all.join(", "));
            CacheFileError::refused(member, detail)
        })
    }

    /// The same for one that the others can do without.
    fn find_spare(&self, path: &Path, member: &Path) -> Result<usize> {
        let place = self.find(path, member)?;
        if self.members.iter().all(|other| other.place == place) {
            let detail = "the only member that is left: expected another one";
            return Err(CacheFileError::refused(member, detail));
        }
        Ok(place)
    }

    /// Goes on without a member, whether it is there or not.
    pub(crate) fn fail(&mut self, path: &Path, member: &Path) -> Result<()> {
        let place = self.find_spare(path, member)?;
        let is_current = self.label.as_ref().is_some_and(|label| label.members[place].failed.is_none());
        if !is_current {
            return Ok(());
        }
        let error = StoreError::Gone { detail: "taken out by 'cache fail'".to_owned() };
        self.go_without(vec![(place, error)]).map_err(|error| CacheFileError::refused(path, error))
    }

    /// Begins to put a file in place of a member; [`Mirror::copy_more`] does it.
    pub(crate) fn replace(
        &mut self,
        path: &Path,
        member: &Path,
        files: &mut Files<'_>,
        new: &Path,
        force: bool,
    ) -> Result<()> {
        let place = self.find_spare(path, member)?;
        if let Some(rebuild) = &self.rebuild {
            let detail = format!("{} is not done yet: expected one at a time", rebuild.listed.path.display());
            return Err(CacheFileError::refused(path, detail));
        }
        let Some(mut label) = self.label.clone() else { return Ok(()) };
        let listed = Listed { uuid: draw_uuid(path)?, path: absolute(new)?, failed: None };
        label.members[place] = listed.clone();
        if !label.fits() {
            return Err(CacheFileError::refused(new, TOO_LONG));
        }
        let is_new = !new.try_exists().unwrap_or(true);
        let mut store = files.open(new, Some(AREA + label.bytes))?;
        check_size(&store, AREA + label.bytes)?;
        let found = read_label(&mut store).map_err(|error| failed(&store, &error))?;
        if !force && found.is_none_or(|(.., other)| other.uuid != label.uuid) {
            check_blank(&mut store, AREA, MEMBER)?;
        }
        wipe(&mut store)?;
        let member = Member { place, store, copy: 0, repairs: 0 };
        self.rebuild = Some(Rebuild { listed, member, next: 0, failed: None, is_new });
        Ok(())
    }

    /// Copies some of what a new member has to get, and gives the bytes that are left.
    pub(crate) fn copy_more(&mut self) -> Result<u64> {
        self.copy().map_err(|error| match self.rebuild.take() {
            Some(rebuild) => {
                if rebuild.is_new {
                    let _ = std::fs::remove_file(&rebuild.listed.path);
                }
                CacheFileError::refused(&rebuild.listed.path, error)
            }
            None => CacheFileError::Refused(error.to_string()),
        })
    }

    /// Its files in use; the first one is what is read.
    pub(crate) fn files(&mut self) -> impl Iterator<Item = &mut FileStore> {
        self.members.iter_mut().map(|member| &mut member.store)
    }

    /// All members, if it is a mirror.
    pub(crate) fn report(&self) -> Vec<MirrorMember> {
        let member = |Listed { path, failed, .. }: &Listed| {
            let absent = self.absent.iter().find(|(other, _)| other == path);
            let failed = failed.clone().or_else(|| absent.map(|(_, why)| format!("not there: {why}")));
            MirrorMember { path: path.clone(), failed, replaced_by: None }
        };
        let Some(label) = &self.label else { return Vec::new() };
        let mut members: Vec<_> = label.members.iter().map(member).collect();
        if let Some(Rebuild { listed, member, next, .. }) = &self.rebuild {
            let (path, copied_bytes, bytes) = (listed.path.clone(), *next, label.bytes);
            members[member.place].replaced_by = Some(Replacement { path, copied_bytes, bytes });
        }
        members
    }

    /// Goes on without files that are told to fail, if others are left.
    pub(crate) fn go_on(&mut self) {
        if self.label.is_none() || self.is_read_only {
            return;
        }
        let failed = |member: &Member<FileStore>| Some((member.place, member.store.failed()?.clone()));
        let failed = self.members.iter().filter_map(failed).collect();
        // What cannot be recorded makes the next write fail.
        let _ = self.settle(failed);
    }

    /// Why commands fail, if they do on every file.
    pub(crate) fn failed(&self) -> Option<StoreError> {
        let mut errors = self.members.iter().map(|member| member.store.failed());
        let first = errors.next()??.clone();
        errors.all(|error| error.is_some()).then_some(first)
    }

    pub(crate) fn is_block_device(&self) -> bool {
        self.members.iter().all(|member| member.store.is_block_device())
    }

    /// Whether no file has a name any more.
    pub(crate) fn is_deleted(&self) -> bool {
        self.members.iter().all(|member| matches!(member.store.condition(), Ok(Condition::Deleted)))
    }
}
