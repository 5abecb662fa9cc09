//! The host of a zoned namespace.

use super::load::{self, Act, Step, Waits};
use super::promise::{Found, Mark, ZonePromises};
use nandscape_core::command::Payload;
use nandscape_core::zone::{Zone, ZoneAction, ZoneAttributes, ZoneCommand, ZoneError, ZoneState};
use nandscape_core::{
    Answer, BlockCommand, Clocked as _, Command, Extent, FlashLayer as _, FtlError, Hint, NamespaceError,
    Oob, Op, Reply, SimTime, Subsystem, Token, ZoneReports as _,
};
use nandscape_namespace::zones::ZonedNamespace;
use nandscape_testkit::crash::{CrashDevice, Site, Subject, Sure};

pub type Zoned = ZonedNamespace<CrashDevice, Oob>;
type Outcome<T = ()> = Result<T, String>;

/// What becomes durable with an answer, and what with the flush after it.
#[derive(Default)]
struct Marks {
    now: Vec<Mark>,
    flushed: Vec<Mark>,
}

pub struct ZoneHost {
    zoned: Zoned,
    site: Site,
    now: SimTime,
    promises: ZonePromises,
    under_way: Vec<(Token, Marks)>,
    /// What was answered and is not durable yet.
    answered: Vec<Mark>,
    sure: Sure,
    /// Nothing was asked for since the start.
    is_fresh: bool,
    /// The device has refused to write its metadata: what it did of the command is not known.
    is_over: bool,
    block_bytes: u32,
}

fn salt_of(salt: u64, zone: usize, block: u64) -> u64 {
    let mixed = (salt ^ (zone as u64) << 48 ^ block << 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) | 1
}

impl ZoneHost {
    fn zone(&self, zone: usize) -> Zone {
        self.zoned.zone(0, zone as u32)
    }

    fn zones(&self) -> Vec<Zone> {
        (0..self.promises.len()).map(|zone| self.zone(zone)).collect()
    }

    fn find(&mut self, zone: usize) -> Outcome<Found> {
        let described = self.zone(zone);
        let layout = *self.zoned.table().layout();
        let block_bytes = layout.block_bytes;
        let mut data = vec![0xa5; layout.capacity as usize * block_bytes as usize];
        if described.state == ZoneState::Offline {
            data.fill(0);
        } else {
            let extent = Extent::new(described.start, data.len() as u64);
            let read = Command::from(BlockCommand::new(Op::Read, extent, Hint::default()));
            self.zoned
                .submit(0, read, Payload::Read(&mut data), self.now)
                .map_err(|error| format!("read of zone {zone}: {error}"))?;
        }
        let salt = |block: &[u8]| {
            let first = &block[..8];
            let is_same = block.chunks(8).all(|word| word == first);
            is_same.then(|| u64::from_le_bytes(first.try_into().expect("eight bytes")))
        };
        Ok(Found {
            zone: described,
            salts: data.chunks(block_bytes as usize).map(salt).collect(),
            block_bytes,
            is_fresh: self.is_fresh,
            is_at_limit: layout.max_active.is_some_and(|most| self.zoned.table().active() >= most),
            may_fail: self.site.may_end_read_only,
        })
    }

    /// Checks the content of a zone that nothing was lost of.
    fn compare(&mut self, zone: usize) -> Outcome {
        let found = self.find(zone)?;
        if self.is_over || found.zone.state == ZoneState::Offline {
            return Ok(());
        }
        let mut latest = self.promises.latest(zone).zip(&found.salts);
        match latest.position(|(expected, salt)| *salt != Some(expected)) {
            None => Ok(()),
            Some(block) => Err(format!(
                "block {block} of zone {zone}, {:?} with {}, is {:x?} and not what was written last, without a cut in between",
                found.zone.state,
                found.pointer(),
                found.salts[block]
            )),
        }
    }

    /// Submits a command that may be refused; `None` if it was.
    fn submit(&mut self, command: Command, payload: Payload<'_>) -> Outcome<Option<Answer>> {
        match self.zoned.submit(0, command, payload, self.now) {
            Ok(answer) => Ok(Some(answer)),
            Err(NamespaceError::Zone(error)) => {
                let is_failure = matches!(error, ZoneError::ReadOnly | ZoneError::Offline);
                if is_failure && !self.site.may_end_read_only { Err(error.to_string()) } else { Ok(None) }
            }
            Err(NamespaceError::Ftl(FtlError::ReadOnly { .. })) if self.site.may_end_read_only => {
                self.is_over = true;
                Ok(None)
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// A request was issued.
    fn issued(&mut self, done: Token, marks: Marks, overlaps: bool) {
        if overlaps {
            self.under_way.push((done, marks));
        } else {
            self.wait_for(done, marks);
        }
    }

    fn wait_for(&mut self, done: Token, marks: Marks) {
        let now = self.site.handle.recorded();
        self.sure.push((now, self.site.handle.set_of(done)));
        if let Some(at) = self.zoned.completion(done) {
            self.now = self.now.max(at);
        }
        for mark in marks.now {
            self.promises.settle(mark, now);
        }
        self.answered.extend(marks.flushed);
        let promises = &mut self.promises;
        self.answered.retain(|mark| !promises.is_settled(*mark));
    }

    fn wait_for_all(&mut self) {
        for (done, marks) in std::mem::take(&mut self.under_way) {
            self.wait_for(done, marks);
        }
    }

    /// Notes what a command changed of zones, which is durable with its answer, and what failed.
    fn changed(&mut self, before: &[Zone], now: usize, marks: &mut Marks) -> Outcome {
        for (zone, before) in before.iter().enumerate() {
            let after = self.zone(zone);
            match after.state {
                state if state == before.state => {}
                ZoneState::Empty => marks.now.push(self.promises.reset(zone, now)),
                ZoneState::Full => marks.now.push(self.promises.finish(zone, now)),
                state @ (ZoneState::ReadOnly | ZoneState::Offline) => {
                    if !self.site.may_end_read_only {
                        return Err(format!("zone {zone} became {state:?}"));
                    }
                    if state == ZoneState::Offline {
                        marks.now.push(self.promises.reset(zone, now));
                    }
                    // Where a finish could not program what was held, its record may be there.
                    self.promises.finish(zone, now);
                    marks.flushed.push(self.promises.fail(zone, state, now));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn manage(&mut self, action: ZoneAction, zone: Option<usize>, overlaps: bool) -> Outcome {
        let before = self.zones();
        let now = self.site.handle.recorded();
        let zone = zone.map(|zone| before[zone].start);
        let answer = self.submit(Command::Zone(ZoneCommand::Manage { action, zone }), Payload::None)?;
        let mut marks = Marks::default();
        self.changed(&before, now, &mut marks)?;
        for (zone, before) in before.iter().enumerate() {
            let (area, after) = (ZoneAttributes::RANDOM_AREA, self.zone(zone));
            if after.attributes.has(area) && !before.attributes.has(area) {
                self.promises.open_random(zone);
            }
        }
        match answer {
            Some(answer) => self.issued(answer.done, marks, overlaps),
            // What a refused command changed before it was refused is changed, and nobody says when.
            None => self.answered.extend(marks.flushed),
        }
        Ok(())
    }

    fn write(&mut self, step: &Step, zone: usize, is_append: bool, is_fua: bool) -> Outcome {
        let before = self.zones();
        let block_bytes = u64::from(self.block_bytes);
        let Some(pointer) = before[zone].write_pointer else { return Ok(()) };
        let is_random = before[zone].attributes.has(ZoneAttributes::RANDOM_AREA);
        let pointer = (pointer - before[zone].start) / block_bytes;
        let from = pointer + if is_random && !is_append { step.ahead } else { 0 };
        let count = step.blocks.min((before[zone].capacity / block_bytes).saturating_sub(from));
        if count == 0 {
            return Ok(());
        }
        let salts = (from..from + count).map(|block| salt_of(step.salt, zone, block));
        let data: Vec<u8> =
            salts.clone().flat_map(|salt| salt.to_le_bytes().repeat(block_bytes as usize / 8)).collect();
        let now = self.site.handle.recorded();
        let len = data.len() as u64;
        let start = before[zone].start;
        let answer = if is_append {
            let append = ZoneCommand::Append { zone: start, len, hint: Hint::default(), is_durable: is_fua };
            self.submit(Command::Zone(append), Payload::Write(&data))?
        } else {
            let extent = Extent::new(start + from * block_bytes, len);
            let mut write = BlockCommand::new(Op::Write, extent, Hint::default());
            write.is_durable = is_fua;
            self.submit(Command::from(write), Payload::Write(&data))?
        };
        if let Some(Answer { reply: Reply::Appended(byte), .. }) = answer
            && byte != start + from * block_bytes
        {
            return Err(format!("appended at {byte}, with the write pointer at {from} of zone {zone}"));
        }
        let mut marks = Marks::default();
        let after = self.zone(zone);
        let has_failed = after.state == ZoneState::ReadOnly;
        if answer.is_some() || has_failed || self.is_over {
            let made = (from..).zip(salts).map(|(block, salt)| self.promises.write(zone, block, salt, now));
            marks.flushed.extend(made);
        }
        if answer.is_none() && has_failed {
            if !self.site.may_end_read_only {
                return Err(format!("zone {zone} became read-only"));
            }
            // Of each block, what it held or what it was to hold.
            let found = self.find(zone)?;
            for block in from..from + count {
                let salt = found.salts[block as usize];
                let salt = salt.ok_or_else(|| format!("block {block} of zone {zone} is a mixture"))?;
                self.promises.write(zone, block, salt, now);
            }
            let failure = self.promises.fail(zone, after.state, now);
            self.answered.push(failure);
            return Ok(());
        }
        let Some(answer) = answer else { return Ok(()) };
        let end = if after.state == ZoneState::Full {
            after.capacity / block_bytes
        } else {
            (after.write_pointer.unwrap_or(start) - start) / block_bytes
        };
        marks.flushed.push(self.promises.point(zone, end, now));
        if is_fua {
            marks.now.append(&mut marks.flushed);
            marks.now.extend(&self.answered);
        }
        self.issued(answer.done, marks, step.overlaps);
        Ok(())
    }

    fn flush_random(&mut self, step: &Step, zone: usize) -> Outcome {
        let before = self.zone(zone);
        let Some(pointer) = before.write_pointer else { return Ok(()) };
        let now = self.site.handle.recorded();
        let last = pointer + (step.blocks.next_multiple_of(4) - 1) * u64::from(self.block_bytes);
        if last >= before.start + before.capacity {
            return Ok(());
        }
        let Some(answer) = self.submit(Command::Zone(ZoneCommand::FlushRandom { last }), Payload::None)?
        else {
            return Ok(());
        };
        let end = (last - before.start) / u64::from(self.block_bytes) + 1;
        let marks = Marks { now: Vec::new(), flushed: vec![self.promises.point(zone, end, now)] };
        self.issued(answer.done, marks, step.overlaps);
        Ok(())
    }

    fn describe(&mut self, step: &Step, zone: usize) -> Outcome {
        let before = self.zone(zone);
        let now = self.site.handle.recorded();
        let bytes = step.salt.to_le_bytes();
        let answer =
            self.submit(Command::Zone(ZoneCommand::Describe { zone: before.start }), Payload::Write(&bytes))?;
        let after = self.zone(zone);
        let mut marks = Marks::default();
        if let (None, Some(extension)) = (before.extension, after.extension) {
            marks.now.push(self.promises.describe(zone, extension, now));
        }
        if let Some(answer) = answer {
            self.issued(answer.done, marks, step.overlaps);
        }
        Ok(())
    }

    fn flush(&mut self, overlaps: bool) -> Outcome {
        if let Some(answer) = self.submit(Command::FLUSH, Payload::None)? {
            let marks = Marks { now: self.answered.clone(), flushed: Vec::new() };
            self.issued(answer.done, marks, overlaps);
        }
        Ok(())
    }

    /// Writes a zone up to its capacity, from its start if it is full.
    fn refill(&mut self, step: &Step, zone: usize) -> Outcome {
        let zones = self.zones();
        if zones[zone].state == ZoneState::Full {
            self.manage(ZoneAction::Reset, Some(zone), false)?;
        }
        if self.zone(zone).state == ZoneState::Empty
            && let Some(active) = zones.iter().position(|zone| zone.state.is_active())
        {
            self.manage(ZoneAction::Finish, Some(active), false)?;
        }
        while let Zone { write_pointer: Some(pointer), state, .. } = self.zone(zone) {
            self.write(step, zone, false, false)?;
            let after = self.zone(zone);
            if after.write_pointer == Some(pointer) && !self.is_over {
                return Err(format!("zone {zone} is {state:?} and takes no writes at {pointer}"));
            }
            if self.is_over {
                break;
            }
        }
        Ok(())
    }
}

impl Subject for ZoneHost {
    type Oob = Oob;
    type Layer = Zoned;
    type Step = Step;
    type Promises = ZonePromises;

    fn new(zoned: Zoned, site: Site, promises: Option<ZonePromises>) -> Self {
        let layout = *zoned.table().layout();
        let promises = promises.unwrap_or_else(|| ZonePromises::fresh(layout.zones, layout.capacity));
        Self {
            zoned,
            site,
            now: SimTime::ZERO,
            promises,
            under_way: Vec::new(),
            answered: Vec::new(),
            sure: Sure::new(),
            is_fresh: true,
            is_over: false,
            block_bytes: layout.block_bytes,
        }
    }

    fn steps(seed: u64, count: usize, _: u32) -> Vec<Step> {
        load::steps(seed, count)
    }

    fn fill(&self, seed: u64) -> Vec<Step> {
        load::fill(seed, self.promises.len() as u32)
    }

    fn step(&mut self, step: &Step) -> Outcome {
        self.is_fresh = false;
        match step.waits {
            Waits::No => {}
            Waits::All => self.wait_for_all(),
            Waits::Newest => {
                if let Some((done, marks)) = self.under_way.pop() {
                    self.wait_for(done, marks);
                }
            }
        }
        let zone = step.zone as usize % self.promises.len();
        let result = match step.act {
            Act::Write { is_fua } => self.write(step, zone, false, is_fua),
            Act::Append { is_fua } => self.write(step, zone, true, is_fua),
            Act::Flush => self.flush(step.overlaps),
            Act::Manage(action) => self.manage(action, Some(zone), step.overlaps),
            Act::ManageAll(action) => self.manage(action, None, step.overlaps),
            Act::FlushRandom => self.flush_random(step, zone),
            Act::Describe => self.describe(step, zone),
            Act::Read => self.compare(zone),
            Act::Refill => self.refill(step, zone),
        };
        result.map_err(|error| format!("{step:?}: {error}"))
    }

    fn observe(&mut self, cut: usize) -> Outcome {
        let now = self.site.handle.recorded();
        for zone in 0..self.promises.len() {
            let found = self.find(zone)?;
            self.promises.check(zone, cut, &found)?;
            self.promises.observe(zone, &found, now);
        }
        Ok(())
    }

    fn verify(&mut self) -> Outcome {
        if self.is_over {
            // The states shown are those of commands that were not logged.
            return Ok(());
        }
        for zone in 0..self.promises.len() {
            self.compare(zone)?;
            let found = self.find(zone)?;
            self.promises.check(zone, usize::MAX, &found)?;
        }
        Ok(())
    }

    fn check_invariants(&self) {
        Subsystem::check_invariants(&self.zoned);
    }

    fn check_clean_start(&self) -> Outcome {
        Ok(())
    }

    fn is_read_only(&self) -> bool {
        self.is_over || self.zoned.read_only().is_some()
    }

    fn shutdown(&mut self) -> Outcome<bool> {
        self.wait_for_all();
        match self.zoned.shutdown(self.now) {
            Ok(done) => {
                let now = std::mem::take(&mut self.answered);
                self.wait_for(done, Marks { now, flushed: Vec::new() });
                Ok(true)
            }
            Err(_) if self.site.may_end_read_only => Ok(false),
            Err(error) => Err(format!("shutdown: {error}")),
        }
    }

    fn promises(&self) -> &ZonePromises {
        &self.promises
    }

    fn into_promises(self) -> (ZonePromises, Sure) {
        (self.promises, self.sure)
    }
}
