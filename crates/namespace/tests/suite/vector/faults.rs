//! Failing programs and erases, worn-out blocks, and losses of power.

use super::model::Model;
use super::random::{check, compare, read};
use super::{Vectored, geometry, nand, open, run, setup, setups, submit};
use nandscape_core::command::Payload;
use nandscape_core::rng::{below, seeded};
use nandscape_core::vector::{
    ChunkState, MediaEvent, MediaFailure, SectorAddress, VectorCommand, VectorError,
};
use nandscape_core::{
    BlockId, BlockState, Command, FlashError, FtlError, InjectedFault, NamespaceError, Oob, Reply, Subsystem,
};
use nandscape_media::BadBlocks;
use nandscape_media::Medium;
use nandscape_media::faults::{Fault, FaultPlan, PowerCut, Scripted};
use nandscape_namespace::vector::{FailedProgram, VectorOob, VectorSetup, VectorTag};

const CHUNK: SectorAddress = SectorAddress { group: 1, unit: 0, chunk: 3, sector: 0 };

fn events(vectored: &mut Vectored, after: u64) -> Box<[MediaEvent]> {
    match submit(vectored, VectorCommand::MediaEvents { after, room: 100 }, Payload::None).unwrap() {
        Reply::MediaEvents(events) => events,
        reply => panic!("{reply:?}"),
    }
}

fn write(vectored: &mut Vectored, chunk: SectorAddress, from: u32, count: u32) -> Vec<Option<VectorError>> {
    let command = VectorCommand::Write(run(chunk, from, count));
    let data = vec![7; count as usize * 512];
    match submit(vectored, command, Payload::Write(&data)).unwrap() {
        Reply::Nothing => vec![None; count as usize],
        Reply::Failed(errors) => (0..count as usize).map(|index| errors.of(index)).collect(),
        reply => panic!("{reply:?}"),
    }
}

fn failing_program(at: u64) -> FaultPlan {
    FaultPlan { script: vec![Scripted { at, fault: Fault::Program }], ..FaultPlan::default() }
}

#[test]
fn a_failed_program_closes_the_chunk_before_it_and_a_restart_finds_it_so() {
    for (setup, unit) in [(setup(), 4), (VectorSetup { spans_planes: true, ..setup() }, 8)] {
        // The second program of the third write unit fails, where there are two.
        let at = if unit == 8 { 5 } else { 2 };
        let (mut vectored, handle) = open(nand(BadBlocks::None, None), &setup, &failing_program(at));
        let done = write(&mut vectored, CHUNK, 0, 4 * unit);
        let (good, failed) = done.split_at(2 * unit as usize);
        assert!(good.iter().all(Option::is_none));
        assert!(failed.iter().all(|error| *error == Some(VectorError::EarlyClose)));
        let expected = [MediaEvent {
            number: 1,
            failure: MediaFailure::Program,
            address: CHUNK.at(2 * unit),
            sectors: unit,
        }];
        assert_eq!(*events(&mut vectored, 0), expected);
        assert_eq!(*events(&mut vectored, 1), []);
        let mut model = Model::new(geometry(&mut vectored));
        model.chunk(CHUNK).sectors = vec![Some(7); 2 * unit as usize];
        model.chunk(CHUNK).is_closed = true;
        check(&mut vectored, &model, "after the failure");
        let (mut vectored, _) = open(handle.nand(), &setup, &FaultPlan::default());
        check(&mut vectored, &model, "after a restart");
        // It can be reset and written again.
        let reset = [CHUNK];
        let got = submit(&mut vectored, VectorCommand::Reset(reset.into()), Payload::None);
        compare(&got, &model.reset(&reset), "reset");
        assert!(write(&mut vectored, CHUNK, 0, unit).iter().all(Option::is_none));
    }
}

#[test]
fn a_failed_program_can_leave_the_chunk_open_behind_it() {
    let setup = VectorSetup { failed_program: FailedProgram::SkipsUnit, ..setup() };
    let (mut vectored, handle) = open(nand(BadBlocks::None, None), &setup, &failing_program(1));
    let done = write(&mut vectored, CHUNK, 0, 8);
    assert!(done[..4].iter().all(Option::is_none));
    assert!(done[4..].iter().all(|error| *error == Some(VectorError::WriteNextUnit)));
    let mut model = Model::new(geometry(&mut vectored));
    model.chunk(CHUNK).sectors = [vec![Some(7); 4], vec![None; 4]].concat();
    check(&mut vectored, &model, "after the failure");
    let (mut vectored, _) = open(handle.nand(), &setup, &FaultPlan::default());
    check(&mut vectored, &model, "after a restart");
    assert!(write(&mut vectored, CHUNK, 8, 4).iter().all(Option::is_none));
}

#[test]
fn a_chunk_that_cannot_be_erased_is_offline_for_good() {
    let failing = FaultPlan { script: vec![Scripted { at: 0, fault: Fault::Erase }], ..FaultPlan::default() };
    for (plan, endurance, failure) in
        [(failing, None, MediaFailure::Erase), (FaultPlan::default(), Some(0), MediaFailure::WornOut)]
    {
        let setup = setup();
        let (mut vectored, handle) = open(nand(BadBlocks::None, endurance), &setup, &plan);
        let mut model = Model::new(geometry(&mut vectored));
        let sectors = model.geometry.sectors;
        assert!(write(&mut vectored, CHUNK, 0, sectors).iter().all(Option::is_none));
        let reset = VectorCommand::Reset([CHUNK.at(5)].into());
        let got = submit(&mut vectored, reset.clone(), Payload::None);
        compare(&got, &Ok(vec![Some(VectorError::Offline)]), "the first reset");
        assert_eq!(
            *events(&mut vectored, 0),
            [MediaEvent { number: 1, failure, address: CHUNK, sectors: 0 }]
        );
        model.chunk(CHUNK).is_offline = true;
        check(&mut vectored, &model, "offline");
        let (mut vectored, _) = open(handle.nand(), &setup, &FaultPlan::default());
        check(&mut vectored, &model, "offline after a restart");
        compare(&submit(&mut vectored, reset, Payload::None), &Ok(vec![Some(VectorError::Offline)]), "again");
        let write = submit(&mut vectored, VectorCommand::Write(run(CHUNK, 0, 4)), Payload::None);
        compare(&write, &Err(VectorError::OutOfOrder), "a write");
    }
}

#[test]
fn wear_of_each_chunk_grows_with_its_resets() {
    let (mut vectored, _) = open(nand(BadBlocks::None, None), &setup(), &FaultPlan::default());
    let sectors = geometry(&mut vectored).sectors;
    let number = geometry(&mut vectored).chunk_number(CHUNK);
    for resets in 1..=60u32 {
        write(&mut vectored, CHUNK, 0, sectors);
        submit(&mut vectored, VectorCommand::Reset([CHUNK].into()), Payload::None).unwrap();
        assert_eq!(u32::from(vectored.describe(number).wear), (resets * 255 / 50).min(255));
        assert_eq!(vectored.describe(number + 1).wear, 0);
    }
}

#[test]
fn sectors_that_cannot_be_read_fail_alone_and_are_told() {
    let plan = FaultPlan { unreadable: 0.2, seed: 3, ..FaultPlan::default() };
    let (mut vectored, handle) = open(nand(BadBlocks::None, None), &setup(), &plan);
    let sectors = geometry(&mut vectored).sectors;
    write(&mut vectored, CHUNK, 0, sectors);
    let mut model = Model::new(geometry(&mut vectored));
    model.chunk(CHUNK).is_closed = true;
    let page = |sector: u32| nandscape_core::Ppn((8 + 3) * 6 + sector / 4);
    let kept = (0..sectors).map(|sector| handle.is_readable(page(sector)).then_some(7));
    model.chunk(CHUNK).sectors = kept.collect();
    let lost = model.chunk(CHUNK).sectors.iter().filter(|byte| byte.is_none()).count();
    assert!(lost > 0 && lost < sectors as usize, "{lost} of {sectors}");
    read(&mut vectored, &model, &run(CHUNK, 0, sectors), "a chunk with unreadable pages");
    assert_eq!(events(&mut vectored, 0).len(), lost / 4);
    assert_eq!(events(&mut vectored, 0)[0].failure, MediaFailure::Read);
    // A copy with such a source writes nothing.
    let target = SectorAddress { chunk: 0, ..CHUNK };
    let copy = VectorCommand::Copy { sources: run(CHUNK, 0, sectors), targets: run(target, 0, sectors) };
    let got = submit(&mut vectored, copy, Payload::None);
    compare(&got, &model.copy(&run(CHUNK, 0, sectors), &run(target, 0, sectors)), "a copy");
    check(&mut vectored, &model, "after the copy");
}

#[test]
fn planes_that_were_not_erased_together_do_not_show_what_they_had_before() {
    let setup = VectorSetup { spans_planes: true, ..setup() };
    let (mut vectored, handle) = open(nand(BadBlocks::None, None), &setup, &FaultPlan::default());
    let sectors = geometry(&mut vectored).sectors;
    write(&mut vectored, CHUNK, 0, sectors);
    // The power was lost when one plane had been erased and written again, and the other one not erased yet.
    let mut nand = handle.nand();
    let block = BlockId(8 + CHUNK.chunk);
    nand.erase(block).unwrap();
    for index in 0..2 {
        let page = nand.geometry().page(block, index);
        let oob = Oob::of(VectorTag { page, seq: 13 + 2 * u64::from(index) });
        nand.program(page, oob, Some(&[9; 2048])).unwrap();
    }
    let mut model = Model::new(geometry(&mut vectored));
    let (mut vectored, _) = open(nand, &setup, &FaultPlan::default());
    model.chunk(CHUNK).is_closed = true;
    check(&mut vectored, &model, "after the start");
    let reset = VectorCommand::Reset([CHUNK].into());
    assert_eq!(submit(&mut vectored, reset, Payload::None), Ok(Reply::Nothing));
    assert!(write(&mut vectored, CHUNK, 0, sectors).iter().all(Option::is_none));
}

/// Whether a command ended with a power cut.
fn is_cut(result: &Result<Reply, NamespaceError>) -> bool {
    let flash = |error: &FlashError| matches!(error, FlashError::Injected(InjectedFault::PowerLost { .. }));
    matches!(result, Err(NamespaceError::Ftl(FtlError::Flash(error))) if flash(error))
}

#[test]
fn what_was_answered_is_there_after_a_loss_of_power_at_any_operation() {
    for (seed, setup) in (1..).zip(setups()) {
        let mut rng = seeded(seed);
        let mut cuts = 0;
        let (mut vectored, mut handle) = open(nand(BadBlocks::None, None), &setup, &FaultPlan::default());
        let mut model = Model::new(geometry(&mut vectored));
        let (unit, sectors) = (model.geometry.write_min, model.geometry.sectors);
        for round in 0..300 {
            let cut = PowerCut { at: below(&mut rng, 40), is_torn: round % 2 == 0 };
            let plan = FaultPlan { power_cut: Some(cut), ..FaultPlan::default() };
            (vectored, handle) = open(handle.nand(), &setup, &plan);
            let context = format!("seed {seed}, round {round}, {cut:?}");
            check(&mut vectored, &model, &context);
            let (chunk, from) = loop {
                let number = below(&mut rng, u64::from(model.geometry.all_chunks())) as u32;
                let chunk = model.geometry.chunk_at(number);
                let from = model.chunk(chunk).sectors.len() as u32;
                let is_closed = model.chunk(chunk).is_closed;
                let got = if is_closed {
                    submit(&mut vectored, VectorCommand::Reset([chunk].into()), Payload::None)
                } else {
                    let count = (1 + below(&mut rng, u64::from(64 / unit)) as u32) * unit;
                    let addresses = run(chunk, from, count.min(sectors - from));
                    let data = vec![round as u8; addresses.len() * 512];
                    submit(&mut vectored, VectorCommand::Write(addresses), Payload::Write(&data))
                };
                if is_cut(&got) {
                    cuts += 1;
                    break (chunk, if is_closed { 0 } else { from });
                }
                assert_eq!(got, Ok(Reply::Nothing), "{context}");
                let new = vectored.describe(number).write_pointer as usize;
                let kept = model.chunk(chunk);
                kept.sectors.resize(new, Some(round as u8));
                kept.is_closed = new == sectors as usize;
            };
            // Of the chunk of the command that was cut, what it had is there, and more may be.
            (vectored, handle) = open(handle.nand(), &setup, &FaultPlan::default());
            let found = vectored.describe(model.geometry.chunk_number(chunk));
            assert_ne!(found.state, ChunkState::Offline, "{context}");
            assert!(found.write_pointer >= from, "{found:?}: {context}");
            let kept = model.chunk(chunk);
            if from == 0 && kept.is_closed {
                // A reset: whatever can be read, another reset ends it.
                kept.sectors.clear();
                kept.is_closed = false;
                if found.state != ChunkState::Free {
                    let reset = VectorCommand::Reset([chunk].into());
                    assert_eq!(submit(&mut vectored, reset, Payload::None), Ok(Reply::Nothing), "{context}");
                }
            } else {
                kept.sectors.resize(found.write_pointer as usize, Some(round as u8));
                kept.is_closed = found.state == ChunkState::Closed;
            }
            check(&mut vectored, &model, &context);
        }
        assert_eq!(cuts, 300);
        vectored.submit(0, Command::FLUSH, Payload::None, nandscape_core::SimTime::ZERO).unwrap();
    }
}
