//! Losses of power on a device with a volatile buffer, where operations reach the flash in any order that the
//! contract of devices allows: what a flush answered is there, and no sector has data of another write.

use super::{Vectored, geometry, nand, run, setups, submit};
use nandscape_core::command::Payload;
use nandscape_core::rng::{Rng, below, seeded};
use nandscape_core::vector::{ChunkState, SectorAddress, VectorCommand};
use nandscape_core::{Command, Reply, SimTime, Subsystem, Token};
use nandscape_media::faults::FaultPlan;
use nandscape_media::{BadBlocks, Nand};
use nandscape_namespace::vector::{VectorNamespace, VectorSetup};
use nandscape_testkit::crash::{Buffer, CrashDevice, Handle};

/// A chunk as the host knows it after a command.
#[derive(Clone, Default)]
struct Known {
    sectors: Vec<u8>,
    /// Sectors that a flush answered.
    durable: usize,
}

/// A command that was answered: operations so far, and the state of the host.
struct Answered {
    operations: usize,
    token: Token,
    known: Vec<Known>,
}

fn step(vectored: &mut Vectored, known: &mut [Known], rng: &mut impl Rng, last: &mut u8) -> Token {
    let geometry = geometry(vectored);
    // Few chunks, so that they are often reset.
    let number = below(rng, 4) as u32;
    let chunk: SectorAddress = geometry.chunk_at(number);
    let one = &mut known[number as usize];
    let (command, payload) = if below(rng, 5) == 0 {
        for one in known.iter_mut() {
            one.durable = one.sectors.len();
        }
        (Command::FLUSH, Vec::new())
    } else if one.sectors.len() == geometry.sectors as usize {
        *one = Known::default();
        (Command::Vector(VectorCommand::Reset([chunk].into())), Vec::new())
    } else {
        let from = one.sectors.len() as u32;
        let most = (64 / geometry.write_min).min((geometry.sectors - from) / geometry.write_min);
        let count = (1 + below(rng, most.into()) as u32) * geometry.write_min;
        *last = *last % 250 + 1;
        one.sectors.resize((from + count) as usize, *last);
        (Command::Vector(VectorCommand::Write(run(chunk, from, count))), vec![*last; count as usize * 512])
    };
    let payload = if payload.is_empty() { Payload::None } else { Payload::Write(&payload) };
    let answer = vectored.submit(0, command, payload, SimTime::ZERO).unwrap();
    assert_eq!(answer.reply, Reply::Nothing);
    answer.done
}

/// Opens what is on the flash, and compares it with what the host knows. The command that was not answered is
/// the step from `answered` to `submitted`.
fn check(nand: Nand, setup: &VectorSetup, answered: &[Known], submitted: &[Known], context: &str) {
    let (device, _) = CrashDevice::new(nand, Buffer::Volatile, &FaultPlan::default(), false);
    let mut vectored: Vectored = VectorNamespace::new(device, setup).unwrap();
    let geometry = geometry(&mut vectored);
    Subsystem::check_invariants(&vectored);
    for (number, (answered, submitted)) in (0..).zip(answered.iter().zip(submitted)) {
        let written = vectored.describe(number).write_pointer;
        let is_reset = submitted.sectors.len() < answered.sectors.len();
        assert!(is_reset || written as usize >= answered.durable, "chunk {number}, {written}: {context}");
        for sector in 0..written {
            let mut data = [0; 512];
            let list = run(geometry.chunk_at(number), sector, 1);
            let read = submit(&mut vectored, VectorCommand::Read(list), Payload::Read(&mut data)).unwrap();
            if read != Reply::Nothing {
                continue;
            }
            // While a reset is not answered, what was there may be.
            let known = if is_reset { &answered.sectors } else { &submitted.sectors };
            let expected = known.get(sector as usize);
            assert!(
                data.iter().all(|byte| Some(byte) == expected),
                "chunk {number}, sector {sector} has {}, expected {expected:?}: {context}",
                data[0]
            );
        }
        if !is_reset {
            for sector in 0..answered.durable as u32 {
                let list = run(geometry.chunk_at(number), sector, 1);
                let read = submit(&mut vectored, VectorCommand::Read(list), Payload::None).unwrap();
                let cached = geometry.cached;
                let is_hidden =
                    vectored.describe(number).state == ChunkState::Open && sector + cached >= written;
                assert!(is_hidden || read == Reply::Nothing, "chunk {number}, sector {sector}: {context}");
            }
        }
    }
}

fn recorded(setup: &VectorSetup, seed: u64) -> (Vec<Answered>, Handle) {
    let (device, handle) =
        CrashDevice::new(nand(BadBlocks::None, None), Buffer::Volatile, &FaultPlan::default(), true);
    let mut vectored: Vectored = VectorNamespace::new(device, setup).unwrap();
    let mut known = vec![Known::default(); 4];
    let mut answers = vec![Answered { operations: 0, token: Token::NONE, known: known.clone() }];
    let (mut rng, mut last) = (seeded(seed), 0);
    for _ in 0..80 {
        let token = step(&mut vectored, &mut known, &mut rng, &mut last);
        answers.push(Answered { operations: handle.recorded(), token, known: known.clone() });
    }
    (answers, handle)
}

#[test]
fn what_a_flush_answered_survives_whatever_order_the_operations_had() {
    let mut resets = 0;
    for (seed, setup) in (1..).zip(setups().into_iter().cycle().take(9)) {
        let (answers, handle) = recorded(&setup, seed);
        let sets: Vec<_> = answers.iter().map(|answer| handle.set_of(answer.token)).collect();
        let operations = handle.take_operations();
        resets += operations.iter().filter(|operation| operation.is_erase()).count();
        let mut rng = seeded(seed);
        for trial in 0..400 {
            // The command that was not answered when the power was lost.
            let at = 1 + below(&mut rng, answers.len() as u64 - 1) as usize;
            let share = below(&mut rng, 11);
            let mut nand = nand(BadBlocks::None, None);
            let mut done = vec![false; answers[at].operations];
            for (number, operation) in operations[..done.len()].iter().enumerate() {
                let is_answered = sets[..at].iter().any(|set| set.contains(number));
                let is_possible = (0..number).all(|before| done[before] || !operation.needs.contains(before));
                assert!(is_possible || !is_answered);
                done[number] = is_answered || is_possible && below(&mut rng, 10) < share;
                if done[number] {
                    operation.apply(&mut nand);
                }
            }
            // One that could have come next is half done.
            let is_next = |number: &usize| {
                let needs = &operations[*number].needs;
                !done[*number] && (0..*number).all(|before| done[before] || !needs.contains(before))
            };
            let next: Vec<_> = (0..done.len()).filter(is_next).collect();
            if !next.is_empty() && trial % 2 == 0 {
                operations[next[below(&mut rng, next.len() as u64) as usize]].tear(&mut nand);
            }
            let context = format!("seed {seed}, trial {trial}, command {at}");
            check(nand, &setup, &answers[at - 1].known, &answers[at].known, &context);
        }
    }
    assert!(resets > 50, "{resets} erases");
}
