//! SCSI stream commands over the same state.

use crate::directives::bench::{Bench, Device, Step, Then};
use nandscape_core::NvmeStatus;
use nandscape_namespace::directives::WriteDirective;
use nandscape_namespace::directives::scsi::{ScsiStreams, Sense};

const OPEN: [u8; 16] = [0x9e, 0x34, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0];

fn close(id: u16) -> [u8; 16] {
    let mut cdb = [0x9e, 0x54, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    cdb[4..6].copy_from_slice(&id.to_be_bytes());
    cdb
}

fn status(first: u16, bytes: u8) -> [u8; 16] {
    let mut cdb = [0x9e, 0x16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, bytes, 0, 0];
    cdb[4..6].copy_from_slice(&first.to_be_bytes());
    cdb
}

fn write(id: u16) -> [u8; 16] {
    let mut cdb = [0x9a, 0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 8, 0, 0];
    cdb[10..12].copy_from_slice(&id.to_be_bytes());
    cdb
}

fn attached(streams: u16) -> (Bench, ScsiStreams) {
    let mut bench = Bench::new(Device::Streams);
    let controller = bench.controller();
    let scsi = ScsiStreams::attach(&mut bench.directives, controller, 1, streams).unwrap();
    (bench, scsi)
}

#[test]
fn open_assigns_the_lowest_free_id_and_close_releases_the_stream() {
    let (mut bench, mut scsi) = attached(3);
    let open = |bench: &mut Bench, scsi: &mut ScsiStreams| {
        let mut buffer = [0xff; 8];
        let bytes = scsi.command(&mut bench.directives, &OPEN, &mut buffer)?;
        assert_eq!((bytes, buffer[0], buffer[6], buffer[7]), (8, 7, 0, 0));
        Ok::<u16, Sense>(u16::from_be_bytes([buffer[4], buffer[5]]))
    };
    assert_eq!(open(&mut bench, &mut scsi), Ok(1));
    assert_eq!(open(&mut bench, &mut scsi), Ok(2));
    assert_eq!(open(&mut bench, &mut scsi), Ok(3));
    assert_eq!(open(&mut bench, &mut scsi), Err(Sense::NO_RESOURCES));
    let directive = scsi.write(&write(2)).unwrap().directive;
    assert_eq!(directive, WriteDirective::stream(2));
    assert_eq!(bench.write(1, directive), 1);
    bench.holds(&Then::Open(1, &[2])).unwrap();
    assert_eq!(scsi.command(&mut bench.directives, &close(2), &mut []), Ok(0));
    bench.holds(&Then::Open(1, &[])).unwrap();
    assert_eq!(open(&mut bench, &mut scsi), Ok(2), "the lowest that is free");
}

#[test]
fn an_open_stream_is_never_released_for_another_namespace() {
    let (mut bench, mut scsi) = attached(2);
    for _ in 0..2 {
        scsi.command(&mut bench.directives, &OPEN, &mut [0; 8]).unwrap();
    }
    for id in [1, 2] {
        let directive = scsi.write(&write(id)).unwrap().directive;
        bench.write(1, directive);
    }
    bench.step(&Step::Streams(2, true)).unwrap();
    for id in 10..20 {
        bench.step(&Step::Write(2, id)).unwrap();
    }
    bench.holds(&Then::Open(1, &[1, 2])).unwrap();
}

#[test]
fn write_stream_carries_block_and_length() {
    let (mut bench, mut scsi) = attached(1);
    assert_eq!(scsi.write(&write(1)), Err(Sense::INVALID_FIELD), "not open");
    scsi.command(&mut bench.directives, &OPEN, &mut [0; 8]).unwrap();
    let command = scsi.write(&write(1)).unwrap();
    assert_eq!((command.lba, command.blocks), (0x1_0002, 8));
    let mut other = write(1);
    other[0] = 0x8a;
    assert_eq!(scsi.write(&other), Err(Sense::INVALID_OPCODE));
}

#[test]
fn status_lists_open_ids_from_the_one_asked_for() {
    let (mut bench, mut scsi) = attached(4);
    for _ in 0..4 {
        scsi.command(&mut bench.directives, &OPEN, &mut []).unwrap();
    }
    scsi.command(&mut bench.directives, &close(2), &mut []).unwrap();
    let mut buffer = [0xff; 64];
    let bytes = scsi.command(&mut bench.directives, &status(2, 64), &mut buffer).unwrap();
    assert_eq!(bytes, 24);
    let mut expected = [0u8; 24];
    expected[3] = 20; // bytes that follow the length
    expected[7] = 3; // open
    expected[11] = 3;
    expected[19] = 4;
    assert_eq!(buffer[..24], expected);
    assert_eq!(scsi.command(&mut bench.directives, &status(0, 4), &mut buffer), Ok(4));
}

#[test]
fn bad_commands_are_refused() {
    let (mut bench, mut scsi) = attached(1);
    let mut refuse = |cdb: [u8; 16]| scsi.command(&mut bench.directives, &cdb, &mut [0; 8]).unwrap_err();
    assert_eq!(refuse(close(1)), Sense::INVALID_FIELD, "not open");
    assert_eq!(refuse(close(0)), Sense::INVALID_FIELD);
    let mut reserved = OPEN;
    reserved[1] = 0x74;
    assert_eq!(refuse(reserved), Sense::INVALID_FIELD);
    let mut other = OPEN;
    other[1] = 0x10;
    assert_eq!(refuse(other), Sense::INVALID_OPCODE, "READ CAPACITY");
}

#[test]
fn attaching_needs_resources_and_directives() {
    let mut bench = Bench::new(Device::Streams);
    for step in
        [Step::Streams(1, true), Step::Write(1, 1), Step::Write(1, 2), Step::Write(1, 3), Step::Write(1, 4)]
    {
        bench.step(&step).unwrap();
    }
    let controller = bench.controller();
    let attach = ScsiStreams::attach(&mut bench.directives, controller, 2, 1);
    assert_eq!(attach.unwrap_err(), NvmeStatus::StreamResources);
    bench.holds(&Then::Enabled(2, false)).unwrap();
    let mut bench = Bench::new(Device::None);
    let controller = bench.controller();
    let attach = ScsiStreams::attach(&mut bench.directives, controller, 1, 1);
    assert_eq!(attach.unwrap_err(), NvmeStatus::InvalidOpcode);
}
