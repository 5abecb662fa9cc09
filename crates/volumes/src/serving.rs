//! A cache over files as namespaces of bytes that a server serves.

mod attaching;
mod control;
mod giving_up;
mod heart;
mod live;
mod subsystem;
mod unchanged;
mod watching;

pub use subsystem::CachedFiles;

use super::stat::{CacheStat, VolumeStat};
use super::{
    CacheFile, CacheFileError, NAME_EXPECTED, Named, Place, Result, Settings, chosen, is_name, refused,
};
use giving_up::{GivingUp, Teller};
use heart::{Heart, Hearts};
use live::Live;
use nandscape_cache::compose::Design;
use nandscape_cache::engine::{Cache, Disk as Member, Started};
use nandscape_cache::manage::{self, Change, Disk as _, ManageError, Recorder, Watch};
use nandscape_cache::metadata::{Area as _, Report};
use nandscape_core::{CacheReport, NamespaceInfo, SimTime, Store as _, Subsystem};
use nandscape_disk::{Keep, RamDisk, ram::RamSpeed};
use nandscape_policies::eviction::AnyEviction;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use watching::Watching;

/// A cache that is ready to be served, and what there is to say of its start.
pub struct Serving {
    /// A namespace for each volume, under its name.
    pub subsystem: Box<dyn Subsystem + Send>,
    /// What was found, and what became of it.
    pub notes: Vec<String>,
    /// What else the server needs.
    pub handle: Handle,
}

/// What a server keeps of a cache while the engine has it.
pub struct Handle {
    live: Arc<Live>,
    stat: CacheStat,
    teller: Teller,
    _heart: Heart,
}

impl Handle {
    /// The cache, with what its [`Subsystem::inspect`] has just reported.
    pub fn stat(&self, report: &CacheReport) -> CacheStat {
        let live = self.live.get();
        let mut stat = self.stat.with(report);
        if let Some((design, settings)) = &live.settings {
            stat.follow(design, settings);
        }
        if let Some(seen) = &live.seen {
            (stat.gauges, stat.counters) = (seen.gauges, seen.counters.clone());
            stat.counted_together = Some(seen.shared.clone());
            seen.health.name().clone_into(&mut stat.health);
            (stat.trouble, stat.lost) = (seen.trouble.clone(), seen.lost.clone());
            stat.given_up.clone_from(&seen.given_up);
            stat.mirror.clone_from(&seen.mirror);
            let is_new = stat.recovery.as_ref().is_some_and(|found| found.ends_with(Report::NEW));
            if is_new && stat.gauges.used > 0 {
                stat.recovery = Some("new when its server started".to_owned());
            }
            stat.volumes.clone_from(&seen.volumes);
        }
        stat
    }

    /// The cache as it was at the start.
    pub const fn at_start(&self) -> &CacheStat {
        &self.stat
    }

    /// `tell` is called with what happens to the cache, such as that it is given up, when it happens; it must
    /// not use the cache.
    pub fn tell(&self, tell: impl FnMut(&str) + Send + 'static) {
        self.teller.set(Box::new(tell));
    }

    /// Requests that arrive together are committed together from now on: each is answered only when its token
    /// has completed, which an event of the subsystem brings about.
    pub fn wait_for_completions(&self) {
        self.live.set_waits();
    }

    /// The next shutdown is the last: it closes the cache, and takes down how it leaves the disks.
    pub fn close_next(&self) {
        self.live.get().is_closing = true;
    }
}

/// Opens the cache at `fast` with all its disks. `disks`: where those are that are not where they were.
/// `trust`: none was used without its cache, whatever it looks like.
pub fn open_cache(fast: &Path, disks: &[(String, PathBuf)], trust: bool) -> Result<Serving> {
    let mut cache = CacheFile::open(fast, false)?;
    let (held, settings) = cache.look()?;
    let design = settings.design()?;
    for (name, _) in disks {
        settings.id(name)?;
    }
    let mut notes = vec![format!("{}: {}", fast.display(), held.report)];
    let failed = cache.fast.mirror().into_iter().filter(|member| member.failed.is_some());
    notes.extend(failed.map(|member| format!("{}: {member}", fast.display())));
    let mut served = Vec::new();
    for volume in &held.superblock.volumes {
        let place = cache.disk(&settings, volume.id, chosen(&settings, volume.id, disks))?;
        let name = settings
            .volumes
            .get(&volume.id)
            .map_or_else(|| format!("volume{}", volume.id), |v| v.name.clone());
        served.push(Served { id: volume.id, name, place });
    }
    // All of them are there; before that no session begins.
    let mut read_only = None;
    for Served { id, name, place } in &mut served {
        let change = match manage::take_up(&mut cache.fast, place, *id, trust) {
            Err(ManageError::Stamp { source, .. }) => {
                let why = format!("the stamp of the disk of {name} cannot be written: {source}");
                notes.push(format!("read-only: {why}"));
                read_only = Some(why);
                Ok(None)
            }
            done => done,
        };
        if let Some(change) = change.map_err(|source| cache.failed(source))? {
            notes.push(match change {
                Change::GivenUp(given_up) if !given_up.counts.is_nothing() => {
                    format!("{name}: {given_up}; these stay in the cache, and its clean blocks are dropped")
                }
                Change::GivenUp(_) => format!("{name}: {change}; its blocks are dropped from the cache"),
                _ => {
                    format!("{name}: {change}; its blocks are dropped from the cache, none of them was dirty")
                }
            });
        }
    }
    if read_only.is_none() && (design.mode.makes_dirty() || held.usage(None).dirty_blocks != 0) {
        manage::begin_dirty(&mut cache.fast).map_err(|source| cache.failed(source))?;
    }
    // Every session has begun, so nothing but this server writes to the disks from now on.
    let mut watch = match read_only {
        Some(_) => None,
        None => Watch::open(Box::new(cache.fast.clone())).map_err(|source| cache.failed(source))?,
    };
    if let Some(watch) = &mut watch {
        for volume in &mut served {
            watch.add(volume.id, &mut volume.place);
        }
    }
    let watching = Watching::new(watch);
    let volumes = served.iter().zip(&held.superblock.volumes);
    let members = volumes.map(|(served, volume)| Member {
        store: match read_only {
            Some(_) => unchanged::disk(served.place.store()),
            None => watching.over(volume.id, served.place.store()),
        },
        uuid: volume.uuid,
    });
    let started = match read_only {
        Some(_) => unchanged::open(&design, cache.fast.store(), members.collect()),
        None => design.open(cache.fast.store(), members.collect(), SimTime::ZERO),
    };
    let mut started = started.map_err(|error| CacheFileError::refused(fast, error))?;
    let teller = Teller::default();
    let recorder =
        Recorder::new(&mut cache.fast, watching.records()).map_err(|source| cache.failed(source))?;
    let names = served.iter().map(|volume| (volume.id, volume.name.clone())).collect();
    let mut giving_up = GivingUp { fast: cache.fast.clone(), recorder, teller: teller.clone(), names };
    for volume in &served {
        let added = giving_up.recorder.add(volume.id, Box::new(volume.place.clone()));
        added.map_err(|source| cache.failed(source))?;
    }
    if read_only.is_none() {
        started.cache.set_give_up(Box::new(giving_up));
    }
    shares(&mut started.cache, &settings, &design)?;
    let stat = CacheStat {
        metadata_block_bytes: nandscape_cache::metadata::METADATA_BLOCK,
        mirror: cache.fast.mirror(),
        read_only: read_only.clone(),
        ..CacheStat::of_design(fast.to_owned(), &design)
    };
    serving(started, stat, served, Some(cache.fast), Kept { notes, watching, settings, teller, read_only })
}

/// A cache of so many bytes of memory in front of these disks, which is gone with the process. `trust`: a
/// disk may have the stamp of a cache that it is used without.
pub fn cache_in_memory(
    bytes: u64,
    design: &Design,
    disks: &[(String, PathBuf)],
    trust: bool,
) -> Result<Serving> {
    let speed = RamSpeed { request_ns: 1, jump_ns: 0, read_bytes_per_s: 1 << 40, write_bytes_per_s: 1 << 40 };
    let ram = RamDisk::new(bytes / 4096 * 4096, speed, Keep::Bytes);
    let fast = PathBuf::from("ram");
    if design.mode.makes_dirty() {
        return Err(CacheFileError::volatile(design.mode));
    }
    let mut served = Vec::new();
    let mut members = Vec::new();
    for (id, (name, path)) in (0..).zip(disks) {
        let (volume, member) = over_disk(id, name, path, &served, trust)?;
        served.push(volume);
        members.push(member);
    }
    let uuid = super::draw_uuid(&fast)?;
    let started = design.create(Box::new(ram), members, uuid, SimTime::ZERO);
    let started = started.map_err(|error| CacheFileError::refused(&fast, error))?;
    let mut typed = design.typed().clone();
    // Not what files need.
    typed.entry("flushing".to_owned()).or_insert_with(|| design.flushing.name().to_owned());
    let volumes = served.iter().map(|volume| (volume.id, volume.named())).collect();
    let settings = Settings { design: typed, volumes, ..Settings::default() };
    serving(started, CacheStat::of_design(fast, design), served, None, Kept { settings, ..Kept::default() })
}

/// A disk behind a cache in memory, beside others.
fn over_disk(id: u16, name: &str, path: &Path, others: &[Served], trust: bool) -> Result<(Served, Member)> {
    if !is_name(name) {
        return Err(CacheFileError::name(name, NAME_EXPECTED));
    }
    if others.iter().any(|other| other.name == name) {
        return Err(CacheFileError::name(name, "one that no other volume has"));
    }
    let of_disk =
        |source| CacheFileError::Manage { path: path.to_owned(), name: Some(name.to_owned()), source };
    let mut place = Place::open_disk(path, nandscape_files::FileOptions::default())?;
    let beside = place.beside().map_err(|source| of_disk(ManageError::Disk { volume: id, source }))?;
    if let (manage::Beside::Mark(mark), false) = (beside, trust) {
        return Err(of_disk(ManageError::Taken { cache: mark.cache }));
    }
    let member = Member { store: place.store(), uuid: super::draw_uuid(path)? };
    // Nothing is ever newer than the disk, so nothing is kept beside it.
    Ok((Served { id, name: name.to_owned(), place: place.unmarked() }, member))
}

/// Gives a cache its limit and quotas.
fn shares(cache: &mut Cache<AnyEviction>, settings: &Settings, design: &Design) -> Result<()> {
    let shares = settings.shares(design, cache.slots())?;
    cache.set_limit(shares.limit.unwrap_or(u32::MAX));
    for (id, slots) in shares.quotas {
        // A volume that is not there has none.
        let _ = cache.set_quota(id, slots);
    }
    Ok(())
}

/// What else a server starts with.
#[derive(Default)]
struct Kept {
    notes: Vec<String>,
    watching: Watching,
    settings: Settings,
    teller: Teller,
    /// Why nothing may be changed.
    read_only: Option<String>,
}

fn serving(
    started: Started<AnyEviction>,
    mut stat: CacheStat,
    served: Vec<Served>,
    fast: Option<Place>,
    kept: Kept,
) -> Result<Serving> {
    let cache = started.cache;
    stat.is_served = true;
    let Kept { notes, watching, settings, teller, read_only } = kept;
    stat.recovery = notes.first().cloned();
    stat.gauges = cache.gauges();
    stat.volumes = served.iter().map(Served::stat).collect();
    stat.follow(&settings.design()?, &settings);
    let unit = served.iter().map(|volume| volume.place.store.block_bytes()).max().unwrap_or(512);
    let unit = unit.max(fast.as_ref().map_or(512, |fast| fast.store.block_bytes()));
    let infos = served.iter().map(|volume| volume.info(stat.block_bytes)).collect();
    let numbers = served.iter().map(|volume| Some(volume.id)).collect();
    let live = Arc::new(Live::default());
    let hearts = Hearts::new(Mutex::new(served.iter().map(|volume| volume.place.clone()).collect()));
    let heart = Heart::start(fast.clone(), Arc::clone(&hearts), teller.clone());
    let heart = heart.map_err(refused(&stat.fast, "start a thread"))?;
    let unit = u64::from(unit);
    let handle = Handle { live: Arc::clone(&live), stat, teller, _heart: heart };
    let subsystem = CachedFiles {
        cache,
        served,
        numbers,
        infos,
        hearts,
        fast,
        watching,
        unit,
        bounce: Vec::new(),
        grouped: Vec::new(),
        live,
        settings,
        read_only,
    };
    Ok(Serving { subsystem: Box::new(subsystem), notes, handle })
}

struct Served {
    id: u16,
    name: String,
    place: Place,
}

impl Served {
    /// As hosts see it.
    fn info(&self, block_bytes: u32) -> NamespaceInfo {
        NamespaceInfo {
            name: self.name.clone(),
            capacity_bytes: self.place.capacity_bytes(),
            page_bytes: block_bytes,
            set: 0,
            endurance_group: 0,
            zones: None,
            objects: false,
        }
    }

    /// As settings name it.
    fn named(&self) -> Named {
        Named { name: self.name.clone(), path: self.place.path().to_owned(), quota: None }
    }

    fn stat(&self) -> VolumeStat {
        VolumeStat {
            name: self.name.clone(),
            disk: self.place.path().to_owned(),
            bytes: self.place.capacity_bytes(),
            state: "in use".to_owned(),
            ..VolumeStat::default()
        }
    }
}
