//! Dwords and structures of Directive Send, Directive Receive and writes, byte by byte.

use crate::directives::bench::{Bench, Device, Step};
use nandscape_core::NvmeStatus;
use nandscape_namespace::directives::identify::IdentifyParameters;
use nandscape_namespace::directives::streams::{StreamsParameters, decode_status, encode_status};
use nandscape_namespace::directives::{
    DATA_PLACEMENT, DIRECTIVE_RECEIVE, DIRECTIVE_SEND, DirectiveCommand, IoManagement, OACS_DIRECTIVES,
    STREAMS, WriteDirective,
};
use proptest::prelude::*;

#[test]
fn commands_dword_by_dword() {
    assert_eq!((DIRECTIVE_SEND, DIRECTIVE_RECEIVE), (0x19, 0x1a));
    assert_eq!(DirectiveCommand::enable(1, STREAMS, true).encode(), [0, 0x0000_0001, 0x0000_0101]);
    assert_eq!(DirectiveCommand::enable(1, STREAMS, false).encode(), [0, 0x0000_0001, 0x0000_0100]);
    assert_eq!(DirectiveCommand::parameters(1, STREAMS, 32).encode(), [7, 0x0000_0101, 0]);
    assert_eq!(DirectiveCommand::stream_status(1, 131_072).encode(), [32_767, 0x0000_0102, 0]);
    assert_eq!(DirectiveCommand::allocate(1, 16).encode(), [0, 0x0000_0103, 16]);
    assert_eq!(DirectiveCommand::release_id(1, 0xabcd).encode(), [0, 0xabcd_0101, 0]);
    assert_eq!(DirectiveCommand::release_resources(1).encode(), [0, 0x0000_0102, 0]);
    assert_eq!(WriteDirective::stream(5).encode(), [1 << 20, 5 << 16]);
    assert_eq!(WriteDirective::placement(0).encode(), [2 << 20, 0]);
    assert_eq!(WriteDirective::stream(0), WriteDirective::NONE);
    assert_eq!(IoManagement::update(1, 3).encode(), [0x0002_0001, 0]);
}

#[test]
fn status_codes_are_those_of_the_standard() {
    let codes = [
        (NvmeStatus::InvalidOpcode, (0, 0x01)),
        (NvmeStatus::InvalidField, (0, 0x02)),
        (NvmeStatus::InternalError, (0, 0x06)),
        (NvmeStatus::InvalidNamespace, (0, 0x0b)),
        (NvmeStatus::CommandSequence, (0, 0x0c)),
        (NvmeStatus::WriteProtected, (0, 0x20)),
        (NvmeStatus::HostIdNotInitialized, (0, 0x27)),
        (NvmeStatus::FdpDisabled, (0, 0x29)),
        (NvmeStatus::InvalidPlacementHandleList, (0, 0x2a)),
        (NvmeStatus::NamespaceIdUnavailable, (1, 0x16)),
        (NvmeStatus::StreamResources, (1, 0x7f)),
    ];
    for (status, code) in codes {
        assert_eq!(status.code(), code, "{status}");
    }
}

#[test]
fn oacs_bit_5_is_set_only_with_directives() {
    assert_eq!(OACS_DIRECTIVES, 0x20);
    assert_eq!(Bench::new(Device::Streams).directives.oacs(), 0x20);
    assert_eq!(Bench::new(Device::None).directives.oacs(), 0);
}

#[test]
fn streams_parameters_byte_by_byte() {
    let mut bench = Bench::new(Device::Streams);
    for step in [Step::Streams(1, true), Step::Allocate(1, 3), Step::Write(1, 1), Step::Write(1, 2)] {
        bench.step(&step).unwrap();
    }
    let controller = bench.controller();
    let mut buffer = [0xff; 40];
    let command = DirectiveCommand::parameters(1, STREAMS, 32);
    let reply = bench.directives.receive(controller, &command, &mut buffer).unwrap();
    let mut expected = [0u8; 32];
    expected[0] = 4; // MSL
    expected[2] = 1; // NSSA
    expected[4] = 0; // NSSO
    expected[16] = 8; // SWS
    expected[21] = 1; // SGS 256
    expected[22] = 3; // NSA
    expected[24] = 2; // NSO
    assert_eq!((reply.bytes, &buffer[..32]), (32, &expected[..]));
    assert_eq!(buffer[32..], [0xff; 8], "nothing beyond");
    // With the broadcast id only the subsystem's fields.
    let command = DirectiveCommand::parameters(u32::MAX, STREAMS, 32);
    bench.directives.receive(controller, &command, &mut buffer).unwrap();
    expected[16..].fill(0);
    assert_eq!(&buffer[..32], &expected[..]);
}

#[test]
fn the_capability_bits_say_what_hosts_share() {
    for (device, bits) in [(Device::Streams, 0), (Device::SharedIds, 1), (Device::NeedsHostId, 2)] {
        assert_eq!(Bench::new(device).parameters(u32::MAX).unwrap().nssc, bits, "{device:?}");
    }
}

#[test]
fn identify_parameters_byte_by_byte() {
    let mut bench = Bench::new(Device::Both);
    for step in [Step::Streams(1, true), Step::Fdp(1, true, 0), Step::Create(0, &[0])] {
        bench.step(&step).unwrap();
    }
    let mut maps = |nsid| {
        let bytes = bench.identify(nsid).unwrap().encode();
        assert!(bytes.iter().enumerate().all(|(at, byte)| at % 32 == 0 && at < 96 || *byte == 0));
        [bytes[0], bytes[32], bytes[64]]
    };
    assert_eq!(maps(1), [0b011, 0b011, 0b000], "streams, enabled, never persistent");
    assert_eq!(maps(2), [0b011, 0b001, 0b000], "streams, not enabled");
    assert_eq!(maps(4), [0b101, 0b101, 0b100], "data placement, enabled and persistent; no streams");
    bench.step(&Step::Enable(4, DATA_PLACEMENT, false)).unwrap();
    assert_eq!(bench.identify(4).unwrap().encode()[32], 0b001);
}

#[test]
fn a_host_gets_no_more_than_it_asked_for() {
    let mut bench = Bench::new(Device::Streams);
    bench.step(&Step::Streams(1, true)).unwrap();
    for id in [3, 1, 2] {
        bench.step(&Step::Write(1, id)).unwrap();
    }
    let controller = bench.controller();
    let mut buffer = [0xff; 16];
    let reply =
        bench.directives.receive(controller, &DirectiveCommand::stream_status(1, 4), &mut buffer).unwrap();
    assert_eq!((reply.bytes, &buffer[..6]), (4, &[3, 0, 1, 0, 0xff, 0xff][..]));
    let reply =
        bench.directives.receive(controller, &DirectiveCommand::stream_status(1, 4096), &mut buffer[..2]);
    assert_eq!(reply.unwrap().bytes, 2, "nor more than its buffer holds");
}

proptest! {
    #[test]
    fn commands_survive_the_round_trip(nsid: u32, cdw: [u32; 3]) {
        let command = DirectiveCommand::decode(nsid, cdw);
        prop_assert_eq!(command.encode(), cdw);
        prop_assert_eq!(command.bytes(), (u64::from(cdw[0]) + 1) * 4);
    }

    #[test]
    fn write_directives_survive_the_round_trip(dtype in 0u8..16, dspec: u16, cdw12: u32, cdw13: u32) {
        let directive = WriteDirective { dtype, dspec };
        let [a, b] = directive.encode();
        prop_assert_eq!(WriteDirective::decode(a, b), directive);
        // Other bits of the dwords belong to the write.
        prop_assert_eq!(WriteDirective::decode(cdw12 & !0xf0_0000 | a, cdw13 & 0xffff | b), directive);
    }

    #[test]
    fn parameters_survive_the_round_trip(a: [u16; 6], nssc: u8, sws: u32) {
        let [msl, nssa, nsso, sgs, nsa, nso] = a;
        let parameters = StreamsParameters { msl, nssa, nsso, nssc, sws, sgs, nsa, nso };
        prop_assert_eq!(StreamsParameters::decode(&parameters.encode()), Some(parameters));
    }

    #[test]
    fn status_survives_the_round_trip(ids: Vec<u16>) {
        prop_assert_eq!(decode_status(&encode_status(&ids)), ids);
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert_eq!(StreamsParameters::decode(&bytes).is_some(), bytes.len() >= 26);
        prop_assert_eq!(IdentifyParameters::decode(&bytes).is_some(), bytes.len() >= 96);
        prop_assert!(decode_status(&bytes).len() <= bytes.len() / 2);
    }
}
