//! The cache itself: blocks of slow stores kept in the slots of a fast one.
//!
//! Invariants, checked by [`Cache::check_invariants`] and by the model tests:
//! * what is dirty is valid; what is not valid is not dirty and is up to date on the disk;
//! * a clean sub-block equals the disk's;
//! * every slot is free, used by one block of the index, or waits for a commit of the metadata (`limbo`);
//! * where metadata are not in place, no sub-block that a committed entry calls valid is overwritten; and
//!   none of a disk's copy that the disk would lose is relied on by a committed entry (`unflushed`);
//! * a dirty block is written to the disk only when its entry is committed, so that a loss of power never
//!   leaves a part of it there and the rest nowhere; and what else is written to the disk is announced by a
//!   commit if committed entries speak of its blocks (`regions`).
//!
//! All steps of a command take effect on the bytes when it is submitted; when each takes its time is the
//! business of `steps`:
//! * a read waits for what it reads; what a disk read brings goes into its slot afterwards, and nobody waits
//!   for that;
//! * whatever comes to a slot that is being filled waits for the disk read, and to a block that is on its way
//!   to the disk, for that;
//! * a block leaves its slot when it is on the disk, or where a commit must come first, when that is durable;
//! * a commit is a flush of what it speaks of, the writes of the metadata, and a flush of these; one follows
//!   the other. Designs that flush nothing wait for the answers instead.

mod batch;
mod cleaner;
mod coming;
mod commit;
mod counting;
mod degrade;
mod error;
mod failure;
mod given_up;
mod hole;
mod index;
mod judging;
mod lost;
mod memory;
mod open;
mod quirks;
mod read;
mod regions;
mod report;
mod room;
mod setup;
mod shape;
mod side;
mod slots;
mod spaces;
mod standing;
mod steps;
mod subsystem;
mod switch;
mod unflushed;
mod volumes;
mod write;

pub use degrade::Health;
pub use error::CacheError;
pub use given_up::GiveUp;
pub use memory::Memory;
pub use open::{Disk, Identity, Started};
pub use setup::Setup;
pub use steps::LateError;

use crate::metadata::{Entry, Metadata, RECORDS, Write};
use crate::mode::Mode;
use crate::presets::{Flushing, Quirks};
use cleaner::Cleaner;
use coming::Coming;
use counting::Meter;
use degrade::Failures;
use index::Index;
use nandscape_core::command::{HostCounts, Payload};
use nandscape_core::{
    Allocation, Command, Extent, NamespaceInfo, Op, Params, SimTime, Store, StoreError, Token,
};
use nandscape_policies::BlockKey;
use nandscape_policies::Map;
use nandscape_policies::admission::{Admission, Bypass};
use nandscape_policies::eviction::{Build, Eviction};
use nandscape_policies::hash::KeyMap;
use regions::Regions;
use shape::{Piece, Shape};
use side::{Buffers, Bytes, Side};
use slots::{Bits, Pins, Slots};
use steps::{FAST, Gather, Moment, Steps};
use unflushed::{Late, Unflushed};

/// A store that a cache may own.
pub type BoxedStore = Box<dyn Store + Send>;

/// Insertions after which the metadata are committed though nobody asked for a flush, in a cache of so many
/// slots: a bound for memory, and for what a loss of power costs. A commit takes up to a hundred bytes for
/// each on its way to the store. Each changes two slots, since something leaves for it or it comes from
/// elsewhere; these and a few other changes fill whole blocks of records.
fn commit_after(slots: u32) -> u32 {
    const OTHERS: u32 = 8;
    let half = RECORDS / 2;
    (slots / 256).clamp(RECORDS, 1 << 16).next_multiple_of(half) - OTHERS
}

struct Volume {
    capacity: u64,
    unit: u32,
    host: HostCounts,
    /// The last write to the disk was refused.
    is_failing: bool,
    /// A flush of the disk that nobody asked for failed.
    flush_error: Option<StoreError>,
    unflushed: Unflushed,
    /// Slots that it may hold at most.
    quota: Option<u32>,
    /// Slots that it holds.
    held: u32,
    is_attached: bool,
}

/// A fast store in front of the slow stores of one or more volumes.
#[expect(clippy::struct_excessive_bools, reason = "two of them are facts of the metadata, asked for once")]
pub struct Cache<E> {
    steps: Steps,
    volumes: Vec<Volume>,
    /// The volumes as a host sees them.
    infos: Vec<NamespaceInfo>,
    shape: Shape,
    /// First byte of the first slot's data.
    data_at: u64,
    mode: Mode,
    map: Map,
    index: Index,
    coming: Coming,
    slots: Slots,
    policies: Vec<E>,
    admission: Option<Box<dyn Admission + Send>>,
    /// Admission is told what the fast store takes.
    watches_device: bool,
    metadata: Box<dyn Metadata + Send>,
    /// Whether data may be overwritten that a committed entry refers to.
    is_in_place: bool,
    /// Whether a slot gets another block only after a commit.
    defers_reuse: bool,
    /// Slots that a committed entry refers to; of no meaning where neither of these two matters.
    committed: Bits,
    /// Whether clean blocks are to come back after a loss of power, and so must equal the disk.
    keeps_clean: bool,
    /// Blocks that left a committed slot since the last commit, by hash: a bit for eight slots, of which few
    /// leave between two commits.
    left: Bits,
    regions: Regions,
    /// Where `left` had the blocks that leave with the last commit, and with those under way when it was
    /// made.
    leaving: Bits,
    /// Slots that the command under way needs where they are.
    pinned: Pins,
    /// Slots whose filling has not begun, and the sub-blocks that the metadata are not told of before.
    filling: KeyMap,
    flushing: Flushing,
    late: Late,
    /// What the next commit waits for where it flushes nothing.
    ahead: Gather,
    /// The command under way has written to its disk.
    has_written_disk: bool,
    /// Slots that become free with the next commit, and whether their data may be discarded then.
    limbo: Vec<(u32, bool)>,
    /// Slots that got a block since the last commit, and how many of them lead to the next.
    fresh: Vec<u32>,
    commit_after: u32,
    /// The command under way needs a commit before it is answered.
    must_commit: bool,
    /// A free slot must not be taken before a commit.
    must_commit_free: bool,
    failures: Failures,
    /// Where cleaning goes on.
    hand: u32,
    keeps_bytes: bool,
    buffers: Buffers,
    /// Memory of commits, kept so that they need not ask for it.
    writes: Vec<Write>,
    fills: Vec<read::Fill>,
    /// What the answer to the command under way waits for.
    answer: Gather,
    /// When the last commit is durable.
    last_commit: Moment,
    /// When the next one will be, which answers wait for.
    open_commit: Option<Moment>,
    /// Commits that answers wait for are made when somebody says so.
    groups_commits: bool,
    /// Ends of commits that the engine is to be told of.
    commits_awaited: u32,
    /// Slots that the metadata have as dirty until the next commit; of meaning where they may be taken
    /// without one.
    settled: Vec<u32>,
    /// The first error that nobody has been told of.
    late_error: Option<LateError>,
    meter: Meter,
    /// Favoured and back again ([`Eviction::moves`]) at the last reset.
    moved: (u64, u64),
    quirks: Quirks,
    /// Slots that are used at most; [`u32::MAX`] if all of them may be.
    limit: u32,
    cleaner: Option<Box<Cleaner>>,
    /// Memory of cleaning.
    parts: Vec<batch::Part>,
    run: Vec<u32>,
    /// Memory for what admission takes back.
    retracted: Vec<(u16, Extent)>,
    /// Blocks that the write under way has thrown out, since the design does not cache such writes, and why.
    shunned: Vec<(u64, Bypass)>,
}

impl<E: Build> Cache<E> {
    /// A cache without volumes and without blocks. Every set has a policy of its own, made with `params` and
    /// a seed drawn from `setup`'s.
    pub fn new(
        fast: BoxedStore,
        metadata: Box<dyn Metadata + Send>,
        setup: &Setup,
        params: &Params,
    ) -> Result<Self, CacheError> {
        Self::with_policies(fast, metadata, setup, |ways, seed| E::new(ways, params, seed))
    }
}

impl<E: Eviction> Cache<E> {
    /// As [`Cache::new`], with policies that are chosen at run time: `make` is given the slots of a set and a
    /// seed.
    pub fn with_policies(
        fast: BoxedStore,
        metadata: Box<dyn Metadata + Send>,
        setup: &Setup,
        mut make: impl FnMut(u32, u64) -> E,
    ) -> Result<Self, CacheError> {
        let shape = setup.shape(fast.as_ref())?;
        let (sets, ways) = setup.sets(metadata.slots())?;
        let slots = Slots::new(sets, ways, shape.subs());
        let count = slots.count();
        let data_at = metadata.data_offset(0);
        for slot in [0, count - 1] {
            let start = metadata.data_offset(slot);
            assert_eq!(start, data_at + shape.offset(slot.into()), "slots lie one behind the other");
            let end = start + u64::from(shape.block_bytes());
            if end > fast.capacity_bytes() {
                let expected = format!("room for the {count} slots of the metadata, which end at {end}");
                return Err(CacheError::Setup {
                    what: "capacity of the cache device",
                    value: fast.capacity_bytes(),
                    expected,
                });
            }
        }
        let policies = (0..sets).map(|set| make(ways, setup.seed.wrapping_add(u64::from(set)))).collect();
        Ok(Self {
            keeps_bytes: fast.stores_bytes(),
            steps: Steps::new(Side::new(fast)),
            volumes: Vec::new(),
            infos: Vec::new(),
            shape,
            data_at,
            mode: setup.mode,
            map: setup.map,
            index: Index::new(count),
            coming: Coming::new(),
            slots,
            policies,
            admission: None,
            watches_device: false,
            is_in_place: metadata.is_in_place(),
            defers_reuse: metadata.is_reuse_deferred() || !metadata.is_in_place(),
            keeps_clean: metadata.keeps_clean(),
            late: Late::new(count, metadata.as_ref()),
            metadata,
            committed: Bits::new(count),
            left: Bits::new(count.div_ceil(8)),
            regions: Regions::default(),
            leaving: Bits::new(count.div_ceil(8)),
            pinned: Pins::none(),
            filling: KeyMap::new(3),
            flushing: Flushing::Both,
            ahead: Gather::default(),
            has_written_disk: false,
            limbo: Vec::new(),
            fresh: Vec::new(),
            commit_after: commit_after(count),
            must_commit: false,
            must_commit_free: false,
            failures: Failures::default(),
            hand: 0,
            buffers: Buffers::default(),
            writes: Vec::new(),
            fills: Vec::new(),
            answer: Gather::default(),
            last_commit: Moment::PAST,
            open_commit: None,
            groups_commits: false,
            commits_awaited: 0,
            settled: Vec::new(),
            late_error: None,
            meter: Meter::default(),
            moved: (0, 0),
            quirks: Quirks::NONE,
            limit: u32::MAX,
            cleaner: None,
            parts: Vec::new(),
            run: Vec::new(),
            retracted: Vec::new(),
            shunned: Vec::new(),
        })
    }

    /// Who decides what is cached from now on; everything, where nobody does.
    pub fn set_admission(&mut self, admission: Option<Box<dyn Admission + Send>>) {
        self.watches_device = admission.as_ref().is_some_and(|admission| admission.watches_device());
        self.admission = admission;
    }

    /// Adds a volume over this store and gives its number. To hosts the volumes are `vol1`, `vol2` and so on;
    /// see [`Cache::rename`].
    pub fn attach(&mut self, disk: BoxedStore) -> Result<u16, CacheError> {
        let capacity = disk.capacity_bytes();
        let fast = self.steps.side(FAST);
        Setup::check_disk(disk.as_ref(), self.shape, fast, self.volumes.len())?;
        let unit = disk.block_bytes().max(fast.unit);
        let host = HostCounts::default();
        let volume = Volume {
            capacity,
            unit,
            host,
            is_failing: false,
            flush_error: None,
            unflushed: Unflushed::new(),
            quota: None,
            held: 0,
            is_attached: true,
        };
        let vacancy = self.vacancy();
        let number = vacancy.unwrap_or(self.volumes.len() as u16);
        let blocks = capacity.div_ceil(u64::from(self.shape.block_bytes()));
        self.slots.assign(number, blocks).ok_or_else(|| Setup::too_many_blocks(capacity))?;
        if vacancy.is_some() {
            self.volumes[usize::from(number)] = volume;
            self.infos[usize::from(number)].capacity_bytes = capacity;
            *self.steps.side_mut(number + 1) = Side::new(disk);
            self.forget_counts(number);
            return Ok(number);
        }
        self.volumes.push(volume);
        self.infos.push(NamespaceInfo {
            name: format!("vol{}", self.volumes.len()),
            capacity_bytes: capacity,
            page_bytes: self.shape.block_bytes(),
            set: 0,
            endurance_group: 0,
        });
        self.steps.add(Side::new(disk));
        self.meter.attach();
        Ok(self.volumes.len() as u16 - 1)
    }

    /// Names a volume anew.
    pub fn rename(&mut self, volume: u16, name: &str) {
        name.clone_into(&mut self.infos[usize::from(volume)].name);
    }

    /// Puts back what the metadata knew of slots when they were opened, before the first command. The order
    /// is that in which the eviction policy sees the blocks. Gives those that cannot be: a slot or block
    /// that was named before, that is not there, or not for each other.
    pub fn restore(&mut self, entries: impl IntoIterator<Item = (u32, Entry)>) -> Vec<(u32, Entry)> {
        let mut refused = Vec::new();
        let mut taken = Bits::new(self.slots.count());
        for (slot, entry) in entries {
            if slot >= self.slots.count() || taken.has(slot) || !self.suits(slot, entry) {
                refused.push((slot, entry));
                continue;
            }
            taken.set(slot);
            self.settle(slot, entry.key);
            self.slots.set_bits(slot, entry.valid, entry.dirty);
            if self.defers_reuse {
                self.committed.set(slot);
            }
        }
        self.slots.list_free(&taken);
        refused
    }

    fn suits(&self, slot: u32, entry: Entry) -> bool {
        self.volumes.get(usize::from(entry.key.volume())).is_some_and(|volume| {
            entry.valid != 0
                && entry.dirty & !entry.valid == 0
                && self.shape.offset(entry.key.block()) < volume.capacity
                && self.slots.set_of(slot) == self.set(entry.key)
                && self.index.find(entry.key, &self.slots).is_none()
        })
    }

    /// Executes a command on a volume, issued at `at`. The token completes when it is answered.
    ///
    /// After an error of a disk, the extent of the command may be written in part; everything else is as
    /// before. Errors of the fast store are not the caller's, unless something was lost
    /// ([`Cache::health`], [`Cache::lost`]): a read of that fails, and the next flush of its volume once.
    ///
    /// What a durable command wrote survives a loss of power as far as the design keeps it: in the cache with
    /// its metadata where it became dirty, and on the disk of this volume where it went there. No other disk
    /// is flushed for it, but for those that a block has left to since the last commit.
    pub fn submit(
        &mut self,
        volume: u16,
        mut command: Command,
        payload: Payload<'_>,
        at: SimTime,
    ) -> Result<Token, CacheError> {
        self.arrive(at)?;
        self.check(volume, command, &payload)?;
        let host = &mut self.volumes[usize::from(volume)].host;
        host.count(command, self.shape.block_bytes());
        let is_durable = std::mem::take(&mut command.is_durable);
        self.meter.begin(volume, command);
        if is_durable && command.op == Op::Write {
            self.meter.own().forced_writes += 1;
        }
        if let Some(cleaner) = &mut self.cleaner {
            cleaner.note_request(self.steps.now());
        }
        let mut payload = payload;
        self.begin_tries();
        let mut done = self.execute(volume, command, &mut payload, is_durable);
        if let Err(CacheError::Fast(error)) = done {
            done = self.execute_again(volume, command, &mut payload, is_durable, error);
        }
        self.meter.end(command.op);
        let token = done?;
        if matches!(command.op, Op::Read | Op::Write) {
            self.time_answer(token);
        }
        self.after_command();
        Ok(token)
    }

    /// After an error of the fast store.
    #[cold]
    fn execute_again(
        &mut self,
        volume: u16,
        command: Command,
        payload: &mut Payload<'_>,
        is_durable: bool,
        error: StoreError,
    ) -> Result<Token, CacheError> {
        let is_change = !matches!(command.op, Op::Read | Op::Flush);
        self.failures.given_up.under_way = is_change.then_some(volume);
        let mut failure = error;
        let done = loop {
            if let Err(error) = self.degrade(failure.clone()) {
                break Err(error);
            }
            self.meter.try_again();
            match self.execute(volume, command, payload, is_durable) {
                Err(CacheError::Fast(error)) => failure = error,
                done => break done,
            }
        };
        self.failures.given_up.under_way = None;
        if is_change && done.is_ok() {
            self.record_given_up(volume)?;
        } else if is_change {
            self.lose_change(volume, command.extent, failure);
        }
        done
    }

    #[inline]
    fn execute(
        &mut self,
        volume: u16,
        command: Command,
        payload: &mut Payload<'_>,
        is_durable: bool,
    ) -> Result<Token, CacheError> {
        self.has_written_disk = false;
        if command.op == Op::Read && !self.failures.lost.is_empty() {
            self.failures.check(volume, command.extent)?;
        }
        let is_change = !matches!(command.op, Op::Read | Op::Flush);
        if is_change && self.failures.bypassed.is_some() {
            self.ensure_recorded(volume)?;
        }
        match (command.op, payload) {
            (Op::Read, Payload::Read(bytes)) => self.read(volume, command, Some(bytes)),
            (Op::Read, _) => self.read(volume, command, None),
            (Op::Write, Payload::Write(bytes)) => self.write(volume, command, Some(bytes)),
            (Op::Write, _) => self.write(volume, command, None),
            (Op::Trim | Op::WriteZeroes, _) => self.trim(volume, command),
            (Op::Flush, _) => self.flush(volume),
        }?;
        if is_change && !self.failures.lost.is_empty() {
            self.failures.find_again(volume, command.extent);
        }
        if is_durable {
            self.persist(volume)?;
        }
        if self.must_commit {
            let committed = self.commit_together()?;
            self.wait(committed);
        } else if self.fresh.len() as u32 >= self.commit_after {
            self.commit()?;
        }
        Ok(self.steps.answer(&mut self.answer))
    }

    /// A command comes at `at`: starts what is due until then.
    #[inline]
    fn arrive(&mut self, at: SimTime) -> Result<(), CacheError> {
        self.answer = Gather::default();
        let has_cleaning =
            self.cleaner.as_ref().is_some_and(|cleaner| cleaner.again() <= at || !self.steps.is_quiet());
        if has_cleaning || self.commits_awaited > 0 {
            return self.pass(at, false);
        }
        self.steps.arrive(at);
        self.settle_fills()
    }

    /// Tells the metadata of the slots whose filling has begun.
    #[inline]
    fn settle_fills(&mut self) -> Result<(), CacheError> {
        loop {
            match self.settle_all_fills() {
                Err(CacheError::Fast(error)) => self.degrade(error)?,
                done => return done,
            }
            if self.open_commit.is_none() {
                return Ok(());
            }
            // Answers wait for it.
            self.must_commit = true;
        }
    }

    fn settle_all_fills(&mut self) -> Result<(), CacheError> {
        while let Some(slot) = self.steps.take_filled() {
            self.note_filled(slot)?;
        }
        if self.steps.has_noticed() {
            self.take_notices();
        }
        if self.steps.has_errors() {
            self.note_late_errors();
        }
        if self.must_commit {
            self.commit_together()?;
        }
        Ok(())
    }

    fn check(&self, volume: u16, command: Command, payload: &Payload<'_>) -> Result<(), CacheError> {
        let place = self.volumes.get(usize::from(volume)).filter(|volume| volume.is_attached);
        let place = place.ok_or(CacheError::NoVolume(volume))?;
        if command.op == Op::Flush {
            return Ok(());
        }
        let extent = command.extent;
        let is_inside = extent.offset.checked_add(extent.len).is_some_and(|end| end <= place.capacity);
        if !is_inside || extent.len == 0 {
            return Err(CacheError::OutOfRange { volume, extent, capacity: place.capacity });
        }
        let unit = place.unit;
        if !extent.offset.is_multiple_of(u64::from(unit)) || !extent.len.is_multiple_of(u64::from(unit)) {
            return Err(CacheError::Unaligned { extent, unit });
        }
        let got = match (command.op, payload) {
            (Op::Read, Payload::Read(bytes)) => bytes.len() as u64,
            (Op::Write, Payload::Write(bytes)) => bytes.len() as u64,
            (Op::Write, _) if self.keeps_bytes => 0,
            _ => extent.len,
        };
        if got == extent.len { Ok(()) } else { Err(CacheError::Payload { expected: extent.len, got }) }
    }

    /// Makes durable what was written to the volume so far: the disk's part, the cache's part, and the
    /// metadata.
    fn flush(&mut self, volume: u16) -> Result<(), CacheError> {
        if let Some(error) = self.take_late_error() {
            return Err(error);
        }
        let concerns_disk = self.concerns_disk(volume);
        if concerns_disk {
            // What relies on it is settled by this commit.
            self.need_flush(volume);
        }
        let committed = self.commit()?;
        self.wait(committed);
        let disk = if concerns_disk { self.flush_disk(volume) } else { Ok(self.host_flushed(volume)) };
        self.flush_fast_with(committed)?;
        self.take_failure(volume)?;
        self.wait(disk?);
        self.record_given_up(volume)
    }

    /// The answer waits for a flush of the fast store with a commit in it, which has one of its own in
    /// designs that flush for commits.
    fn flush_fast_with(&mut self, committed: Moment) -> Result<(), CacheError> {
        let after = if self.flushing.covers_cache() { Moment::PAST } else { committed };
        let flushed = self.flush_fast(after)?;
        self.wait(flushed);
        Ok(())
    }

    /// Makes durable what the command under way has written.
    #[cold]
    fn persist(&mut self, volume: u16) -> Result<(), CacheError> {
        if self.has_written_disk {
            self.need_flush(volume);
        }
        let committed = self.commit()?;
        self.wait(committed);
        self.flush_fast_with(committed)?;
        if self.has_written_disk {
            let disk = self.flush_disk(volume)?;
            self.wait(disk);
        }
        self.record_given_up(volume)
    }

    /// The mode. What is in force is [`Mode::PassThrough`] once the fast store is used no more
    /// ([`Cache::health`]).
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    const fn active_mode(&self) -> Mode {
        if self.failures.bypassed.is_some() { Mode::PassThrough } else { self.mode }
    }

    /// Commands from now on follow another mode. Blocks that are dirty stay so until they are cleaned
    /// ([`Cache::clean`]) or evicted, and are served from the cache meanwhile.
    pub fn set_mode(&mut self, mode: Mode) {
        self.mode = mode;
    }

    /// Dirty blocks.
    pub const fn dirty(&self) -> u32 {
        self.slots.dirty()
    }

    /// Blocks that are cached.
    pub const fn used(&self) -> u32 {
        self.slots.used() - self.limbo.len() as u32 - self.failures.withdrawn
    }

    /// Slots there are.
    pub const fn slots(&self) -> u32 {
        self.slots.count()
    }

    /// Slots of a set; all of them where there is one set only.
    pub fn ways(&self) -> u32 {
        self.slots.count() / self.policies.len() as u32
    }

    /// What is known of a block; `None` if it is not cached.
    pub fn entry(&self, key: BlockKey) -> Option<Entry> {
        self.index.find(key, &self.slots).map(|slot| self.slots.entry(slot))
    }

    /// What hosts asked of a volume. Pages are cache blocks.
    pub fn host_counts(&self, volume: u16) -> HostCounts {
        self.volumes[usize::from(volume)].host
    }

    /// Commands that went to the fast store.
    pub fn fast_counts(&self) -> HostCounts {
        self.steps.side(FAST).store.counts()
    }

    /// Commands that went to the disk of a volume.
    pub fn disk_counts(&self, volume: u16) -> HostCounts {
        self.steps.side(volume + 1).store.counts()
    }

    /// Checks the invariants between index, slots and free lists; panics with the values. For tests.
    pub fn check_invariants(&self) {
        let (mut used, mut dirty, mut dirty_subs) = (0, 0, 0);
        let free = self.slots.free_count();
        for slot in 0..self.slots.count() {
            assert!(!self.pinned.has(slot), "slot {slot} is pinned between commands");
            let entry = self.slots.entry(slot);
            assert_eq!(entry.dirty & !entry.valid, 0, "slot {slot}: {entry:?}");
            if entry.valid != 0 {
                assert_eq!(self.index.find(entry.key, &self.slots), Some(slot), "slot {slot}: {entry:?}");
                assert_eq!(
                    self.map.set(entry.key, self.policies.len() as u32),
                    self.slots.set_of(slot),
                    "{entry:?}"
                );
                used += 1;
                dirty += u32::from(entry.dirty != 0);
                dirty_subs += u64::from(entry.dirty.count_ones());
            }
        }
        assert_eq!(self.index.count(), used as usize, "blocks in the index");
        let waiting = self.limbo.len() as u32 + self.failures.withdrawn;
        assert_eq!(used + free + waiting, self.slots.count(), "{used} used, {free} free");
        assert_eq!((used, dirty), (self.used(), self.dirty()));
        assert_eq!(dirty_subs, self.slots.dirty_subs(), "dirty sub-blocks");
        let held: u32 = self.volumes.iter().map(|volume| volume.held).sum();
        assert_eq!(held, used, "blocks of all volumes");
        self.steps.check();
        for (volume, counters) in self.meter.counters().volumes.iter().enumerate() {
            assert_eq!(counters.check(), Ok(()), "volume {volume}");
        }
    }

    /// Whether the first byte of an extent is anywhere, in a slot or on the disk, and how far this goes on.
    fn allocated(&self, volume: u16, extent: Extent) -> Allocation {
        let (first, end) = self.shape.blocks(extent);
        let has_slot = |block| self.index.find(BlockKey::new(volume, block), &self.slots).is_some();
        let until = |block| self.shape.offset(block).min(extent.end()) - extent.offset;
        let cached = (first..end).take_while(|block| has_slot(*block)).count() as u64;
        if cached > 0 {
            return Allocation { is_mapped: true, bytes: until(first + cached) };
        }
        let disk = self.steps.side(volume + 1).store.allocation(extent);
        if disk.is_mapped {
            return disk;
        }
        let (_, end) = self.shape.blocks(Extent::new(extent.offset, disk.bytes));
        let next = if end - first <= u64::from(self.slots.count()) {
            (first..end).find(|block| has_slot(*block))
        } else {
            let entries = (0..self.slots.count()).map(|slot| self.slots.entry(slot));
            let keys = entries.filter(|entry| entry.valid != 0).map(|entry| entry.key);
            let later = keys.filter(|key| key.volume() == volume && key.block() > first);
            later.map(BlockKey::block).min()
        };
        Allocation { bytes: next.map_or(disk.bytes, |block| until(block).min(disk.bytes)), ..disk }
    }

    fn capacity(&self, volume: u16) -> u64 {
        self.volumes[usize::from(volume)].capacity
    }

    fn limit(&self, key: BlockKey) -> u32 {
        let rest = self.capacity(key.volume()) - self.shape.offset(key.block());
        rest.min(u64::from(self.shape.block_bytes())) as u32
    }
}

impl<E> std::fmt::Debug for Cache<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache")
            .field("mode", &self.mode)
            .field("used", &self.slots.used())
            .finish_non_exhaustive()
    }
}

/// The bytes of a request that belong to a piece.
fn part(bytes: Option<&[u8]>, extent: Extent, shape: Shape, piece: Piece) -> Bytes<'_> {
    bytes.map_or(Bytes::None, |bytes| {
        let start = (shape.offset(piece.block) + u64::from(piece.start) - extent.offset) as usize;
        Bytes::Write(&bytes[start..start + (piece.end - piece.start) as usize])
    })
}
