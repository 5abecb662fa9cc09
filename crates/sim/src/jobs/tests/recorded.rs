//! Jobs that issue recordings: when, where and what, against the same device.

use super::{Fake, K, MS, run_recorded};
use crate::jobs::{JobsError, JobsOutcome, Recordings, Room};
use nandscape_core::{IoRecord, Op, SimTime, TraceError, TraceOp, TraceReader, WorkloadInfo};
use nandscape_jobs::Job;

/// Every recording is this one, begun at its first time stamp, which need not be 0.
#[derive(Debug)]
struct Tape {
    records: Vec<IoRecord>,
    has_real_times: bool,
    /// After the records comes an error.
    is_torn: bool,
}

struct Reader {
    records: std::vec::IntoIter<Result<IoRecord, TraceError>>,
    info: WorkloadInfo,
}

impl Iterator for Reader {
    type Item = Result<IoRecord, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.records.next()
    }
}

impl TraceReader for Reader {
    fn info(&self) -> WorkloadInfo {
        self.info.clone()
    }
}

impl Recordings for Tape {
    fn span(&self, _: &Job, _: Room) -> Result<u64, TraceError> {
        Ok(self.records.iter().map(IoRecord::end).max().unwrap_or(0))
    }

    fn open(&self, job: &Job, _: Room) -> Result<Box<dyn TraceReader>, TraceError> {
        let passes = (0..job.loops).flat_map(|_| self.records.iter().copied().map(Ok));
        let torn = TraceError::Io { source_name: "tape".to_owned(), message: "torn".to_owned() };
        let records: Vec<_> = passes.chain(self.is_torn.then_some(Err(torn))).collect();
        let info = WorkloadInfo { has_real_times: self.has_real_times, ..WorkloadInfo::default() };
        Ok(Box::new(Reader { records: records.into_iter(), info }))
    }
}

fn record(at_ms: u64, op: TraceOp, block: u64) -> IoRecord {
    let len = if op == TraceOp::Flush { 0 } else { 4 * K };
    IoRecord { at: SimTime((7_000 + at_ms) * MS), offset: block * 4 * K, len, volume: 0, hint: 3, op }
}

fn tape(records: &[(u64, TraceOp, u64)]) -> Tape {
    let records = records.iter().map(|(at, op, block)| record(*at, *op, *block)).collect();
    Tape { records, has_real_times: true, is_torn: false }
}

/// When in milliseconds, of which namespace, what, and its block of 4 KiB.
type Asked = (u64, u32, Op, u64);

/// Two namespaces of 1 MiB; every command takes 10 ms.
fn run(text: &str, tape: &Tape) -> (Result<JobsOutcome, JobsError>, Vec<Asked>) {
    let mut fake = Fake::new(&[1 << 20, 1 << 20], |_| 10 * MS);
    let outcome = run_recorded(&mut fake, text, Some(tape));
    let seen =
        fake.seen.iter().map(|s| (s.at / MS, s.namespace, s.command.op, s.command.extent.offset / (4 * K)));
    (outcome, seen.collect())
}

const FOUR: [(u64, TraceOp, u64); 4] =
    [(0, TraceOp::Write, 5), (3, TraceOp::Read, 6), (4, TraceOp::Flush, 0), (50, TraceOp::Trim, 7)];

#[test]
fn requests_are_issued_at_their_times_from_the_start_of_the_job() {
    let (outcome, seen) = run("[a]\nread_iolog=x\nfilename=ns2\nstartdelay=1\n", &tape(&FOUR));
    let ops = [(1000, Op::Write, 5), (1003, Op::Read, 6), (1004, Op::Flush, 0), (1050, Op::Trim, 7)];
    assert_eq!(seen, ops.map(|(at, op, block)| (at, 1, op, block)));
    let result = outcome.unwrap().result;
    let job = &result.jobs[0];
    assert_eq!((job.read.requests, job.write.requests, job.trim.requests), (1, 1, 1));
    assert_eq!((job.sync.latency_ns.count, job.sync.latency_ns.max), (1, 10 * MS));
    assert_eq!(job.depth, 0);
    assert!(result.trust.iter().all(|note| note.check != "late"), "{:?}", result.trust);
}

#[test]
fn without_times_or_by_request_there_is_room_in_iodepth_only() {
    let eight: Vec<_> = (0..8).map(|i| (i * 100, TraceOp::Write, i)).collect();
    for text in ["replay_no_stall=1\niodepth=4", "replay_no_stall=1\niodepth=4\nreplay_time_scale=200"] {
        let (_, seen) = run(&format!("[a]\nread_iolog=x\nfilename=ns1\n{text}\n"), &tape(&eight));
        assert_eq!(seen.iter().map(|s| s.0).collect::<Vec<_>>(), [0, 0, 0, 0, 10, 10, 10, 10], "{text}");
    }
    let untimed =
        Tape { has_real_times: false, ..tape(&(0..40).map(|i| (i, TraceOp::Write, i)).collect::<Vec<_>>()) };
    let (_, seen) = run("[a]\nread_iolog=x\nfilename=ns1\n", &untimed);
    assert_eq!(seen.iter().filter(|s| s.0 == 0).count(), 32, "the depth of a replay");
}

#[test]
fn a_host_whose_iodepth_is_full_falls_behind_and_says_so() {
    let ten: Vec<_> = (0..10).map(|i| (i, TraceOp::Write, i)).collect();
    let (outcome, seen) = run("[a]\nread_iolog=x\nfilename=ns1\niodepth=1\n", &tape(&ten));
    assert_eq!(seen.iter().map(|s| s.0).collect::<Vec<_>>(), (0..10).map(|i| i * 10).collect::<Vec<_>>());
    let trust = outcome.unwrap().result.trust;
    let note = trust.iter().find(|note| note.check == "late").expect("it is late");
    assert!(
        note.message.contains("job 'a' issued 90 %") && note.message.contains("81.00 ms"),
        "{}",
        note.message
    );
    // Twice as slow a recording is late by less.
    let (_, seen) = run("[a]\nread_iolog=x\nfilename=ns1\niodepth=2\nreplay_time_scale=20\n", &tape(&ten));
    assert_eq!(seen.iter().map(|s| s.0).collect::<Vec<_>>(), (0..10).map(|i| i * 5).collect::<Vec<_>>());
}

#[test]
fn options_of_fio_move_leave_out_and_limit() {
    let at = |text: &str| {
        let (outcome, seen) = run(&format!("[a]\nread_iolog=x\nfilename=ns1\n{text}\n"), &tape(&FOUR));
        assert_eq!(outcome.unwrap().result.error, None, "{text}");
        seen.iter().map(|s| (s.2, s.3)).collect::<Vec<_>>()
    };
    assert_eq!(at("replay_skip=write,sync"), [(Op::Read, 6), (Op::Trim, 7)]);
    // 6 blocks of 4 KiB halved are three, 5 and 7 are rounded down.
    assert_eq!(
        at("replay_scale=2\nreplay_align=4k"),
        [(Op::Write, 2), (Op::Read, 3), (Op::Flush, 0), (Op::Trim, 3)]
    );
    assert_eq!(at("number_ios=1"), [(Op::Write, 5)]);
    assert_eq!(at("io_size=8k\nloops=9").len(), 2, "all loops together");
    assert_eq!(at("loops=2").len(), 8);
    assert_eq!(at("offset=64k")[0], (Op::Write, 16 + 5));
}

#[test]
fn recordings_without_a_name_lie_beside_each_other() {
    let (outcome, seen) =
        run("[a]\nread_iolog=x\n[b]\nread_iolog=x\n[c]\nread_iolog=x\nfilename=ns2\n", &tape(&FOUR));
    let outcome = outcome.unwrap();
    let mut writes: Vec<_> = seen.iter().filter(|s| s.2 == Op::Write).map(|s| (s.1, s.3)).collect();
    writes.sort_unstable();
    // Each needs eight blocks.
    assert_eq!(writes, [(0, 5), (0, 8 + 5), (1, 5)]);
    assert!(seen.iter().all(|s| s.0 < 100), "nothing is laid out before");
    assert_eq!(outcome.result.jobs[2].namespaces, ["ns2"]);
}

#[test]
fn streams_of_a_job_stand_for_those_of_its_recording() {
    let hints = |text: &str| {
        let mut fake = Fake::new(&[1 << 20], |_| MS);
        run_recorded(&mut fake, &format!("[a]\nread_iolog=x\n{text}\n"), Some(&tape(&FOUR))).unwrap();
        fake.seen.iter().map(|s| s.command.hint.0).collect::<Vec<_>>()
    };
    assert_eq!(hints(""), [3, 3, 0, 3]);
    assert_eq!(hints("fadvise_stream=7")[0], 7);
    assert_eq!(hints("dataplacement=fdp\nplids=1")[0], 2);
}

#[test]
fn what_cannot_be_issued_is_named() {
    let far = tape(&[(0, TraceOp::Write, 0), (1, TraceOp::Write, 256)]);
    let error = run("[a]\nread_iolog=x\nfilename=ns1\n", &far).0.unwrap().result.error.unwrap();
    assert_eq!(error.request, 2);
    for part in ["request 2 of job 'a'", "t.fio:1", "1 MiB", "replay_scale"] {
        assert!(error.message.contains(part), "{} lacks {part}", error.message);
    }
    let zones = tape(&[(0, TraceOp::Reset, 0)]);
    let error = run("[a]\nread_iolog=x\nfilename=ns1\n", &zones).0.unwrap().result.error.unwrap();
    assert!(error.message.contains("zones"), "{}", error.message);
    let torn = Tape { is_torn: true, ..tape(&FOUR) };
    let error = run("[a]\nread_iolog=x\nfilename=ns1\n", &torn).0.unwrap_err();
    assert_eq!(error.to_string(), "tape: torn");
    let mut fake = Fake::new(&[1 << 20], |_| MS);
    let error = run_recorded(&mut fake, "[a]\nread_iolog=x\n", None).unwrap_err();
    assert!(error.to_string().contains("t.fio:1"), "{error}");
}

#[test]
fn an_empty_recording_ends_at_once() {
    let (outcome, seen) = run("[a]\nread_iolog=x\nfilename=ns1\n", &tape(&[]));
    assert!(seen.is_empty());
    assert_eq!(outcome.unwrap().result.jobs[0].runtime_ns, 0);
}
