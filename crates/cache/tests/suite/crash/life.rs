//! One life of a cache: it is created or opened, used, perhaps removed cleanly, and everything that it does
//! to its stores is recorded.

use crate::crash::model::{self, Volume};
use crate::crash::tape::{Change, Device, Drives, Image, Record, Tape, UNIT};
use crate::support::Ordered;
use nandscape_cache::engine::{Disk, Identity, Started};
use nandscape_cache::metadata::{self, Entry, Metadata, Opened, StoreArea, Survives};
use nandscape_cache::presets::{AfterCut, Flushing, Quirks, Victims};
use nandscape_cache::{Cache, CacheError, Mode, Setup};
use nandscape_core::command::Payload;
use nandscape_core::rng::{Xoshiro256PlusPlus, below};
use nandscape_core::{BlockCommand, Clocked, Extent, Hint, Op, SimTime, Store, Token};
use nandscape_policies::admission::{Bypass, Chain};
use nandscape_policies::eviction::{AnyEviction, EvictionSpec};
use nandscape_policies::{BlockKey, Map};

/// Something that is done wrong on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// Nothing is.
    None,
    /// Nothing is either, in the way in which the others are done.
    Harmless,
    /// What a committed entry refers to is overwritten in its place.
    InPlace,
    /// The fast store is not flushed before a commit is written.
    NoDataFlush,
    /// The disks are not flushed before a commit says that they have something.
    NoDiskFlush,
    /// Each 20th change is not told to the metadata.
    ForgottenNote,
    /// What a commit left that was cut short is not undone.
    NoRepairs,
}

/// A cache that is tried.
#[derive(Clone, Debug)]
pub struct Case {
    pub name: String,
    /// Kind of metadata.
    pub kind: &'static str,
    pub eviction: &'static str,
    pub block_bytes: u32,
    pub map: Map,
    /// Modes that it may have; the first one is that of a start.
    pub modes: Vec<Mode>,
    /// Slots, about.
    pub slots: u32,
    /// Units of each volume.
    pub units: Vec<usize>,
    pub after_cut: AfterCut,
    /// Whether a block that was written to the cache is never a mix of old and new.
    pub is_atomic: bool,
    pub sabotage: Sabotage,
    /// Nanoseconds of each operation of a store.
    pub latency: u64,
    pub drives: Drives,
    /// What the cache flushes of its own accord.
    pub flushing: Flushing,
    /// Whether every write that was answered counts as flushed.
    pub is_prompt: bool,
    /// Share of dirty slots above which writes that miss go past the cache.
    pub cutoff: Option<&'static str>,
    /// Which blocks leave.
    pub victims: Victims,
    /// Commands whose commits are made together ([`Cache::group_commits`]); 0: each by itself.
    pub group: u32,
    /// Bytes of a region of the fast store, which is written in order; 0: it is not.
    pub region: u64,
}

impl Case {
    pub fn setup(&self, seed: u64) -> Setup {
        Setup { block_bytes: self.block_bytes, mode: self.modes[0], map: self.map, seed }
    }

    /// Bytes of the fast store, so that about as many slots fit.
    fn fast_bytes(&self) -> u64 {
        let data = u64::from(self.slots * self.block_bytes);
        (self.metadata_bytes() + data).next_multiple_of(u64::from(self.block_bytes))
    }

    fn metadata_bytes(&self) -> u64 {
        match self.kind {
            "journal" => 2 * 4096 + 2 * 4096 + 2 * 64 * 4096 + 4096,
            "periodic" => 2 * 4096 + 3 * 4096 + 2 * 64 * 4096 + 4096,
            "slots" => 2 * 4096 + u64::from(self.slots.div_ceil(28)) * 512,
            "at-removal" => 3 * 4096,
            _ => 0,
        }
    }

    pub fn per_block(&self) -> usize {
        self.block_bytes as usize / UNIT
    }

    /// Blocks of all volumes.
    pub fn blocks(&self) -> impl Iterator<Item = BlockKey> + '_ {
        (0..).zip(&self.units).flat_map(|(volume, units)| {
            (0..units.div_ceil(self.per_block()) as u64).map(move |block| BlockKey::new(volume, block))
        })
    }

    /// Stores before the first life: a cache device with garbage, and disks with data.
    pub fn images(&self) -> (Vec<Image>, Vec<Volume>) {
        let mut fast = Image::new(self.fast_bytes());
        fast.write(0, &vec![0xa5; self.fast_bytes() as usize]);
        let mut images = vec![fast];
        let mut volumes = Vec::new();
        for (number, units) in self.units.iter().enumerate() {
            let mut disk = Image::new((units * UNIT) as u64);
            let mut bytes = [0; UNIT];
            for unit in 0..*units {
                model::fill(1, number, unit, &mut bytes);
                disk.write((unit * UNIT) as u64, &bytes);
            }
            images.push(disk);
            volumes.push(Volume::new(number, *units, self.per_block(), 1));
        }
        (images, volumes)
    }
}

/// Metadata that are done wrong.
struct Wrong {
    inner: Box<dyn Metadata + Send>,
    sabotage: Sabotage,
    notes: u32,
}

impl Metadata for Wrong {
    fn slots(&self) -> u32 {
        self.inner.slots()
    }
    fn data_offset(&self, slot: u32) -> u64 {
        self.inner.data_offset(slot)
    }
    fn survives(&self) -> Survives {
        self.inner.survives()
    }
    fn is_in_place(&self) -> bool {
        self.sabotage == Sabotage::InPlace || self.inner.is_in_place()
    }
    fn is_reuse_deferred(&self) -> bool {
        self.inner.is_reuse_deferred()
    }
    fn is_synchronous(&self, old: Option<&Entry>, new: Option<&Entry>) -> bool {
        self.inner.is_synchronous(old, new)
    }
    fn note(&mut self, slot: u32, entry: Option<Entry>) {
        self.notes += 1;
        if self.sabotage != Sabotage::ForgottenNote || !self.notes.is_multiple_of(20) {
            self.inner.note(slot, entry);
        }
    }
    fn noted(&self) -> u32 {
        self.inner.noted()
    }
    fn room(&self) -> u32 {
        self.inner.room()
    }
    fn commit(&mut self, table: &dyn metadata::Table, out: &mut Vec<metadata::Write>) {
        self.inner.commit(table, out);
    }
    fn committed(&mut self) {
        self.inner.committed();
    }
    fn confirm(&self, out: &mut Vec<metadata::Write>) {
        self.inner.confirm(out);
    }
    fn expect_writes(&mut self, regions: u64) {
        self.inner.expect_writes(regions);
    }
    fn close(&mut self, table: &dyn metadata::Table, out: &mut Vec<metadata::Write>) {
        self.inner.close(table, out);
    }
}

/// Which cache the stores are to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    Create,
    Open,
}

pub fn at_start(error: &CacheError) -> bool {
    matches!(error, CacheError::Metadata(metadata::MetadataError::Absent))
}

/// Starts a cache over images. What it does is on the tape.
pub fn start(
    case: &Case,
    images: &[Image],
    begin: Begin,
    tape: &Tape,
) -> Result<Started<AnyEviction>, CacheError> {
    let device = |(number, image): (usize, &Image)| -> Box<dyn Store + Send> {
        Box::new(Device::new(image.clone(), number, tape, case.latency))
    };
    let mut devices = images.iter().enumerate().map(device);
    let mut fast = devices.next().unwrap();
    if case.region > 0 {
        let first = case.metadata_bytes().next_multiple_of(u64::from(case.block_bytes));
        fast = Box::new(Ordered::found(fast, first, case.region, |extent| last_byte(&images[0], extent)));
    }
    // Opening finds them in any order.
    let mut disks: Vec<Disk> =
        (1..).zip(devices).map(|(number, store)| Disk { store, uuid: [number; 16] }).collect();
    let spec = EvictionSpec::parse(case.eviction).unwrap();
    let make = |ways: u32, seed: u64| AnyEviction::new(&spec, ways, seed);
    let (setup, at) = (case.setup(7), SimTime::ZERO);
    let identity = Identity {
        kind: case.kind.to_owned(),
        uuid: [0x55; 16],
        settings: "mode = \"write-back\"".to_owned(),
    };
    // Without metadata there is nothing to open.
    let begin = if case.kind == "none" { Begin::Create } else { begin };
    let mut started = match begin {
        Begin::Create if case.sabotage == Sabotage::None => {
            Cache::create(fast, disks, &identity, &setup, make, at)
        }
        Begin::Create => {
            let volumes = disks.iter().enumerate().map(|(number, disk)| metadata::Volume {
                id: number as u16,
                uuid: disk.uuid,
                bytes: disk.store.capacity_bytes(),
                stamp: [0; 16],
            });
            let setup_of_metadata = metadata::Setup {
                capacity_bytes: fast.capacity_bytes(),
                store_block: fast.block_bytes(),
                block_bytes: setup.block_bytes,
                uuid: identity.uuid,
                settings: identity.settings.clone(),
                volumes: volumes.collect(),
            };
            let mut area = StoreArea::new(fast.as_mut(), at);
            let opened = metadata::create(case.kind, &setup_of_metadata, &mut area)?;
            Cache::start(fast, disks, wrong(opened, case.sabotage), &setup, make, at)
        }
        Begin::Open if case.sabotage == Sabotage::None => {
            disks.reverse();
            Cache::open(fast, disks, &setup, make, at)
        }
        Begin::Open => {
            let opened = metadata::open(&mut StoreArea::new(fast.as_mut(), at))?;
            Cache::start(fast, disks, wrong(opened, case.sabotage), &setup, make, at)
        }
    }?;
    started.cache.set_flushing(case.flushing);
    if case.group > 0 {
        started.cache.group_commits();
    }
    started.cache.set_quirks(Quirks { victims: case.victims, ..Quirks::NONE });
    if let Some(share) = case.cutoff {
        let typed = [("cutoff_dirty".to_owned(), share.to_owned())].into();
        let chain = Chain::build("dirty-cutoff", "", &typed, started.cache.slots(), 1).unwrap();
        started.cache.set_admission(Some(Box::new(chain)));
    }
    Ok(started)
}

/// Bytes of an extent up to the last one that is not zero.
fn last_byte(image: &Image, extent: Extent) -> u64 {
    let mut bytes = vec![0; extent.len as usize];
    image.read(extent.offset, &mut bytes);
    bytes
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |last| (last as u64 + 1).next_multiple_of(UNIT as u64))
}

fn wrong(opened: Opened, sabotage: Sabotage) -> Opened {
    let metadata = Box::new(Wrong { inner: opened.metadata, sabotage, notes: 0 });
    let repairs = if sabotage == Sabotage::NoRepairs { Vec::new() } else { opened.repairs };
    Opened { metadata, repairs, ..opened }
}

/// A moment after a command.
pub struct Mark {
    /// Operations so far.
    pub end: usize,
    /// Valid sub-blocks of every block.
    pub valid: Vec<u16>,
    /// Blocks that the command touched.
    pub touched: Vec<bool>,
    /// Blocks of which everything up to here is committed.
    pub flushed: Vec<bool>,
    /// The command.
    pub what: String,
}

/// A recorded life.
pub struct Life {
    pub records: Vec<Record>,
    pub marks: Vec<Mark>,
    pub volumes: Vec<Volume>,
    /// Operations until the cache was created or opened.
    pub ready: usize,
    /// Operations until a removal began.
    pub closing: usize,
    /// Entries at the end, if it was removed cleanly.
    pub closed: Option<Vec<Option<Entry>>>,
    /// Writes of blocks that went past the cache above the cut-off.
    pub past: u64,
}

impl Life {
    /// Every operation and command, for people.
    pub fn print(&self, out: &mut impl std::io::Write) -> std::io::Result<()> {
        let mut marks = self.marks.iter().peekable();
        for (number, Record { device, change, at }) in self.records.iter().enumerate() {
            while let Some(mark) = marks.next_if(|mark| mark.end <= number) {
                writeln!(out, "--- {}", mark.what)?;
            }
            match change {
                Change::Write { offset, bytes, .. } => {
                    let id = |unit: &[u8]| u32::from_le_bytes([unit[4], unit[5], unit[6], unit[7]]);
                    let ids: Vec<u32> = bytes.chunks(UNIT).map(id).collect();
                    let len = bytes.len();
                    writeln!(out, "{number}: at {at} store {device}, {len} bytes at {offset}, {ids:?}")?;
                }
                Change::Flush { done } => {
                    writeln!(out, "{number}: at {at} store {device}, flush until {done}")?;
                }
            }
        }
        Ok(())
    }
}

struct Run<'a> {
    case: &'a Case,
    cache: Cache<AnyEviction>,
    tape: Tape,
    volumes: Vec<Volume>,
    marks: Vec<Mark>,
    next_id: u32,
    at: u64,
    mode: Mode,
    /// Commands since the last group ended.
    in_group: u32,
}

impl Run<'_> {
    fn submit(
        &mut self,
        volume: usize,
        op: Op,
        extent: Extent,
        payload: Payload<'_>,
        is_durable: bool,
    ) -> Result<(), String> {
        self.at += 1_000_000;
        let command = BlockCommand { is_durable, ..BlockCommand::new(op, extent, Hint::default()) };
        let (volume, at) = (volume as u16, SimTime(self.at));
        let done = self.cache.submit(volume, command, payload, at);
        let token = done.map_err(|error| format!("{op:?} of {extent:?} of volume {volume}: {error}"))?;
        if self.cache.has_group() {
            self.in_group += 1;
            if self.in_group < self.case.group {
                // Not answered yet, and nothing is promised of it.
                return Ok(());
            }
            self.in_group = 0;
            self.cache.end_group();
        }
        self.wait(token)
    }

    /// Until a command is answered.
    fn wait(&mut self, token: Token) -> Result<(), String> {
        let mut answers = Vec::new();
        if let Some(done) = self.cache.completion(token) {
            self.at = self.at.max(done.0);
            // What begins before is on the tape before.
            self.cache.advance(SimTime(self.at), &mut answers);
            return Ok(());
        }
        self.cache.watch(token, 0);
        while answers.is_empty() {
            let next =
                self.cache.next_event().ok_or("nothing is under way, and a command is not answered")?;
            self.cache.advance(next, &mut answers);
        }
        self.at = self.at.max(answers[0].at.0);
        Ok(())
    }

    fn mark(&mut self, what: &str, volume: usize, units: std::ops::Range<usize>) {
        let is_whole = matches!(what, "start" | "close");
        let is_flushed = |key: BlockKey| is_whole || what == "flush" && usize::from(key.volume()) == volume;
        let per_block = self.case.per_block();
        let blocks = units.start / per_block..units.end.div_ceil(per_block);
        let touches = |key: BlockKey| {
            !units.is_empty()
                && usize::from(key.volume()) == volume
                && blocks.contains(&(key.block() as usize))
        };
        self.marks.push(Mark {
            end: self.tape.len(),
            valid: self
                .case
                .blocks()
                .map(|key| self.cache.entry(key).map_or(0, |entry| entry.valid))
                .collect(),
            touched: self.case.blocks().map(touches).collect(),
            flushed: self.case.blocks().map(is_flushed).collect(),
            what: format!("volume {volume}, units {units:?}, {what}"),
        });
    }

    fn write(
        &mut self,
        volume: usize,
        units: std::ops::Range<usize>,
        is_durable: bool,
    ) -> Result<(), String> {
        self.next_id += 1;
        let mut bytes = vec![0; units.len() * UNIT];
        for (unit, bytes) in units.clone().zip(bytes.chunks_mut(UNIT)) {
            model::fill(self.next_id, volume, unit, bytes);
        }
        let is_loose = !self.mode.makes_dirty();
        self.volumes[volume].set(units.clone(), self.next_id, self.tape.len(), is_loose);
        self.submit(volume, Op::Write, extent(&units), Payload::Write(&bytes), is_durable)?;
        if is_durable || self.case.is_prompt {
            self.promise(volume, units.clone());
        }
        self.mark("write", volume, units);
        Ok(())
    }

    fn trim(
        &mut self,
        volume: usize,
        units: std::ops::Range<usize>,
        op: Op,
        is_durable: bool,
    ) -> Result<(), String> {
        self.volumes[volume].set(units.clone(), model::ZERO, self.tape.len(), true);
        self.submit(volume, op, extent(&units), Payload::None, is_durable)?;
        if is_durable {
            self.promise(volume, units.clone());
        }
        self.mark("trim", volume, units);
        Ok(())
    }

    fn read(&mut self, volume: usize, units: std::ops::Range<usize>) -> Result<(), String> {
        let mut bytes = vec![0xee; units.len() * UNIT];
        self.submit(volume, Op::Read, extent(&units), Payload::Read(&mut bytes), false)?;
        for (unit, bytes) in units.clone().zip(bytes.chunks(UNIT)) {
            let (id, latest) = (model::read(volume, unit, bytes)?, self.volumes[volume].latest(unit));
            if id != latest {
                return Err(format!("reading unit {unit} of volume {volume}: {id}, expected {latest}"));
            }
        }
        self.mark("read", volume, units);
        Ok(())
    }

    fn flush(&mut self, volume: usize) -> Result<(), String> {
        self.submit(volume, Op::Flush, Extent::new(0, 0), Payload::None, false)?;
        self.promise(volume, 0..self.volumes[volume].len());
        self.mark("flush", volume, 0..0);
        Ok(())
    }

    /// What was written to these units so far is durable, as far as the design keeps it.
    fn promise(&mut self, volume: usize, units: std::ops::Range<usize>) {
        let (per_block, cache) = (self.case.per_block(), &self.cache);
        let loses_dirty = !self.case.after_cut.keeps_flushed();
        self.volumes[volume].flushed(self.tape.len(), units, |unit| {
            let key = BlockKey::new(volume as u16, (unit / per_block) as u64);
            let bit = unit % per_block * UNIT / (per_block * UNIT / 16).max(512);
            !loses_dirty || cache.entry(key).is_none_or(|entry| entry.dirty >> bit & 1 == 0)
        });
    }

    /// A random command.
    fn step(&mut self, rng: &mut Xoshiro256PlusPlus) -> Result<(), String> {
        let volume = below(rng, 4) as usize % self.volumes.len();
        let (count, per_block) = (self.volumes[volume].len(), self.case.per_block());
        let most = match below(rng, 24) {
            0 => count,
            1..4 => 5 * per_block,
            4..12 => per_block,
            _ => per_block.div_ceil(2),
        };
        // The smaller of two draws, so that some blocks are hot.
        let mut first = below(rng, count as u64).min(below(rng, count as u64)) as usize;
        if below(rng, 3) == 0 {
            first = first / per_block * per_block;
        }
        let len = (1 + below(rng, most as u64) as usize).min(count - first);
        let units = first..first + len;
        match below(rng, 100) {
            0..41 => self.write(volume, units, false),
            41..46 => self.write(volume, units, true),
            46..50 => {
                self.write(volume, units, false)?;
                self.flush(volume)
            }
            50..70 => self.read(volume, units),
            70..74 => self.trim(volume, units, Op::Trim, false),
            74..75 => self.trim(volume, units, Op::Trim, true),
            75..77 => self.trim(volume, units, Op::WriteZeroes, false),
            77..89 => self.flush(volume),
            89..96 => {
                self.at += 1_000_000;
                let most = 1 + below(rng, 6) as u32;
                self.cache.clean(most, SimTime(self.at)).map_err(|error| format!("clean: {error}"))?;
                self.mark("clean", volume, 0..0);
                Ok(())
            }
            _ => {
                self.mode = self.case.modes[below(rng, self.case.modes.len() as u64) as usize];
                self.cache.set_mode(self.mode);
                Ok(())
            }
        }
    }
}

fn extent(units: &std::ops::Range<usize>) -> Extent {
    Extent::new((units.start * UNIT) as u64, (units.len() * UNIT) as u64)
}

/// The bytes of all volumes, in a mode in which reading changes nothing. Of `PassThrough` only what is dirty
/// comes from the cache.
pub fn read_volumes(
    case: &Case,
    cache: &mut Cache<AnyEviction>,
    mode: Mode,
    at: u64,
) -> Result<Vec<Vec<u8>>, String> {
    cache.set_mode(mode);
    let mut all = Vec::new();
    for (volume, units) in (0..).zip(&case.units) {
        let mut bytes = vec![0xee; units * UNIT];
        let extent = Extent::new(0, bytes.len() as u64);
        let command = BlockCommand::new(Op::Read, extent, Hint::default());
        cache
            .submit(volume, command, Payload::Read(&mut bytes), SimTime(at))
            .map_err(|error| format!("reading volume {volume}: {error}"))?;
        all.push(bytes);
    }
    Ok(all)
}

/// Runs a life over what earlier ones left. Of the volumes, what the host may find.
pub fn live(
    case: &Case,
    images: &[Image],
    mut volumes: Vec<Volume>,
    begin: Begin,
    steps: usize,
    closes: bool,
    rng: &mut Xoshiro256PlusPlus,
) -> Result<Life, String> {
    let tape = Tape::default();
    let started = start(case, images, begin, &tape).map_err(|error| format!("start: {error}"))?;
    let (mut cache, at) = (started.cache, started.at.0);
    let ready = tape.len();
    if begin == Begin::Open {
        let all = read_volumes(case, &mut cache, Mode::WriteOnly, at)?;
        for (number, (volume, bytes)) in volumes.iter_mut().zip(all).enumerate() {
            let ids = model::read_all(number, &bytes)?;
            for (unit, id) in ids.iter().enumerate() {
                volume.check(unit, ready, *id).map_err(|error| format!("at the start: {error}"))?;
            }
            volume.observe(&ids, ready);
        }
    }
    cache.set_mode(case.modes[0]);
    // Numbers that no earlier life used.
    let next_id = 1 + volumes
        .iter()
        .flat_map(|volume| (0..volume.len()).map(|unit| volume.latest(unit)))
        .max()
        .unwrap();
    let next_id = next_id.next_multiple_of(1 << 14);
    let mut run =
        Run { case, cache, tape, volumes, marks: Vec::new(), next_id, at, mode: case.modes[0], in_group: 0 };
    run.mark("start", 0, 0..0);
    for number in 0..steps {
        run.step(rng).map_err(|error| format!("step {number}: {error}"))?;
        run.cache.check_invariants();
    }
    let closing = run.tape.len();
    let mut closed = None;
    if closes {
        closed = Some(case.blocks().map(|key| run.cache.entry(key)).collect());
        run.cache.close(SimTime(run.at + 1_000_000)).map_err(|error| format!("close: {error}"))?;
        let end = run.tape.len();
        for volume in &mut run.volumes {
            volume.flushed(end, 0..volume.len(), |_| case.kind != "none");
        }
        run.mark("close", 0, 0..0);
    }
    let records = spoil(run.tape.take(), case);
    let past = run.cache.counters().total().bypass.write_pieces[Bypass::Dirty.index()];
    Ok(Life { records, marks: run.marks, volumes: run.volumes, ready, closing, closed, past })
}

/// Takes away flushes that a commit depends on.
fn spoil(mut records: Vec<Record>, case: &Case) -> Vec<Record> {
    let is_metadata = |record: &Record| {
        record.device == 0 && matches!(record.change, Change::Write { offset, .. } if offset < 2 * 64 * 4096)
    };
    let is_flush = |record: &Record| matches!(record.change, Change::Flush { .. });
    let is_wanted = |device: usize| match case.sabotage {
        Sabotage::NoDataFlush => device == 0,
        Sabotage::NoDiskFlush => device > 0,
        _ => false,
    };
    for at in 0..records.len() {
        // Flushes in a row that end in a write of metadata are those of a commit.
        let behind = records[at..].iter().find(|record| !is_flush(record));
        if is_flush(&records[at]) && is_wanted(records[at].device) && behind.is_some_and(is_metadata) {
            records[at].change = Change::Flush { done: u64::MAX };
        }
    }
    records
}
