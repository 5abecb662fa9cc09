//! Namespace 0 of the subsystem below a layer, by its commands: those of zones, and of chunks in [`chunks`].
#![expect(clippy::inline_always, reason = "the path of every page")]

mod chunks;

use crate::error::HostFtlError;
use nandscape_core::command::Payload;
use nandscape_core::zone::{Zone, ZoneAction, ZoneCommand, ZoneFilter, ZoneShape};
use nandscape_core::{
    Answer, BlockCommand, Cause, Command, Extent, FlashError, FlashLayer, FlashState, FtlError, Hint, Issue,
    Lpn, NamespaceError, NamespaceInfo, NamespaceResult, Op, ParamError, Ppn, Reply, SimTime, Subsystem,
    Token,
};

/// Zones that may be written at once, where they are enough for `what`; the error names the key that limits
/// them.
pub(crate) fn written_at_once(zones: &ZoneShape, least: u32, what: &str) -> Result<u32, ParamError> {
    let limits = [("zone.max_open", zones.max_open), ("zone.max_active", zones.max_active)];
    let limits = limits.into_iter().filter_map(|(key, limit)| limit.map(|most| (most, key)));
    match limits.min() {
        Some((most, key)) if most < least => {
            Err(ParamError::bad(key.to_owned(), most.to_string(), format!("{least} at least: {what}")))
        }
        limit => Ok(limit.map_or(u32::MAX, |(most, _)| most)),
    }
}

/// Namespace 0 of a subsystem that takes causes and order of commands.
#[derive(Debug)]
pub(crate) struct Below<S> {
    pub device: S,
}

impl<S: Subsystem> Below<S> {
    /// Writes at the write pointer of a zone.
    #[inline(never)]
    pub fn write(&mut self, extent: Extent, data: Option<&[u8]>, issue: Issue) -> NamespaceResult<Token> {
        let payload = data.map_or(Payload::None, Payload::Write);
        self.submit(BlockCommand::new(Op::Write, extent, Hint(0)).into(), payload, issue)
    }

    #[inline(never)]
    pub fn read(&mut self, extent: Extent, data: Option<&mut [u8]>, issue: Issue) -> NamespaceResult<Token> {
        let payload = data.map_or(Payload::None, Payload::Read);
        self.submit(BlockCommand::new(Op::Read, extent, Hint(0)).into(), payload, issue)
    }

    pub fn flush(&mut self, issue: Issue) -> NamespaceResult<Token> {
        self.submit(Command::FLUSH, Payload::None, issue)
    }

    /// Resets or finishes the zone that begins at a byte.
    pub fn manage(&mut self, action: ZoneAction, start: u64, issue: Issue) -> NamespaceResult<Token> {
        let command = ZoneCommand::Manage { action, zone: Some(start) };
        self.submit(Command::Zone(command), Payload::None, issue)
    }

    /// Describes up to `room` zones from that of a byte on.
    pub fn report(&mut self, from: u64, room: u64, at: SimTime) -> NamespaceResult<Vec<Zone>> {
        let command = Command::Zone(ZoneCommand::Report { from, filter: ZoneFilter::All, room });
        match self.device.submit(0, command, Payload::None, at)?.reply {
            Reply::Zones(report) => Ok(report.zones),
            _ => Err(NamespaceError::NotSupported { command: "report zones" }),
        }
    }

    #[inline(always)]
    fn submit(&mut self, command: Command, payload: Payload<'_>, issue: Issue) -> NamespaceResult<Token> {
        match self.ask(command, payload, issue) {
            // Nothing to drop: the answer of all but reports.
            Ok(Answer { done, reply: Reply::Nothing }) => Ok(done),
            answer => Ok(answer?.done),
        }
    }

    #[inline(always)]
    fn ask(&mut self, command: Command, payload: Payload<'_>, issue: Issue) -> NamespaceResult<Answer> {
        let is_plain = issue.cause == Cause::Host && issue.after == Token::NONE;
        if !is_plain {
            self.issue(issue.cause, issue.after);
        }
        let answer = self.device.submit(0, command, payload, issue.at);
        if !is_plain {
            self.issue(Cause::Host, Token::NONE);
        }
        answer
    }

    /// The flash below.
    pub fn flash(&self) -> &dyn FlashState {
        self.device.inspect().layers.first().expect("it lies on flash").device()
    }

    /// Why the flash below takes no more writes.
    pub fn read_only(&self) -> Option<&'static str> {
        self.device.inspect().layers.first().and_then(FlashLayer::read_only)
    }

    /// Memory of the device below, in bytes.
    pub fn dram_bytes(&self) -> u64 {
        self.device.inspect().layers.first().map_or(0, |layer| layer.cost().dram_bytes)
    }

    #[inline]
    fn issue(&mut self, cause: Cause, after: Token) {
        let control = self.device.control();
        control.issue.expect("checked when the layer was built").issue(cause, after);
    }
}

/// Neighbouring bytes of a zone that one command reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub zone: u32,
    /// First byte in the zoned namespace, and in the payload.
    pub offset: u64,
    pub at: u64,
    pub len: u64,
}

/// A read of a host: what of it is next to each other on the zones is read together.
#[derive(Debug)]
pub(crate) struct Reading {
    run: Option<Run>,
    done: Token,
    issue: Issue,
}

impl Reading {
    pub const fn new(at: SimTime) -> Self {
        Self { run: None, done: Token::NONE, issue: Issue::new(at, Cause::Host) }
    }

    /// Reads the bytes of a run after those before it.
    #[inline]
    pub fn add<S: Subsystem>(
        &mut self,
        below: &mut Below<S>,
        next: Run,
        data: Option<&mut [u8]>,
    ) -> NamespaceResult<()> {
        let is_next = |run: &&mut Run| {
            run.zone == next.zone && run.offset + run.len == next.offset && run.at + run.len == next.at
        };
        if let Some(run) = self.run.as_mut().filter(is_next) {
            run.len += next.len;
            return Ok(());
        }
        let before = self.run.replace(next);
        self.read(below, before, data)
    }

    /// Completes when all is read.
    #[inline]
    pub fn end<S: Subsystem>(
        mut self,
        below: &mut Below<S>,
        data: Option<&mut [u8]>,
    ) -> NamespaceResult<Token> {
        let last = self.run.take();
        self.read(below, last, data)?;
        Ok(self.done)
    }

    #[inline]
    fn read<S: Subsystem>(
        &mut self,
        below: &mut Below<S>,
        run: Option<Run>,
        data: Option<&mut [u8]>,
    ) -> NamespaceResult<()> {
        let Some(run) = run else { return Ok(()) };
        let part = data.map(|data| &mut data[run.at as usize..][..run.len as usize]);
        let read = below.read(Extent::new(run.offset, run.len), part, self.issue)?;
        self.done = below.device.join(self.done, read);
        Ok(())
    }
}

/// Puts bytes of a host, or zeroes, over those of a unit that is written again; the unit's, if bytes are
/// kept.
pub(crate) fn overlay<'a>(
    unit: &'a mut [u8],
    start: usize,
    len: usize,
    data: Option<&[u8]>,
) -> Option<&'a [u8]> {
    if unit.is_empty() {
        return None;
    }
    let part = &mut unit[start..start + len];
    match data {
        Some(data) => part.copy_from_slice(data),
        None => part.fill(0),
    }
    Some(unit)
}

/// The zoned namespace of a subsystem, which must take commands with cause and order.
pub(crate) fn zoned<S: Subsystem>(
    layer: &'static str,
    below: &mut S,
) -> Result<(NamespaceInfo, ZoneShape), HostFtlError> {
    let lacks = |reason: String| HostFtlError::Device { layer, reason };
    if below.control().issue.is_none() {
        return Err(lacks("it takes no causes and no order of commands, as zoned namespaces do".to_owned()));
    }
    let info = below.namespaces().first().ok_or_else(|| lacks("it has no namespace".to_owned()))?;
    let zones = info.zones.ok_or_else(|| lacks(format!("namespace '{}' has no zones", info.name)))?;
    let page = u64::from(info.page_bytes);
    if !zones.capacity.is_multiple_of(page) || !zones.size.is_multiple_of(page) || page < 128 {
        return Err(lacks(format!(
            "its zones of {} bytes, {} of which can be written, are not whole pages of {page} bytes, at least 128",
            zones.size, zones.capacity
        )));
    }
    Ok((info.clone(), zones))
}

/// What a host is told of a page of a layer, or a unit, whose data could not be read when it was to be moved.
#[cold]
pub(crate) fn lost(lpn: Lpn) -> NamespaceError {
    FtlError::Flash(FlashError::Uncorrectable { page: Ppn(lpn.0) }).into()
}
