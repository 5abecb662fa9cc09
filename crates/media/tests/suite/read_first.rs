//! `ReadFirst` against a naive model of its rules, the rules themselves on what the model did, and single
//! claims with numbers worked out by hand.

use crate::reference;

use nandscape_core::{Clocked, Completion, Geometry, Ppn, SimTime, Token};
use nandscape_media::{Fifo, ReadFirst, Scheduler, TimedOp, Timing};
use proptest::prelude::*;
use reference::{Course, Job, Reference, conflict, is_read, unit};

/// 2 channels of 2 dies of 2 blocks of 4 pages: units 0 and 2 share channel 0.
const GEOMETRY: Geometry = Geometry {
    channels: 2,
    dies_per_channel: 2,
    planes_per_die: 2,
    blocks_per_plane: 1,
    pages_per_block: 4,
    page_bytes: 1000,
    sector_bytes: 1000,
    oob_bytes: 0,
};

/// 1 ns a byte.
const TIMING: Timing = Timing {
    read_ns: 50,
    program_ns: 700,
    erase_ns: 3000,
    channel_bytes_per_s: 1_000_000_000,
    command_ns: 0,
};

fn read(unit: u32, page: u32) -> TimedOp {
    TimedOp::Read { page: Ppn(unit * 8 + page), transfer: 100 }
}

fn program(unit: u32, page: u32) -> TimedOp {
    TimedOp::Program { page: Ppn(unit * 8 + page), transfer: 100, held: 0 }
}

fn erase(unit: u32, block: u32) -> TimedOp {
    TimedOp::Erase { page: Ppn(unit * 8 + block * 4), pages: 0 }
}

/// A scheduler, with tags given by the test.
struct Rig(ReadFirst);

impl Rig {
    fn new() -> Self {
        Self(ReadFirst::new(&GEOMETRY, &TIMING))
    }

    fn submit(&mut self, op: TimedOp, at: u64, after: Token, tag: u64) -> Token {
        let token = self.0.submit(op, SimTime(at), after);
        self.0.watch(token, tag);
        token
    }

    fn advance(&mut self, until: u64) -> Vec<(u64, u64)> {
        let mut out = Vec::new();
        self.0.advance(SimTime(until), &mut out);
        out.iter().map(|completion| (completion.tag, completion.at.0)).collect()
    }

    fn drain(&mut self) -> Vec<(u64, u64)> {
        self.advance(u64::MAX)
    }
}

#[test]
fn reads_overtake_queued_programs_but_not_the_running_one() {
    let mut rig = Rig::new();
    rig.submit(program(0, 0), 0, Token::NONE, 1);
    rig.submit(program(0, 1), 0, Token::NONE, 2);
    rig.advance(10);
    rig.submit(read(0, 5), 10, Token::NONE, 3);
    rig.submit(read(0, 6), 10, Token::NONE, 4);
    assert_eq!(rig.drain(), [(1, 800), (3, 950), (4, 1100), (2, 1900)]);
}

#[test]
fn simultaneous_submissions_are_ordered_before_any_starts() {
    let mut rig = Rig::new();
    rig.submit(program(0, 0), 0, Token::NONE, 1);
    rig.submit(read(0, 5), 0, Token::NONE, 2);
    assert_eq!(rig.drain(), [(2, 150), (1, 950)]);
}

#[test]
fn a_read_waits_for_the_program_of_its_page_only() {
    let mut rig = Rig::new();
    rig.submit(program(0, 0), 0, Token::NONE, 1);
    rig.submit(program(0, 1), 0, Token::NONE, 2);
    rig.submit(read(0, 1), 0, Token::NONE, 3);
    rig.submit(read(0, 2), 0, Token::NONE, 4);
    assert_eq!(rig.drain(), [(4, 150), (1, 950), (2, 1750), (3, 1900)]);
}

#[test]
fn an_erase_waits_for_earlier_reads_and_later_reads_for_it() {
    let mut rig = Rig::new();
    // Not before 500, so without the rule the erase would be first.
    rig.submit(read(0, 0), 500, Token::NONE, 1);
    rig.submit(erase(0, 0), 0, Token::NONE, 2);
    rig.submit(read(0, 0), 0, Token::NONE, 3);
    rig.submit(program(0, 0), 0, Token::NONE, 4);
    rig.submit(read(0, 0), 0, Token::NONE, 5);
    assert_eq!(rig.drain(), [(1, 650), (2, 3650), (3, 3800), (4, 4600), (5, 4750)]);
}

#[test]
fn a_program_that_waits_for_data_stops_only_its_own_block() {
    let mut rig = Rig::new();
    let source = rig.submit(erase(1, 0), 0, Token::NONE, 1);
    rig.submit(program(0, 0), 0, source, 2);
    rig.submit(program(0, 1), 0, Token::NONE, 3);
    rig.submit(program(0, 4), 0, Token::NONE, 4);
    assert_eq!(rig.drain(), [(4, 800), (1, 3000), (2, 3800), (3, 4600)]);
}

#[test]
fn read_data_takes_the_bus_before_program_data() {
    let mut rig = Rig::new();
    rig.submit(TimedOp::Program { page: Ppn(0), transfer: 1000, held: 0 }, 0, Token::NONE, 1);
    rig.advance(10);
    // Both wait for the bus until 1000: the program was there first, the read goes first.
    rig.submit(program(2, 0), 10, Token::NONE, 2);
    rig.advance(20);
    rig.submit(read(2, 4), 20, Token::NONE, 3);
    assert_eq!(rig.drain(), [(3, 1100), (1, 1700), (2, 1900)]);
}

#[test]
fn commands_hold_the_bus_where_they_are_modelled() {
    let mut rig = Rig(ReadFirst::new(&GEOMETRY, &Timing { command_ns: 7, ..TIMING }));
    rig.submit(read(0, 0), 0, Token::NONE, 1);
    rig.submit(erase(2, 0), 0, Token::NONE, 2);
    assert_eq!(rig.drain(), [(1, 157), (2, 3014)]);
}

#[test]
fn a_join_completes_with_the_last_of_its_parts() {
    let mut rig = Rig::new();
    let a = rig.0.submit(read(0, 0), SimTime(0), Token::NONE);
    let b = rig.0.submit(program(1, 0), SimTime(0), Token::NONE);
    let both = rig.0.join(a, b);
    let c = rig.0.submit(read(3, 0), SimTime(0), Token::NONE);
    let all = rig.0.join(both, c);
    rig.0.watch(all, 7);
    assert_eq!(rig.0.join(a, a), a);
    assert_eq!(rig.0.join(Token::NONE, b), b);
    assert_eq!(rig.advance(799), []);
    assert_eq!(rig.drain(), [(7, 800)]);
    assert_eq!(rig.0.outstanding(), 0);
}

#[test]
fn stale_tokens_are_complete_and_watched_with_their_time_while_it_is_known() {
    let mut rig = Rig::new();
    let first = rig.0.submit(read(0, 0), SimTime(0), Token::NONE);
    assert_eq!(rig.0.next_event(), Some(SimTime(0)), "something may start at once");
    assert_eq!(rig.advance(400), []);
    rig.0.watch(first, 1);
    rig.0.watch(Token::NONE, 2);
    assert_eq!(rig.0.next_event(), Some(SimTime(400)));
    assert_eq!(rig.advance(400), [(1, 150), (2, 400)]);
    let second = rig.0.submit(read(0, 0), SimTime(400), first);
    assert_ne!(first, second, "the slot is the same, the generation is not");
    // The slot is in use again: the first's time is forgotten, its completion is not.
    rig.0.watch(first, 3);
    rig.0.watch(second, 4);
    assert_eq!(rig.drain(), [(3, 400), (4, 550)]);
}

#[test]
fn reset_completes_all_tokens_and_frees_everything() {
    let mut rig = Rig::new();
    let lost = rig.submit(erase(0, 0), 0, Token::NONE, 1);
    rig.submit(program(0, 0), 0, lost, 2);
    rig.submit(read(2, 0), 900, lost, 3);
    rig.advance(10);
    rig.0.reset(SimTime(5000));
    assert_eq!((rig.0.outstanding(), rig.0.next_event()), (0, None));
    assert_eq!(rig.0.idle_from(), SimTime(5000));
    rig.submit(program(0, 0), 5000, lost, 4);
    assert_eq!(rig.drain(), [(4, 5800)]);
}

#[test]
fn simultaneous_completions_come_in_submission_order() {
    let mut rig = Rig::new();
    rig.submit(read(1, 0), 0, Token::NONE, 9);
    rig.submit(read(0, 0), 0, Token::NONE, 4);
    assert_eq!(rig.drain(), [(9, 150), (4, 150)]);
    // The join comes after what was submitted before it, though its last part completes first.
    let first = rig.submit(read(1, 0), 150, Token::NONE, 1);
    let short = |unit: u32| TimedOp::Read { page: Ppn(unit * 8), transfer: 50 };
    let early = rig.0.submit(short(0), SimTime(150), Token::NONE);
    rig.submit(short(2), 150, Token::NONE, 2);
    let join = rig.0.join(first, early);
    rig.0.watch(join, 3);
    assert_eq!(rig.drain(), [(1, 300), (2, 300), (3, 300)]);
}

/// Jobs for the small device: submitted in bursts, with their own times up to 3 us later, some after an
/// earlier job.
fn jobs() -> impl Strategy<Value = Vec<Job>> {
    let job = (0u64..4, 0u64..6, any::<prop::sample::Index>(), 0u8..10, 0u32..32, 1u32..300);
    prop::collection::vec(job, 1..60).prop_map(|raw| {
        let mut now = 0;
        let mut jobs: Vec<Job> = Vec::with_capacity(raw.len());
        for (gap, delay, after, kind, page, transfer) in raw {
            now += gap * gap * 60;
            let op = match kind {
                0..5 => TimedOp::Read { page: Ppn(page), transfer },
                5..9 => TimedOp::Program { page: Ppn(page), transfer, held: 0 },
                _ => TimedOp::Erase { page: Ppn(page / 4 * 4), pages: 0 },
            };
            // A third of the jobs follow another; half have a time of their own.
            let after = (!jobs.is_empty() && transfer % 3 == 0).then(|| after.index(jobs.len()));
            let at_ns = now + delay.saturating_sub(2).pow(3) * 50;
            jobs.push(Job { submitted_ns: now, at_ns, after, op });
        }
        jobs
    })
}

/// Array times around the transfer times and far above them, commands on the bus or not.
fn timings() -> impl Strategy<Value = Timing> {
    (any::<bool>(), any::<bool>(), 0u64..12).prop_map(|(short_program, short_erase, command_ns)| Timing {
        program_ns: if short_program { 20 } else { 700 },
        erase_ns: if short_erase { 60 } else { 3000 },
        command_ns: command_ns.saturating_sub(5),
        ..TIMING
    })
}

/// Completion times by job; checks that each job completes once and that they come in order.
fn run(jobs: &[Job], timing: &Timing, single_steps: bool) -> Vec<u64> {
    let mut scheduler = ReadFirst::new(&GEOMETRY, timing);
    let mut tokens: Vec<Token> = Vec::new();
    let mut out: Vec<Completion> = Vec::new();
    let advance = |scheduler: &mut ReadFirst, until: u64, out: &mut Vec<Completion>| {
        while single_steps && let Some(next) = scheduler.next_event().filter(|next| next.0 <= until) {
            scheduler.advance(next, out);
        }
        scheduler.advance(SimTime(until), out);
    };
    for (index, job) in jobs.iter().enumerate() {
        if index == 0 || job.submitted_ns > jobs[index - 1].submitted_ns {
            advance(&mut scheduler, job.submitted_ns, &mut out);
        }
        let after = job.after.map_or(Token::NONE, |after| tokens[after]);
        let token = scheduler.submit(job.op, SimTime(job.at_ns), after);
        scheduler.watch(token, index as u64);
        tokens.push(token);
    }
    advance(&mut scheduler, u64::MAX, &mut out);
    assert_eq!((scheduler.outstanding(), scheduler.next_event()), (0, None));
    let order: Vec<_> = out.iter().map(|completion| (completion.at, completion.tag)).collect();
    assert!(order.is_sorted(), "{order:?}");
    let mut ends = vec![None; jobs.len()];
    for Completion { tag, at } in out {
        assert_eq!(ends[tag as usize].replace(at.0), None, "job {tag} completed twice");
    }
    ends.into_iter().map(|end| end.expect("every job completes")).collect()
}

fn no_overlap(mut spans: Vec<(u64, u64)>) {
    spans.sort_unstable();
    for pair in spans.windows(2) {
        assert!(pair[0].1 <= pair[1].0, "{pair:?}");
    }
}

fn check_rules(jobs: &[Job], courses: &[Course]) {
    let span = |index: usize| (courses[index].start_ns.unwrap(), courses[index].end_ns.unwrap());
    for die in 0..GEOMETRY.units() {
        let of_die = (0..jobs.len()).filter(|&index| unit(&GEOMETRY, jobs[index].op) == die);
        no_overlap(of_die.map(span).collect());
    }
    for channel in 0..GEOMETRY.channels {
        let of_channel = (0..jobs.len()).filter(|&index| unit(&GEOMETRY, jobs[index].op) % 2 == channel);
        no_overlap(of_channel.flat_map(|index| courses[index].bus.clone()).collect());
    }
    for (later, job) in jobs.iter().enumerate() {
        assert!(span(later).0 >= job.at_ns);
        assert!(
            job.after.is_none_or(|after| span(after).1 <= span(later).0),
            "job {later} and its predecessor"
        );
        for (earlier, before) in jobs[..later].iter().enumerate() {
            if conflict(&GEOMETRY, before.op, job.op) {
                assert!(span(earlier).1 <= span(later).0, "jobs {earlier} and {later} conflict");
            }
        }
        for other in 0..jobs.len() {
            // A write does not start while a read of its die is ready.
            if is_read(jobs[other].op)
                && !is_read(job.op)
                && unit(&GEOMETRY, jobs[other].op) == unit(&GEOMETRY, job.op)
                && courses[other].ready_ns.unwrap() < span(later).0
            {
                assert!(span(other).0 < span(later).0, "write {later} started before ready read {other}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_the_naive_model_whose_course_keeps_the_rules(jobs in jobs(), timing in timings()) {
        let courses = Reference::run(&GEOMETRY, &timing, &jobs);
        check_rules(&jobs, &courses);
        let ends: Vec<u64> = courses.iter().map(|course| course.end_ns.unwrap()).collect();
        prop_assert_eq!(&run(&jobs, &timing, false), &ends);
        prop_assert_eq!(&run(&jobs, &timing, true), &ends);
    }

    #[test]
    fn equals_fifo_when_one_operation_is_outstanding(jobs in jobs(), timing in timings()) {
        let mut fifo = Fifo::new(&GEOMETRY, &timing);
        let mut read_first = Rig(ReadFirst::new(&GEOMETRY, &timing));
        let (mut last, mut now) = (Token::NONE, 0);
        for (tag, job) in jobs.iter().enumerate() {
            let at = now.max(job.at_ns);
            last = fifo.submit(job.op, SimTime(at), last);
            now = fifo.completion(last).unwrap().0;
            read_first.submit(job.op, at, Token::NONE, tag as u64);
            prop_assert_eq!(read_first.drain(), [(tag as u64, now)]);
        }
    }
}
