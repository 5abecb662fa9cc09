//! A cache over files as namespaces.

use super::heart::Hearts;
use super::live::{Live, Seen};
use super::watching::Watching;
use super::{Place, Served, Settings};
use crate::{LostRange, VolumeStat};
use nandscape_cache::engine::{Cache, CacheError};
use nandscape_cache::manage::{self, ManageError};
use nandscape_cache::status::Health;
use nandscape_core::command::{HostCounts, Payload};
use nandscape_core::{
    Allocation, Answer, BlockCommand, CacheReport, CacheReports, Clocked, Command, Completion, Control,
    Extent, HostReports, Inspect, NamespaceError, NamespaceInfo, NamespaceResult, Op, SimTime, StoreError,
    Submitted, Subsystem, Token,
};
use nandscape_policies::eviction::AnyEviction;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Real time that cleaning may take before a request, and while there is none.
const BEFORE_REQUEST: Duration = Duration::from_millis(5);
const WHILE_IDLE: Duration = Duration::from_millis(50);

/// The namespaces. Requests for parts of sectors are done with whole ones.
pub struct CachedFiles {
    pub(super) cache: Cache<AnyEviction>,
    pub(super) served: Vec<Served>,
    /// Of these the number of each namespace's; `None` for one that was taken away.
    pub(super) numbers: Vec<Option<u16>>,
    pub(super) infos: Vec<NamespaceInfo>,
    pub(super) hearts: Hearts,
    pub(super) fast: Option<Place>,
    pub(super) watching: Watching,
    pub(super) unit: u64,
    pub(super) bounce: Vec<u8>,
    /// Volumes of writes that wait for the commit of their group, which is a part of their time.
    pub(super) grouped: Vec<u16>,
    pub(super) live: Arc<Live>,
    pub(super) settings: Settings,
    /// Why nothing may be changed.
    pub(super) read_only: Option<String>,
}

impl CachedFiles {
    /// The volume's number in the cache.
    fn id(&self, namespace: u32) -> Option<u16> {
        *self.numbers.get(namespace as usize)?
    }

    fn look(&self) -> Seen {
        let health = self.cache.health();
        let (counters, dirty) = (self.cache.counters(), self.cache.dirty_by_volume());
        let volume = |volume: &Served| {
            let id = usize::from(volume.id);
            VolumeStat {
                blocks: self.cache.held(volume.id).into(),
                dirty_blocks: dirty[id].0,
                dirty_bytes: dirty[id].1,
                quota_blocks: self.cache.quota(volume.id).map(u64::from),
                counters: Some(counters.volumes[id].clone()),
                disk_counts: Some(self.cache.disk_counts(volume.id)),
                ..volume.stat()
            }
        };
        let name_of = |id: u16| self.served.iter().find(|volume| volume.id == id).map(|v| v.name.clone());
        let lost = self.cache.lost().map(|(id, extent)| LostRange {
            volume: name_of(id).unwrap_or_default(),
            offset: extent.offset,
            len: extent.len,
        });
        let mirror = self.fast.as_ref().map(Place::mirror).unwrap_or_default();
        let is_whole = mirror.iter().all(|member| member.failed.is_none());
        Seen {
            gauges: self.cache.gauges(),
            counters: counters.total(),
            shared: counters.shared.clone(),
            health: match (&health.bypassed, health.lost_bytes) {
                (_, 1..) => Health::Failed,
                (None, _) if is_whole => Health::Normal,
                _ => Health::Degraded,
            },
            trouble: trouble(&health, self.read_only.as_deref(), &name_of),
            given_up: health.bypassed.as_ref().map(ToString::to_string),
            lost: lost.collect(),
            mirror,
            volumes: self.served.iter().map(volume).collect(),
        }
    }

    /// The whole sectors around an extent.
    const fn wide(&self, extent: Extent) -> Extent {
        let start = extent.offset / self.unit * self.unit;
        Extent::new(start, extent.end().next_multiple_of(self.unit) - start)
    }

    fn odd(
        &mut self,
        id: u16,
        given: BlockCommand,
        payload: Payload<'_>,
        at: SimTime,
    ) -> NamespaceResult<Token> {
        let (extent, wide) = (given.extent, self.wide(given.extent));
        let inner = {
            let start = extent.offset.next_multiple_of(self.unit);
            let end = extent.end() / self.unit * self.unit;
            Extent::new(start, end.saturating_sub(start))
        };
        let command = |op, extent| BlockCommand { op, extent, ..given };
        let mut bounce = std::mem::take(&mut self.bounce);
        let result = match (given.op, payload) {
            (Op::Read, Payload::Read(data)) => {
                bounce.resize(wide.len as usize, 0);
                let done = self.cache_submit(id, command(Op::Read, wide), Payload::Read(&mut bounce), at);
                let from = (extent.offset - wide.offset) as usize;
                data.copy_from_slice(&bounce[from..from + data.len()]);
                done
            }
            (Op::Write, Payload::Write(data)) => self.patch(id, given, Some(data), &mut bounce, at),
            (Op::Trim, _) if inner.len == 0 => Ok(Token::NONE),
            (Op::Trim, _) => self.cache_submit(id, command(Op::Trim, inner), Payload::None, at),
            (Op::WriteZeroes, _) if inner.len == 0 => self.patch(id, given, None, &mut bounce, at),
            (Op::WriteZeroes, _) => {
                let head = Extent::new(extent.offset, inner.offset - extent.offset);
                let tail = Extent::new(inner.end(), extent.end() - inner.end());
                let mut done = self.cache_submit(id, command(Op::WriteZeroes, inner), Payload::None, at);
                for part in [head, tail].into_iter().filter(|part| part.len != 0) {
                    done = done.and_then(|before| {
                        let token = self.patch(id, command(Op::WriteZeroes, part), None, &mut bounce, at)?;
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
        id: u16,
        given: BlockCommand,
        data: Option<&[u8]>,
        bounce: &mut Vec<u8>,
        at: SimTime,
    ) -> NamespaceResult<Token> {
        let (extent, wide) = (given.extent, self.wide(given.extent));
        let command = |op| BlockCommand { op, extent: wide, ..given };
        bounce.resize(wide.len as usize, 0);
        self.cache_submit(id, command(Op::Read), Payload::Read(bounce), at)?;
        let from = (extent.offset - wide.offset) as usize;
        let part = &mut bounce[from..from + extent.len as usize];
        match data {
            Some(data) => part.copy_from_slice(data),
            None => part.fill(0),
        }
        self.cache_submit(id, command(Op::Write), Payload::Write(bounce), at)
    }

    fn cache_submit(
        &mut self,
        id: u16,
        command: BlockCommand,
        payload: Payload<'_>,
        at: SimTime,
    ) -> NamespaceResult<Token> {
        let is_durable = command.is_durable && command.op != Op::Read;
        if self.live.waits() {
            self.cache.group_commits();
        }
        let begin = Instant::now();
        self.catch_up(at, BEFORE_REQUEST).map_err(|error| self.refusal(command.extent, error))?;
        let done = self.cache.submit(id, command, payload, at);
        if matches!(command.op, Op::Read | Op::Write) {
            let ns = begin.elapsed().as_nanos() as u64;
            self.cache.count_real_time(id, command.op == Op::Write, ns);
            if done.as_ref().is_ok_and(|token| self.cache.completion(*token).is_none()) {
                self.grouped.push(id);
            }
        }
        if (is_durable || command.op == Op::Flush) && done.is_ok() {
            self.watching.renew(&mut self.served, at);
        }
        done.map_err(|error| self.refusal(command.extent, error))
    }

    /// Cleans what became due before `at`, for no longer than `most`. Files take no time in the model, so
    /// that all of it could be due at once, however long it takes.
    fn catch_up(&mut self, at: SimTime, most: Duration) -> Result<(), CacheError> {
        let mut due = self.cache.cleaning_due();
        if due >= at {
            return Ok(());
        }
        let begin = Instant::now();
        while due < at {
            self.cache.catch_up(due)?;
            if begin.elapsed() >= most {
                self.cache.postpone_cleaning(at);
                break;
            }
            due = self.cache.cleaning_due();
        }
        Ok(())
    }

    /// Makes the commit that answers wait for.
    fn end_group(&mut self) {
        let begin = Instant::now();
        self.cache.end_group();
        let ns = begin.elapsed().as_nanos() as u64;
        for volume in self.grouped.drain(..) {
            self.cache.count_real_time(volume, true, ns);
        }
    }

    /// Gives the cache up if its file was deleted or cut short.
    fn check_fast(&mut self, look_over: bool, at: SimTime) -> Result<(), CacheError> {
        let Some(fast) = &self.fast else { return Ok(()) };
        match if look_over { fast.look_over(true) } else { fast.store.get().failed() } {
            Some(error) => self.cache.give_up(error, at),
            None => Ok(()),
        }
    }

    /// Closes the cache, and takes down how it leaves the disks.
    fn close(&mut self, at: SimTime) -> NamespaceResult<Token> {
        for volume in &self.served {
            volume.place.look_over(false);
        }
        let checked = self.check_fast(true, at);
        let done = checked
            .and_then(|()| self.cache.close(at))
            .map_err(|error| self.refusal(Extent::new(0, 0), error))?;
        self.stamp().map_err(|error| self.stamp_failed(error))?;
        Ok(Token(done.0))
    }

    fn stamp(&mut self) -> Result<(), ManageError> {
        let Some(fast) = &mut self.fast else { return Ok(()) };
        // What the next start has to know of a cache that was given up is taken down already.
        if self.read_only.is_some() || self.cache.health().bypassed.is_some() {
            return Ok(());
        }
        for volume in &mut self.served {
            manage::end(fast, &mut volume.place, volume.id)?;
        }
        Ok(())
    }

    fn stamp_failed(&self, error: ManageError) -> NamespaceError {
        let (place, source) = match error {
            ManageError::Fast(source) => ("stamps on the cache device".to_owned(), source),
            ManageError::Disk { volume, source } => {
                (format!("stamp of the disk of {}", self.volume(volume)), source)
            }
            error => {
                let source = StoreError::Io { offset: 0, len: 0, detail: error.to_string() };
                ("stamps of the cache".to_owned(), source)
            }
        };
        NamespaceError::Store { place, extent: Extent::new(0, 0), source }
    }

    fn refusal(&self, extent: Extent, error: CacheError) -> NamespaceError {
        error.refusal(extent, |id| self.volume(id))
    }

    /// A volume of the cache as errors call it.
    fn volume(&self, id: u16) -> String {
        match self.served.iter().find(|volume| volume.id == id) {
            Some(volume) => format!("volume {}", volume.name),
            None => format!("volume {id}"),
        }
    }
}

/// What is wrong, for people; `None` if nothing is.
fn trouble(
    health: &nandscape_cache::engine::Health,
    read_only: Option<&str>,
    name_of: &dyn Fn(u16) -> Option<String>,
) -> Option<String> {
    let mut parts: Vec<String> =
        read_only.map(|why| format!("served read-only: {why}")).into_iter().collect();
    if let Some(why) = &health.bypassed {
        parts.push(format!("the cache device is given up: {why}"));
    }
    for id in &health.unrecorded {
        parts.push(format!(
            "{} takes no writes, since nothing can record that the cache device is given up",
            name_of(*id).unwrap_or_default()
        ));
    }
    if health.retired_slots > 0 {
        parts.push(format!("{} slots are used no more", health.retired_slots));
    }
    for id in &health.failing_disks {
        parts.push(format!(
            "the disk of {} refused what the cache wrote last",
            name_of(*id).unwrap_or_default()
        ));
    }
    if health.lost_bytes > 0 {
        parts.push(format!("{} bytes are lost", health.lost_bytes));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

nandscape_core::no_state!(impl [] CachedFiles: "a cache over files");

/// Files have no flash below that the model knows of.
impl Subsystem for CachedFiles {
    fn namespaces(&self) -> &[NamespaceInfo] {
        &self.infos
    }

    fn prepare(&self, _: u32, _: Op, _: Extent) {}

    fn submit(&mut self, namespace: u32, command: Command, payload: Payload<'_>, at: SimTime) -> Submitted {
        let command = command.into_block()?;
        let extent = command.extent;
        let Some(id) = self.id(namespace) else {
            let expected = "a volume that is still attached".to_owned();
            return Err(NamespaceError::Refused { extent, expected });
        };
        if let Some(why) = &self.read_only {
            match command.op {
                Op::Read => {}
                Op::Flush => return Ok(Token::NONE.into()),
                _ => {
                    let source = StoreError::ReadOnly { detail: why.clone() };
                    return Err(self.refusal(extent, CacheError::Slow { volume: id, source }));
                }
            }
        }
        let is_inside = extent.end() <= self.infos[namespace as usize].capacity_bytes;
        if (extent.offset | extent.len) & (self.unit - 1) != 0 && is_inside && command.op != Op::Flush {
            return self.odd(id, command, payload, at).map(Answer::from);
        }
        self.cache_submit(id, command, payload, at).map(Answer::from)
    }

    fn join(&mut self, a: Token, b: Token) -> Token {
        self.cache.join(a, b)
    }

    /// Whether anything is cleaned meanwhile is for the policies of the design.
    fn idle(&mut self, at: SimTime, until: SimTime) -> NamespaceResult<()> {
        let checked = self.check_fast(false, at);
        checked.map_err(|error| self.refusal(Extent::new(0, 0), error))?;
        let outcome = self.cache.catch_up(at).and_then(|()| self.catch_up(until, WHILE_IDLE));
        outcome.map_err(|error| self.refusal(Extent::new(0, 0), error))?;
        self.cache.idle(until, until)?;
        self.end_group();
        self.watching.settle(&mut self.served, until);
        Ok(())
    }

    /// Makes everything durable; after [`super::Handle::close_next`] closes the cache, which then takes no
    /// more commands.
    fn shutdown(&mut self, at: SimTime) -> NamespaceResult<Token> {
        if self.live.is_closing() {
            return self.close(at);
        }
        let mut all = Token::NONE;
        for index in 0..self.served.len() {
            let token = self.cache_submit(self.served[index].id, BlockCommand::FLUSH, Payload::None, at)?;
            all = self.join(all, token);
        }
        Ok(all)
    }

    /// What is not cached is as the disk has it.
    fn allocation(&self, namespace: u32, extent: Extent) -> Allocation {
        match self.id(namespace) {
            Some(id) => self.cache.allocation(id.into(), extent),
            None => Allocation { is_mapped: false, bytes: extent.len },
        }
    }

    fn inspect(&self) -> Inspect<'_> {
        Inspect { hosts: Some(self), cache: Some(self), ..Inspect::default() }
    }

    fn control(&mut self) -> Control<'_> {
        Control { cache: Some(self), ..Control::default() }
    }

    fn reset_counters(&mut self, at: SimTime) {
        self.cache.reset_counters(at);
    }

    fn check_invariants(&self) {
        self.cache.check_invariants();
    }
}

impl HostReports for CachedFiles {
    fn host_counts(&self, namespace: u32) -> HostCounts {
        self.id(namespace).map_or_else(HostCounts::default, |id| self.cache.host_counts(id))
    }
}

impl CacheReports for CachedFiles {
    /// [`super::Handle::stat`] then knows how the cache stands.
    fn cache(&self) -> CacheReport {
        let seen = self.look();
        // Of the disks those that are there.
        let disks = seen.volumes.iter().filter_map(|volume| volume.disk_counts).collect();
        let report = CacheReport { disks, ..self.cache.report_of(&seen.gauges, &seen.counters) };
        self.live.get().seen = Some(seen);
        report
    }
}

impl Clocked for CachedFiles {
    nandscape_core::delegate_clock!(self, self.cache; completion, watch, idle_from);

    fn advance(&mut self, until: SimTime, out: &mut Vec<Completion>) {
        self.end_group();
        self.cache.advance(until, out);
    }

    /// Not of cleaning, which is done before a request and in idle time, each for a bounded real time.
    fn next_event(&self) -> Option<SimTime> {
        if self.cache.has_group() { Some(self.cache.now()) } else { self.cache.next_step() }
    }
}
