//! Random commands against the model, with restarts in between.

use super::model::{Model, Outcome};
use super::{Vectored, geometry, nand, open, run, setups, submit};
use nandscape_core::command::Payload;
use nandscape_core::rng::{Rng, below, seeded};
use nandscape_core::vector::{
    ChunkState, MOST_ADDRESSES, SectorAddress, SectorErrors, VectorCommand, VectorError,
};
use nandscape_core::{Command, Lpn, NamespaceError, Oob, Reply, SimTime, Subsystem, VectorReports};
use nandscape_media::BadBlocks;
use nandscape_media::faults::FaultPlan;
use nandscape_namespace::vector::VectorSetup;

/// Asserts that a command gave what the model says.
pub fn compare(got: &Result<Reply, NamespaceError>, expected: &Outcome, context: &str) {
    let errors = match got {
        Ok(Reply::Nothing) => SectorErrors::default(),
        Ok(Reply::Failed(errors)) => (**errors).clone(),
        Err(NamespaceError::Vector(error)) => {
            assert_eq!(*expected, Err(*error), "{context}");
            return;
        }
        other => panic!("{other:?}: {context}"),
    };
    let expected = expected.as_ref().unwrap_or_else(|error| panic!("done, expected {error:?}: {context}"));
    for (index, expected) in expected.iter().enumerate() {
        assert_eq!(errors.of(index), *expected, "address {index}: {context}");
        assert_eq!(errors.bitmap() >> index & 1 == 1, expected.is_some(), "bit {index}: {context}");
    }
}

/// Asserts that states, write pointers and data are those of the model.
pub fn check(vectored: &mut Vectored, model: &Model, context: &str) {
    let all = model.geometry.all_chunks();
    let report = submit(vectored, VectorCommand::ChunkReport { from: 0, room: all }, Payload::None).unwrap();
    let Reply::Chunks(chunks) = report else { panic!("{report:?}") };
    assert_eq!(chunks.len(), all as usize);
    for (index, chunk) in chunks.iter().enumerate() {
        assert_eq!(chunk.start, model.geometry.chunk_at(index as u32));
        assert_eq!(chunk.state, model.state(index), "chunk {index}: {context}");
        assert_eq!(
            chunk.write_pointer as usize,
            model.chunks[index].sectors.len(),
            "chunk {index}: {context}"
        );
        for from in (0..chunk.sectors).step_by(MOST_ADDRESSES) {
            let count = (chunk.sectors - from).min(MOST_ADDRESSES as u32);
            read(vectored, model, &run(chunk.start, from, count), context);
        }
    }
    Subsystem::check_invariants(vectored);
}

/// Reads sectors and compares the status and the data of each.
pub fn read(vectored: &mut Vectored, model: &Model, addresses: &[SectorAddress], context: &str) {
    let mut data = vec![0xa5; addresses.len() * 512];
    let got = submit(vectored, VectorCommand::Read(addresses.into()), Payload::Read(&mut data));
    let expected = model.read(addresses);
    let outcome = expected.as_ref().map(|read| read.iter().map(|one| one.err()).collect());
    compare(&got, &outcome.map_err(|error| *error), context);
    for (sector, expected) in data.chunks(512).zip(expected.unwrap_or_default()) {
        if let Ok(byte) = expected {
            assert!(sector.iter().all(|found| *found == byte), "{} for {byte}: {context}", sector[0]);
        }
    }
}

/// Write units of some chunks from their write pointers on, mostly: a few lists are spoiled.
fn writable(model: &Model, rng: &mut impl Rng) -> Vec<SectorAddress> {
    let geometry = model.geometry;
    let unit = geometry.write_min;
    let mut lengths: Vec<u32> = model.chunks.iter().map(|chunk| chunk.sectors.len() as u32).collect();
    let mut addresses = Vec::new();
    let mut number = below(rng, u64::from(geometry.all_chunks())) as usize;
    for _ in 0..=below(rng, u64::from(64 / unit)) {
        if below(rng, 3) == 0 {
            number = below(rng, u64::from(geometry.all_chunks())) as usize;
        }
        let from = lengths[number];
        if model.state(number) == ChunkState::Offline || from + unit > geometry.sectors {
            continue;
        }
        addresses.extend(run(geometry.chunk_at(number as u32), from, unit));
        lengths[number] += unit;
    }
    spoil(&mut addresses, model, rng);
    addresses
}

/// Makes some lists wrong in one of the ways in which lists can be wrong.
fn spoil(addresses: &mut Vec<SectorAddress>, model: &Model, rng: &mut impl Rng) {
    let geometry = &model.geometry;
    if addresses.is_empty() {
        addresses.push(geometry.chunk_at(below(rng, u64::from(geometry.all_chunks())) as u32));
    }
    let at = below(rng, addresses.len() as u64) as usize;
    match below(rng, 60) {
        0 => addresses[at].sector = below(rng, u64::from(geometry.sectors) + 1) as u32,
        1 => addresses[at].chunk = below(rng, u64::from(geometry.chunks) + 1) as u32,
        2 => addresses[at].unit = below(rng, u64::from(geometry.units) + 1) as u16,
        3 => addresses[at].group = below(rng, u64::from(geometry.groups) + 1) as u16,
        4 => drop(addresses.remove(at)),
        5 => addresses.extend_from_within(..),
        6 => addresses.resize(65, geometry.chunk_at(0)),
        7 => addresses.reverse(),
        _ => {}
    }
}

/// Any sectors, many of them in runs.
fn any(model: &Model, rng: &mut impl Rng) -> Vec<SectorAddress> {
    let geometry = &model.geometry;
    let mut addresses: Vec<SectorAddress> = Vec::new();
    for _ in 0..=below(rng, 64) {
        match addresses.last() {
            Some(last) if below(rng, 4) > 0 => addresses.push(last.at((last.sector + 1) % geometry.sectors)),
            _ => {
                let number = below(rng, u64::from(geometry.all_chunks()));
                let most =
                    (model.chunks[number as usize].sectors.len() as u64 + 2).min(geometry.sectors.into());
                addresses.push(geometry.chunk_at(number as u32).at(below(rng, most) as u32));
            }
        }
    }
    addresses
}

pub fn step(vectored: &mut Vectored, model: &mut Model, rng: &mut impl Rng, last: &mut u8, context: &str) {
    match below(rng, 100) {
        0..60 => {
            let addresses = writable(model, rng);
            let bytes: Vec<u8> = addresses
                .iter()
                .map(|_| {
                    *last = *last % 250 + 1;
                    *last
                })
                .collect();
            let data: Vec<u8> = bytes.iter().flat_map(|byte| [*byte; 512]).collect();
            let command = VectorCommand::Write(addresses.clone().into());
            let got = submit(vectored, command, Payload::Write(&data));
            compare(&got, &model.write(&addresses, &bytes), context);
        }
        60..75 => {
            let mut addresses = any(model, rng);
            spoil(&mut addresses, model, rng);
            read(vectored, model, &addresses, context);
        }
        75..87 => {
            let targets = writable(model, rng);
            let readable: Vec<_> = any(model, rng);
            // Few copies would be done if any source were unreadable.
            let is_readable = |address: &&SectorAddress| {
                model.read(&[**address]).is_ok_and(|read| read[0].is_ok()) || below(rng, 40) == 0
            };
            let mut sources: Vec<_> = readable.iter().filter(is_readable).copied().collect();
            while !sources.is_empty() && sources.len() < targets.len() {
                sources.extend_from_within(..);
            }
            sources.truncate(targets.len());
            let command =
                VectorCommand::Copy { sources: sources.clone().into(), targets: targets.clone().into() };
            let got = submit(vectored, command, Payload::None);
            compare(&got, &model.copy(&sources, &targets), context);
        }
        _ => {
            let mut addresses: Vec<_> = any(model, rng).into_iter().filter(|_| below(rng, 20) == 0).collect();
            let closed = (0..model.chunks.len()).filter(|index| model.state(*index) == ChunkState::Closed);
            let closed: Vec<_> = closed.map(|index| model.geometry.chunk_at(index as u32)).collect();
            if !closed.is_empty() {
                addresses.push(closed[below(rng, closed.len() as u64) as usize]);
            }
            spoil(&mut addresses, model, rng);
            let got = submit(vectored, VectorCommand::Reset(addresses.clone().into()), Payload::None);
            compare(&got, &model.reset(&addresses), context);
        }
    }
}

#[test]
fn commands_do_and_refuse_what_the_model_does_and_refuses() {
    for (seed, setup) in (1..).zip(setups()) {
        let bad = BadBlocks::Share { share: 0.07, seed };
        let (mut vectored, mut handle) = open(nand(bad, None), &setup, &FaultPlan::default());
        let mut model = Model::new(geometry(&mut vectored));
        for index in 0..model.chunks.len() {
            model.chunks[index].is_offline = vectored.describe(index as u32).state == ChunkState::Offline;
        }
        assert!(model.chunks.iter().any(|chunk| chunk.is_offline));
        let mut rng = seeded(seed);
        let (mut last, mut resets, mut copied) = (0, 0, 0);
        for number in 0..4_000 {
            let context = format!("seed {seed}, step {number}");
            step(&mut vectored, &mut model, &mut rng, &mut last, &context);
            if number % 100 == 0 {
                check(&mut vectored, &model, &context);
            }
            if number % 250 == 249 {
                let counts = vectored.vector_counts(0);
                (resets, copied) = (resets + counts.resets, copied + counts.copied_sectors);
                vectored.submit(0, Command::FLUSH, Payload::None, SimTime::ZERO).unwrap();
                (vectored, handle) = open(handle.nand(), &setup, &FaultPlan::default());
                check(&mut vectored, &model, &context);
            }
        }
        assert!(resets > 200 && copied > 1_000, "{resets} resets, {copied} sectors copied: seed {seed}");
    }
}

#[test]
fn the_oob_of_a_host_comes_back_with_its_pages_over_a_restart() {
    for spans_planes in [false, true] {
        let setup = VectorSetup { spans_planes, host_oob: true, resets_open: true, ..super::setup() };
        let (mut vectored, handle) = open(nand(BadBlocks::None, None), &setup, &FaultPlan::default());
        let chunk = geometry(&mut vectored).chunk_at(5);
        let (unit, page) = (geometry(&mut vectored).write_min, 4);
        let oob: Vec<Oob> = (0..2 * unit / page)
            .map(|page| Oob { lpn: Lpn(700 + page), stream: page as u16, seq: u64::from(page) << 40 | 9 })
            .collect();
        let list = run(chunk, 0, 2 * unit);
        let data = vec![7; list.len() * 512];
        let write = || VectorCommand::Write(list.clone());
        let short = submit(&mut vectored, write(), Payload::WriteOob(Some(&data), &oob[1..]));
        assert_eq!(short, Err(VectorError::InvalidField.into()), "one for each page");
        submit(&mut vectored, write(), Payload::WriteOob(Some(&data), &oob)).unwrap();
        submit(&mut vectored, VectorCommand::Write(run(chunk, 2 * unit, unit)), Payload::Write(&data))
            .unwrap_err();
        let copy = VectorCommand::Copy { sources: run(chunk, 0, unit), targets: run(chunk, 2 * unit, unit) };
        let error = submit(&mut vectored, copy, Payload::None).unwrap_err();
        assert_eq!(error, NamespaceError::NotSupported { command: "vector copy" });
        vectored.submit(0, Command::FLUSH, Payload::None, SimTime::ZERO).unwrap();
        let (mut vectored, _) = open(handle.nand(), &setup, &FaultPlan::default());
        // The first sector of each page, and one behind the write pointer, which keeps what it has.
        let mut list: Vec<SectorAddress> =
            (0..oob.len() as u32).map(|index| chunk.at(index * page)).collect();
        list.push(chunk.at(2 * unit));
        let mut found = vec![oob[0]; list.len()];
        let read = VectorCommand::Read(list.into());
        let reply = submit(&mut vectored, read, Payload::ReadOob(None, &mut found)).unwrap();
        let Reply::Failed(errors) = reply else { panic!("{reply:?}") };
        assert_eq!(errors.0, [(oob.len() as u8, VectorError::Unwritten)]);
        assert_eq!((&found[..oob.len()], found[oob.len()]), (&oob[..], oob[0]));
        // An open chunk can be reset, as emulators allow.
        submit(&mut vectored, VectorCommand::Reset([chunk].into()), Payload::None).unwrap();
        assert_eq!(vectored.describe(5).state, ChunkState::Free);
        Subsystem::check_invariants(&vectored);
    }
    let small = nandscape_core::Geometry { oob_bytes: 8, ..super::GEOMETRY };
    let setup = VectorSetup { host_oob: true, ..super::setup() };
    assert!(setup.check(&small, 1).unwrap_err().to_string().contains("device.oob"));
}
