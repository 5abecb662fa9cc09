//! Rules of the Streams directive, a row each (base specification 2.2, sections 8.1.8.2 and 8.1.8.3).

use crate::directives::bench::{Device, Row, Step, Then, check};
use nandscape_core::NvmeStatus;
use nandscape_namespace::directives::{BROADCAST, DirectiveCommand, IDENTIFY, STREAMS};

const fn raw(nsid: u32, dtype: u8, doper: u8) -> DirectiveCommand {
    DirectiveCommand { nsid, numd: 15, doper, dtype, dspec: 0, cdw12: 0 }
}

/// Streams enabled in namespaces 1 and 2 by host A.
const ENABLED: &[Step] = &[Step::Streams(1, true), Step::Streams(2, true)];

/// Namespace 1 of host A holds everything that can be allocated.
const TAKEN: &[Step] = &[Step::Streams(1, true), Step::Streams(2, true), Step::Allocate(1, 4)];

/// Four shared streams are open: 10 and 11 in namespace 1, 20 and 21 in namespace 2. The last write to 10 is
/// longest ago.
const FULL: &[Step] = &[
    Step::Streams(1, true),
    Step::Streams(2, true),
    Step::Write(1, 10),
    Step::Write(1, 11),
    Step::Write(2, 20),
    Step::Write(2, 21),
];

static DISCOVERY: &[Row] = &[
    Row {
        rule: "without directives, Directive Send is an invalid opcode",
        device: Device::None,
        before: &[],
        step: Step::Streams(1, true),
        gives: Err(NvmeStatus::InvalidOpcode),
        then: &[],
    },
    Row {
        rule: "without directives, Directive Receive is an invalid opcode",
        device: Device::None,
        before: &[],
        step: Step::Receive(DirectiveCommand::parameters(1, IDENTIFY, 4096)),
        gives: Err(NvmeStatus::InvalidOpcode),
        then: &[],
    },
    Row {
        rule: "without directives, a forced stream id is a normal write",
        device: Device::None,
        before: &[],
        step: Step::Write(1, 3),
        gives: Ok(0),
        then: &[],
    },
    Row {
        rule: "nothing is enabled at first",
        device: Device::Streams,
        before: &[],
        step: Step::As(0),
        gives: Ok(0),
        then: &[Then::Enabled(1, false), Then::Subsystem(4, 0)],
    },
    Row {
        rule: "a stream id before enable is not separated",
        device: Device::Streams,
        before: &[],
        step: Step::Write(1, 3),
        gives: Ok(0),
        then: &[Then::Subsystem(4, 0)],
    },
    Row {
        rule: "enabling the Identify directive is refused",
        device: Device::Streams,
        before: &[],
        step: Step::Enable(1, IDENTIFY, true),
        gives: Err(NvmeStatus::InvalidField),
        then: &[],
    },
    Row {
        rule: "disabling the Identify directive is refused",
        device: Device::Streams,
        before: &[],
        step: Step::Enable(1, IDENTIFY, false),
        gives: Err(NvmeStatus::InvalidField),
        then: &[],
    },
    Row {
        rule: "enabling a type that does not exist is refused",
        device: Device::Streams,
        before: &[],
        step: Step::Enable(1, 0x0e, true),
        gives: Err(NvmeStatus::InvalidField),
        then: &[],
    },
    Row {
        rule: "enabling the vendor type is refused where there is none",
        device: Device::Streams,
        before: &[],
        step: Step::Enable(1, 0x0f, true),
        gives: Err(NvmeStatus::InvalidField),
        then: &[],
    },
    Row {
        rule: "an unknown directive type is refused (send)",
        device: Device::Streams,
        before: &[],
        step: Step::Send(raw(1, 0x05, 1)),
        gives: Err(NvmeStatus::InvalidField),
        then: &[],
    },
    Row {
        rule: "an unknown directive type is refused (receive)",
        device: Device::Streams,
        before: &[],
        step: Step::Receive(raw(1, 0x05, 1)),
        gives: Err(NvmeStatus::InvalidField),
        then: &[],
    },
    Row {
        rule: "an unknown Identify operation is refused",
        device: Device::Streams,
        before: &[],
        step: Step::Send(raw(1, IDENTIFY, 2)),
        gives: Err(NvmeStatus::InvalidField),
        then: &[],
    },
    Row {
        rule: "an unknown Streams operation is refused (send)",
        device: Device::Streams,
        before: ENABLED,
        step: Step::Send(raw(1, STREAMS, 3)),
        gives: Err(NvmeStatus::InvalidField),
        then: &[],
    },
    Row {
        rule: "an unknown Streams operation is refused (receive)",
        device: Device::Streams,
        before: ENABLED,
        step: Step::Receive(raw(1, STREAMS, 4)),
        gives: Err(NvmeStatus::InvalidField),
        then: &[],
    },
    Row {
        rule: "namespace id 0 is not valid",
        device: Device::Streams,
        before: &[],
        step: Step::Streams(0, true),
        gives: Err(NvmeStatus::InvalidNamespace),
        then: &[],
    },
    Row {
        rule: "a namespace id above the most there can be is not valid",
        device: Device::Streams,
        before: &[],
        step: Step::Streams(9, true),
        gives: Err(NvmeStatus::InvalidNamespace),
        then: &[],
    },
    Row {
        rule: "a namespace id that is not active is an invalid field",
        device: Device::Streams,
        before: &[],
        step: Step::Streams(4, true),
        gives: Err(NvmeStatus::InvalidField),
        then: &[],
    },
    Row {
        rule: "Identify parameters of the broadcast id are refused",
        device: Device::Streams,
        before: &[],
        step: Step::Receive(DirectiveCommand::parameters(BROADCAST, IDENTIFY, 4096)),
        gives: Err(NvmeStatus::InvalidField),
        then: &[],
    },
];

static ENABLE: &[Row] = &[
    Row {
        rule: "enabling concerns one namespace",
        device: Device::Streams,
        before: &[],
        step: Step::Streams(1, true),
        gives: Ok(0),
        then: &[Then::Enabled(1, true), Then::Enabled(2, false)],
    },
    Row {
        rule: "enabling concerns one host",
        device: Device::Streams,
        before: &[Step::Streams(1, true)],
        step: Step::As(1),
        gives: Ok(0),
        then: &[Then::Enabled(1, false)],
    },
    Row {
        rule: "controllers with one Host Identifier share what is enabled",
        device: Device::Streams,
        before: &[Step::Streams(1, true)],
        step: Step::As(2),
        gives: Ok(0),
        then: &[Then::Enabled(1, true)],
    },
    Row {
        rule: "a controller without a Host Identifier is a host of its own",
        device: Device::Streams,
        before: &[Step::As(3), Step::Streams(1, true)],
        step: Step::As(0),
        gives: Ok(0),
        then: &[Then::Enabled(1, false)],
    },
    Row {
        rule: "the broadcast id enables the whole subsystem",
        device: Device::Streams,
        before: &[],
        step: Step::Streams(BROADCAST, true),
        gives: Ok(0),
        then: &[Then::Enabled(1, true), Then::Enabled(2, true), Then::Enabled(3, true)],
    },
    Row {
        rule: "the broadcast id disables the whole subsystem",
        device: Device::Streams,
        before: FULL,
        step: Step::Streams(BROADCAST, false),
        gives: Ok(0),
        then: &[Then::Enabled(1, false), Then::Enabled(2, false), Then::Subsystem(4, 0)],
    },
    Row {
        rule: "enabling twice changes nothing",
        device: Device::Streams,
        before: FULL,
        step: Step::Streams(1, true),
        gives: Ok(0),
        then: &[Then::Enabled(1, true), Then::Open(1, &[10, 11])],
    },
    Row {
        rule: "disabling what is not enabled changes nothing",
        device: Device::Streams,
        before: FULL,
        step: Step::Streams(3, false),
        gives: Ok(0),
        then: &[Then::Subsystem(4, 4)],
    },
    Row {
        rule: "enabling fails where no shared resource is left",
        device: Device::Streams,
        before: TAKEN,
        step: Step::Streams(3, true),
        gives: Err(NvmeStatus::StreamResources),
        then: &[Then::Enabled(3, false)],
    },
    Row {
        rule: "broadcast enabling that fails enables nothing",
        device: Device::Streams,
        before: &[Step::As(1), Step::Streams(1, true), Step::Allocate(1, 4), Step::As(0)],
        step: Step::Streams(BROADCAST, true),
        gives: Err(NvmeStatus::StreamResources),
        then: &[Then::Enabled(1, false), Then::Enabled(2, false)],
    },
    Row {
        rule: "SRNZID: a host without a Host Identifier may not enable streams",
        device: Device::NeedsHostId,
        before: &[Step::As(3)],
        step: Step::Streams(1, true),
        gives: Err(NvmeStatus::HostIdNotInitialized),
        then: &[Then::Enabled(1, false)],
    },
    Row {
        rule: "SRNZID: a host with a Host Identifier may",
        device: Device::NeedsHostId,
        before: &[],
        step: Step::Streams(1, true),
        gives: Ok(0),
        then: &[Then::Enabled(1, true)],
    },
    Row {
        rule: "parameters of a namespace need streams to be enabled there",
        device: Device::Streams,
        before: &[],
        step: Step::Receive(DirectiveCommand::parameters(1, STREAMS, 32)),
        gives: Err(NvmeStatus::InvalidField),
        then: &[],
    },
    Row {
        rule: "a controller reset disables streams and releases everything",
        device: Device::Streams,
        before: &[Step::As(1), Step::Streams(1, true), Step::Allocate(1, 2), Step::Write(1, 1)],
        step: Step::Reset(1),
        gives: Ok(0),
        then: &[Then::Enabled(1, false), Then::Subsystem(4, 0)],
    },
    Row {
        rule: "a controller reset keeps streams while the host has another enabled controller",
        device: Device::Streams,
        before: FULL,
        step: Step::Reset(0),
        gives: Ok(0),
        then: &[Then::Enabled(1, true), Then::Open(1, &[10, 11])],
    },
    Row {
        rule: "the reset of the host's last controller disables streams",
        device: Device::Streams,
        before: &[Step::Streams(1, true), Step::Write(1, 10), Step::Reset(0)],
        step: Step::Reset(2),
        gives: Ok(0),
        then: &[Then::Enabled(1, false), Then::Subsystem(4, 0)],
    },
    Row {
        rule: "a controller that is enabled again counts as enabled",
        device: Device::Streams,
        before: &[Step::Streams(1, true), Step::Write(1, 10), Step::Reset(0), Step::Start(0)],
        step: Step::Reset(2),
        gives: Ok(0),
        then: &[Then::Enabled(1, true), Then::Open(1, &[10])],
    },
    Row {
        rule: "the reset of a host leaves other hosts alone",
        device: Device::Streams,
        before: &[
            Step::Streams(1, true),
            Step::Write(1, 10),
            Step::As(1),
            Step::Streams(1, true),
            Step::As(0),
        ],
        step: Step::Reset(1),
        gives: Ok(0),
        then: &[Then::Enabled(1, true), Then::Open(1, &[10])],
    },
];

static OPENING: &[Row] = &[
    Row {
        rule: "the first write that names an id opens it",
        device: Device::Streams,
        before: ENABLED,
        step: Step::Write(1, 500),
        gives: Ok(1),
        then: &[Then::Open(1, &[500]), Then::Namespace(1, 0, 1), Then::Subsystem(4, 1)],
    },
    Row {
        rule: "the next write to it goes to the same log",
        device: Device::Streams,
        before: &[Step::Streams(1, true), Step::Write(1, 500), Step::Write(1, 7)],
        step: Step::Write(1, 500),
        gives: Ok(1),
        then: &[Then::Namespace(1, 0, 2)],
    },
    Row {
        rule: "id 0 is no stream",
        device: Device::Streams,
        before: ENABLED,
        step: Step::Write(1, 0),
        gives: Ok(0),
        then: &[Then::Subsystem(4, 0)],
    },
    Row {
        rule: "FFFFh is an id",
        device: Device::Streams,
        before: ENABLED,
        step: Step::Write(1, 0xffff),
        gives: Ok(1),
        then: &[Then::Open(1, &[0xffff])],
    },
    Row {
        rule: "a write without the directive goes to no stream",
        device: Device::Streams,
        before: FULL,
        step: Step::Plain(1),
        gives: Ok(0),
        then: &[Then::Open(1, &[10, 11])],
    },
    Row {
        rule: "a data placement directive is no stream",
        device: Device::Streams,
        before: ENABLED,
        step: Step::Place(1, 10),
        gives: Ok(0),
        then: &[Then::Subsystem(4, 0)],
    },
    Row {
        rule: "status lists ids in ascending order",
        device: Device::Streams,
        before: &[Step::Streams(1, true), Step::Write(1, 9), Step::Write(1, 0xfff0), Step::Write(1, 2)],
        step: Step::As(0),
        gives: Ok(0),
        then: &[Then::Open(1, &[2, 9, 0xfff0])],
    },
    Row {
        rule: "the same id in another namespace is another stream",
        device: Device::Streams,
        before: &[Step::Streams(1, true), Step::Streams(2, true), Step::Write(1, 9)],
        step: Step::Write(2, 9),
        gives: Ok(2),
        then: &[Then::Open(1, &[9]), Then::Open(2, &[9]), Then::Subsystem(4, 2)],
    },
    Row {
        rule: "SSID clear: the same id of another host is another stream",
        device: Device::Streams,
        before: &[Step::Streams(1, true), Step::Write(1, 9), Step::As(1), Step::Streams(1, true)],
        step: Step::Write(1, 9),
        gives: Ok(2),
        then: &[Then::Namespace(1, 0, 1), Then::Subsystem(4, 2)],
    },
    Row {
        rule: "SSID set: the same id of another host is the same stream",
        device: Device::SharedIds,
        before: &[Step::Streams(1, true), Step::Write(1, 9), Step::As(1), Step::Streams(1, true)],
        step: Step::Write(1, 9),
        gives: Ok(1),
        then: &[Then::Namespace(1, 0, 1), Then::Subsystem(4, 1)],
    },
    Row {
        rule: "SSID set: a host that has not enabled streams has none",
        device: Device::SharedIds,
        before: &[Step::Streams(1, true), Step::Write(1, 9), Step::As(1)],
        step: Step::Write(1, 9),
        gives: Ok(0),
        then: &[Then::Subsystem(4, 1)],
    },
    Row {
        rule: "SSID set: ids stay while another host has streams enabled",
        device: Device::SharedIds,
        before: &[Step::Streams(1, true), Step::Write(1, 9), Step::As(1), Step::Streams(1, true)],
        step: Step::Streams(1, false),
        gives: Ok(0),
        then: &[Then::Enabled(1, false), Then::Subsystem(4, 1)],
    },
    Row {
        rule: "SSID set: ids go with the last host",
        device: Device::SharedIds,
        before: &[
            Step::Streams(1, true),
            Step::Write(1, 9),
            Step::As(1),
            Step::Streams(1, true),
            Step::Streams(1, false),
            Step::As(0),
        ],
        step: Step::Streams(1, false),
        gives: Ok(0),
        then: &[Then::Subsystem(4, 0)],
    },
];

static EXHAUSTION: &[Row] = &[
    Row {
        rule: "shared resources exhausted: the id of any namespace goes whose last write is longest ago",
        device: Device::Streams,
        before: FULL,
        step: Step::Write(2, 22),
        gives: Ok(1),
        then: &[
            Then::Open(1, &[11]),
            Then::Open(2, &[20, 21, 22]),
            Then::Subsystem(4, 4),
            Then::Renewed(&[(1, 1)]),
        ],
    },
    Row {
        rule: "a write keeps its stream",
        device: Device::Streams,
        before: &[
            Step::Streams(1, true),
            Step::Write(1, 1),
            Step::Write(1, 2),
            Step::Write(1, 3),
            Step::Write(1, 4),
            Step::Write(1, 1),
        ],
        step: Step::Write(1, 5),
        gives: Ok(2),
        then: &[Then::Open(1, &[1, 3, 4, 5])],
    },
    Row {
        rule: "an id that was released so opens again with its next write",
        device: Device::Streams,
        before: &[
            Step::Streams(1, true),
            Step::Write(1, 1),
            Step::Write(1, 2),
            Step::Write(1, 3),
            Step::Write(1, 4),
            Step::Write(1, 5),
        ],
        step: Step::Write(1, 1),
        gives: Ok(2),
        then: &[Then::Open(1, &[1, 3, 4, 5]), Then::Renewed(&[(1, 1), (1, 2)])],
    },
    Row {
        rule: "an allocation in full use: an id of that namespace goes",
        device: Device::Streams,
        before: &[
            Step::Streams(1, true),
            Step::Streams(2, true),
            Step::Write(2, 20),
            Step::Allocate(1, 2),
            Step::Write(1, 10),
            Step::Write(1, 11),
        ],
        step: Step::Write(1, 12),
        gives: Ok(4),
        then: &[
            Then::Open(1, &[11, 12]),
            Then::Open(2, &[20]),
            Then::Subsystem(2, 1),
            Then::Namespace(1, 2, 2),
        ],
    },
    Row {
        rule: "an allocation in use does not take from the shared resources",
        device: Device::Streams,
        before: &[Step::Streams(1, true), Step::Allocate(1, 1), Step::Write(1, 10)],
        step: Step::Write(1, 11),
        gives: Ok(2),
        then: &[Then::Open(1, &[11]), Then::Subsystem(3, 0)],
    },
    Row {
        rule: "everything allocated elsewhere: the write is unstreamed",
        device: Device::Streams,
        before: TAKEN,
        step: Step::Write(2, 20),
        gives: Ok(0),
        then: &[Then::Namespace(2, 0, 0), Then::Subsystem(0, 0)],
    },
    Row {
        rule: "part allocated elsewhere: shared streams live in the rest",
        device: Device::Streams,
        before: &[Step::Streams(1, true), Step::Streams(2, true), Step::Allocate(1, 3), Step::Write(2, 20)],
        step: Step::Write(2, 21),
        gives: Ok(2),
        then: &[Then::Open(2, &[21]), Then::Subsystem(1, 1)],
    },
];

static ALLOCATION: &[Row] = &[
    Row {
        rule: "allocate grants what is asked for and can be had",
        device: Device::Streams,
        before: ENABLED,
        step: Step::Allocate(1, 3),
        gives: Ok(3),
        then: &[Then::Namespace(1, 3, 0), Then::Subsystem(1, 0)],
    },
    Row {
        rule: "allocate grants less where there is less",
        device: Device::Streams,
        before: ENABLED,
        step: Step::Allocate(1, 9),
        gives: Ok(4),
        then: &[Then::Namespace(1, 4, 0), Then::Subsystem(0, 0)],
    },
    Row {
        rule: "allocate while holding an allocation is refused: no growth",
        device: Device::Streams,
        before: &[Step::Streams(1, true), Step::Allocate(1, 1)],
        step: Step::Allocate(1, 1),
        gives: Err(NvmeStatus::InvalidField),
        then: &[Then::Namespace(1, 1, 0), Then::Subsystem(3, 0)],
    },
    Row {
        rule: "after a release it is granted again",
        device: Device::Streams,
        before: &[Step::Streams(1, true), Step::Allocate(1, 1), Step::ReleaseResources(1)],
        step: Step::Allocate(1, 2),
        gives: Ok(2),
        then: &[Then::Namespace(1, 2, 0), Then::Subsystem(2, 0)],
    },
    Row {
        rule: "allocate of nothing is refused",
        device: Device::Streams,
        before: ENABLED,
        step: Step::Allocate(1, 0),
        gives: Err(NvmeStatus::InvalidField),
        then: &[],
    },
    Row {
        rule: "allocate fails where everything is allocated elsewhere",
        device: Device::Streams,
        before: TAKEN,
        step: Step::Allocate(2, 1),
        gives: Err(NvmeStatus::StreamResources),
        then: &[Then::Namespace(2, 0, 0)],
    },
    Row {
        rule: "allocate succeeds with nothing where shared resources exist but are in use elsewhere",
        device: Device::Streams,
        before: &[
            Step::Streams(1, true),
            Step::Streams(3, true),
            Step::Write(1, 1),
            Step::Write(1, 2),
            Step::Write(1, 3),
            Step::Write(1, 4),
        ],
        step: Step::Allocate(3, 2),
        gives: Ok(0),
        then: &[Then::Namespace(3, 0, 0), Then::Open(1, &[1, 2, 3, 4]), Then::Subsystem(4, 4)],
    },
    Row {
        rule: "open streams of the namespace move into its allocation",
        device: Device::Streams,
        before: FULL,
        step: Step::Allocate(1, 4),
        gives: Ok(2),
        then: &[
            Then::Namespace(1, 2, 2),
            Then::Subsystem(2, 2),
            Then::Open(1, &[10, 11]),
            Then::Open(2, &[20, 21]),
        ],
    },
    Row {
        rule: "of its open streams those stay that were written last",
        device: Device::Streams,
        before: FULL,
        step: Step::Allocate(1, 1),
        gives: Ok(1),
        then: &[Then::Namespace(1, 1, 1), Then::Open(1, &[11]), Then::Subsystem(3, 2)],
    },
    Row {
        rule: "allocations are per host (SSID clear)",
        device: Device::Streams,
        before: &[Step::Streams(1, true), Step::Allocate(1, 1), Step::As(1), Step::Streams(1, true)],
        step: Step::Allocate(1, 2),
        gives: Ok(2),
        then: &[Then::Namespace(1, 2, 0), Then::Subsystem(1, 0)],
    },
    Row {
        rule: "allocations are per namespace (SSID set)",
        device: Device::SharedIds,
        before: &[Step::Streams(1, true), Step::Allocate(1, 1), Step::As(1), Step::Streams(1, true)],
        step: Step::Allocate(1, 2),
        gives: Err(NvmeStatus::InvalidField),
        then: &[Then::Namespace(1, 1, 0)],
    },
    Row {
        rule: "allocate takes no broadcast",
        device: Device::Streams,
        before: ENABLED,
        step: Step::Allocate(BROADCAST, 1),
        gives: Err(NvmeStatus::InvalidField),
        then: &[],
    },
    Row {
        rule: "allocate needs streams to be enabled",
        device: Device::Streams,
        before: &[],
        step: Step::Allocate(1, 1),
        gives: Err(NvmeStatus::InvalidField),
        then: &[],
    },
];

static RELEASE: &[Row] = &[
    Row {
        rule: "an id is released",
        device: Device::Streams,
        before: FULL,
        step: Step::ReleaseId(1, 10),
        gives: Ok(0),
        then: &[Then::Open(1, &[11]), Then::Subsystem(4, 3)],
    },
    Row {
        rule: "what is written to a released id is another stream",
        device: Device::Streams,
        before: &[
            Step::Streams(1, true),
            Step::Write(1, 1),
            Step::Write(1, 2),
            Step::Write(1, 3),
            Step::Write(1, 4),
            Step::ReleaseId(1, 3),
        ],
        step: Step::Write(1, 3),
        gives: Ok(3),
        then: &[Then::Renewed(&[(1, 3)])],
    },
    Row {
        rule: "an unknown id must not fail",
        device: Device::Streams,
        before: FULL,
        step: Step::ReleaseId(1, 12),
        gives: Ok(0),
        then: &[Then::Open(1, &[10, 11])],
    },
    Row {
        rule: "an id of another namespace is unknown",
        device: Device::Streams,
        before: FULL,
        step: Step::ReleaseId(1, 20),
        gives: Ok(0),
        then: &[Then::Open(2, &[20, 21])],
    },
    Row {
        rule: "release of an id takes no broadcast",
        device: Device::Streams,
        before: FULL,
        step: Step::ReleaseId(BROADCAST, 10),
        gives: Err(NvmeStatus::InvalidField),
        then: &[Then::Open(1, &[10, 11])],
    },
    Row {
        rule: "release of an id needs streams to be enabled",
        device: Device::Streams,
        before: FULL,
        step: Step::ReleaseId(3, 10),
        gives: Err(NvmeStatus::InvalidField),
        then: &[],
    },
    Row {
        rule: "release of resources gives the allocation back",
        device: Device::Streams,
        before: &[Step::Streams(1, true), Step::Allocate(1, 3)],
        step: Step::ReleaseResources(1),
        gives: Ok(0),
        then: &[Then::Namespace(1, 0, 0), Then::Subsystem(4, 0)],
    },
    Row {
        rule: "open streams go on with shared resources",
        device: Device::Streams,
        before: &[Step::Streams(1, true), Step::Allocate(1, 3), Step::Write(1, 5), Step::Write(1, 6)],
        step: Step::ReleaseResources(1),
        gives: Ok(0),
        then: &[Then::Namespace(1, 0, 2), Then::Open(1, &[5, 6]), Then::Subsystem(4, 2)],
    },
    Row {
        rule: "release without an allocation succeeds and does nothing",
        device: Device::Streams,
        before: FULL,
        step: Step::ReleaseResources(1),
        gives: Ok(0),
        then: &[Then::Open(1, &[10, 11]), Then::Subsystem(4, 4)],
    },
    Row {
        rule: "release of resources takes no broadcast",
        device: Device::Streams,
        before: TAKEN,
        step: Step::ReleaseResources(BROADCAST),
        gives: Err(NvmeStatus::InvalidField),
        then: &[Then::Namespace(1, 4, 0)],
    },
    Row {
        rule: "disabling releases ids and resources",
        device: Device::Streams,
        before: &[Step::Streams(1, true), Step::Allocate(1, 3), Step::Write(1, 5)],
        step: Step::Streams(1, false),
        gives: Ok(0),
        then: &[Then::Enabled(1, false), Then::Subsystem(4, 0)],
    },
    Row {
        rule: "enabled anew, nothing is left of it",
        device: Device::Streams,
        before: &[Step::Streams(1, true), Step::Allocate(1, 3), Step::Write(1, 5), Step::Streams(1, false)],
        step: Step::Streams(1, true),
        gives: Ok(0),
        then: &[Then::Namespace(1, 0, 0), Then::Open(1, &[])],
    },
    Row {
        rule: "Format NVM releases ids; the directive stays enabled and the allocation stays",
        device: Device::Streams,
        before: &[Step::Streams(1, true), Step::Allocate(1, 3), Step::Write(1, 5)],
        step: Step::Format(1),
        gives: Ok(0),
        then: &[Then::Enabled(1, true), Then::Namespace(1, 3, 0), Then::Subsystem(1, 0)],
    },
    Row {
        rule: "Format NVM leaves other namespaces alone",
        device: Device::Streams,
        before: FULL,
        step: Step::Format(1),
        gives: Ok(0),
        then: &[Then::Open(1, &[]), Then::Open(2, &[20, 21])],
    },
    Row {
        rule: "deleting a namespace releases everything of it",
        device: Device::Streams,
        before: &[Step::Streams(1, true), Step::Allocate(1, 3), Step::Write(1, 5)],
        step: Step::Delete(1),
        gives: Ok(0),
        then: &[Then::Subsystem(4, 0)],
    },
    Row {
        rule: "a namespace created anew has streams disabled",
        device: Device::Streams,
        before: &[Step::Streams(1, true), Step::Write(1, 5), Step::Delete(1)],
        step: Step::Create(1, &[]),
        gives: Ok(1),
        then: &[Then::Enabled(1, false)],
    },
    Row {
        rule: "write protection releases ids and resources, of all hosts",
        device: Device::Streams,
        before: &[
            Step::Streams(1, true),
            Step::Allocate(1, 2),
            Step::Write(1, 5),
            Step::As(1),
            Step::Streams(1, true),
            Step::Write(1, 5),
        ],
        step: Step::Protect(1, true),
        gives: Ok(0),
        then: &[Then::Subsystem(4, 0), Then::Enabled(1, true)],
    },
    Row {
        rule: "a write-protected namespace gets no allocation",
        device: Device::Streams,
        before: &[Step::Streams(1, true), Step::Protect(1, true)],
        step: Step::Allocate(1, 2),
        gives: Err(NvmeStatus::WriteProtected),
        then: &[Then::Namespace(1, 0, 0)],
    },
    Row {
        rule: "streams are not enabled on a write-protected namespace",
        device: Device::Streams,
        before: &[Step::Protect(1, true)],
        step: Step::Streams(1, true),
        gives: Err(NvmeStatus::WriteProtected),
        then: &[Then::Enabled(1, false)],
    },
    Row {
        rule: "but again once the protection is gone",
        device: Device::Streams,
        before: &[Step::Protect(1, true), Step::Protect(1, false)],
        step: Step::Streams(1, true),
        gives: Ok(0),
        then: &[Then::Enabled(1, true)],
    },
];

static SUBSYSTEM: &[Row] = &[
    Row {
        rule: "status of the broadcast id lists what uses shared resources",
        device: Device::Streams,
        before: &[
            Step::Streams(1, true),
            Step::Streams(2, true),
            Step::Allocate(1, 2),
            Step::Write(1, 5),
            Step::Write(2, 9),
            Step::Write(2, 3),
        ],
        step: Step::As(0),
        gives: Ok(0),
        then: &[Then::Open(BROADCAST, &[3, 9]), Then::Subsystem(2, 2)],
    },
    Row {
        rule: "subsystem parameters can be read before anything is enabled",
        device: Device::Streams,
        before: &[],
        step: Step::Receive(DirectiveCommand::parameters(BROADCAST, STREAMS, 32)),
        gives: Ok(0),
        then: &[Then::Subsystem(4, 0)],
    },
];

#[test]
fn identify_and_discovery() {
    check(DISCOVERY);
}

#[test]
fn enable_and_disable() {
    check(ENABLE);
}

#[test]
fn streams_open_with_their_first_write() {
    check(OPENING);
}

#[test]
fn a_write_succeeds_when_streams_run_out() {
    check(EXHAUSTION);
}

#[test]
fn exclusive_resources() {
    check(ALLOCATION);
}

#[test]
fn release_and_what_implies_it() {
    check(RELEASE);
}

#[test]
fn the_broadcast_id_means_the_subsystem() {
    check(SUBSYSTEM);
}
