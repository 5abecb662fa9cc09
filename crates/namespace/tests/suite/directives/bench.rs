//! A small subsystem with every state within reach of a step, so that rules can be written as rows of a
//! table.

use nandscape_core::{LogStatus, NamespaceError, NvmeStatus, SimTime};
use nandscape_namespace::directives::fdp::{Fdp, FdpConfiguration, Isolation, MediaBytes, PidFormat, Tail};
use nandscape_namespace::directives::identify::IdentifyParameters;
use nandscape_namespace::directives::streams::{StreamsConfig, StreamsParameters, decode_status};
use nandscape_namespace::directives::{
    ControllerId, DirectiveCommand, Directives, DirectivesConfig, HostId, IDENTIFY, IoManagement, Logs,
    STREAMS, WriteDirective,
};

/// Logical block of the bench.
pub const BLOCK: u32 = 4096;
/// Reclaim unit of the bench.
pub const UNIT: u64 = 1 << 20;

/// Translation layers that only remember what they were told.
#[derive(Debug, Default)]
pub struct FakeLogs {
    /// Logs renewed, by set and log.
    pub renewed: Vec<(u16, u16)>,
    /// Bytes left in every log.
    pub room: u64,
    pub media: MediaBytes,
}

impl Logs for FakeLogs {
    fn log_status(&self, _: u16, _: u16) -> LogStatus {
        LogStatus { piece_bytes: UNIT, room_bytes: self.room, pieces: 1, ..LogStatus::default() }
    }

    fn renew_log(&mut self, set: u16, log: u16) -> Result<u64, NamespaceError> {
        self.renewed.push((set, log));
        Ok(self.room)
    }

    fn media(&self, _: u16) -> MediaBytes {
        self.media
    }
}

/// A device of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// Three namespaces and four stream resources.
    Streams,
    /// The same; hosts share the ids of a namespace.
    SharedIds,
    /// The same as `Streams`; a host needs a Host Identifier.
    NeedsHostId,
    /// Streams and data placement: endurance group 1 (set 0) can do both, group 2 (set 1) has no data
    /// placement. Namespaces 1 to 3 are in group 2.
    Both,
    /// Neither.
    None,
}

pub const fn streams_config(shared_ids: bool, needs_host_id: bool) -> StreamsConfig {
    StreamsConfig { msl: 4, sws: 8, sgs: 256, shared_ids, needs_host_id }
}

/// Two groups, four handles (two of each isolation), three placement handles.
pub fn fdp_configuration() -> FdpConfiguration {
    FdpConfiguration {
        format: PidFormat::new(2).unwrap(),
        groups: 2,
        handles: vec![
            Isolation::Initially,
            Isolation::Initially,
            Isolation::Persistently,
            Isolation::Persistently,
        ],
        placement_handles: 3,
        namespaces: 2,
        unit_bytes: UNIT,
        volatile_cache: false,
    }
}

fn config(device: Device) -> DirectivesConfig {
    let (sets, groups) = match device {
        Device::Both => {
            let single = FdpConfiguration {
                format: PidFormat::new(0).unwrap(),
                groups: 1,
                handles: vec![Isolation::Initially; 8],
                placement_handles: 8,
                ..fdp_configuration()
            };
            let fdp = Fdp::new(vec![fdp_configuration(), single], Tail::Unwritten);
            (vec![0, 1], vec![Some(fdp), None])
        }
        _ => (vec![0, 0], vec![None]),
    };
    let streams = match device {
        Device::None => None,
        Device::SharedIds => Some(streams_config(true, false)),
        Device::NeedsHostId => Some(streams_config(false, true)),
        Device::Streams | Device::Both => Some(streams_config(false, false)),
    };
    DirectivesConfig { namespaces: 8, hosts: 4, block_bytes: BLOCK, sets, streams, groups }
}

/// Something that happens. Commands are those of the controller chosen by the last `As`, at first controller
/// 0.
#[derive(Clone, Debug)]
pub enum Step {
    /// Following commands come from controller 0 (host A), 1 (host B), 2 (host A again) or 3 (no Host
    /// Identifier).
    As(usize),
    /// Enable or disable Streams.
    Streams(u32, bool),
    /// Enable or disable any directive type.
    Enable(u32, u8, bool),
    /// Any Directive Send.
    Send(DirectiveCommand),
    /// Any Directive Receive.
    Receive(DirectiveCommand),
    /// Allocate Resources.
    Allocate(u32, u16),
    /// Release Identifier.
    ReleaseId(u32, u16),
    /// Release Resources.
    ReleaseResources(u32),
    /// A write with a stream id; gives the log.
    Write(u32, u16),
    /// A write without a directive; gives the log.
    Plain(u32),
    /// A write with a placement identifier; gives the log.
    Place(u32, u16),
    /// Format NVM.
    Format(u32),
    /// Create a namespace in a set with a placement handle list; gives its id.
    Create(u16, &'static [u16]),
    /// Delete a namespace.
    Delete(u32),
    /// Write protection.
    Protect(u32, bool),
    /// Controller level reset of a controller.
    Reset(usize),
    /// That controller is enabled again.
    Start(usize),
    /// Set Features 1Dh: endurance group, enable, configuration.
    Fdp(u16, bool, u8),
    /// Get Features 1Dh.
    GetFdp(u16),
    /// Set Features 1Eh: namespace, placement handle, event types, enable.
    Events(u32, u16, &'static [u8], bool),
    /// Get Features 1Eh; gives the number of descriptors.
    GetEvents(u32, u16),
    /// Get Log Page of an endurance group, bit 0 of the log specific parameter; gives the bytes.
    Log(u8, u16, bool),
    /// Reclaim unit handle status; gives the number of descriptors.
    UnitStatus(u32),
    /// Reclaim unit handle update.
    Update(u32, &'static [u16]),
    /// Any I/O Management Send.
    IoSend(IoManagement, &'static [u8]),
    /// So many bytes are left in every log.
    Room(u64),
}

/// What holds after the last step.
#[derive(Clone, Debug)]
pub enum Then {
    /// NSSA and NSSO.
    Subsystem(u16, u16),
    /// NSA and NSO of a namespace for the present host.
    Namespace(u32, u16, u16),
    /// Open ids of a namespace for the present host.
    Open(u32, &'static [u16]),
    /// Streams are enabled in a namespace for the present host.
    Enabled(u32, bool),
    /// Data Placement is enabled in a namespace.
    Placement(u32, bool),
    /// Logs that were told to begin a new piece, by set and log.
    Renewed(&'static [(u16, u16)]),
    /// Event types logged in endurance group 1, host events or controller events.
    Logged(bool, &'static [u8]),
}

pub struct Bench {
    pub directives: Directives,
    pub logs: FakeLogs,
    controllers: Vec<ControllerId>,
    now: usize,
}

impl Bench {
    pub fn new(device: Device) -> Self {
        let mut directives = Directives::new(config(device));
        let hosts = [HostId(0xa), HostId(0xb), HostId(0xa), HostId(0)];
        let controllers = hosts.map(|host| directives.connect(host).expect("room for three hosts")).to_vec();
        for _ in 0..3 {
            directives.create_namespace(1, &[]).expect("a namespace without data placement");
        }
        Self { directives, logs: FakeLogs { room: 1000, ..FakeLogs::default() }, controllers, now: 0 }
    }

    pub fn controller(&self) -> ControllerId {
        self.controllers[self.now]
    }

    pub fn write(&mut self, nsid: u32, directive: WriteDirective) -> u16 {
        let route = self.directives.route(self.controller(), nsid - 1, directive, 4096, SimTime(7_000_000));
        if route.renew {
            self.logs.renewed.push((1, route.log));
        }
        route.log
    }

    fn send(&mut self, command: &DirectiveCommand) -> Result<u32, NvmeStatus> {
        // What goes over the wire is the dwords.
        let command = DirectiveCommand::decode(command.nsid, command.encode());
        let controller = self.controller();
        self.directives.send(controller, &command).map(|reply| reply.dw0)
    }

    fn receive(&mut self, command: &DirectiveCommand, buffer: &mut [u8]) -> Result<u32, NvmeStatus> {
        let command = DirectiveCommand::decode(command.nsid, command.encode());
        let controller = self.controller();
        self.directives.receive(controller, &command, buffer).map(|reply| reply.dw0)
    }

    /// Does it; gives what the step says it gives, else 0.
    pub fn step(&mut self, step: &Step) -> Result<u32, NvmeStatus> {
        let at = SimTime(9_000_000);
        let done = |result: Result<(), NvmeStatus>| result.map(|()| 0);
        match *step {
            Step::As(controller) => self.now = controller,
            Step::Streams(nsid, enable) => {
                return self.send(&DirectiveCommand::enable(nsid, STREAMS, enable));
            }
            Step::Enable(nsid, dtype, enable) => {
                return self.send(&DirectiveCommand::enable(nsid, dtype, enable));
            }
            Step::Send(ref command) => return self.send(command),
            Step::Receive(ref command) => return self.receive(command, &mut [0; 8192]),
            Step::Allocate(nsid, count) => {
                return self.receive(&DirectiveCommand::allocate(nsid, count), &mut []);
            }
            Step::ReleaseId(nsid, id) => return self.send(&DirectiveCommand::release_id(nsid, id)),
            Step::ReleaseResources(nsid) => return self.send(&DirectiveCommand::release_resources(nsid)),
            Step::Write(nsid, id) => return Ok(self.write(nsid, WriteDirective::stream(id)).into()),
            Step::Plain(nsid) => return Ok(self.write(nsid, WriteDirective::NONE).into()),
            Step::Place(nsid, pid) => return Ok(self.write(nsid, WriteDirective::placement(pid)).into()),
            Step::Format(nsid) => return done(self.directives.format_namespace(nsid)),
            Step::Create(set, list) => return self.directives.create_namespace(set, list),
            Step::Delete(nsid) => return done(self.directives.delete_namespace(nsid)),
            Step::Protect(nsid, protect) => return done(self.directives.write_protect(nsid, protect)),
            Step::Reset(controller) => self.directives.reset_controller(self.controllers[controller]),
            Step::Start(controller) => self.directives.enable_controller(self.controllers[controller]),
            Step::Fdp(endgid, enable, index) => {
                let cdw12 = u32::from(enable) | u32::from(index) << 8;
                return done(self.directives.set_fdp_feature(endgid.into(), cdw12, &self.logs));
            }
            Step::GetFdp(endgid) => return self.directives.fdp_feature(endgid.into()),
            Step::Events(nsid, handle, types, enable) => {
                let cdw11 = u32::from(handle) | (types.len() as u32) << 16;
                let set = self.directives.set_fdp_events_feature(nsid, cdw11, enable.into(), types);
                return done(set);
            }
            Step::GetEvents(nsid, handle) => {
                let bytes = self.directives.fdp_events_feature(nsid, u32::from(handle) | 255 << 16)?;
                return Ok(bytes.len() as u32 / 2);
            }
            Step::Log(page, endgid, of_host) => {
                let bytes = self.directives.fdp_log_page(page, endgid, of_host, &self.logs)?;
                return Ok(bytes.len() as u32);
            }
            Step::UnitStatus(nsid) => {
                let mut buffer = [0; 4096];
                let command = IoManagement::status(nsid, 4096);
                self.directives.io_management_receive(&command, &mut buffer, &self.logs)?;
                return Ok(u16::from_le_bytes([buffer[14], buffer[15]]).into());
            }
            Step::Update(nsid, pids) => {
                let command = IoManagement::update(nsid, pids.len() as u16);
                let command = IoManagement::decode(nsid, command.encode());
                let data: Vec<u8> = pids.iter().flat_map(|pid| pid.to_le_bytes()).collect();
                return done(self.directives.io_management_send(&command, &data, &mut self.logs, at));
            }
            Step::IoSend(ref command, data) => {
                return done(self.directives.io_management_send(command, data, &mut self.logs, at));
            }
            Step::Room(bytes) => self.logs.room = bytes,
        }
        Ok(0)
    }

    pub fn parameters(&mut self, nsid: u32) -> Result<StreamsParameters, NvmeStatus> {
        let mut buffer = [0xff; 32];
        self.receive(&DirectiveCommand::parameters(nsid, STREAMS, 32), &mut buffer)?;
        Ok(StreamsParameters::decode(&buffer).expect("32 bytes"))
    }

    pub fn open_ids(&mut self, nsid: u32) -> Result<Vec<u16>, NvmeStatus> {
        let mut buffer = vec![0; 131_072];
        self.receive(&DirectiveCommand::stream_status(nsid, 131_072), &mut buffer)?;
        Ok(decode_status(&buffer))
    }

    pub fn identify(&mut self, nsid: u32) -> Result<IdentifyParameters, NvmeStatus> {
        let mut buffer = [0; 4096];
        self.receive(&DirectiveCommand::parameters(nsid, IDENTIFY, 4096), &mut buffer)?;
        Ok(IdentifyParameters::decode(&buffer).expect("4096 bytes"))
    }

    /// Checks what holds, through the structures that a host reads.
    pub fn holds(&mut self, then: &Then) -> Result<(), String> {
        let differ = |what: &str, found: String| Err(format!("{what}: found {found}, expected {then:?}"));
        match *then {
            Then::Subsystem(nssa, nsso) => {
                let found = self.parameters(u32::MAX).map_err(|e| e.to_string())?;
                if (found.nssa, found.nsso) != (nssa, nsso) {
                    return differ("NSSA and NSSO", format!("{} and {}", found.nssa, found.nsso));
                }
            }
            Then::Namespace(nsid, nsa, nso) => {
                let found = self.parameters(nsid).map_err(|e| e.to_string())?;
                if (found.nsa, found.nso) != (nsa, nso) {
                    return differ("NSA and NSO", format!("{} and {}", found.nsa, found.nso));
                }
            }
            Then::Open(nsid, ids) => {
                let found = self.open_ids(nsid).map_err(|e| e.to_string())?;
                if found != ids {
                    return differ("open ids", format!("{found:?}"));
                }
            }
            Then::Enabled(nsid, enabled) => {
                let found = self.identify(nsid).map_err(|e| e.to_string())?;
                if found.streams_enabled != enabled {
                    return differ("streams enabled", found.streams_enabled.to_string());
                }
            }
            Then::Placement(nsid, enabled) => {
                let found = self.identify(nsid).map_err(|e| e.to_string())?;
                if found.placement_enabled != enabled {
                    return differ("data placement enabled", found.placement_enabled.to_string());
                }
            }
            Then::Renewed(logs) => {
                if self.logs.renewed != logs {
                    return differ("renewed logs", format!("{:?}", self.logs.renewed));
                }
            }
            Then::Logged(of_host, types) => {
                let page = self.directives.fdp_log_page(0x23, 1, of_host, &self.logs);
                let page = page.map_err(|e| e.to_string())?;
                let found: Vec<u8> = page[64..].chunks(64).map(|event| event[0]).collect();
                let count = u32::from_le_bytes([page[0], page[1], page[2], page[3]]);
                if found != types || count as usize != types.len() {
                    return differ("events", format!("{found:x?}"));
                }
            }
        }
        Ok(())
    }
}

/// One rule.
pub struct Row {
    /// What the standard says, or what was chosen where it leaves the choice.
    pub rule: &'static str,
    pub device: Device,
    pub before: &'static [Step],
    pub step: Step,
    pub gives: Result<u32, NvmeStatus>,
    pub then: &'static [Then],
}

/// Runs every row; panics with all that fail.
pub fn check(table: &[Row]) {
    let mut failures = Vec::new();
    for row in table {
        let mut bench = Bench::new(row.device);
        for step in row.before {
            if let Err(status) = bench.step(step) {
                failures.push(format!("{}: {step:?} before it gives {status}", row.rule));
            }
        }
        let given = bench.step(&row.step);
        if given != row.gives {
            failures.push(format!("{}: {:?} gives {given:?}, expected {:?}", row.rule, row.step, row.gives));
        }
        for then in row.then {
            if let Err(message) = bench.holds(then) {
                failures.push(format!("{}: {message}", row.rule));
            }
        }
        bench.directives.check_invariants();
    }
    assert!(failures.is_empty(), "{} of {} rows:\n{}", failures.len(), table.len(), failures.join("\n"));
}
