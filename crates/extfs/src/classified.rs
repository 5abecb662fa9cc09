//! A subsystem whose writes are given streams by what they hold (FStream at the device: [streams-article 2]).

use crate::kind::Kind;
use crate::live::LiveMap;
use crate::streams::KindStreams;
use nandscape_core::command::{HostCounts, Payload};
use nandscape_core::{
    Answer, BlockCommand, Clocked, Command, Extent, Hint, HostReports, Inspect, KindCount, KindReport,
    KindReports, Layered, NamespaceInfo, NamespaceResult, Op, SimTime, Submitted, Subsystem, Token,
};

/// Is told of every command as it is split by kind.
pub trait KindSink: Send {
    /// A part of a write, or a whole command of another kind (`Kind::Data` then).
    fn record(&mut self, namespace: u32, op: Op, extent: Extent, kind: Kind);

    /// Nothing follows for now: what was recorded is to be where it can be read.
    fn flush(&mut self);

    /// Why it has ended, if it has.
    fn error(&self) -> Option<String>;
}

#[derive(Debug)]
struct Space {
    map: LiveMap,
    counts: [(u64, u64); Kind::WRITTEN],
    /// What the subsystem below counted that no host asked for.
    own: HostCounts,
    read_errors: u64,
}

/// Looks at every write, learns from it what blocks hold, and gives it the stream of that. A write that spans
/// kinds of several streams is split, at pages of the device only, so that no page is programmed twice for
/// it: a page takes the stream of the kind that has most of its bytes.
pub struct Classified {
    inner: Box<dyn Subsystem + Send>,
    streams: KindStreams,
    offset: u64,
    spaces: Vec<Space>,
    sink: Option<Box<dyn KindSink>>,
    /// Parts of the write under way: bytes and kind.
    parts: Vec<(u64, Kind)>,
    pieces: Vec<(u64, Option<u16>)>,
}

impl Classified {
    /// Classifies what goes to `inner`. File systems begin at byte `offset` of each namespace; those that are
    /// there already are read.
    pub fn new(inner: Box<dyn Subsystem + Send>, streams: KindStreams, offset: u64) -> Self {
        let space = |info: &NamespaceInfo| Space {
            map: LiveMap::new(info.capacity_bytes.saturating_sub(offset)),
            counts: [(0, 0); Kind::WRITTEN],
            own: HostCounts::default(),
            read_errors: 0,
        };
        let spaces = inner.namespaces().iter().map(space).collect();
        let (parts, pieces) = (Vec::new(), Vec::new());
        let mut this = Self { inner, streams, offset, spaces, sink: None, parts, pieces };
        for (number, space) in (0..).zip(&mut this.spaces) {
            let (map, mut below) = space.over(&mut *this.inner, number, offset, SimTime::ZERO);
            map.attach(&mut |at, out| below.read(at, out));
        }
        this
    }

    /// Tells `sink` of every command from now on.
    pub fn record(&mut self, sink: Box<dyn KindSink>) {
        self.sink = Some(sink);
    }

    /// What is known of a namespace.
    pub fn map(&self, namespace: u32) -> &LiveMap {
        &self.spaces[namespace as usize].map
    }

    /// Learns from a write, and finds its parts.
    fn classify(&mut self, namespace: u32, extent: Extent, payload: &Payload<'_>, at: SimTime) {
        let space = &mut self.spaces[namespace as usize];
        let skip = self.offset.saturating_sub(extent.offset).min(extent.len);
        let place = extent.offset + skip - self.offset.min(extent.offset + skip);
        if let Payload::Write(data) = payload
            && skip < extent.len
        {
            let (map, mut below) = space.over(&mut *self.inner, namespace, self.offset, at);
            map.wrote(place, &data[skip as usize..], &mut |at, out| below.read(at, out));
        }
        self.parts.clear();
        if skip > 0 {
            self.parts.push((skip, Kind::Data));
        }
        let parts = &mut self.parts;
        if skip < extent.len {
            space.map.segments(place, extent.len - skip, |len, kind| match parts.last_mut() {
                Some((total, last)) if *last == kind => *total += len,
                _ => parts.push((len, kind)),
            });
        }
        let mut seen = 0_u32;
        for (len, kind) in &self.parts {
            let (writes, bytes) = &mut space.counts[*kind as usize];
            *bytes += len;
            if seen & 1 << *kind as u32 == 0 {
                seen |= 1 << *kind as u32;
                *writes += 1;
            }
        }
    }

    /// Cuts the write at pages where the stream changes.
    fn cut(&mut self, extent: Extent, page: u64) {
        self.pieces.clear();
        let stream = |kind| self.streams.of(kind);
        if self.parts.iter().all(|(_, kind)| stream(*kind) == stream(self.parts[0].1)) {
            self.pieces.push((extent.len, self.parts.first().and_then(|part| stream(part.1))));
            return;
        }
        let (mut part, mut used, mut at) = (0, 0, extent.offset);
        while at < extent.end() {
            let page_end = ((at / page + 1) * page).min(extent.end());
            // Of equal kinds the later one in number wins: metadata over data.
            let mut shares = [0_u64; Kind::WRITTEN];
            let mut left = page_end - at;
            while left > 0 {
                let (len, kind) = self.parts[part];
                let taken = left.min(len - used);
                shares[kind as usize] += taken;
                (left, used) = (left - taken, used + taken);
                if used == len {
                    (part, used) = (part + 1, 0);
                }
            }
            let most = (0..Kind::WRITTEN).max_by_key(|kind| shares[*kind]).unwrap_or(0);
            let chosen = self.streams.of(Kind::ALL[most]);
            match self.pieces.last_mut() {
                Some((len, last)) if *last == chosen => *len += page_end - at,
                _ => self.pieces.push((page_end - at, chosen)),
            }
            at = page_end;
        }
    }

    /// Tells the sink of a command that was done. One that was refused is not for a replay, which ends with
    /// the first that fails.
    fn note(&mut self, namespace: u32, command: BlockCommand) {
        let Some(sink) = &mut self.sink else { return };
        if command.op == Op::Write {
            let mut offset = command.extent.offset;
            for (len, kind) in &self.parts {
                sink.record(namespace, Op::Write, Extent::new(offset, *len), *kind);
                offset += len;
            }
        } else {
            sink.record(namespace, command.op, command.extent, Kind::Data);
        }
        if command.is_durable {
            sink.record(namespace, Op::Flush, Extent::new(0, 0), Kind::Data);
        }
    }

    /// A write, in as many pieces as it takes.
    fn write(
        &mut self,
        namespace: u32,
        command: BlockCommand,
        payload: Payload<'_>,
        at: SimTime,
    ) -> NamespaceResult<Token> {
        let extent = command.extent;
        self.classify(namespace, extent, &payload, at);
        let page = u64::from(self.inner.namespaces()[namespace as usize].page_bytes);
        self.cut(extent, page);
        if let [(_, stream)] = self.pieces[..] {
            let hint = stream.map_or(command.hint, Hint);
            let whole = BlockCommand { hint, ..command }.into();
            let answer = self.inner.submit(namespace, whole, payload, at)?;
            self.note(namespace, command);
            return Ok(answer.done);
        }
        let (mut token, mut done) = (Token::NONE, 0);
        for (len, stream) in &self.pieces {
            let hint = stream.map_or(command.hint, Hint);
            let piece = BlockCommand { hint, extent: Extent::new(extent.offset + done, *len), ..command };
            let part = match &payload {
                Payload::Write(data) => Payload::Write(&data[done as usize..(done + len) as usize]),
                _ => Payload::None,
            };
            let next = self.inner.submit(namespace, piece.into(), part, at)?.done;
            token = if done == 0 { next } else { self.inner.join(token, next) };
            let own = &mut self.spaces[namespace as usize].own;
            own.writes += u64::from(done > 0);
            own.flushes += u64::from(done > 0 && command.is_durable);
            done += len;
        }
        self.note(namespace, command);
        Ok(token)
    }
}

/// Reads of our own.
struct Below<'a> {
    inner: &'a mut dyn Subsystem,
    namespace: u32,
    offset: u64,
    at: SimTime,
    own: &'a mut HostCounts,
    errors: &'a mut u64,
}

impl Space {
    /// The map, and what reads below it.
    fn over<'a>(
        &'a mut self,
        inner: &'a mut dyn Subsystem,
        namespace: u32,
        offset: u64,
        at: SimTime,
    ) -> (&'a mut LiveMap, Below<'a>) {
        let below = Below { inner, namespace, offset, at, own: &mut self.own, errors: &mut self.read_errors };
        (&mut self.map, below)
    }
}

impl Below<'_> {
    fn read(&mut self, offset: u64, out: &mut [u8]) -> Result<(), String> {
        let extent = Extent::new(self.offset + offset, out.len() as u64);
        let page_bytes = self.inner.namespaces()[self.namespace as usize].page_bytes;
        let command = BlockCommand::new(Op::Read, extent, Hint::default());
        self.own.count(command, page_bytes);
        let submitted = self.inner.submit(self.namespace, command.into(), Payload::Read(out), self.at);
        *self.errors += u64::from(submitted.is_err());
        submitted.map(drop).map_err(|error| error.to_string())
    }
}

nandscape_core::no_state!(impl [] Classified: "the classification of ext4 blocks (extfs)");

impl Layered for Classified {
    fn below(&self) -> &dyn Subsystem {
        &*self.inner
    }

    fn below_mut(&mut self) -> &mut dyn Subsystem {
        &mut *self.inner
    }

    fn submit(&mut self, namespace: u32, command: Command, payload: Payload<'_>, at: SimTime) -> Submitted {
        let command = match command {
            Command::Block(command) => command,
            other => return self.inner.submit(namespace, other, payload, at),
        };
        let extent = command.extent;
        let is_inside = extent.end() <= self.inner.namespaces()[namespace as usize].capacity_bytes;
        if !is_inside {
            // Refused below; nothing is learned from it.
            return self.inner.submit(namespace, command.into(), payload, at);
        }
        if command.op == Op::Write && extent.len > 0 {
            return self.write(namespace, command, payload, at).map(Answer::from);
        }
        if matches!(command.op, Op::Trim | Op::WriteZeroes) && extent.end() > self.offset {
            let start = extent.offset.max(self.offset);
            let map = &mut self.spaces[namespace as usize].map;
            map.discarded(start - self.offset, extent.end() - start);
        }
        let answer = self.inner.submit(namespace, command.into(), payload, at)?;
        self.note(namespace, command);
        Ok(answer)
    }

    fn before_shutdown(&mut self) {
        if let Some(sink) = &mut self.sink {
            sink.flush();
        }
    }

    fn inspect(&self) -> Inspect<'_> {
        Inspect { hosts: Some(self), kinds: Some(self), ..self.inner.inspect() }
    }

    fn counters_were_reset(&mut self) {
        for space in &mut self.spaces {
            space.counts.fill((0, 0));
            (space.own, space.read_errors) = (HostCounts::default(), 0);
        }
    }
}

impl Clocked for Classified {
    nandscape_core::delegate_clock!(self, self.inner);
}

impl HostReports for Classified {
    fn host_counts(&self, namespace: u32) -> HostCounts {
        let counts = self.inner.inspect().host_counts(namespace);
        let own = &self.spaces[namespace as usize].own;
        HostCounts {
            reads: counts.reads - own.reads,
            writes: counts.writes - own.writes,
            flushes: counts.flushes - own.flushes,
            read_bytes: counts.read_bytes - own.read_bytes,
            read_pages: counts.read_pages - own.read_pages,
            ..counts
        }
    }
}

impl KindReports for Classified {
    fn kinds(&self, namespace: u32) -> KindReport {
        let space = &self.spaces[namespace as usize];
        let count = |(kind, (writes, bytes)): (&Kind, &(u64, u64))| KindCount {
            kind: kind.name(),
            stream: self.streams.of(*kind).unwrap_or(0),
            writes: *writes,
            bytes: *bytes,
        };
        KindReport {
            file_system: space.map.superblock().map(crate::Superblock::summary),
            kinds: Kind::ALL.iter().zip(&space.counts).map(count).collect(),
            read_bytes: space.own.read_bytes,
            read_errors: space.read_errors,
            recording_error: self.sink.as_ref().and_then(|sink| sink.error()),
        }
    }
}
