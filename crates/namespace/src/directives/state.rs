//! State of a subsystem's directives, and Directive Send and Receive.

use super::fdp::{Fdp, MediaBytes, PlacementHandles};
use super::identify::IdentifyParameters;
use super::streams::{Route, Streams, StreamsConfig, encode_status};
use super::wire::{
    BROADCAST, DATA_PLACEMENT, DirectiveCommand, IDENTIFY, OACS_DIRECTIVES, STREAMS, WriteDirective, transfer,
};
use nandscape_core::{
    Archive, LogStatus, NamespaceResult, NvmeReply, NvmeResult, NvmeStatus, SimTime, State, StateResult,
};

/// A Host Identifier; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostId(pub u128);

/// A connected controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControllerId(u16);

/// The translation layers below, as directives need them.
pub trait Logs {
    /// Where a log of a set stands.
    fn log_status(&self, set: u16, log: u16) -> LogStatus;

    /// The log begins a new piece with its next write; gives the bytes left unwritten.
    fn renew_log(&mut self, set: u16, log: u16) -> NamespaceResult<u64>;

    /// What the medium of a set has written and erased, since any moment.
    fn media(&self, set: u16) -> MediaBytes;
}

/// Shape of a subsystem.
#[derive(Debug)]
pub struct DirectivesConfig {
    /// Namespaces there can be, from 1.
    pub namespaces: u32,
    /// Hosts there can be, from 1. A controller without a Host Identifier is a host of its own.
    pub hosts: u16,
    /// Bytes of a logical block.
    pub block_bytes: u32,
    /// Endurance group of every NVM set.
    pub sets: Vec<u16>,
    /// The Streams directive, if the device has it.
    pub streams: Option<StreamsConfig>,
    /// Flexible data placement of every endurance group that has it.
    pub groups: Vec<Option<Fdp>>,
}

#[derive(Debug)]
struct Controller {
    host: u16,
    is_enabled: bool,
}

#[derive(Debug)]
pub(super) struct ActiveNamespace {
    pub group: u16,
    pub set: u16,
    is_write_protected: bool,
    /// In a group with flexible data placement.
    pub handles: Option<PlacementHandles>,
}

/// Directives of an NVM subsystem.
#[derive(Debug)]
pub struct Directives {
    pub(super) block_bytes: u32,
    controllers: Vec<Option<Controller>>,
    /// Host Identifier of every host that has a controller.
    hosts: Vec<Option<HostId>>,
    namespaces_max: u32,
    pub(super) namespaces: Vec<Option<ActiveNamespace>>,
    pub(super) streams: Option<Streams>,
    pub(super) sets: Vec<u16>,
    pub(super) groups: Vec<Option<Fdp>>,
    /// Bytes written outside streams.
    pub(super) unstreamed_bytes: u64,
    /// Bytes left unwritten in pieces that streams left.
    pub(super) left_bytes: u64,
}

impl State for Directives {
    fn state(&mut self, archive: &mut Archive<'_>) -> StateResult {
        // Controllers, hosts and namespaces change by commands that administer, which no workload has.
        let Self {
            block_bytes: _,
            controllers: _,
            hosts: _,
            namespaces_max: _,
            namespaces: _,
            streams,
            sets: _,
            groups,
            unstreamed_bytes,
            left_bytes,
        } = self;
        archive.part(streams)?;
        groups.iter_mut().try_for_each(|group| archive.part(group))?;
        unstreamed_bytes.state(archive)?;
        left_bytes.state(archive)
    }
}

impl Directives {
    /// A subsystem without controllers and namespaces, with every directive disabled.
    pub fn new(config: DirectivesConfig) -> Self {
        assert!(config.namespaces > 0 && config.hosts > 0 && config.block_bytes > 0, "an empty subsystem");
        for group in &config.sets {
            assert!(usize::from(*group) < config.groups.len(), "endurance group {group} of a set");
        }
        let sets = config.sets.len() as u16;
        Self {
            block_bytes: config.block_bytes,
            controllers: Vec::new(),
            hosts: vec![None; usize::from(config.hosts)],
            namespaces_max: config.namespaces,
            namespaces: Vec::new(),
            streams: config.streams.map(|streams| Streams::new(streams, config.hosts, sets)),
            sets: config.sets,
            groups: config.groups,
            unstreamed_bytes: 0,
            left_bytes: 0,
        }
    }

    /// Bits of OACS that come from here: [`OACS_DIRECTIVES`] or none.
    pub fn oacs(&self) -> u16 {
        if self.has_directives() { OACS_DIRECTIVES } else { 0 }
    }

    fn has_directives(&self) -> bool {
        self.streams.is_some() || self.groups.iter().any(Option::is_some)
    }

    /// Connects a controller for a host. `None` if there are as many hosts as there can be.
    pub fn connect(&mut self, id: HostId) -> Option<ControllerId> {
        let known = self.hosts.iter().position(|host| id != HostId(0) && *host == Some(id));
        let host = known.or_else(|| self.hosts.iter().position(Option::is_none))?;
        self.hosts[host] = Some(id);
        let controller = Some(Controller { host: host as u16, is_enabled: true });
        let at = self.controllers.iter().position(Option::is_none).unwrap_or(self.controllers.len());
        self.controllers.resize_with(self.controllers.len().max(at + 1), || None);
        self.controllers[at] = controller;
        Some(ControllerId(at as u16))
    }

    #[inline]
    fn host(&self, id: ControllerId) -> u16 {
        self.controllers[usize::from(id.0)].as_ref().expect("a connected controller").host
    }

    /// Controller level reset. Disables streams of its host unless another controller of it is enabled.
    pub fn reset_controller(&mut self, id: ControllerId) {
        let host = self.host(id);
        self.controllers[usize::from(id.0)].as_mut().expect("a connected controller").is_enabled = false;
        let mut of_host = self.controllers.iter().flatten().filter(|other| other.host == host);
        if of_host.any(|other| other.is_enabled) {
            return;
        }
        if let Some(streams) = &mut self.streams {
            for namespace in 0..self.namespaces.len() as u32 {
                streams.disable(namespace, host);
            }
        }
    }

    /// The controller is enabled again after a reset.
    pub fn enable_controller(&mut self, id: ControllerId) {
        self.controllers[usize::from(id.0)].as_mut().expect("a connected controller").is_enabled = true;
    }

    /// The controller goes away.
    pub fn disconnect(&mut self, id: ControllerId) {
        self.reset_controller(id);
        let host = self.host(id);
        self.controllers[usize::from(id.0)] = None;
        if !self.controllers.iter().flatten().any(|other| other.host == host) {
            self.hosts[usize::from(host)] = None;
        }
    }

    /// Creates a namespace in a set; gives its id. Reclaim unit handles are for groups with data placement.
    pub fn create_namespace(&mut self, set: u16, list: &[u16]) -> NvmeResult<u32> {
        let group = *self.sets.get(usize::from(set)).ok_or(NvmeStatus::InvalidField)?;
        let fdp = self.groups[usize::from(group)].as_ref();
        let handles = match fdp.and_then(|fdp| fdp.active().map(|active| (fdp, active))) {
            None if list.is_empty() => None,
            None => return Err(NvmeStatus::FdpDisabled),
            Some((fdp, active)) => {
                if self.in_group(group).count() >= active.namespaces as usize {
                    return Err(NvmeStatus::NamespaceIdUnavailable);
                }
                Some(fdp.placement_handles(list)?)
            }
        };
        let at = self.namespaces.iter().position(Option::is_none).unwrap_or(self.namespaces.len());
        if at >= self.namespaces_max as usize {
            return Err(NvmeStatus::NamespaceIdUnavailable);
        }
        let namespace = Some(ActiveNamespace { group, set, is_write_protected: false, handles });
        self.namespaces.resize_with(self.namespaces.len().max(at + 1), || None);
        self.namespaces[at] = namespace;
        if let Some(streams) = &mut self.streams {
            streams.add_namespace(at as u32);
        }
        Ok(at as u32 + 1)
    }

    pub(super) fn in_group(&self, group: u16) -> impl Iterator<Item = &ActiveNamespace> {
        self.namespaces.iter().flatten().filter(move |namespace| namespace.group == group)
    }

    /// Index of a namespace id. An impossible id and one that is possible but not active differ in status.
    pub(super) fn index(&self, nsid: u32) -> NvmeResult<u32> {
        if nsid == 0 || nsid > self.namespaces_max {
            return Err(NvmeStatus::InvalidNamespace);
        }
        match self.namespaces.get(nsid as usize - 1) {
            Some(Some(_)) => Ok(nsid - 1),
            _ => Err(NvmeStatus::InvalidField),
        }
    }

    pub(super) fn active(&self, namespace: u32) -> &ActiveNamespace {
        self.namespaces[namespace as usize].as_ref().expect("an active namespace")
    }

    /// Deletes a namespace: its streams, resources and enable states go.
    pub fn delete_namespace(&mut self, nsid: u32) -> NvmeResult<()> {
        let namespace = self.index(nsid)?;
        if let Some(streams) = &mut self.streams {
            streams.remove_namespace(namespace);
        }
        self.namespaces[namespace as usize] = None;
        Ok(())
    }

    /// Format NVM: every open id of the namespace is released. Directives stay enabled, and allocations stay.
    pub fn format_namespace(&mut self, nsid: u32) -> NvmeResult<()> {
        let namespace = self.index(nsid)?;
        if let Some(streams) = &mut self.streams {
            streams.release_ids(namespace);
        }
        Ok(())
    }

    /// Write protection, which releases ids and resources and refuses new ones until it is taken away.
    pub fn write_protect(&mut self, nsid: u32, protect: bool) -> NvmeResult<()> {
        let namespace = self.index(nsid)?;
        let active = self.namespaces[namespace as usize].as_mut().expect("an active namespace");
        active.is_write_protected = protect;
        if let (true, Some(streams)) = (protect, &mut self.streams) {
            streams.release_namespace(namespace);
        }
        Ok(())
    }

    /// Whether the device has streams and the namespace's group has no flexible data placement.
    fn can_stream(&self, namespace: u32) -> bool {
        self.streams.is_some() && self.active(namespace).handles.is_none()
    }

    /// Directive Send.
    pub fn send(&mut self, controller: ControllerId, command: &DirectiveCommand) -> NvmeResult<NvmeReply> {
        if !self.has_directives() {
            return Err(NvmeStatus::InvalidOpcode);
        }
        let host = self.host(controller);
        match (command.dtype, command.doper) {
            (IDENTIFY, 0x01) => self.enable(host, command),
            (STREAMS, 0x01 | 0x02) => {
                let namespace = self.streaming(host, command.nsid)?;
                let streams = self.streams.as_mut().ok_or(NvmeStatus::InvalidField)?;
                if command.doper == 0x01 {
                    streams.release_id(namespace, host, command.dspec);
                } else {
                    streams.release_resources(namespace, host);
                }
                Ok(NvmeReply::default())
            }
            _ => Err(NvmeStatus::InvalidField),
        }
    }

    /// Directive Receive, into the host's buffer.
    pub fn receive(
        &mut self,
        controller: ControllerId,
        command: &DirectiveCommand,
        buffer: &mut [u8],
    ) -> NvmeResult<NvmeReply> {
        if !self.has_directives() {
            return Err(NvmeStatus::InvalidOpcode);
        }
        let host = self.host(controller);
        let mut give = |bytes: &[u8]| NvmeReply { dw0: 0, bytes: transfer(bytes, command.bytes(), buffer) };
        match (command.dtype, command.doper) {
            (IDENTIFY, 0x01) => Ok(give(&self.identify(host, command.nsid)?.encode())),
            (STREAMS, 0x01) => {
                let of = self.streaming_or_all(host, command.nsid)?;
                Ok(give(&self.streams.as_ref().ok_or(NvmeStatus::InvalidField)?.parameters(of).encode()))
            }
            (STREAMS, 0x02) => {
                let of = self.streaming_or_all(host, command.nsid)?;
                let ids = self.streams.as_ref().ok_or(NvmeStatus::InvalidField)?.open_ids(of);
                Ok(give(&encode_status(&ids)))
            }
            (STREAMS, 0x03) => {
                let namespace = self.streaming(host, command.nsid)?;
                if self.active(namespace).is_write_protected {
                    return Err(NvmeStatus::WriteProtected);
                }
                let streams = self.streams.as_mut().ok_or(NvmeStatus::InvalidField)?;
                let granted = streams.allocate(namespace, host, command.cdw12 as u16)?;
                Ok(NvmeReply { dw0: u32::from(granted), bytes: 0 })
            }
            _ => Err(NvmeStatus::InvalidField),
        }
    }

    /// The namespace of a Streams operation, which must be enabled there.
    fn streaming(&self, host: u16, nsid: u32) -> NvmeResult<u32> {
        let streams = self.streams.as_ref().ok_or(NvmeStatus::InvalidField)?;
        if nsid == BROADCAST {
            return Err(NvmeStatus::InvalidField);
        }
        let namespace = self.index(nsid)?;
        if streams.is_enabled(namespace, host) { Ok(namespace) } else { Err(NvmeStatus::InvalidField) }
    }

    /// The same for operations that the broadcast id addresses to the subsystem.
    fn streaming_or_all(&self, host: u16, nsid: u32) -> NvmeResult<Option<(u32, u16)>> {
        if nsid == BROADCAST {
            return Ok(None);
        }
        Ok(Some((self.streaming(host, nsid)?, host)))
    }

    fn identify(&self, host: u16, nsid: u32) -> NvmeResult<IdentifyParameters> {
        if nsid == BROADCAST {
            return Err(NvmeStatus::InvalidField);
        }
        let namespace = self.index(nsid)?;
        let handles = self.active(namespace).handles.as_ref();
        Ok(IdentifyParameters {
            streams_supported: self.can_stream(namespace),
            streams_enabled: self.streams.as_ref().is_some_and(|streams| streams.is_enabled(namespace, host)),
            placement_supported: handles.is_some(),
            placement_enabled: handles.is_some_and(|handles| handles.is_enabled),
        })
    }

    /// Identify directive: enable or disable a directive type.
    fn enable(&mut self, host: u16, command: &DirectiveCommand) -> NvmeResult<NvmeReply> {
        let enable = command.cdw12 & 1 == 1;
        match (command.cdw12 >> 8) as u8 {
            STREAMS => self.enable_streams(host, command.nsid, enable)?,
            DATA_PLACEMENT => {
                if command.nsid == BROADCAST {
                    return Err(NvmeStatus::InvalidNamespace);
                }
                let namespace = self.index(command.nsid)?;
                let group = usize::from(self.active(namespace).group);
                self.groups[group].as_ref().ok_or(NvmeStatus::InvalidField)?.enabled()?;
                let active = self.namespaces[namespace as usize].as_mut().expect("an active namespace");
                active.handles.as_mut().ok_or(NvmeStatus::FdpDisabled)?.is_enabled = enable;
            }
            _ => return Err(NvmeStatus::InvalidField),
        }
        Ok(NvmeReply::default())
    }

    /// All namespaces change, or none.
    fn enable_streams(&mut self, host: u16, nsid: u32, enable: bool) -> NvmeResult<()> {
        let namespaces: Vec<u32> = if nsid == BROADCAST {
            (0..self.namespaces.len() as u32).filter(|at| self.namespaces[*at as usize].is_some()).collect()
        } else {
            vec![self.index(nsid)?]
        };
        if self.streams.is_none() || namespaces.iter().any(|namespace| !self.can_stream(*namespace)) {
            return Err(NvmeStatus::InvalidField);
        }
        if enable && namespaces.iter().any(|namespace| self.active(*namespace).is_write_protected) {
            return Err(NvmeStatus::WriteProtected);
        }
        let has_host_id = self.hosts[usize::from(host)] != Some(HostId(0));
        let streams = self.streams.as_mut().ok_or(NvmeStatus::InvalidField)?;
        if !enable {
            for namespace in namespaces {
                streams.disable(namespace, host);
            }
            return Ok(());
        }
        if streams.config.needs_host_id && !has_host_id {
            return Err(NvmeStatus::HostIdNotInitialized);
        }
        if !namespaces.iter().all(|namespace| streams.can_enable(*namespace, host)) {
            return Err(NvmeStatus::StreamResources);
        }
        for namespace in namespaces {
            streams.enable(namespace, host);
        }
        Ok(())
    }

    /// Log of a write to a namespace (its index, from 0). It is always one; what cannot be placed goes where
    /// writes without a directive go. A directive that is not enabled is as if it were not there.
    #[inline]
    pub fn route(
        &mut self,
        controller: ControllerId,
        namespace: u32,
        directive: WriteDirective,
        bytes: u64,
        at: SimTime,
    ) -> Route {
        let host = self.host(controller);
        let active = self.namespaces[namespace as usize].as_ref().expect("an active namespace");
        if let Some(handles) = &active.handles
            && let Some(fdp) = &mut self.groups[usize::from(active.group)]
        {
            let pid = (directive.dtype == DATA_PLACEMENT).then_some(directive.dspec);
            return fdp.route(namespace, handles, pid, bytes, at);
        }
        if directive.dtype == STREAMS
            && let Some(streams) = &mut self.streams
            && let Some(route) = streams.route(namespace, host, active.set, directive.dspec, bytes)
        {
            return route;
        }
        self.unstreamed_bytes += bytes;
        Route::default()
    }

    /// The log of a route could not begin a new piece: the write of so many bytes goes without a stream.
    pub(super) fn give_up(&mut self, route: Route, bytes: u64) -> Route {
        if let Some(streams) = &mut self.streams {
            streams.give_up(route.log, bytes);
        }
        self.unstreamed_bytes += bytes;
        Route::default()
    }

    /// State of the Streams directive, if the device has it.
    pub fn streams(&self) -> Option<&Streams> {
        self.streams.as_ref()
    }

    /// Flexible data placement of an endurance group, if it has it.
    pub fn fdp(&self, group: u16) -> Option<&Fdp> {
        self.groups.get(usize::from(group))?.as_ref()
    }

    /// Panics if an invariant does not hold. For tests.
    pub fn check_invariants(&self) {
        if let Some(streams) = &self.streams {
            streams.check_invariants();
            for (namespace, active) in self.namespaces.iter().enumerate() {
                let is_open = (0..self.hosts.len() as u16)
                    .any(|host| active.is_none() && streams.is_enabled(namespace as u32, host));
                assert!(!is_open, "streams are enabled in namespace {} that is not there", namespace + 1);
            }
        }
    }
}
