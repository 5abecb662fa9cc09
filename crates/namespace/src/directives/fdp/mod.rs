//! Flexible data placement of one endurance group: reclaim unit handles, what a write's placement identifier
//! means, log pages, events and statistics.
//!
//! The layer has a log for every reclaim group and handle (log = group x NRUH + handle), whose pieces are the
//! reclaim units. A handle moves to another unit when its own is full, or when the host says so.
//!
//! What the standard leaves open: writes without a directive, or with an invalid identifier, go to placement
//! handle 0, in all groups in turn. Media bytes are bytes really programmed; the part of a reclaim unit that
//! was not written when the host moved the handle on is counted beside them, or as media bytes too with
//! [`Tail::AsMedia`], as QEMU does.

mod config;
mod events;
mod pid;

pub use config::{FdpConfiguration, HANDLES_MAX, Isolation, encode_configurations};
pub use events::{Event, EventLog, EventType, Filter, KEPT};
pub use pid::PidFormat;

use super::streams::{Route, Written};
use nandscape_core::{LogStatus, NvmeResult, NvmeStatus, SimTime, state};

pub(super) const LOG_CONFIGURATIONS: u8 = 0x20;
pub(super) const LOG_USAGE: u8 = 0x21;
pub(super) const LOG_STATISTICS: u8 = 0x22;
pub(super) const LOG_EVENTS: u8 = 0x23;

/// What the unwritten part of a reclaim unit counts as when the host moves its handle on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tail {
    /// Nothing was programmed, so nothing was written.
    #[default]
    Unwritten,
    /// As if it had been programmed.
    AsMedia,
}

/// Bytes that the medium of an endurance group has taken part in, since any moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MediaBytes {
    /// Programmed, whatever the cause.
    pub written: u64,
    /// Erased.
    pub erased: u64,
}

/// Log page 22h.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Host bytes written (HBMW).
    pub host: u64,
    /// Media bytes written (MBMW).
    pub media: u64,
    /// Media bytes erased (MBE).
    pub erased: u64,
}

impl Statistics {
    /// Device-level write amplification; `None` without host writes.
    pub fn dlwa(&self) -> Option<f64> {
        (self.host > 0).then(|| self.media as f64 / self.host as f64)
    }

    /// The log page: three numbers of 16 bytes, the rest reserved.
    pub fn encode(&self) -> [u8; 64] {
        let mut out = [0; 64];
        for (at, value) in [self.host, self.media, self.erased].into_iter().enumerate() {
            out[16 * at..16 * at + 8].copy_from_slice(&value.to_le_bytes());
        }
        out
    }
}

/// Who chose the namespaces' reclaim unit handles (log page 21h).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Usage {
    /// No namespace uses the handle.
    #[default]
    Unused = 0,
    /// A host named it when it created a namespace.
    Host = 1,
    /// The controller chose it for a namespace.
    Controller = 2,
}

/// What was written by a handle in a group.
#[derive(Clone, Copy, Debug, Default)]
struct Writes {
    written: Written,
    namespace: u32,
}

/// Placement handles of one namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlacementHandles {
    /// Reclaim unit handle of each.
    pub units: Vec<u16>,
    /// Who chose them.
    pub usage: Usage,
    /// The Data Placement directive is enabled.
    pub is_enabled: bool,
}

/// Flexible data placement of an endurance group.
#[derive(Debug)]
pub struct Fdp {
    pub(super) configurations: Vec<FdpConfiguration>,
    active: Option<u8>,
    tail: Tail,
    /// Of each handle.
    filters: Vec<Filter>,
    /// To each log.
    writes: Vec<Writes>,
    /// Group of the next write without a valid identifier.
    turn: u16,
    /// Some handle has [`EventType::MediaReallocated`] enabled.
    pub(super) wants_moves: bool,
    pub(super) host_events: EventLog,
    pub(super) controller_events: EventLog,
    host_bytes: u64,
    pub(super) left_bytes: u64,
    /// Without a valid identifier.
    pub(super) unplaced_bytes: u64,
    pub(super) invalid_pids: u64,
    base: MediaBytes,
}

state!(impl [] Fdp {
    saved: turn, wants_moves, host_events, controller_events, host_bytes, left_bytes, unplaced_bytes, invalid_pids, base;
    tables: writes;
    fixed: configurations, active, tail, filters;
});

state!(impl [] Writes { saved: written, namespace; });
state!(impl [] MediaBytes { saved: written, erased; });

impl Fdp {
    /// Disabled, with at least one configuration to choose from.
    pub fn new(configurations: Vec<FdpConfiguration>, tail: Tail) -> Self {
        assert!(!configurations.is_empty(), "a group with flexible data placement has a configuration");
        for configuration in &configurations {
            assert_eq!(configuration.problem(), None, "{configuration:?}");
        }
        Self {
            configurations,
            active: None,
            tail,
            filters: Vec::new(),
            writes: Vec::new(),
            turn: 0,
            wants_moves: false,
            host_events: EventLog::default(),
            controller_events: EventLog::default(),
            host_bytes: 0,
            left_bytes: 0,
            unplaced_bytes: 0,
            invalid_pids: 0,
            base: MediaBytes::default(),
        }
    }

    /// The configuration that is in force, if one is.
    pub fn active(&self) -> Option<&FdpConfiguration> {
        self.active.map(|index| &self.configurations[usize::from(index)])
    }

    pub(super) fn enabled(&self) -> NvmeResult<&FdpConfiguration> {
        self.active().ok_or(NvmeStatus::FdpDisabled)
    }

    /// Feature 1Dh: enable bit and configuration index.
    pub(super) fn feature(&self) -> u32 {
        self.active.map_or(0, |index| 1 | u32::from(index) << 8)
    }

    /// Sets feature 1Dh of a group without namespaces. Events and statistics start anew.
    pub(super) fn set_feature(&mut self, cdw12: u32, media: MediaBytes) -> NvmeResult<()> {
        let index = (cdw12 >> 8) as u8;
        if cdw12 & 1 == 0 {
            self.active = None;
            (self.filters, self.writes) = (Vec::new(), Vec::new());
        } else {
            let configuration =
                self.configurations.get(usize::from(index)).ok_or(NvmeStatus::InvalidField)?;
            self.filters = vec![Filter::default(); configuration.handles.len()];
            self.writes = vec![Writes::default(); configuration.logs()];
            self.active = Some(index);
        }
        self.turn = 0;
        self.wants_moves = false;
        (self.host_events, self.controller_events) = (EventLog::default(), EventLog::default());
        self.reset_counts(media);
        Ok(())
    }

    /// Statistics start anew; logged events stay.
    pub(super) fn reset_counts(&mut self, media: MediaBytes) {
        (self.host_bytes, self.left_bytes, self.unplaced_bytes, self.invalid_pids) = (0, 0, 0, 0);
        self.base = media;
        for log in &mut self.writes {
            log.written = Written::default();
        }
    }

    /// Checks the placement handle list of a new namespace. An empty list means one handle, number 0.
    pub(super) fn placement_handles(&self, list: &[u16]) -> NvmeResult<PlacementHandles> {
        let configuration = self.enabled()?;
        let is_wrong = |(at, unit): (usize, &u16)| {
            usize::from(*unit) >= configuration.handles.len() || list[..at].contains(unit)
        };
        let most = usize::from(configuration.placement_handles);
        if list.len() > most || list.iter().enumerate().any(is_wrong) {
            return Err(NvmeStatus::InvalidPlacementHandleList);
        }
        let (list, usage) = if list.is_empty() { (&[0][..], Usage::Controller) } else { (list, Usage::Host) };
        Ok(PlacementHandles { units: list.to_vec(), usage, is_enabled: true })
    }

    /// Reclaim group, reclaim unit handle of a placement identifier, if it is valid for a namespace.
    #[inline]
    fn place(&self, namespace: &PlacementHandles, pid: u16) -> Option<(u16, u16)> {
        let configuration = self.active()?;
        let (group, handle) = configuration.format.decode(pid);
        let unit = *namespace.units.get(usize::from(handle))?;
        (group < configuration.groups).then_some((group, unit))
    }

    /// Where a write goes. `pid` is `None` for a write without the directive.
    #[inline]
    pub(super) fn route(
        &mut self,
        namespace: u32,
        handles: &PlacementHandles,
        pid: Option<u16>,
        bytes: u64,
        at: SimTime,
    ) -> Route {
        let pid = pid.filter(|_| handles.is_enabled);
        let place = pid.and_then(|pid| self.place(handles, pid));
        let (group, unit) = place.unwrap_or_else(|| {
            self.unplaced_bytes += bytes;
            let groups = self.active().map_or(1, |configuration| configuration.groups);
            let group = self.turn;
            self.turn = if group + 1 < groups { group + 1 } else { 0 };
            (group, handles.units[0])
        });
        if let (Some(pid), None) = (pid, place) {
            self.invalid_pid(namespace, unit, pid, at);
        }
        self.host_bytes += bytes;
        let log = self.active().map_or(0, |configuration| configuration.log(group, unit));
        let writes = &mut self.writes[usize::from(log)];
        writes.written.bytes += bytes;
        writes.written.writes += 1;
        writes.namespace = namespace;
        Route { log, renew: false }
    }

    #[cold]
    fn invalid_pid(&mut self, namespace: u32, unit: u16, pid: u16, at: SimTime) {
        self.invalid_pids += 1;
        if self.filters[usize::from(unit)].has(EventType::InvalidPid) {
            let event = Event::new(EventType::InvalidPid, at);
            self.host_events.push(Event { pid: Some(pid), nsid: Some(namespace + 1), ..event });
        }
    }

    /// Reclaim unit handle update: group, handle and log of each listed placement identifier.
    pub(super) fn update_list(
        &self,
        handles: &PlacementHandles,
        pids: &[u16],
    ) -> NvmeResult<Vec<(u16, u16, u16)>> {
        let configuration = self.enabled()?;
        pids.iter()
            .map(|pid| {
                let (group, unit) = self.place(handles, *pid).ok_or(NvmeStatus::InvalidField)?;
                Ok((group, unit, configuration.log(group, unit)))
            })
            .collect()
    }

    /// The host moved a handle on and left so many bytes unwritten.
    pub(super) fn moved_on(&mut self, namespace: u32, pid: u16, place: (u16, u16), left: u64, at: SimTime) {
        if left == 0 {
            return;
        }
        self.left_bytes += left;
        let (group, unit) = place;
        if self.filters[usize::from(unit)].has(EventType::NotFullyWritten) {
            let (pid, nsid, place) = (Some(pid), Some(namespace + 1), Some((group, unit as u8)));
            self.host_events.push(Event { pid, nsid, place, ..Event::new(EventType::NotFullyWritten, at) });
        }
    }

    /// Garbage collection moved so many logical blocks.
    pub(super) fn media_moved(&mut self, blocks: u64, at: SimTime) {
        let moved_blocks = blocks.min(u64::from(u16::MAX)) as u16;
        self.controller_events.push(Event { moved_blocks, ..Event::new(EventType::MediaReallocated, at) });
    }

    /// Reclaim unit handle status of a namespace, by placement handle and group. `status` is that of a log.
    pub(super) fn encode_status(
        &self,
        handles: &PlacementHandles,
        block_bytes: u64,
        status: &dyn Fn(u16) -> LogStatus,
    ) -> NvmeResult<Vec<u8>> {
        let configuration = self.enabled()?;
        let mut out = vec![0; 16];
        let mut count = 0u16;
        for (handle, unit) in handles.units.iter().enumerate() {
            for group in 0..configuration.groups {
                let pid =
                    configuration.format.encode(group, handle as u16).ok_or(NvmeStatus::InternalError)?;
                let LogStatus { piece_bytes, room_bytes, .. } = status(configuration.log(group, *unit));
                // A handle without a unit, or with a full one, gets a whole one with its next write.
                let room = if room_bytes == 0 { piece_bytes } else { room_bytes };
                let mut descriptor = [0; 32];
                descriptor[0..2].copy_from_slice(&pid.to_le_bytes());
                descriptor[2..4].copy_from_slice(&unit.to_le_bytes());
                descriptor[8..16].copy_from_slice(&(room / block_bytes).to_le_bytes());
                out.extend_from_slice(&descriptor);
                count += 1;
            }
        }
        out[14..16].copy_from_slice(&count.to_le_bytes());
        Ok(out)
    }

    /// Log page 21h, from the placement handles of the group's namespaces.
    pub(super) fn encode_usage<'a>(
        &self,
        namespaces: impl Iterator<Item = &'a PlacementHandles>,
    ) -> NvmeResult<Vec<u8>> {
        let count = self.enabled()?.handles.len();
        let mut usage = vec![Usage::Unused; count];
        for handles in namespaces {
            for unit in &handles.units {
                let entry = &mut usage[usize::from(*unit)];
                // What a host named stays so, also if the controller chose it for another namespace.
                if *entry != Usage::Host {
                    *entry = handles.usage;
                }
            }
        }
        let mut out = vec![0; 8 + 8 * count];
        out[0..2].copy_from_slice(&(count as u16).to_le_bytes());
        for (at, usage) in usage.into_iter().enumerate() {
            out[8 + 8 * at] = usage as u8;
        }
        Ok(out)
    }

    /// Log page 23h, of events that the host or that the controller caused.
    pub(super) fn encode_events(&self, of_host: bool) -> NvmeResult<Vec<u8>> {
        self.enabled()?;
        Ok(if of_host { self.host_events.encode() } else { self.controller_events.encode() })
    }

    /// Enables or disables event types of a placement handle; nothing changes unless all of them exist.
    pub(super) fn set_events(
        &mut self,
        handles: &PlacementHandles,
        handle: u16,
        types: &[u8],
        enable: bool,
    ) -> NvmeResult<()> {
        self.enabled()?;
        let unit = *handles.units.get(usize::from(handle)).ok_or(NvmeStatus::InvalidField)?;
        let types: Option<Vec<EventType>> = types.iter().map(|code| EventType::from_code(*code)).collect();
        for event in types.ok_or(NvmeStatus::InvalidField)? {
            self.filters[usize::from(unit)].set(event, enable);
        }
        self.wants_moves = self.filters.iter().any(|filter| filter.has(EventType::MediaReallocated));
        Ok(())
    }

    /// Supported event types of a placement handle and whether they are enabled, two bytes each.
    pub(super) fn encode_event_types(&self, handles: &PlacementHandles, handle: u16) -> NvmeResult<Vec<u8>> {
        self.enabled()?;
        let unit = *handles.units.get(usize::from(handle)).ok_or(NvmeStatus::InvalidField)?;
        let filter = self.filters[usize::from(unit)];
        Ok(EventType::ALL.iter().flat_map(|event| [event.code(), u8::from(filter.has(*event))]).collect())
    }

    /// Statistics; `media` is counted from the same moment as that which the last reset was given.
    pub(super) fn statistics(&self, media: MediaBytes) -> Statistics {
        let tail = if self.tail == Tail::AsMedia { self.left_bytes } else { 0 };
        Statistics {
            host: self.host_bytes,
            media: media.written - self.base.written + tail,
            erased: media.erased - self.base.erased,
        }
    }

    /// Namespace that wrote last and what was written, of every log that was.
    pub(super) fn written(&self) -> impl Iterator<Item = (u16, u32, Written)> + '_ {
        let written = (0..).zip(&self.writes).filter(|(_, log)| log.written.writes > 0);
        written.map(|(log, writes)| (log, writes.namespace, writes.written))
    }
}
