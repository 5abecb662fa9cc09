//! What the file system is to hosts and reports.

use super::sections::State;
use super::{F2fs, Kind};
use nandscape_core::command::{HostCounts, Payload};
use nandscape_core::zone::{Zone, ZoneContents, ZoneCounts, ZoneOwner, ZoneShape};
use nandscape_core::{
    Allocation, BlockCommand, Clocked, Command, Control, Extent, Hint, HostReports, Inspect, NamespaceError,
    NamespaceInfo, NamespaceResult, ObjectFlashReport, ObjectReport, ObjectReports, Op, SimTime, Submitted,
    Subsystem, Token, ZoneReports,
};

/// The first log of nodes.
const NODE_LOGS: usize = Kind::HotNode as usize;

nandscape_core::no_state!(impl [] F2fs: "f2fs");

impl Subsystem for F2fs {
    fn namespaces(&self) -> &[NamespaceInfo] {
        &self.infos
    }

    /// Objects have no addresses that could be looked up ahead.
    fn prepare(&self, _: u32, _: Op, _: Extent) {}

    #[inline]
    fn submit(&mut self, _: u32, command: Command, _: Payload<'_>, at: SimTime) -> Submitted {
        match command {
            Command::Object(command) => self.object(command, at),
            Command::Block(BlockCommand { op: Op::Flush, .. }) => Ok(self.flush(None, at)?.into()),
            command => Err(NamespaceError::NotSupported { command: command.name() }),
        }
    }

    #[inline]
    fn join(&mut self, a: Token, b: Token) -> Token {
        self.volume.device.join(a, b)
    }

    fn idle(&mut self, at: SimTime, until: SimTime) -> NamespaceResult<()> {
        if self.stopped.is_none() {
            self.clean_in_background(at, until)?;
        }
        self.volume.device.idle(at, until)
    }

    fn shutdown(&mut self, at: SimTime) -> NamespaceResult<Token> {
        let done = if self.stopped.is_none() { self.checkpoint(at)? } else { Token::NONE };
        let below = self.volume.device.shutdown(at)?;
        Ok(self.volume.device.join(done, below))
    }

    /// Objects have no addresses of which something could be known.
    fn allocation(&self, _: u32, extent: Extent) -> Allocation {
        Allocation { is_mapped: true, bytes: extent.len }
    }

    fn inspect(&self) -> Inspect<'_> {
        let below = self.volume.device.inspect();
        let host_bytes = below.host_bytes + self.memory();
        let zones = below.zones.is_some().then_some(self as &dyn ZoneReports);
        Inspect { hosts: Some(self), objects: Some(self), host_bytes, zones, ..below }
    }

    fn control(&mut self) -> Control<'_> {
        Control::default()
    }

    fn reset_counters(&mut self, at: SimTime) {
        self.volume.device.reset_counters(at);
        (self.hosts, self.stats) = (HostCounts::default(), ObjectReport::default());
        // Tokens and times from before mean nothing once time starts anew.
        self.pace = Token::NONE;
        self.next_checkpoint = SimTime(at.0.saturating_add(self.config.checkpoint_ns));
    }

    fn check_invariants(&self) {
        self.check();
        self.volume.device.check_invariants();
    }
}

impl Clocked for F2fs {
    nandscape_core::delegate_clock!(self, self.volume.device);
}

impl HostReports for F2fs {
    fn host_counts(&self, _: u32) -> HostCounts {
        self.hosts
    }
}

impl F2fs {
    fn zones_below(&self) -> &dyn ZoneReports {
        self.volume.device.inspect().zones.expect("asked only where there are zones")
    }
}

impl ZoneReports for F2fs {
    fn zone_shape(&self, _: u32) -> ZoneShape {
        self.zones_below().zone_shape(0)
    }

    fn zone(&self, _: u32, zone: u32) -> Zone {
        self.zones_below().zone(0, zone)
    }

    /// A zone is a section, if it is not one of the first, in which the metadata are.
    fn contents(&self, _: u32, zone: u32) -> ZoneContents {
        let section = zone.checked_sub(self.zone_shape(0).conventional);
        let Some(info) = section.and_then(|section| self.sections.infos.get(section as usize)) else {
            return ZoneContents { owner: Some(ZoneOwner::Metadata), ..ZoneContents::default() };
        };
        let valid_bytes = Some(u64::from(info.valid) * self.config.layout.block);
        if info.state == State::Free {
            return ZoneContents { valid_bytes, ..ZoneContents::default() };
        }
        let log = usize::from(info.log);
        let owner = if log < NODE_LOGS { ZoneOwner::Data } else { ZoneOwner::Nodes };
        // Hot, warm and cold.
        let hint = [Hint::SHORT, Hint::MEDIUM, Hint::EXTREME][log % NODE_LOGS];
        ZoneContents { valid_bytes, owner: Some(owner), lifetime: Some(ZoneContents::lifetime_of(hint)) }
    }

    fn zone_counts(&self, _: u32) -> ZoneCounts {
        self.zones_below().zone_counts(0)
    }
}

impl ObjectReports for F2fs {
    fn on_flash(&self) -> Option<ObjectFlashReport> {
        None
    }

    fn objects(&self) -> ObjectReport {
        let (layout, files) = (&self.config.layout, self.nodes.files());
        let mut extents = 0;
        for file in &files {
            let blocks = self.nodes.file(*file).size.div_ceil(layout.block) as u32;
            let counted = self.nodes.each_run(layout, *file, (0, blocks), |_, _, _| {
                extents += 1;
                Ok(())
            });
            counted.expect("counting does not fail");
        }
        ObjectReport {
            objects: files.len() as u64,
            extents,
            live_bytes: files.iter().map(|file| self.nodes.file(*file).blocks).sum::<u64>() * layout.block,
            used_bytes: self.sections.used_blocks() * layout.block,
            ..self.stats
        }
    }
}

impl F2fs {
    /// Memory of the host that f2fs needs besides its page cache: for each segment its bits twice and some
    /// 32 B, 16 B for each node whose place is known, and a block for the summaries of each log.
    fn memory(&self) -> u64 {
        let layout = &self.config.layout;
        let segment = 2 * u64::from(layout.segment_blocks.div_ceil(8)) + 32;
        layout.segments() * segment + self.nodes.count * 16 + u64::from(self.config.logs) * layout.block
    }
}
