//! A zoned namespace over a flash device.
#![expect(clippy::inline_always, reason = "measured: the path of every write")]

use super::body::{Body, Done, Fault, FlashRules};
use super::conventional::Conventional;
use super::metadata::{LOG_ENDED, Record};
use super::pool::Pool;
use super::recover::ZoneStartError;
use super::sabotage::Sabotage;
use super::setup::{CommandTimes, ZoneSetup};
use super::stripes::Striping;
use super::table::{Change, Written, ZoneTable};
use super::tag::ZoneOob;
use nandscape_core::command::{HostCounts, Payload};
use nandscape_core::rng::{Xoshiro256PlusPlus, below, seeded};
use nandscape_core::zone::{
    ZoneAction, ZoneAttributes, ZoneCommand, ZoneCounts, ZoneError, ZoneShape, ZoneState,
};
use nandscape_core::{
    Answer, Barrier, BlockCommand, Cause, Command, Extent, FlashDevice, FtlError, Hint, Issue,
    NamespaceError, NamespaceInfo, NamespaceResult, Op, RecoveryReport, Reply, SimTime, Splitter, Submitted,
    Token, Way,
};

/// Seed of the times of commands.
const DRAWS: u64 = 0x7a6f_6e65;

/// A namespace whose zones lie on the blocks of a flash device. Sequential zones are written at their write
/// pointers; every state, limit and refusal is that of NVMe ZNS 1.1.
pub struct ZonedNamespace<D, O> {
    pub(super) infos: [NamespaceInfo; 1],
    pub(super) table: ZoneTable,
    pub(super) body: Body<D, O>,
    /// The zones before the first with a write pointer.
    pub(super) conventional: Option<Box<Conventional>>,
    pub(super) hosts: HostCounts,
    pub(super) counts: ZoneCounts,
    pub(super) spare_blocks: u32,
    pub(super) recovery: RecoveryReport,
    /// Why nothing is written any more.
    pub(super) read_only: Option<&'static str>,
    times: CommandTimes,
    /// Bytes of the namespace by logical blocks, and zones.
    by_block: Splitter,
    pub(super) by_zone: Splitter,
    /// When the controller is through with the commands so far, and draws of their times.
    busy: SimTime,
    draws: Xoshiro256PlusPlus,
    /// Why commands are issued, and what the host waits for before it submits them.
    pub(super) issued: (Cause, Token),
    changes: Vec<Change>,
}

impl<O: ZoneOob, D: FlashDevice<O>> ZonedNamespace<D, O> {
    /// Zones over a device, as its flash holds them; all empty on a device that was never written. The setup
    /// was checked.
    pub fn new(device: D, setup: &ZoneSetup) -> Result<Self, ZoneStartError> {
        Self::broken(device, setup, Sabotage::None)
    }

    /// The same, doing something wrong. For tests of the tests.
    pub fn broken(device: D, setup: &ZoneSetup, sabotage: Sabotage) -> Result<Self, ZoneStartError> {
        let geometry = *device.geometry();
        let layout = setup.check(&geometry).expect("the setup was checked");
        let mut table = ZoneTable::new(layout);
        let striping = Striping::new(&setup.stripes, &geometry);
        let zone_pages =
            (layout.capacity * u64::from(layout.block_bytes) / u64::from(geometry.page_bytes)) as u32;
        let pool = Pool::new(&device, &geometry);
        let stores_data = device.capabilities().stores_data;
        // The data of a process that is killed is not saved by any capacitor.
        let rules = FlashRules { is_volatile: setup.rules.is_volatile || stores_data, ..setup.rules };
        let mut body =
            Body::new(device, striping, pool, rules, (layout.conventional, layout.zones), zone_pages);
        body.sabotage = sabotage;
        let recovery = if stores_data { body.start(&mut table)? } else { RecoveryReport::default() };
        if stores_data && recovery.checkpoint == 0 {
            body.snapshot(&table, SimTime::ZERO).map_err(|fault| match fault {
                Fault::NoBlock => ZoneStartError::NoBlock,
                Fault::Flash(error) => error.into(),
            })?;
        }
        let read_only = body.log.is_ended.then_some(LOG_ENDED);
        let block = u64::from(layout.block_bytes);
        let zones = ZoneShape {
            zones: layout.zones,
            conventional: layout.conventional,
            size: layout.size * block,
            capacity: layout.capacity * block,
            block: layout.block_bytes,
            max_active: layout.max_active,
            max_open: layout.max_open.or(layout.max_active),
            durable_pages: body.device.capabilities().lasting_programs,
        };
        let info = NamespaceInfo {
            name: setup.name.clone(),
            capacity_bytes: layout.blocks() * block,
            page_bytes: geometry.page_bytes,
            set: 0,
            endurance_group: 0,
            zones: Some(zones),
            objects: false,
        };
        Ok(Self {
            infos: [info],
            table,
            body,
            conventional: None,
            hosts: HostCounts::default(),
            counts: ZoneCounts::default(),
            spare_blocks: setup.spare_blocks,
            recovery,
            read_only,
            times: setup.times,
            by_block: Splitter::new(block),
            by_zone: Splitter::new(layout.size * block),
            busy: SimTime::ZERO,
            draws: seeded(DRAWS),
            issued: (Cause::Host, Token::NONE),
            changes: Vec::new(),
        })
    }

    /// The state machine.
    pub const fn table(&self) -> &ZoneTable {
        &self.table
    }

    /// What flash operations of a command are issued with.
    #[inline]
    const fn issue(&self, at: SimTime) -> Issue {
        let (cause, after) = self.issued;
        Issue::new(at, cause).after(after).by_host()
    }

    /// The controller takes a command; gives when it is through with it.
    #[inline]
    fn serve(&mut self, at: SimTime, ns: u64) -> SimTime {
        self.busy = self.busy.max(at) + ns;
        self.busy
    }

    /// The same of a read, a write or an append, whose time is not always the same.
    #[inline(always)]
    fn serve_data(&mut self, at: SimTime, ns: u64) -> SimTime {
        if ns > 0 { self.serve_drawn(at, ns) } else { self.busy.max(at) }
    }

    #[inline(never)]
    fn serve_drawn(&mut self, at: SimTime, ns: u64) -> SimTime {
        let off = (2.0 * ns as f64 * self.times.spread) as u64;
        let drawn = if off > 0 { below(&mut self.draws, off + 1) } else { 0 };
        self.busy = self.busy.max(at) + (ns + drawn).saturating_sub(off / 2);
        self.busy
    }

    /// The whole logical blocks of an extent: the first, and how many.
    #[inline]
    pub(super) fn blocks(&self, extent: Extent) -> NamespaceResult<(u64, u64)> {
        let (first, before) = self.by_block.split(extent.offset);
        let (blocks, rest) = self.by_block.split(extent.len);
        if before > 0 || rest > 0 { Err(self.no_blocks(extent)) } else { Ok((first, blocks)) }
    }

    #[cold]
    fn no_blocks(&self, extent: Extent) -> NamespaceError {
        let expected = format!("whole logical blocks of {} bytes", self.by_block.divisor());
        NamespaceError::Refused { extent, expected }
    }

    /// The first logical block of a zone that begins at a byte.
    fn start_block(&self, zone: u64) -> NamespaceResult<u64> {
        let block = u64::from(self.table.layout().block_bytes);
        if !zone.is_multiple_of(block) {
            return Err(ZoneError::InvalidField.into());
        }
        Ok(zone / block)
    }

    #[inline(always)]
    pub(super) fn block(
        &mut self,
        command: BlockCommand,
        payload: Payload<'_>,
        at: SimTime,
    ) -> NamespaceResult<Token> {
        let BlockCommand { op, extent, is_durable, .. } = command;
        let done = match (op, payload) {
            (Op::Read, Payload::Read(data)) => self.read(extent, Some(data), at),
            (Op::Read, _) => self.read(extent, None, at),
            (Op::Write, Payload::Write(data)) => self.write(extent, Some(data), at),
            (Op::WriteZeroes, _) if self.is_conventional(extent) => self.drop_blocks(command, at),
            (Op::Write | Op::WriteZeroes, _) => self.write(extent, None, at),
            (Op::Trim, _) => self.drop_blocks(command, at),
            (Op::Flush, _) => self.flush(at),
        }?;
        self.hosts.count(command, self.infos[0].page_bytes);
        if is_durable && op != Op::Flush { self.durable(done, at) } else { Ok(done) }
    }

    /// A durable command is one with a flush behind it, and counts as both.
    #[inline(never)]
    fn durable(&mut self, done: Token, at: SimTime) -> NamespaceResult<Token> {
        self.hosts.count(BlockCommand::FLUSH, self.infos[0].page_bytes);
        let flushed = self.flush(at)?;
        Ok(self.body.device.join(done, flushed))
    }

    #[inline(always)]
    fn read(&mut self, extent: Extent, data: Option<&mut [u8]>, at: SimTime) -> NamespaceResult<Token> {
        let (zone, from) = self.by_zone.split(extent.offset);
        let is_inside = extent.len > 0 && extent.len <= self.by_zone.divisor() - from;
        let is_zone = is_inside && zone < u64::from(self.table.layout().zones);
        let is_other = |state| matches!(state, ZoneState::Offline | ZoneState::NotWritePointer);
        if !is_zone || is_other(self.table.state(zone as u32)) {
            return self.read_zones(extent, data, at);
        }
        let at = self.serve_data(at, self.times.read_ns);
        self.read_zone(zone as u32, (from, extent.len), data, self.issue(at))
    }

    /// Reads bytes of a zone that may be read.
    #[inline(always)]
    fn read_zone(
        &mut self,
        zone: u32,
        bytes: (u64, u64),
        data: Option<&mut [u8]>,
        issue: Issue,
    ) -> NamespaceResult<Token> {
        self.body.read(zone, bytes, data, issue).map_err(|fault| {
            // What cannot be read any more is worth a reset.
            self.table.recommend(zone, ZoneAttributes::RESET_RECOMMENDED);
            fault.into()
        })
    }

    /// Reads any bytes, or refuses to.
    #[inline(never)]
    fn read_zones(
        &mut self,
        extent: Extent,
        mut data: Option<&mut [u8]>,
        at: SimTime,
    ) -> NamespaceResult<Token> {
        let first = self.by_block.quotient(extent.offset);
        let (end, rest) = self.by_block.split(extent.end());
        let end = end + u64::from(rest > 0);
        self.table.check_read(first, end - first)?;
        let at = self.serve_data(at, self.times.read_ns);
        let mut done = Token::NONE;
        let issue = self.issue(at);
        let (mut byte, end) = (extent.offset, extent.end());
        while byte < end {
            let (zone, from) = self.by_zone.split(byte);
            let len = (self.by_zone.divisor() - from).min(end - byte);
            let start = (byte - extent.offset) as usize;
            let part = data.as_deref_mut().map(|data| &mut data[start..start + len as usize]);
            byte += len;
            let zone = zone as u32;
            let read = match &mut self.conventional {
                Some(conventional) if self.table.is_conventional(zone) => {
                    conventional.read(zone, (from, len), part, self.issued, at)?
                }
                _ => self.read_zone(zone, (from, len), part, issue)?,
            };
            done = self.body.device.join(done, read);
        }
        Ok(done)
    }

    #[inline(always)]
    fn write(&mut self, extent: Extent, data: Option<&[u8]>, at: SimTime) -> NamespaceResult<Token> {
        let (first, blocks) = self.blocks(extent)?;
        let Some((zone, from)) = self.table.write_on(first, blocks) else {
            return self.write_any(extent, data, at);
        };
        let at = self.serve_data(at, self.times.write_ns * self.times.units(extent.len));
        let done = self.body.write(zone, (from, blocks), false, data, self.issue(at));
        done.map_err(|fault| self.failed(zone, fault, at))
    }

    /// A write that opens a zone, fills it or goes to a random write area, or is refused.
    #[inline(never)]
    fn write_any(&mut self, extent: Extent, data: Option<&[u8]>, at: SimTime) -> NamespaceResult<Token> {
        let (first, blocks) = self.blocks(extent)?;
        let zone = self.by_zone.quotient(extent.offset) as u32;
        let is_random = zone < self.table.layout().zones && self.table.is_random(zone);
        let active = self.table.open();
        let written = self.table.write(first, blocks)?;
        let ns = self.times.write_ns * self.times.units(extent.len) + self.opening(&written, active);
        let at = self.serve_data(at, ns);
        if self.table.is_conventional(written.zone)
            && let Some(conventional) = &mut self.conventional
        {
            let block = u64::from(self.table.layout().block_bytes);
            let place = (written.from * block, blocks * block);
            return Ok(conventional.write(written.zone, place, data, self.issued, at)?);
        }
        self.put(written, blocks, is_random, data, at)
    }

    /// Counts what a write opened and closed; gives the time that the controller needs for it.
    fn opening(&mut self, written: &Written, open_before: u32) -> u64 {
        let closed = u32::from(written.closed.is_some());
        let is_opened = self.table.open() + u32::from(written.is_full) + closed > open_before;
        self.counts.implicit_closes += u64::from(closed);
        self.counts.opens += u64::from(is_opened);
        if is_opened { self.times.open_ns } else { 0 }
    }

    /// The data of a write that the state machine has allowed.
    fn put(
        &mut self,
        written: Written,
        blocks: u64,
        is_random: bool,
        data: Option<&[u8]>,
        at: SimTime,
    ) -> NamespaceResult<Token> {
        let zone = written.zone;
        let issue = self.issue(at);
        let mut done = self.body.write(zone, (written.from, blocks), is_random, data, issue);
        if is_random && let Ok(passed) = done {
            let end = self.body.pages_for(written.written);
            done =
                self.body.commit(zone, end, false, issue).map(|token| self.body.device.join(token, passed));
        }
        done.map_err(|fault| self.failed(zone, fault, at))
    }

    /// Makes durable what was answered: what is held is logged.
    #[inline(never)]
    pub(super) fn flush(&mut self, at: SimTime) -> NamespaceResult<Token> {
        let at = self.busy.max(at);
        let mut done = self.issued.1;
        if self.body.rules.is_volatile && self.body.sabotage != Sabotage::FlushWithoutHeld {
            let held = self.body.log_held(&self.table, at).map_err(|fault| self.log_failed(fault))?;
            done = self.body.device.join(done, held);
        }
        if let Some(conventional) = &mut self.conventional {
            let flushed = conventional.layer(self.issued).flush(at)?;
            done = self.body.device.join(done, flushed);
        }
        let durable = self.body.device.barrier(Barrier::Durable, at).map_err(FtlError::from)?;
        let done = self.body.device.join(done, durable);
        if self.body.sabotage == Sabotage::FlushWithoutWait {
            return Ok(done);
        }
        // Answered data may lie in pages whose programs are under way, or behind such pages in its zone.
        let under_way = self.body.device.join(self.body.programs, self.body.log.done);
        Ok(self.body.device.join(done, under_way))
    }

    #[inline(never)]
    pub(super) fn zone(&mut self, command: &ZoneCommand, payload: &Payload<'_>, at: SimTime) -> Submitted {
        match *command {
            ZoneCommand::Append { zone, len, hint, is_durable } => {
                self.append(zone, len, hint, is_durable, payload, at)
            }
            ZoneCommand::Manage { action, zone } => {
                let start = zone.map(|zone| self.start_block(zone)).transpose()?;
                Ok(self.manage(action, start, at)?.into())
            }
            ZoneCommand::FlushRandom { last } => {
                let last = last / u64::from(self.table.layout().block_bytes);
                let open = self.table.open();
                let written = self.table.flush_random(last)?;
                let ns = self.times.manage_ns + self.opening(&written, open);
                let at = self.serve(at, ns);
                let end = self.body.pages_for(written.written);
                let zone = written.zone;
                let issue = self.issue(at);
                let done = self
                    .body
                    .commit(zone, end, false, issue)
                    .map_err(|fault| self.failed(zone, fault, at))?;
                Ok(self.body.device.pass(Way::In, 0, at, done).into())
            }
            ZoneCommand::Describe { zone } => {
                let start = self.start_block(zone)?;
                let Payload::Write(bytes) = payload else { return Err(ZoneError::InvalidField.into()) };
                let change = self.table.describe(start, bytes)?;
                let at = self.serve(at, self.times.manage_ns);
                let bytes = self.table.extension(change.zone).unwrap_or_default().into();
                let records = [Record::Extension { zone: change.zone, bytes }];
                let done = self.record(&records, at)?;
                Ok(self.answer(done, at))
            }
            ZoneCommand::Report { from, filter, room } => {
                let from = from / u64::from(self.table.layout().block_bytes);
                let report = self.table.report(from, filter, room)?;
                let at = self.serve(at, self.times.manage_ns);
                let done = self.body.device.pass(Way::Out, 0, at, Token::NONE);
                Ok(Answer { done, reply: Reply::Zones(Box::new(report)) })
            }
        }
    }

    /// The answer to a command that changed a state, whose record completes with a token.
    fn answer(&mut self, recorded: Token, at: SimTime) -> Answer {
        let after = if self.body.rules.is_volatile { recorded } else { Token::NONE };
        self.body.device.pass(Way::In, 0, at, after).into()
    }

    fn append(
        &mut self,
        zone: u64,
        len: u64,
        hint: Hint,
        is_durable: bool,
        payload: &Payload<'_>,
        at: SimTime,
    ) -> Submitted {
        let extent = Extent::new(zone, len);
        let (start, blocks) = self.blocks(extent)?;
        let open = self.table.open();
        let written = self.table.append(start, blocks)?;
        self.counts.appends += 1;
        let ns = self.times.append_ns * self.times.units(len) + self.opening(&written, open);
        let at = self.serve_data(at, ns);
        let data = if let Payload::Write(data) = payload { Some(*data) } else { None };
        let mut done = self.put(written, blocks, false, data, at)?;
        self.hosts.count(BlockCommand::new(Op::Write, extent, hint), self.infos[0].page_bytes);
        if is_durable {
            done = self.durable(done, at)?;
        }
        let byte = zone + written.from * u64::from(self.table.layout().block_bytes);
        Ok(Answer { done, reply: Reply::Appended(byte) })
    }

    fn manage(&mut self, action: ZoneAction, start: Option<u64>, at: SimTime) -> NamespaceResult<Token> {
        let mut changes = std::mem::take(&mut self.changes);
        changes.clear();
        let managed = self.table.manage(action, start, &mut changes);
        let opened = changes.iter().filter(|change| change.from == ZoneState::Empty).count() as u64;
        let at = self.serve(at, self.times.manage_ns + opened * self.times.open_ns);
        let done = self.changed(&changes, at);
        self.changes = changes;
        // What was changed before a refusal is changed.
        managed?;
        done
    }

    /// Does to the flash what the changes of zones ask for.
    fn changed(&mut self, changes: &[Change], at: SimTime) -> NamespaceResult<Token> {
        let mut records = Vec::new();
        // Zones that close beside one that opens were closed for it.
        let is_making_room = changes.iter().any(|change| change.to == ZoneState::ExplicitlyOpen);
        for change in changes {
            match change.to {
                ZoneState::Empty => {
                    self.counts.resets += 1;
                    records.push(self.body.note_reset(change.zone));
                }
                ZoneState::Full => {
                    self.counts.finishes += 1;
                    let written = change.written.max(self.body.held_end(change.zone));
                    records.push(Record::Finished { zone: change.zone, written });
                }
                ZoneState::Offline => records.push(Record::Failed { zone: change.zone, is_offline: true }),
                ZoneState::ExplicitlyOpen => self.counts.opens += u64::from(!change.from.is_open()),
                ZoneState::Closed if change.from == ZoneState::ImplicitlyOpen && is_making_room => {
                    self.counts.implicit_closes += 1;
                }
                ZoneState::Closed => self.counts.closes += 1,
                ZoneState::ImplicitlyOpen | ZoneState::ReadOnly | ZoneState::NotWritePointer => {}
            }
        }
        let mut done = self.issued.1;
        if !records.is_empty() {
            if self.body.rules.is_volatile {
                // A start must not find what the host submits once it has something that is not there.
                self.body.log.done = self.body.device.join(self.body.log.done, done);
            }
            let recorded = self.record(&records, at)?;
            if self.body.rules.is_volatile {
                done = recorded;
            }
        }
        for change in changes {
            let one = match change.to {
                ZoneState::Empty => self.reset(change, at)?,
                ZoneState::Full => {
                    let zone = change.zone;
                    self.finish(change, at).map_err(|fault| self.failed(zone, fault, at))?
                }
                _ => continue,
            };
            done = self.body.device.join(done, one);
        }
        Ok(self.body.device.pass(Way::In, 0, at, done))
    }

    fn reset(&mut self, change: &Change, at: SimTime) -> NamespaceResult<Token> {
        let zone = change.zone;
        let mut after = self.issued.1;
        if self.times.reset_ns > 0 {
            after = self.body.device.pass(Way::In, 0, at + self.times.reset_ns, after);
        }
        let programmed = self.body.programmed(zone);
        let row = self.body.striping.row_pages();
        if self.body.rules.completes_stripe && change.from.is_active() && !programmed.is_multiple_of(row) {
            self.body.drop_held(zone);
            let end = programmed.next_multiple_of(row).min(self.body.zone_pages);
            let is_reset = self.body.sabotage != Sabotage::PadAfterReset;
            match self.body.pad(zone, end, is_reset, self.issue(at).after(after)) {
                Ok(padded) => after = padded,
                // The zone is empty all the same.
                Err(Fault::NoBlock) => {}
                Err(fault) => return Err(fault.into()),
            }
        }
        let done = self.body.release(zone, self.issue(at).after(after)).map_err(NamespaceError::from)?;
        let slots = self.body.slots(zone);
        let left = self.body.shrink_for_failures(zone);
        if left < slots {
            self.shrunk(zone, left, at)?;
        }
        Ok(done)
    }

    /// An empty zone has fewer blocks in each die from now on.
    #[cold]
    fn shrunk(&mut self, zone: u32, slots: u32, at: SimTime) -> NamespaceResult<()> {
        let mut records = vec![Record::Shrunk { zone, slots }];
        if slots == 0 {
            self.table.fail(zone);
            records.push(Record::Failed { zone, is_offline: true });
        } else {
            self.table.set_capacity(zone, self.body.blocks_of(self.body.pages_of(slots)));
        }
        self.record(&records, at)?;
        Ok(())
    }

    fn finish(&mut self, change: &Change, at: SimTime) -> Done {
        let zone = change.zone;
        let mut done = Token::NONE;
        while self.body.held(zone).is_some_and(|held| held.pages() > 0) {
            let end = self.body.programmed(zone) + 1;
            let one = self.body.commit(zone, end, true, self.issue(at))?;
            done = self.body.device.join(done, one);
        }
        if self.body.rules.pads && self.body.programmed(zone) > 0 {
            let end = self.body.pages_of(self.body.slots(zone));
            let padded = self.body.pad(zone, end, false, self.issue(at))?;
            done = self.body.device.join(done, padded);
        }
        Ok(done)
    }

    #[inline(always)]
    pub(super) fn submit_command(
        &mut self,
        command: Command,
        payload: Payload<'_>,
        at: SimTime,
    ) -> Submitted {
        if let Some(reason) = self.read_only
            && !command.writes_nothing()
        {
            return Err(FtlError::ReadOnly { reason }.into());
        }
        let answer = match command {
            Command::Block(command) => self.block(command, payload, at).map(Answer::from),
            Command::Zone(command) => self.zone(&command, &payload, at),
            command => Err(NamespaceError::NotSupported { command: command.name() }),
        };
        self.show_counters();
        answer
    }

    /// Nothing is queued from `at` on.
    pub(super) fn reset_time(&mut self, at: SimTime) {
        self.busy = at;
        self.body.log.done = Token::NONE;
        (self.body.programs, self.body.started) = (Token::NONE, Token::NONE);
        self.body.device.reset_time(at);
    }
}
