//! What each command costs in flash operations and time, on a device without bytes.

use super::{GEOMETRY, run, setup};
use crate::TIMING;
use nandscape_core::command::Payload;
use nandscape_core::vector::{SectorAddress, VectorCommand, VectorError};
use nandscape_core::{
    BlockCommand, Capabilities, Cause, CauseTable, Command, Extent, FlashLayer, Hint, NamespaceError, Op,
    Reply, SimTime, Subsystem, Token,
};
use nandscape_media::{Fifo, Nand, NandOptions, Scheduler, Timed};
use nandscape_namespace::vector::{VectorNamespace, VectorSetup};
use nandscape_namespace::zones::ImpliedOob;

/// 1 ns a byte on each channel.
fn timed(setup: &VectorSetup) -> VectorNamespace<Timed<Nand<ImpliedOob>, Fifo>, ImpliedOob> {
    let capabilities = Capabilities { partial_transfer: true, ..Capabilities::default() };
    let nand = Nand::with_oob(GEOMETRY, &NandOptions { capabilities, ..NandOptions::default() }).unwrap();
    VectorNamespace::new(Timed::new(nand, Fifo::new(&GEOMETRY, &TIMING)), setup).unwrap()
}

fn chunk(group: u16, unit: u16, chunk: u32) -> SectorAddress {
    SectorAddress { group, unit, chunk, sector: 0 }
}

#[test]
fn commands_use_the_dies_that_they_name_and_no_more_operations_than_pages() {
    let mut vectored = timed(&setup());
    let mut submit = |command: VectorCommand, at: u64| {
        let answer = vectored.submit(0, Command::Vector(command), Payload::None, SimTime(at)).unwrap();
        assert_eq!(answer.reply, Reply::Nothing);
        (answer.done.0 - at, *vectored.device().counters())
    };
    let host = |causes: &CauseTable| causes.get(Cause::Host);
    // A page on each of four dies: two pages share a channel, one after the other.
    let four = [chunk(0, 0, 0), chunk(1, 0, 0), chunk(0, 1, 0), chunk(1, 1, 0)];
    let list: Box<[_]> = four.iter().flat_map(|chunk| run(*chunk, 0, 4)).collect();
    let (ns, causes) = submit(VectorCommand::Write(list.clone()), 0);
    assert_eq!((ns, host(&causes).programs), (500_000 + 2 * 2048, 4));
    // Two sectors of one page are one read; those of four pages are four.
    let (ns, causes) = submit(VectorCommand::Read(run(four[0], 1, 2)), 10_000_000);
    assert_eq!((ns, host(&causes).reads), (50_000 + 1024, 1));
    let (_, causes) = submit(VectorCommand::Read(list.clone()), 20_000_000);
    assert_eq!(host(&causes).reads, 5);
    // A copy reads and programs by itself.
    let (ns, causes) =
        submit(VectorCommand::Copy { sources: run(four[0], 0, 4), targets: run(four[1], 4, 4) }, 30_000_000);
    assert_eq!((causes.get(Cause::Gc).reads, causes.get(Cause::Gc).programs), (1, 1));
    assert_eq!(ns, 50_000 + 500_000 + 2 * 2048);
    assert_eq!((host(&causes).reads, host(&causes).programs), (5, 4));
    submit(VectorCommand::Write(run(four[0], 4, 20)), 40_000_000);
    let (ns, causes) = submit(VectorCommand::Reset([four[0]].into()), 50_000_000);
    assert_eq!((ns, host(&causes).erases), (2_000_000, 1));
    Subsystem::check_invariants(&vectored);
}

#[test]
fn a_chunk_over_planes_is_written_and_erased_in_each() {
    let mut vectored = timed(&VectorSetup { spans_planes: true, resets_free: true, ..setup() });
    let mut submit = |command: VectorCommand| {
        vectored.submit(0, Command::Vector(command), Payload::None, SimTime::ZERO).unwrap();
        vectored.device().counters().get(Cause::Host)
    };
    assert_eq!(submit(VectorCommand::Write(run(chunk(1, 1, 2), 0, 8))).programs, 2);
    assert_eq!(submit(VectorCommand::Reset([chunk(0, 0, 0)].into())).erases, 2);
    Subsystem::check_invariants(&vectored);
}

#[test]
fn block_commands_but_flushes_are_refused_by_name() {
    let mut vectored = timed(&setup());
    let read = BlockCommand::new(Op::Read, Extent::new(0, 512), Hint::default());
    let error = vectored.submit(0, read.into(), Payload::None, SimTime::ZERO).unwrap_err();
    assert_eq!(error, NamespaceError::NotSupported { command: "read" });
    let flushed = vectored.submit(0, Command::FLUSH, Payload::None, SimTime::ZERO).unwrap();
    assert_eq!(flushed.done, Token::NONE);
    // And block layers refuse vector commands.
    let error = Command::Vector(VectorCommand::Geometry).into_block().unwrap_err();
    assert_eq!(error, NamespaceError::NotSupported { command: "report geometry" });
}

#[test]
fn a_payload_of_another_length_is_refused() {
    let mut vectored = timed(&setup());
    let write = Command::Vector(VectorCommand::Write(run(chunk(0, 0, 0), 0, 4)));
    let error = vectored.submit(0, write, Payload::Write(&[0; 2047]), SimTime::ZERO).unwrap_err();
    assert_eq!(error, VectorError::InvalidField.into());
}

#[test]
fn impossible_setups_name_the_key() {
    let setup = setup();
    let coarse = nandscape_core::Geometry { page_bytes: 64 * 512, ..GEOMETRY };
    assert!(setup.check(&coarse, 1).is_ok());
    let wide = VectorSetup { spans_planes: true, ..setup.clone() };
    let far = VectorSetup { cached_units: Some(6), ..setup.clone() };
    let frail = VectorSetup { endurance: Some(0), ..setup };
    for (setup, geometry, key) in [
        (wide, &coarse, "device.sector"),
        (far, &GEOMETRY, "vector.cached_units"),
        (frail, &GEOMETRY, "vector.endurance"),
    ] {
        let error = setup.check(geometry, 1).unwrap_err().to_string();
        assert!(error.contains(key), "{error}");
    }
}
