//! Clients, writers of tables and the compaction side by side.

use super::placement::Chooser;
use super::tree::{Merge, Table, Tree};
use super::{LsmReport, LsmSetup};
use crate::turns::Turns;
use crate::{Host, HostError, HostResult};
use nandscape_core::command::Payload;
use nandscape_core::rng::{below, seeded};
use nandscape_core::vector::{MOST_ADDRESSES, SectorAddress, VectorCommand, VectorGeometry};
use nandscape_core::{Reply, SimTime, Token};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Runs a store that was checked on a device whose chunks are all free, from a time on.
///
/// # Errors
///
/// Commands that the device refuses or cannot do, and a device without a free chunk.
pub fn run_lsm(host: &mut Host<'_>, setup: &LsmSetup, at: SimTime) -> HostResult<LsmReport> {
    let mut store = Store::new(host, setup);
    let start = store.load(at)?;
    for client in 0..setup.clients {
        store.turns.ready(start, client);
    }
    let mut rng = seeded(setup.seed);
    let mut end = start;
    let mut left = setup.operations;
    while let Some((now, actor)) = store.turns.next(store.host) {
        if actor < setup.clients {
            end = now;
            store.ended(actor, now);
            if left > 0 {
                left -= 1;
                let is_put = below(&mut rng, 100) < u64::from(setup.put_percent);
                let key = below(&mut rng, setup.keys.into()) as u32;
                store.begin(actor, is_put, key, now)?;
            }
        } else if actor < setup.clients + setup.flushers {
            store.flush(actor, now)?;
        } else {
            store.compact(now)?;
        }
    }
    store.report.elapsed_ns = end.0 - start.0;
    store.report.levels = store.tree.levels.iter().map(Vec::len).collect();
    store.check();
    Ok(store.report)
}

/// What a client does.
#[derive(Clone, Copy, Debug, Default)]
struct Client {
    start: SimTime,
    /// The parallel unit that it reads from.
    reads: Option<u32>,
}

/// A table that is being written.
#[derive(Debug)]
struct Writing {
    seq: u64,
    table: Table,
    /// Commands that are done.
    steps: u32,
}

/// A compaction and what it does next.
#[derive(Debug)]
struct Compaction {
    merge: Merge,
    /// Chunks of the inputs, with their parallel units.
    inputs: Vec<(SectorAddress, u32)>,
    /// Keys of the outputs that have no place yet.
    keys: Vec<Vec<u32>>,
    outputs: Vec<Table>,
    stage: Stage,
    /// Tables of level 0 that came in front since it began.
    flushed: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// So many commands of each input are submitted.
    Read(u32),
    Write(u32),
    Reset,
}

struct Store<'a, 'h> {
    host: &'a mut Host<'h>,
    setup: LsmSetup,
    geometry: VectorGeometry,
    turns: Turns,
    tree: Tree,
    chooser: Chooser,
    /// Free chunks of each parallel unit, and the work given out there in nanoseconds.
    free: Vec<Vec<u32>>,
    work: Vec<u64>,
    clients: Vec<Client>,
    /// Puts that wait for room, with their clients.
    stalled: VecDeque<(u32, u32)>,
    memory: BTreeSet<u32>,
    /// Full tables that nobody writes yet, with their numbers.
    full: VecDeque<(u64, Vec<u32>)>,
    flushers: Vec<Option<Writing>>,
    /// Flushers that wait for work.
    idle: Vec<u32>,
    /// Written tables that wait for an older one.
    written: BTreeMap<u64, Table>,
    /// Number of the next table in memory, and of the next that level 0 takes.
    seqs: [u64; 2],
    compaction: Option<Compaction>,
    report: LsmReport,
}

impl<'a, 'h> Store<'a, 'h> {
    fn new(host: &'a mut Host<'h>, setup: &LsmSetup) -> Self {
        let geometry = *host.geometry();
        let units = geometry.all_units() as usize;
        Self {
            host,
            setup: *setup,
            geometry,
            turns: Turns::default(),
            tree: Tree::new(setup.level0, setup.level1, setup.fanout),
            chooser: Chooser::new(setup.placement),
            free: vec![(0..geometry.chunks).rev().collect(); units],
            work: vec![0; units],
            clients: vec![Client::default(); setup.clients as usize],
            stalled: VecDeque::new(),
            memory: BTreeSet::new(),
            full: VecDeque::new(),
            flushers: (0..setup.flushers).map(|_| None).collect(),
            idle: (setup.clients..setup.clients + setup.flushers).rev().collect(),
            written: BTreeMap::new(),
            seqs: [0; 2],
            compaction: None,
            report: LsmReport { written_per_unit: vec![0; units], ..LsmReport::default() },
        }
    }

    fn entries(&self) -> usize {
        self.setup.entries(&self.geometry) as usize
    }

    /// Writes tables of all keys, one after the other.
    fn load(&mut self, at: SimTime) -> HostResult<SimTime> {
        let keys: Vec<u32> = (0..self.setup.keys).collect();
        let mut tables = Vec::new();
        let mut now = at;
        for (index, keys) in keys.chunks(self.entries()).enumerate() {
            let unit = index as u32 % self.geometry.all_units();
            let chunk = self.free[unit as usize].pop().ok_or(NO_CHUNK)?;
            let table = Table { chunk: self.geometry.chunk_in(unit, chunk), unit, keys: keys.to_vec() };
            let sectors: Vec<_> = (0..self.geometry.sectors).map(|sector| table.chunk.at(sector)).collect();
            now = now.max(self.host.write(&sectors, None, now)?);
            tables.push(table);
        }
        self.tree.load(tables);
        Ok(now)
    }

    /// The operation of a client is over.
    fn ended(&mut self, client: u32, now: SimTime) {
        let Client { start, reads } = self.clients[client as usize];
        if let Some(unit) = reads {
            self.work[unit as usize] -= u64::from(self.geometry.times.read_ns);
            self.report.get_ns.push(now.0 - start.0);
            self.clients[client as usize].reads = None;
        }
    }

    fn begin(&mut self, client: u32, is_put: bool, key: u32, now: SimTime) -> HostResult<()> {
        self.clients[client as usize].start = now;
        if is_put {
            self.put(client, key, now);
            return Ok(());
        }
        let in_memory = self.memory.contains(&key)
            || self.full.iter().any(|(_, keys)| keys.binary_search(&key).is_ok())
            || self.flushers.iter().flatten().any(|writing| writing.table.find(key).is_some())
            || self.written.values().any(|table| table.find(key).is_some());
        if in_memory {
            self.turns.ready(now, client);
            return Ok(());
        }
        let (table, entry) = self.tree.find(key).expect("every key was loaded");
        let sector_bytes = u64::from(self.geometry.sector_bytes);
        let bytes = u64::from(self.setup.entry_bytes);
        let first = entry as u64 * bytes / sector_bytes;
        let last = ((entry as u64 + 1) * bytes - 1) / sector_bytes;
        let list = (first..=last).map(|sector| table.chunk.at(sector as u32)).collect();
        let unit = table.unit;
        self.work[unit as usize] += u64::from(self.geometry.times.read_ns);
        self.clients[client as usize].reads = Some(unit);
        self.report.gets += 1;
        let done = self.submit(VectorCommand::Read(list), now)?;
        self.turns.after(self.host, done, client, now);
        Ok(())
    }

    fn put(&mut self, client: u32, key: u32, now: SimTime) {
        if self.memory.len() >= self.entries() {
            let in_flight = self.full.len() + self.flushers.iter().flatten().count() + self.written.len();
            let is_stopped = self.tree.levels[0].len() >= self.setup.level0_stop as usize;
            if in_flight >= self.flushers.len() || is_stopped {
                self.stalled.push_back((client, key));
                return;
            }
            let keys = std::mem::take(&mut self.memory).into_iter().collect();
            self.full.push_back((self.seqs[0], keys));
            self.seqs[0] += 1;
            if let Some(flusher) = self.idle.pop() {
                self.turns.ready(now, flusher);
            }
        }
        self.memory.insert(key);
        self.report.puts += 1;
        self.report.stalled_ns += now.0 - self.clients[client as usize].start.0;
        self.turns.ready(now, client);
    }

    /// Puts that wait are tried again.
    fn wake(&mut self, now: SimTime) {
        for (client, key) in std::mem::take(&mut self.stalled) {
            self.put(client, key, now);
        }
    }

    /// A chunk for a table of a level, chosen by its keys; its writes count as work from now on.
    fn place(&mut self, level: usize, keys: Vec<u32>) -> HostResult<Table> {
        let (first, last) = (keys[0], keys[keys.len() - 1]);
        let together = self.tree.together(level, first, last, self.work.len());
        let unit = self.chooser.choose(&self.work, &together, &self.free).ok_or(NO_CHUNK)?;
        let chunk = self.free[unit as usize].pop().ok_or(NO_CHUNK)?;
        self.work[unit as usize] += self.write_ns(self.geometry.sectors);
        self.report.written_per_unit[unit as usize] += 1;
        Ok(Table { chunk: self.geometry.chunk_in(unit, chunk), unit, keys })
    }

    /// The next step of one that writes tables from memory, or its beginning.
    fn flush(&mut self, actor: u32, now: SimTime) -> HostResult<()> {
        let index = (actor - self.setup.clients) as usize;
        if let Some(writing) = &mut self.flushers[index] {
            let (unit, step) = (writing.table.unit, writing.steps);
            writing.steps += 1;
            let sectors = self.step_sectors(step);
            self.work[unit as usize] -= self.write_ns(sectors);
            if step + 1 == self.steps() {
                let writing = self.flushers[index].take().expect("it was writing");
                self.installed(writing, now);
            }
        }
        if self.flushers[index].is_none() {
            let Some((seq, keys)) = self.full.pop_front() else {
                self.idle.push(actor);
                return Ok(());
            };
            let table = self.place(0, keys)?;
            self.flushers[index] = Some(Writing { seq, table, steps: 0 });
        }
        let writing = self.flushers[index].as_ref().expect("there is one");
        let list = self.step_list(writing.table.chunk, writing.steps);
        let done = self.submit(VectorCommand::Write(list), now)?;
        self.turns.after(self.host, done, actor, now);
        Ok(())
    }

    /// Level 0 takes tables in their order.
    fn installed(&mut self, writing: Writing, now: SimTime) {
        self.written.insert(writing.seq, writing.table);
        self.report.flushes += 1;
        while let Some(table) = self.written.remove(&self.seqs[1]) {
            self.seqs[1] += 1;
            self.tree.levels[0].insert(0, table);
            if let Some(compaction) = &mut self.compaction {
                compaction.flushed += 1;
            }
        }
        self.begin_compaction(now);
        self.wake(now);
    }

    fn begin_compaction(&mut self, now: SimTime) {
        if self.compaction.is_some() {
            return;
        }
        let Some(merge) = self.tree.next_merge() else { return };
        let inputs: Vec<_> = self.tree.inputs(&merge).map(|table| (table.chunk, table.unit)).collect();
        self.report.tables_read += inputs.len() as u64;
        for (_, unit) in &inputs {
            self.work[*unit as usize] += self.read_ns(self.geometry.sectors);
        }
        let keys = self.tree.merged(&merge, self.entries());
        let (outputs, stage) = (Vec::new(), Stage::Read(0));
        self.compaction = Some(Compaction { merge, inputs, keys, outputs, stage, flushed: 0 });
        self.turns.ready(now, self.setup.clients + self.setup.flushers);
    }

    /// The next step of the compaction; the one before is over.
    fn compact(&mut self, now: SimTime) -> HostResult<()> {
        let mut it = self.compaction.take().expect("a compaction has its turn");
        match it.stage {
            Stage::Read(step) => {
                if step > 0 {
                    let ns = self.read_ns(self.step_sectors(step - 1));
                    it.inputs.iter().for_each(|(_, unit)| self.work[*unit as usize] -= ns);
                }
                if step < self.steps() {
                    it.stage = Stage::Read(step + 1);
                    let chunks: Vec<_> = it.inputs.iter().map(|(chunk, _)| *chunk).collect();
                    return self.side_by_side(it, &chunks, step, VectorCommand::Read, now);
                }
                for keys in std::mem::take(&mut it.keys) {
                    it.outputs.push(self.place(it.merge.into, keys)?);
                }
                self.report.tables_written += it.outputs.len() as u64;
                it.stage = Stage::Write(0);
                self.compaction = Some(it);
                self.compact(now)
            }
            Stage::Write(step) => {
                if step > 0 {
                    let ns = self.write_ns(self.step_sectors(step - 1));
                    it.outputs.iter().for_each(|table| self.work[table.unit as usize] -= ns);
                }
                if step < self.steps() {
                    it.stage = Stage::Write(step + 1);
                    let chunks: Vec<_> = it.outputs.iter().map(|table| table.chunk).collect();
                    return self.side_by_side(it, &chunks, step, VectorCommand::Write, now);
                }
                self.tree.replace(&it.merge, it.flushed, std::mem::take(&mut it.outputs));
                it.stage = Stage::Reset;
                let ns = u64::from(self.geometry.times.reset_ns);
                it.inputs.iter().for_each(|(_, unit)| self.work[*unit as usize] += ns);
                let chunks: Vec<_> = it.inputs.iter().map(|(chunk, _)| *chunk).collect();
                let mut done = Token::NONE;
                for list in chunks.chunks(MOST_ADDRESSES) {
                    let reset = self.submit(VectorCommand::Reset(list.into()), now)?;
                    done = self.host.subsystem().join(done, reset);
                }
                self.waits(it, done, now);
                self.wake(now);
                Ok(())
            }
            Stage::Reset => {
                let ns = u64::from(self.geometry.times.reset_ns);
                for (chunk, unit) in it.inputs {
                    self.work[unit as usize] -= ns;
                    self.free[unit as usize].push(chunk.chunk);
                }
                self.report.compactions += 1;
                self.begin_compaction(now);
                Ok(())
            }
        }
    }

    /// The same command of each of some chunks.
    fn side_by_side(
        &mut self,
        compaction: Compaction,
        chunks: &[SectorAddress],
        step: u32,
        command: fn(Box<[SectorAddress]>) -> VectorCommand,
        now: SimTime,
    ) -> HostResult<()> {
        let mut done = Token::NONE;
        for chunk in chunks {
            let one = self.submit(command(self.step_list(*chunk, step)), now)?;
            done = self.host.subsystem().join(done, one);
        }
        self.waits(compaction, done, now);
        Ok(())
    }

    fn waits(&mut self, compaction: Compaction, done: Token, now: SimTime) {
        self.compaction = Some(compaction);
        self.turns.after(self.host, done, self.setup.clients + self.setup.flushers, now);
    }

    /// Commands that a whole chunk takes.
    fn steps(&self) -> u32 {
        self.geometry.sectors.div_ceil(self.step_most())
    }

    /// Most sectors of a command: whole smallest writes.
    const fn step_most(&self) -> u32 {
        MOST_ADDRESSES as u32 / self.geometry.write_min * self.geometry.write_min
    }

    fn step_sectors(&self, step: u32) -> u32 {
        self.step_most().min(self.geometry.sectors - step * self.step_most())
    }

    fn step_list(&self, chunk: SectorAddress, step: u32) -> Box<[SectorAddress]> {
        let first = step * self.step_most();
        (first..first + self.step_sectors(step)).map(|sector| chunk.at(sector)).collect()
    }

    fn read_ns(&self, sectors: u32) -> u64 {
        u64::from(sectors / self.geometry.write_min) * u64::from(self.geometry.times.read_ns)
    }

    fn write_ns(&self, sectors: u32) -> u64 {
        u64::from(sectors / self.geometry.write_min) * u64::from(self.geometry.times.write_ns)
    }

    fn submit(&mut self, command: VectorCommand, now: SimTime) -> HostResult<Token> {
        let list = match &command {
            VectorCommand::Read(list) | VectorCommand::Write(list) | VectorCommand::Reset(list) => {
                list.clone()
            }
            _ => Box::default(),
        };
        let answer = self.host.submit(command, Payload::None, now)?;
        match answer.reply {
            Reply::Failed(errors) => Err(crate::host::failure(&errors, &list)),
            _ => Ok(answer.done),
        }
    }

    /// Every chunk is free or has one table, and nothing is under way.
    fn check(&self) {
        let tables = self.tree.levels.iter().flatten();
        let free =
            (0..).zip(&self.free).flat_map(|(unit, chunks)| chunks.iter().map(move |chunk| (unit, *chunk)));
        let mut all: Vec<(u32, u32)> =
            tables.map(|table| (table.unit, table.chunk.chunk)).chain(free).collect();
        all.sort_unstable();
        let expected = (0..self.geometry.all_units())
            .flat_map(|unit| (0..self.geometry.chunks).map(move |chunk| (unit, chunk)));
        assert!(all.into_iter().eq(expected), "chunks of tables and free ones are not all of them");
        assert!(self.work.iter().all(|work| *work == 0), "work that is never done: {:?}", self.work);
    }
}

const NO_CHUNK: HostError = HostError::NoChunk { expected: "a table" };
