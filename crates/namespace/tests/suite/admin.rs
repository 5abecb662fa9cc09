//! NVMe commands that administer, as a front end passes them on: through the trait, from dwords to bytes.

use crate::directives::flash::{page_map, with_data_placement};
use nandscape_core::command::Payload;
use nandscape_core::{
    BlockCommand, Control, Extent, Hint, NvmeCommand, NvmeQueue, NvmeReply, NvmeStatus, Op, SimTime,
    Subsystem,
};
use nandscape_namespace::directives::fdp::Tail;
use nandscape_namespace::directives::{DIRECTIVE_RECEIVE, DirectiveCommand, IDENTIFY, IoManagement};
use nandscape_namespace::{GET_FEATURES, GET_LOG_PAGE, SET_FEATURES};

const PAGE: u64 = 4096;

fn device() -> Box<dyn Subsystem> {
    let keys = [("op", "0.3"), ("streams", "3"), ("stream_granularity", "256KiB"), ("frontiers", "1")];
    Box::new(with_data_placement(page_map(&keys), Tail::Unwritten))
}

/// One whose layer can put its work off, and so has windows.
fn device_of_windows() -> Box<dyn Subsystem> {
    Box::new(with_data_placement(page_map(&[("op", "0.3")]), Tail::Unwritten))
}

fn admin(opcode: u8, cdw: [u32; 4]) -> NvmeCommand {
    let [a, b, c, d] = cdw;
    NvmeCommand { queue: NvmeQueue::Admin, opcode, nsid: 1, cdw: [a, b, c, d, 0, 0] }
}

fn io(opcode: u8, [a, b]: [u32; 2]) -> NvmeCommand {
    NvmeCommand { queue: NvmeQueue::Io, opcode, nsid: 1, cdw: [a, b, 0, 0, 0, 0] }
}

/// Get Log Page into so many dwords, from a byte on.
fn log(page: u8, identifier: u16, dwords: u32, offset: u32) -> NvmeCommand {
    let (low, high) = ((dwords - 1) & 0xffff, (dwords - 1) >> 16);
    admin(GET_LOG_PAGE, [u32::from(page) | low << 16, high | u32::from(identifier) << 16, offset, 0])
}

fn execute(
    device: &mut dyn Subsystem,
    command: &NvmeCommand,
    data: &mut [u8],
) -> Result<NvmeReply, NvmeStatus> {
    let Control { nvme: Some(nvme), .. } = device.control() else { panic!("an NVMe device") };
    nvme.execute(command, data, SimTime(0))
}

/// Bytes that can still be written to the unit of each handle, by I/O Management Receive.
fn room(device: &mut dyn Subsystem) -> Vec<u64> {
    let mut data = [0; 16 + 4 * 32];
    let command = io(IoManagement::RECEIVE, IoManagement::status(1, data.len() as u32).encode());
    let reply = execute(device, &command, &mut data).unwrap();
    assert_eq!(reply.bytes, data.len());
    data[16..].chunks(32).map(|unit| u64::from_le_bytes(unit[8..16].try_into().unwrap())).collect()
}

#[test]
fn data_placement_is_administered_through_the_trait() {
    let device = &mut *device();
    let write = BlockCommand::new(Op::Write, Extent::new(0, 10 * PAGE), Hint(2));
    device.submit(0, write.into(), Payload::None, SimTime(0)).unwrap();
    assert_eq!(room(device), [64, 54, 64, 64]);
    let update = io(IoManagement::SEND, IoManagement::update(1, 1).encode());
    execute(device, &update, &mut [1, 0]).unwrap();
    assert_eq!(room(device), [64; 4], "handle 1 has a fresh unit");
    let mut data = [0xff; 4096];
    let enabled = execute(device, &admin(GET_FEATURES, [0x1d, 1, 0, 0]), &mut data).unwrap();
    assert_eq!(enabled.dw0 & 1, 1, "flexible data placement is on");
    // One event type of handle 1: a unit that was not written to its end.
    execute(device, &admin(SET_FEATURES, [0x1e, 1 | 1 << 16, 1, 0]), &mut [0]).unwrap();
    let types = execute(device, &admin(GET_FEATURES, [0x1e, 1 | 255 << 16, 0, 0]), &mut data).unwrap();
    assert_eq!(types.bytes, types.dw0 as usize * 2);
    let statistics = execute(device, &log(0x22, 1, 16, 0), &mut data).unwrap();
    assert_eq!(statistics.bytes, 64);
    assert_eq!(u64::from_le_bytes(data[..8].try_into().unwrap()), 10 * PAGE, "bytes that hosts wrote");
    let parameters = DirectiveCommand::parameters(1, IDENTIFY, 4096);
    let [a, b, c] = parameters.encode();
    let reply = execute(device, &admin(DIRECTIVE_RECEIVE, [a, b, c, 0]), &mut data).unwrap();
    assert_eq!((reply.bytes, data[0] & 0b101), (4096, 0b101), "identify and data placement are there");
}

#[test]
fn what_directives_do_not_answer_the_subsystem_below_does() {
    let device = &mut *device_of_windows();
    let mut data = vec![0; 4096];
    let identify = |cns, from| admin(nandscape_namespace::IDENTIFY, [cns, from, 0, 0]);
    execute(device, &identify(0x04, 0), &mut data).unwrap();
    assert_eq!((data[0], data[128], data[130]), (1, 1, 1), "set 1 of group 1");
    execute(device, &identify(0x19, 0), &mut data).unwrap();
    assert_eq!(data[..4], [1, 0, 1, 0]);
    let write = BlockCommand::new(Op::Write, Extent::new(0, 10 * PAGE), Hint(0));
    device.submit(0, write.into(), Payload::None, SimTime(0)).unwrap();
    let whole = execute(device, &log(0x09, 1, 128, 0), &mut data).unwrap();
    assert_eq!(whole.bytes, 512);
    let mut part = vec![0; 64];
    let reply = execute(device, &log(0x09, 1, 1 << 17, 32), &mut part).unwrap();
    assert_eq!((reply.bytes, &part[..]), (64, &data[32..96]), "no more than there is room for");
    execute(device, &admin(SET_FEATURES, [0x12, 1, 15, 0]), &mut []).unwrap();
    let level = execute(device, &admin(GET_FEATURES, [0x12, 1, 0, 0]), &mut []).unwrap();
    assert_eq!(level.dw0, 15);
    // 13h and 14h: on, and into a window.
    let config = &mut [0; 512];
    execute(device, &admin(SET_FEATURES, [0x13, 1, 1, 0]), config).unwrap();
    let mode = execute(device, &admin(GET_FEATURES, [0x13, 1, 0, 0]), config).unwrap();
    assert_eq!((mode.dw0, mode.bytes), (1, 512));
    execute(device, &admin(SET_FEATURES, [0x14, 1, 2, 0]), &mut []).unwrap();
    let window = execute(device, &admin(GET_FEATURES, [0x14, 1, 0, 0]), &mut []).unwrap();
    assert_eq!(window.dw0, 2);
    let log_of_windows = execute(device, &log(0x0a, 1, 128, 0), &mut data).unwrap();
    assert_eq!((log_of_windows.bytes, data[0]), (512, 2));
    execute(device, &log(0x0b, 0, 4, 0), &mut data).unwrap();
}

#[test]
fn every_mistake_of_a_host_has_its_status() {
    use NvmeStatus::{
        CommandSequence, FeatureNotSaveable, InvalidField, InvalidLogPage, InvalidNamespace, InvalidOpcode,
    };
    let device = &mut *device_of_windows();
    let everyone = NvmeCommand { nsid: u32::MAX, ..io(IoManagement::RECEIVE, [1, 0]) };
    for (what, command, status) in [
        ("an opcode that is not there", admin(0x55, [0; 4]), InvalidOpcode),
        ("an admin opcode on an I/O queue", io(GET_LOG_PAGE, [9, 0]), InvalidOpcode),
        ("a log page that is not there", log(0x77, 1, 1, 0), InvalidLogPage),
        ("a group that is not there", log(0x09, 7, 1, 0), InvalidField),
        ("group 0, which is none", log(0x09, 0, 1, 0), InvalidField),
        ("a placement log of group 0", log(0x20, 0, 1, 0), InvalidField),
        ("an offset past the page", log(0x09, 1, 1, 516), InvalidField),
        ("an offset inside a dword", log(0x09, 1, 1, 2), InvalidField),
        (
            "identify data that is not there",
            admin(nandscape_namespace::IDENTIFY, [0x77, 0, 0, 0]),
            InvalidField,
        ),
        ("a feature that is not there", admin(GET_FEATURES, [0x77, 1, 0, 0]), InvalidField),
        ("a feature's default", admin(GET_FEATURES, [0x12 | 1 << 8, 1, 0, 0]), InvalidField),
        ("a set that is not there", admin(GET_FEATURES, [0x12, 9, 0, 0]), InvalidField),
        ("a feature to be saved", admin(SET_FEATURES, [0x12 | 1 << 31, 1, 4, 0]), FeatureNotSaveable),
        ("a level that is not there", admin(SET_FEATURES, [0x12, 1, 3, 0]), InvalidField),
        ("a configuration without data", admin(SET_FEATURES, [0x13, 1, 1, 0]), InvalidField),
        ("a window while the mode is off", admin(SET_FEATURES, [0x14, 1, 1, 0]), CommandSequence),
        ("placement off while there are namespaces", admin(SET_FEATURES, [0x1d, 1, 0, 0]), CommandSequence),
        ("handles of every namespace", everyone, InvalidNamespace),
    ] {
        assert_eq!(execute(device, &command, &mut []), Err(status), "{what}");
    }
    device.check_invariants();
}
