//! A cache over files as namespaces of bytes that a server serves.

use super::stat::{CacheStat, VolumeStat, recovered};
use super::{CacheFile, CacheFileError, DiskPlace, Place, chosen};
use nandscape_cache::Mode;
use nandscape_cache::compose::{ComposeError, Design};
use nandscape_cache::engine::{Cache, CacheError, Disk as Member, Started};
use nandscape_cache::eviction::AnyEviction;
use nandscape_cache::manage::{self, Disk as _, ManageError};
use nandscape_cache::metadata::Area as _;
use nandscape_core::namespace::{HostCounts, Payload};
use nandscape_core::{
    Allocation, CacheControl, CacheReport, Command, Completion, Cost, Extent, FlashDevice, FtlStats, Hint,
    NamespaceError, NamespaceInfo, Op, SimTime, StoreError, Subsystem, Token,
};
use nandscape_disk::{Keep, RamDisk, ram::RamSpeed};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Dirty blocks that are cleaned at a time when nobody asks for anything.
const IDLE_BLOCKS: u32 = 64;
/// From when on nobody does.
const IDLE_NS: u64 = 1_000_000_000;
/// How often a server shows that it is alive.
const BEAT: Duration = Duration::from_secs(1);

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
#[derive(Debug)]
pub struct Handle {
    is_closing: Arc<AtomicBool>,
    stat: CacheStat,
    _heart: Heart,
}

impl Handle {
    /// The cache, with what its [`Subsystem::cache`] reports.
    pub fn stat(&self, report: &CacheReport) -> CacheStat {
        self.stat.with(report)
    }

    /// The cache as it was at the start.
    pub const fn at_start(&self) -> &CacheStat {
        &self.stat
    }

    /// The next shutdown is the last: it closes the cache, and takes down how it leaves the disks.
    pub fn close_next(&self) {
        self.is_closing.store(true, Ordering::Release);
    }
}

/// A thread that shows that the server is alive, until it is dropped.
#[derive(Debug)]
struct Heart {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Heart {
    fn start(mut disks: Vec<DiskPlace>) -> std::io::Result<Self> {
        let (stop, stopped) = channel();
        let beat = move || {
            while stopped.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
                for disk in &mut disks {
                    // Without a sign of life the next start after a kill may be more careful than it has to be.
                    let _ = disk.sign_of_life();
                }
            }
        };
        let thread = std::thread::Builder::new().name("cache-heart".into()).spawn(beat)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Heart {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Opens the cache at `fast` with all its disks. `disks`: where those are that are not where they were. `trust`: none was used without its
/// cache, whatever it looks like.
pub fn open_cache(fast: &Path, disks: &[(String, PathBuf)], trust: bool) -> Result<Serving, CacheFileError> {
    let mut cache = CacheFile::open(fast, false)?;
    let (held, settings) = cache.look()?;
    let design = settings.design()?;
    for (name, _) in disks {
        settings.id(name)?;
    }
    let mut notes = vec![format!("{}: {}", fast.display(), recovered(&held.report))];
    let mut served = Vec::new();
    let mut members = Vec::new();
    for volume in &held.superblock.volumes {
        let mut place = cache.disk(&settings, volume.id, chosen(&settings, volume.id, disks))?;
        let name = settings
            .volumes
            .get(&volume.id)
            .map_or_else(|| format!("volume{}", volume.id), |v| v.name.clone());
        let change = manage::take_up(&mut cache.fast, &mut place, volume.id, trust);
        if let Some(change) = change.map_err(|source| cache.failed(source))? {
            notes.push(format!(
                "{name}: {change}; its blocks are dropped from the cache, none of them was dirty"
            ));
        }
        members.push(Member { store: place.place.store(), uuid: volume.uuid });
        served.push(Served { id: volume.id, name, place });
    }
    let started = design.open(cache.fast.store(), members, SimTime::ZERO);
    let started = started.map_err(|source| start_failed(fast, source))?;
    let stat = CacheStat {
        metadata_block_bytes: held.superblock.shape.unit,
        ..CacheStat::of_design(fast.to_owned(), &design)
    };
    serving(started, stat, served, Some(cache.fast), notes)
}

/// A cache of so many bytes of memory in front of these disks, which is gone with the process.
pub fn cache_in_memory(
    bytes: u64,
    design: &Design,
    disks: &[(String, PathBuf)],
) -> Result<Serving, CacheFileError> {
    let speed = RamSpeed { request_ns: 1, jump_ns: 0, read_bytes_per_s: 1 << 40, write_bytes_per_s: 1 << 40 };
    let ram = RamDisk::new(bytes / 4096 * 4096, speed, Keep::Bytes);
    let fast = PathBuf::from("ram");
    if design.mode.makes_dirty() {
        return Err(CacheFileError::Volatile { mode: design.mode.name() });
    }
    let mut served = Vec::new();
    let mut members = Vec::new();
    for (id, (name, path)) in (0..).zip(disks) {
        let place = DiskPlace::open(path, nandscape_files::FileOptions::default())?;
        let uuid = super::draw_uuid(path)?;
        members.push(Member { store: place.place.store(), uuid });
        // Nothing is ever newer than the disk, so nothing is kept beside it.
        served.push(Served { id, name: name.clone(), place: DiskPlace::unmarked(place.place) });
    }
    let uuid = super::draw_uuid(&fast)?;
    let started = design.create(Box::new(ram), members, uuid, SimTime::ZERO);
    let started = started.map_err(|source| start_failed(&fast, source))?;
    serving(started, CacheStat::of_design(fast, design), served, None, Vec::new())
}

fn start_failed(fast: &Path, source: ComposeError) -> CacheFileError {
    CacheFileError::Start { path: fast.to_owned(), source }
}

fn serving(
    started: Started<AnyEviction>,
    mut stat: CacheStat,
    served: Vec<Served>,
    fast: Option<Place>,
    notes: Vec<String>,
) -> Result<Serving, CacheFileError> {
    let cache = started.cache;
    stat.is_served = true;
    stat.recovery = notes.first().cloned();
    stat.volumes = served.iter().map(Served::stat).collect();
    let unit = served.iter().map(|volume| volume.place.place.block_bytes()).max().unwrap_or(512);
    let unit = unit.max(fast.as_ref().map_or(512, Place::block_bytes));
    let info = |volume: &Served| NamespaceInfo {
        name: volume.name.clone(),
        capacity_bytes: volume.place.capacity_bytes(),
        page_bytes: stat.block_bytes,
        set: 0,
        endurance_group: 0,
    };
    let infos = served.iter().map(info).collect();
    let cleans = stat.settings.iter().any(|(key, value)| key == "cleaning" && value != "none");
    let is_closing = Arc::new(AtomicBool::new(false));
    let hearts = served.iter().map(|volume| volume.place.clone()).collect();
    let heart = Heart::start(hearts).map_err(|source| CacheFileError::Io {
        path: stat.fast.clone(),
        what: "start a thread",
        source,
    })?;
    let unit = u64::from(unit);
    let handle = Handle { is_closing: Arc::clone(&is_closing), stat, _heart: heart };
    let subsystem = CachedFiles {
        cache,
        served,
        infos,
        fast,
        cleans,
        busy_at: SimTime::ZERO,
        unit,
        bounce: Vec::new(),
        is_closing,
    };
    Ok(Serving { subsystem: Box::new(subsystem), notes, handle })
}

/// A volume that is served.
struct Served {
    id: u16,
    name: String,
    place: DiskPlace,
}

impl Served {
    fn stat(&self) -> VolumeStat {
        VolumeStat {
            name: self.name.clone(),
            disk: self.place.place.path().to_owned(),
            bytes: self.place.capacity_bytes(),
            blocks: 0,
            dirty_blocks: 0,
            dirty_bytes: 0,
            state: "in use".to_owned(),
        }
    }
}

/// The namespaces. Requests for parts of sectors are done with whole ones.
pub struct CachedFiles {
    cache: Cache<AnyEviction>,
    served: Vec<Served>,
    infos: Vec<NamespaceInfo>,
    fast: Option<Place>,
    /// Whether the design cleans at all.
    cleans: bool,
    /// When the last command came.
    busy_at: SimTime,
    unit: u64,
    bounce: Vec<u8>,
    is_closing: Arc<AtomicBool>,
}

const fn command(op: Op, extent: Extent) -> Command {
    Command { op, extent, hint: Hint(0) }
}

impl CachedFiles {
    /// The volume's number in the cache.
    fn id(&self, namespace: u32) -> u32 {
        self.served[namespace as usize].id.into()
    }

    /// What the engine counts; of the disks those that are there.
    fn report(&self) -> CacheReport {
        let disks = self.served.iter().map(|volume| self.cache.disk_counts(volume.id)).collect();
        CacheReport { disks, ..self.cache.report() }
    }

    /// The whole sectors around an extent.
    const fn wide(&self, extent: Extent) -> Extent {
        let start = extent.offset / self.unit * self.unit;
        Extent::new(start, extent.end().next_multiple_of(self.unit) - start)
    }

    fn odd(
        &mut self,
        id: u32,
        given: Command,
        payload: Payload<'_>,
        at: SimTime,
    ) -> Result<Token, NamespaceError> {
        let (extent, wide) = (given.extent, self.wide(given.extent));
        let inner = {
            let start = extent.offset.next_multiple_of(self.unit);
            let end = extent.end() / self.unit * self.unit;
            Extent::new(start, end.saturating_sub(start))
        };
        let mut bounce = std::mem::take(&mut self.bounce);
        let result = match (given.op, payload) {
            (Op::Read, Payload::Read(data)) => {
                bounce.resize(wide.len as usize, 0);
                let done = self.cache_submit(id, command(Op::Read, wide), Payload::Read(&mut bounce), at);
                let from = (extent.offset - wide.offset) as usize;
                data.copy_from_slice(&bounce[from..from + data.len()]);
                done
            }
            (Op::Write, Payload::Write(data)) => self.patch(id, extent, Some(data), &mut bounce, at),
            (Op::Trim, _) if inner.len == 0 => Ok(Token::NONE),
            (Op::Trim, _) => self.cache_submit(id, command(Op::Trim, inner), Payload::None, at),
            (Op::WriteZeroes, _) if inner.len == 0 => self.patch(id, extent, None, &mut bounce, at),
            (Op::WriteZeroes, _) => {
                let head = Extent::new(extent.offset, inner.offset - extent.offset);
                let tail = Extent::new(inner.end(), extent.end() - inner.end());
                let mut done = self.cache_submit(id, command(Op::WriteZeroes, inner), Payload::None, at);
                for part in [head, tail].into_iter().filter(|part| part.len != 0) {
                    done = done.and_then(|before| {
                        let token = self.patch(id, part, None, &mut bounce, at)?;
                        Ok(self.join(before, token))
                    });
                }
                done
            }
            (_, payload) => self.cache_submit(id, given, payload, at),
        };
        self.bounce = bounce;
        result
    }

    /// Reads the sectors around an extent, puts these bytes or zeroes into them, and writes them.
    fn patch(
        &mut self,
        id: u32,
        extent: Extent,
        data: Option<&[u8]>,
        bounce: &mut Vec<u8>,
        at: SimTime,
    ) -> Result<Token, NamespaceError> {
        let wide = self.wide(extent);
        bounce.resize(wide.len as usize, 0);
        self.cache_submit(id, command(Op::Read, wide), Payload::Read(bounce), at)?;
        let from = (extent.offset - wide.offset) as usize;
        let part = &mut bounce[from..from + extent.len as usize];
        match data {
            Some(data) => part.copy_from_slice(data),
            None => part.fill(0),
        }
        self.cache_submit(id, command(Op::Write, wide), Payload::Write(bounce), at)
    }

    fn cache_submit(
        &mut self,
        id: u32,
        command: Command,
        payload: Payload<'_>,
        at: SimTime,
    ) -> Result<Token, NamespaceError> {
        self.busy_at = at;
        self.cache.submit(id as u16, command, payload, at).map_err(|error| refusal(command.extent, error))
    }

    /// Closes the cache, and takes down how it leaves the disks.
    fn close(&mut self, at: SimTime) -> Result<Token, NamespaceError> {
        let done = self.cache.close(at).map_err(|error| refusal(Extent::new(0, 0), error))?;
        let Some(fast) = &mut self.fast else { return Ok(Token(done.0)) };
        for volume in &mut self.served {
            manage::end(fast, &mut volume.place, volume.id).map_err(|error| stamp_failed(&error))?;
        }
        Ok(Token(done.0))
    }
}

fn stamp_failed(error: &ManageError) -> NamespaceError {
    let source = match error {
        ManageError::Fast(source) | ManageError::Disk { source, .. } => source.clone(),
        error => StoreError::Io { offset: 0, len: 0, detail: error.to_string() },
    };
    NamespaceError::Store { place: "stamps of the cache", extent: Extent::new(0, 0), source }
}

/// What a host is told of an error.
fn refusal(extent: Extent, error: CacheError) -> NamespaceError {
    match error {
        CacheError::Fast(source) => NamespaceError::Store { place: "cache device", extent, source },
        CacheError::Slow { source, .. } => NamespaceError::Store { place: "disk", extent, source },
        error => NamespaceError::Refused { extent, expected: error.to_string() },
    }
}

/// Files have no flash below that the model knows of.
impl Subsystem for CachedFiles {
    fn namespaces(&self) -> &[NamespaceInfo] {
        &self.infos
    }

    fn sets(&self) -> u16 {
        0
    }

    fn submit(
        &mut self,
        namespace: u32,
        command: Command,
        payload: Payload<'_>,
        at: SimTime,
    ) -> Result<Token, NamespaceError> {
        let (id, extent) = (self.id(namespace), command.extent);
        let is_inside = extent.end() <= self.infos[namespace as usize].capacity_bytes;
        if (extent.offset | extent.len) & (self.unit - 1) != 0 && is_inside && command.op != Op::Flush {
            return self.odd(id, command, payload, at);
        }
        self.cache_submit(id, command, payload, at)
    }

    fn completion(&self, token: Token) -> Option<SimTime> {
        self.cache.completion(token)
    }

    fn join(&mut self, a: Token, b: Token) -> Token {
        self.cache.join(a, b)
    }

    fn watch(&mut self, token: Token, tag: u64) {
        self.cache.watch(token, tag);
    }

    fn advance(&mut self, until: SimTime, out: &mut Vec<Completion>) {
        self.cache.advance(until, out);
    }

    fn next_event(&self) -> Option<SimTime> {
        self.cache.next_event()
    }

    fn idle_from(&self) -> SimTime {
        self.cache.idle_from()
    }

    /// After a second in which nobody asked for anything, some dirty blocks go to their disks.
    fn idle(&mut self, at: SimTime, until: SimTime) -> Result<(), NamespaceError> {
        self.cache.idle(at, until)?;
        if !self.cleans || at.since(self.busy_at).0 < IDLE_NS {
            return Ok(());
        }
        self.cache.clean(IDLE_BLOCKS, until).map(drop).map_err(|error| refusal(Extent::new(0, 0), error))
    }

    /// Makes everything durable; after [`Handle::close_next`] closes the cache, which then takes no more commands.
    fn shutdown(&mut self, at: SimTime) -> Result<Token, NamespaceError> {
        if self.is_closing.load(Ordering::Acquire) {
            return self.close(at);
        }
        let mut all = Token::NONE;
        for index in 0..self.served.len() {
            let flush = command(Op::Flush, Extent::new(0, 0));
            let token = self.cache_submit(self.id(index as u32), flush, Payload::None, at)?;
            all = self.join(all, token);
        }
        Ok(all)
    }

    fn read_only(&self, _: u16) -> Option<&'static str> {
        None
    }

    /// What is not cached is as the disk has it.
    fn allocation(&self, namespace: u32, extent: Extent) -> Allocation {
        self.cache.allocation(self.id(namespace), extent)
    }

    fn host_counts(&self, namespace: u32) -> HostCounts {
        self.cache.host_counts(self.served[namespace as usize].id)
    }

    fn ftl_stats(&self, _: u16) -> FtlStats {
        FtlStats::default()
    }

    fn cost(&self, _: u16) -> Cost {
        Cost::default()
    }

    /// Panics: there are no sets.
    fn device(&self, set: u16) -> &dyn FlashDevice {
        panic!("no set {set}: there is no flash below")
    }

    fn reset_counters(&mut self, at: SimTime) {
        self.cache.reset_counters(at);
    }

    fn check_invariants(&self) {
        self.cache.check_invariants();
    }

    fn cache(&self) -> Option<CacheReport> {
        Some(self.report())
    }

    fn cache_control(&mut self) -> Option<&mut dyn CacheControl> {
        Some(self)
    }
}

impl CacheControl for CachedFiles {
    fn set_mode(&mut self, mode: &str) -> Result<(), String> {
        let known = || Mode::ALL.map(Mode::name).join(", ");
        let mode = Mode::parse(mode).ok_or_else(|| format!("mode {mode}: expected one of {}", known()))?;
        if mode.makes_dirty() && self.fast.is_none() {
            return Err(CacheFileError::Volatile { mode: mode.name() }.to_string());
        }
        self.cache.set_mode(mode);
        Ok(())
    }

    fn clean(&mut self, blocks: u32, at: SimTime) -> Result<u32, String> {
        self.cache.clean(blocks, at).map_err(|error| error.to_string())
    }
}
