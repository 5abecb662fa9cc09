//! Steps over stores that take as long as is said, or refuse a command when it is started.

use super::*;
use nandscape_core::command::{HostCounts, Payload};
use nandscape_core::{Clocked, Store, StoreError, StoreShape};
use nandscape_policies::BlockKey;
use std::sync::{Arc, Mutex};

/// What was started, and when.
type Started = Arc<Mutex<Vec<(Op, u64, SimTime)>>>;

/// A store whose commands take 100 ns each, all at once. Commands at offset 0 are refused when they are
/// started, if it `refuses`.
struct Fixed {
    started: Started,
    refuses: bool,
}

impl Store for Fixed {
    fn shape(&self) -> StoreShape {
        StoreShape { capacity_bytes: 1 << 20, block_bytes: 512, stores_bytes: false, regions: None }
    }

    fn apply(&mut self, _: BlockCommand, _: Payload<'_>) -> Result<Applied, StoreError> {
        Ok(Applied::default())
    }

    fn start(&mut self, command: BlockCommand, _: Applied, at: SimTime) -> Result<Token, StoreError> {
        if self.refuses && command.op == Op::Write && command.extent.offset == 0 {
            return Err(StoreError::Gone { detail: "as the test says".to_owned() });
        }
        self.started.lock().unwrap().push((command.op, command.extent.offset, at));
        Ok(Token((at + 100).0))
    }

    fn counts(&self) -> HostCounts {
        HostCounts::default()
    }

    fn shutdown(&mut self, at: SimTime) -> Result<Token, StoreError> {
        Ok(Token(at.0))
    }

    fn reset_counters(&mut self, _: SimTime) {}
}

impl Clocked for Fixed {
    nandscape_core::tokens_are_times!();

    fn idle_from(&self) -> SimTime {
        SimTime::ZERO
    }
}

/// A fast store and a disk, with what either has started.
fn timeline(refuses: bool) -> (Timeline, [Started; 2]) {
    let started = [Started::default(), Started::default()];
    let side = |of: &Started| Side::new(Box::new(Fixed { started: of.clone(), refuses }));
    let mut timeline = Timeline::new(side(&started[0]));
    timeline.add(side(&started[1]));
    (timeline, started)
}

fn read(timeline: &mut Timeline, side: u16, offset: u64, after: Moment) -> Moment {
    timeline.submit(side, Op::Read, Extent::new(offset, 512), Bytes::None, after).unwrap()
}

fn write(timeline: &mut Timeline, side: u16, offset: u64, after: Moment) -> Moment {
    timeline.submit(side, Op::Write, Extent::new(offset, 512), Bytes::None, after).unwrap()
}

fn list(started: &Started) -> Vec<(Op, u64, SimTime)> {
    started.lock().unwrap().clone()
}

#[test]
fn a_step_starts_when_all_that_it_waits_for_has_ended() {
    let (mut timeline, [fast, disk]) = timeline(false);
    timeline.arrive(SimTime(50));
    let first = read(&mut timeline, 1, 0, Moment::PAST);
    let second = read(&mut timeline, FAST, 512, first);
    let both = timeline.join(first, second);
    let third = write(&mut timeline, 1, 1024, both);
    assert_eq!(list(&disk), [(Op::Read, 0, SimTime(50))], "the others have to wait");
    assert_eq!((timeline.known(first), timeline.known(third)), (Some(SimTime(150)), None));
    timeline.run(SimTime(149), true);
    assert!(list(&fast).is_empty());
    timeline.drain();
    assert_eq!(list(&fast), [(Op::Read, 512, SimTime(150))]);
    assert_eq!(list(&disk)[1..], [(Op::Write, 1024, SimTime(250))]);
    assert_eq!((timeline.now(), timeline.is_past(third)), (SimTime(350), true));
    timeline.check();
}

#[test]
fn a_flush_waits_for_what_was_submitted_before_and_is_made_only_after_writes() {
    let (mut timeline, [fast, _]) = timeline(false);
    let flushed = timeline.flush(FAST, Moment::PAST).unwrap();
    assert_eq!(timeline.flush(FAST, Moment::PAST), Ok(flushed), "nothing was written since");
    let read = read(&mut timeline, 1, 0, Moment::PAST);
    write(&mut timeline, FAST, 512, read);
    let flushed = timeline.flush(FAST, Moment::PAST).unwrap();
    timeline.drain();
    let flushes: Vec<SimTime> =
        list(&fast).iter().filter(|(op, ..)| *op == Op::Flush).map(|(.., at)| *at).collect();
    assert_eq!(flushes, [SimTime(0), SimTime(100)], "once the write could be started");
    assert!(timeline.is_past(flushed));
    assert_eq!(timeline.side(FAST).flushes, 2);
}

#[test]
fn what_comes_to_a_held_place_waits_until_it_is_free() {
    let (mut timeline, _) = timeline(false);
    let key = BlockKey::new(0, 7);
    let moment = read(&mut timeline, 1, 0, Moment::PAST);
    timeline.hold(Place::slot(3), moment);
    timeline.hold(Place::block(key), moment);
    assert_eq!((timeline.free_at(Place::slot(3)), timeline.free_at(Place::slot(4))), (moment, Moment::PAST));
    assert_eq!(timeline.blocks_free_at(0, 0, 8), moment);
    assert_eq!(timeline.blocks_free_at(0, 0, 1 << 20), moment, "more blocks than places are held");
    assert_eq!(timeline.blocks_free_at(0, 8, 9), Moment::PAST);
    timeline.run(SimTime(100), true);
    assert!(!timeline.is_held(Place::slot(3)) && !timeline.is_held(Place::block(key)));
    assert!(!timeline.has_holds(), "what is past is forgotten");
}

#[test]
fn an_open_moment_is_past_when_what_it_was_settled_with_is() {
    let (mut timeline, _) = timeline(false);
    let open = timeline.open();
    let mut answer = Gather::default();
    timeline.gather(&mut answer, open);
    let token = timeline.answer(&mut answer);
    timeline.report(token, 9);
    assert_eq!(timeline.completion(token), None);
    let done = read(&mut timeline, 1, 0, Moment::PAST);
    timeline.settle(open, done);
    timeline.drain();
    let mut reports = Vec::new();
    timeline.take_reports(SimTime::MAX, &mut reports);
    assert_eq!(reports, [Completion { tag: 9, at: SimTime(100) }]);
}

#[test]
fn time_stops_where_cleaning_has_ended_and_goes_on_past_an_answer() {
    let (mut timeline, _) = timeline(false);
    let first = read(&mut timeline, 1, 0, Moment::PAST);
    timeline.notify(first, Notice::Answer(1));
    let second = read(&mut timeline, 1, 0, first);
    timeline.notify(second, Notice::Cleaned(4));
    assert!(!timeline.run(SimTime(900), true), "somebody may want to begin something");
    assert_eq!(timeline.now(), SimTime(200));
    assert_eq!(timeline.news.take_noticed(), Some((Notice::Answer(1), SimTime(100))));
    assert_eq!(timeline.news.take_noticed(), Some((Notice::Cleaned(4), SimTime(200))));
    assert!(timeline.run(SimTime(900), true));
    assert_eq!(timeline.now(), SimTime(900));
}

#[test]
fn what_waits_for_a_step_that_was_refused_is_never_started() {
    let (mut timeline, [fast, disk]) = timeline(true);
    let begin = read(&mut timeline, 1, 512, Moment::PAST);
    let refused = write(&mut timeline, 1, 0, begin);
    let later = write(&mut timeline, FAST, 512, refused);
    timeline.drain();
    assert!(timeline.is_past(later));
    assert_eq!((list(&fast).len(), list(&disk).len()), (0, 1));
    let errors: Vec<LateError> = timeline.news.take_errors().collect();
    assert_eq!(
        errors.iter().map(|error| (error.volume, error.at)).collect::<Vec<_>>(),
        [(Some(0), SimTime(100))]
    );
}

#[test]
fn steps_at_a_fast_store_that_is_given_up_are_passed_over() {
    let (mut timeline, [fast, disk]) = timeline(false);
    let begin = read(&mut timeline, 1, 0, Moment::PAST);
    let passed = write(&mut timeline, FAST, 512, begin);
    write(&mut timeline, 1, 512, passed);
    timeline.pass_over_fast();
    timeline.drain();
    assert!(list(&fast).is_empty());
    assert_eq!(list(&disk)[1..], [(Op::Write, 512, SimTime(100))]);
}
