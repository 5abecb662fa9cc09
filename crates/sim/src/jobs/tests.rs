//! Jobs against a device whose every command takes a time that a test chooses: what is asked, and when, is
//! then exact. Sequences marked "fio" were taken from the offset logs of fio 3.33.

use super::{JobOptions, JobsError, JobsOutcome, Recordings, run_jobs};
use crate::precondition::{Precondition, Snapshot};
use crate::result::RunResult;
use nandscape_core::command::{HostCounts, Payload};
use nandscape_core::{
    Allocation, Answer, BlockCommand, Clocked, Command, Completion, Control, Extent, HostReports, Inspect,
    NamespaceError, NamespaceInfo, Op, SimTime, Subsystem, Token,
};
use nandscape_jobs::JobFile;
use std::cell::RefCell;
use std::collections::BTreeMap;

mod recorded;

const K: u64 = 1024;
const MS: u64 = 1_000_000;

/// A command as the device saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    at: u64,
    namespace: u32,
    command: BlockCommand,
}

/// Every command takes as long as `takes` says, all at once; `knows` says whether completions are known at
/// submission.
struct Fake {
    infos: Vec<NamespaceInfo>,
    takes: fn(&BlockCommand) -> u64,
    knows: bool,
    seen: Vec<Seen>,
    prepared: RefCell<Vec<Extent>>,
    events: BTreeMap<(u64, u64), Option<u64>>,
    counts: Vec<HostCounts>,
    now: u64,
}

impl Fake {
    fn new(capacities: &[u64], takes: fn(&BlockCommand) -> u64) -> Self {
        let info = |(i, capacity): (usize, &u64)| NamespaceInfo {
            name: format!("ns{}", i + 1),
            capacity_bytes: *capacity,
            page_bytes: 4096,
            set: 0,
            endurance_group: 0,
            zones: None,
            objects: false,
        };
        Self {
            infos: capacities.iter().enumerate().map(info).collect(),
            takes,
            knows: true,
            seen: Vec::new(),
            prepared: RefCell::default(),
            events: BTreeMap::new(),
            counts: vec![HostCounts::default(); capacities.len()],
            now: 0,
        }
    }
}

nandscape_core::no_state!(impl [] Fake: "a subsystem of a test");

impl Subsystem for Fake {
    fn namespaces(&self) -> &[NamespaceInfo] {
        &self.infos
    }
    fn prepare(&self, _: u32, _: Op, extent: Extent) {
        self.prepared.borrow_mut().push(extent);
    }
    fn submit(
        &mut self,
        namespace: u32,
        command: Command,
        _: Payload<'_>,
        at: SimTime,
    ) -> Result<Answer, NamespaceError> {
        let command = command.into_block()?;
        assert!(at.0 >= self.now, "time went back from {} to {at:?}", self.now);
        self.now = at.0;
        let extent = command.extent;
        assert!(extent.offset + extent.len <= self.infos[namespace as usize].capacity_bytes, "{command:?}");
        self.seen.push(Seen { at: at.0, namespace, command });
        let counts = &mut self.counts[namespace as usize];
        match command.op {
            Op::Read => {
                counts.reads += 1;
                counts.read_bytes += extent.len;
            }
            Op::Write => {
                counts.writes += 1;
                counts.write_bytes += extent.len;
            }
            Op::Flush => counts.flushes += 1,
            _ => counts.trims += 1,
        }
        let takes = (self.takes)(&command);
        if takes == 0 {
            return Ok(Token::NONE.into());
        }
        let end = at.0 + takes;
        if self.knows {
            return Ok(Token(end).into());
        }
        let id = self.seen.len() as u64;
        self.events.insert((end, id), None);
        Ok(Token(end << 24 | id).into())
    }
    fn shutdown(&mut self, _: SimTime) -> Result<Token, NamespaceError> {
        Ok(Token::NONE)
    }
    fn join(&mut self, a: Token, b: Token) -> Token {
        assert!(self.knows, "tokens of this device are completion times only where it knows them");
        Token(a.0.max(b.0))
    }
    fn idle(&mut self, at: SimTime, until: SimTime) -> Result<(), NamespaceError> {
        assert!(at.0 >= self.now && until > at);
        Ok(())
    }
    fn allocation(&self, _: u32, extent: Extent) -> Allocation {
        Allocation { is_mapped: true, bytes: extent.len }
    }
    fn inspect(&self) -> Inspect<'_> {
        Inspect { hosts: Some(self), ..Inspect::default() }
    }
    fn control(&mut self) -> Control<'_> {
        Control::default()
    }
    fn reset_counters(&mut self, _: SimTime) {
        assert!(self.events.is_empty());
        self.counts.fill(HostCounts::default());
        self.seen.clear();
        self.now = 0;
    }
    fn check_invariants(&self) {}
}

impl HostReports for Fake {
    fn host_counts(&self, namespace: u32) -> HostCounts {
        self.counts[namespace as usize]
    }
}

impl Clocked for Fake {
    fn completion(&self, token: Token) -> Option<SimTime> {
        self.knows.then_some(SimTime(token.0))
    }

    fn watch(&mut self, token: Token, tag: u64) {
        let key = (token.0 >> 24, token.0 & 0xff_ffff);
        *self.events.get_mut(&key).expect("a token that was given out") = Some(tag);
    }

    fn advance(&mut self, until: SimTime, out: &mut Vec<Completion>) {
        while let Some(entry) = self.events.first_entry().filter(|entry| entry.key().0 <= until.0) {
            let ((at, _), tag) = entry.remove_entry();
            out.extend(tag.map(|tag| Completion { tag, at: SimTime(at) }));
        }
        self.now = self.now.max(until.0);
    }

    fn next_event(&self) -> Option<SimTime> {
        self.events.first_key_value().map(|((at, _), _)| SimTime(*at))
    }

    fn idle_from(&self) -> SimTime {
        SimTime(self.now)
    }
}

fn run_on(fake: &mut Fake, text: &str) -> Result<JobsOutcome, JobsError> {
    run_recorded(fake, text, None)
}

fn run_recorded(
    fake: &mut Fake,
    text: &str,
    recordings: Option<&dyn Recordings>,
) -> Result<JobsOutcome, JobsError> {
    let file = JobFile::parse("t.fio", text).unwrap_or_else(|e| panic!("{e}"));
    let options = JobOptions {
        snapshot: Snapshot::Unused,
        precondition: &Precondition::default(),
        seed: 42,
        with_series: true,
        interval_ns: None,
        with_detail: false,
        stop: None,
        log: None,
        recordings,
    };
    run_jobs(fake, &file, "t.fio", &options, &mut || {}, &mut |_| {})
}

/// Runs on one namespace of 1 MiB where reads and writes take 1 ms and flushes 5 ms.
fn run(text: &str) -> (RunResult, Vec<Seen>) {
    let mut fake = Fake::new(&[1 << 20], |command| if command.op == Op::Flush { 5 * MS } else { MS });
    let outcome = run_on(&mut fake, text).unwrap();
    assert_eq!(outcome.result.error, None);
    (outcome.result, fake.seen)
}

/// Offsets of one job in blocks of 4 KiB.
fn blocks(text: &str) -> Vec<u64> {
    let (_, seen) = run(&format!("[a]\nfilename=ns1\nbs=4k\n{}\n", text.replace(' ', "\n")));
    seen.iter().map(|s| s.command.extent.offset / 4096).collect()
}

#[test]
fn depth_is_what_is_outstanding() {
    for depth in [1, 3, 8] {
        let (result, seen) = run(&format!("[a]\nfilename=ns1\nrw=randread\nbs=4k\niodepth={depth}\n"));
        let job = &result.jobs[0];
        assert_eq!(job.read.requests, 256);
        assert_eq!(job.runtime_ns, 256u64.div_ceil(depth) * MS);
        assert_eq!(seen.iter().filter(|s| s.at == 0).count() as u64, depth);
        assert_eq!((job.read.latency_ns.min, job.read.latency_ns.max), (MS, MS));
    }
}

#[test]
fn each_request_is_prepared_when_the_one_before_it_is_issued() {
    for rw in ["rw=randread\nnorandommap", "rw=randrw\niodepth=3", "rw=write", "rw=trimwrite"] {
        let mut fake = Fake::new(&[1 << 20], |_| MS);
        run_on(&mut fake, &format!("[a]\nfilename=ns1\nbs=4k\n{rw}\n")).unwrap();
        let issued = fake.seen[1..].iter().map(|seen| seen.command.extent);
        assert!(issued.eq(fake.prepared.borrow()[..fake.seen.len() - 1].iter().copied()), "{rw}");
    }
}

#[test]
fn schedulers_that_know_and_those_that_do_not_give_the_same() {
    let text = "[global]\nbs=4k\nfilename=ns1\n[a]\nrw=randrw\niodepth=7\nfsync=10\nthinktime=3ms\nthinktime_blocks=5\n\
                [b]\nrw=randwrite\nrate_iops=300\nnumjobs=3\niodepth=2\nstartdelay=20ms\n[c]\nrw=write\nstonewall\nsync=1\n";
    let takes = |c: &BlockCommand| 500_000 + (c.extent.offset / 4096 % 7) * 100_000;
    let mut known = Fake::new(&[1 << 20], takes);
    let mut events = Fake::new(&[1 << 20], takes);
    events.knows = false;
    let a = run_on(&mut known, text).unwrap();
    let b = run_on(&mut events, text).unwrap();
    // At equal times the order of completions may differ, and with it who is first; sums and times may not.
    assert_eq!(a.result.workload.requests, b.result.workload.requests);
    assert_eq!(a.result.speed.time.simulated_ns, b.result.speed.time.simulated_ns);
    assert_eq!(a.result.host, b.result.host);
    let again = run_on(&mut Fake::new(&[1 << 20], takes), text).unwrap();
    assert_eq!(serde_json::to_string(&a.result).unwrap(), serde_json::to_string(&again.result).unwrap());
}

#[test]
fn sequences_of_sequential_jobs_are_those_of_fio() {
    assert_eq!(blocks("rw=write size=32k"), (0..8).collect::<Vec<_>>());
    assert_eq!(blocks("rw=write:4k size=64k"), [0, 2, 4, 6, 8, 10, 12, 14]);
    assert_eq!(blocks("rw=write:4k size=64k offset=64k"), [16, 18, 20, 22, 24, 26, 28, 30]);
    let mut twice: Vec<u64> = (0..16).step_by(2).collect();
    twice.extend(twice.clone());
    twice.extend(twice.clone());
    assert_eq!(blocks("rw=write:4k size=64k io_size=128k"), twice);
    assert_eq!(blocks("rw=write:-8k size=64k"), [0, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
    assert_eq!(blocks("rw=write:-4k size=16k"), [0, 0, 0, 0]);
    assert_eq!(blocks("rw=read size=10k"), [0, 1]);
    assert_eq!(blocks("rw=read size=16k loops=2"), [0, 1, 2, 3, 0, 1, 2, 3]);
    assert_eq!(blocks("rw=read size=64k io_size=12k"), [0, 1, 2]);
    assert_eq!(blocks("rw=read size=64k number_ios=3"), [0, 1, 2]);
}

#[test]
fn reads_and_writes_of_a_sequential_mix_go_their_own_ways() {
    let (result, seen) = run("[a]\nfilename=ns1\nrw=rw\nbs=4k\n");
    for op in [Op::Read, Op::Write] {
        let places: Vec<u64> =
            seen.iter().filter(|s| s.command.op == op).map(|s| s.command.extent.offset / 4096).collect();
        assert_eq!(places, (0..places.len() as u64).collect::<Vec<_>>());
    }
    assert_eq!(result.jobs[0].read.bytes + result.jobs[0].write.bytes, 1 << 20);
}

#[test]
fn a_random_job_hits_each_block_once_and_again_in_another_order() {
    for sizes in ["bs=4k", "bsrange=4k-16k", "bssplit=4k/50:8k/50"] {
        let (result, seen) = run(&format!("[a]\nfilename=ns1\nrw=randwrite\n{sizes}\nloops=2\n"));
        assert_eq!(result.jobs[0].write.bytes, 2 << 20, "{sizes}");
        let mut hits = vec![0; 256];
        let mut places = Vec::new();
        for s in &seen {
            places.push(s.command.extent.offset / 4096);
            for block in
                s.command.extent.offset / 4096..(s.command.extent.offset + s.command.extent.len) / 4096
            {
                hits[block as usize] += 1;
                let most = *hits.iter().max().unwrap();
                assert!(most == 1 || !hits.contains(&0), "{sizes}: block {block} twice before all once");
            }
        }
        assert!(hits.iter().all(|h| *h == 2), "{sizes}");
        let half = places.len() / 2;
        assert_ne!(places[..half.min(20)], places[half..half + half.min(20)], "{sizes}");
    }
}

#[test]
fn without_a_map_blocks_come_at_random() {
    let places = blocks("rw=randread norandommap io_size=4m");
    let mut hits = vec![0u32; 256];
    for place in &places {
        hits[*place as usize] += 1;
    }
    // 1024 draws over 256 blocks: e^-4 of them, 4.7, are missed on average.
    let missed = hits.iter().filter(|h| **h == 0).count();
    assert!((1..=14).contains(&missed), "{missed}");
    let aligned = blocks("rw=randread norandommap blockalign=16k io_size=512k");
    assert!(aligned.iter().all(|b| b % 4 == 0));
}

#[test]
fn jumps_and_percentages_mix_random_with_sequential() {
    let places = blocks("rw=randread:8 io_size=1m norandommap");
    let follows = places.windows(2).filter(|w| w[1] == w[0] + 1).count();
    assert!((215..=230).contains(&follows), "{follows} of 255");
    let places = blocks("rw=randread percentage_random=25 norandommap io_size=4m");
    let follows = places.windows(2).filter(|w| w[1] == w[0] + 1).count() as f64 / 1023.0;
    assert!((follows - 0.75).abs() < 0.05, "{follows}");
    assert_eq!(
        blocks("rw=randread:4 rw_sequencer=identical norandommap io_size=64k")
            .chunks(4)
            .filter(|c| c.iter().all(|b| *b == c[0]))
            .count(),
        4
    );
}

#[test]
fn mixes_and_splits_have_their_shares() {
    let (result, _) = run("[a]\nfilename=ns1\nrw=randrw\nrwmixread=70\nbs=4k\nloops=20\niodepth=16\n");
    let job = &result.jobs[0];
    let share = job.read.requests as f64 / (job.read.requests + job.write.requests) as f64;
    assert!((share - 0.7).abs() < 0.02, "{share}");
    let (_, seen) = run(
        "[a]\nfilename=ns1\nrw=randread\nbssplit=4k/60:16k/30:64k/10\nnorandommap\nio_size=64m\niodepth=16\n",
    );
    for (bytes, want) in [(4 * K, 0.6), (16 * K, 0.3), (64 * K, 0.1)] {
        let share = seen.iter().filter(|s| s.command.extent.len == bytes).count() as f64 / seen.len() as f64;
        assert!((share - want).abs() < 0.02, "{bytes}: {share}");
    }
    let (_, seen) =
        run("[a]\nfilename=ns1\nrw=randread\nbsrange=4k-16k\nnorandommap\nio_size=16m\niodepth=16\n");
    for bytes in [4 * K, 8 * K, 12 * K, 16 * K] {
        let share = seen.iter().filter(|s| s.command.extent.len == bytes).count() as f64 / seen.len() as f64;
        assert!((share - 0.25).abs() < 0.04, "{bytes}: {share}");
    }
}

#[test]
fn stonewall_start_delay_and_wait_for_order_jobs() {
    let text = "[global]\nfilename=ns1\nbs=4k\nio_size=40k\n[a]\nname=a\nnumjobs=2\n[b]\nstonewall\n[c]\nstartdelay=50ms\n\
                [d]\nwait_for=c\n";
    let (result, _) = run(text);
    let start: Vec<u64> = result.jobs.iter().map(|j| j.start_ns / MS).collect();
    assert_eq!(start, [0, 0, 10, 50, 60]);
    assert_eq!(result.jobs.iter().map(|j| j.group).collect::<Vec<_>>(), [0, 0, 1, 1, 1]);
    assert_eq!(result.speed.time.simulated_ns, 70 * MS);
}

#[test]
fn exitall_ends_the_others() {
    let text = "[global]\nfilename=ns1\nbs=4k\n[short]\nio_size=40k\nexitall\n[long]\ntime_based\nruntime=10s\nstartdelay=500us\n\
                [idle]\ntime_based\nruntime=10s\nthinktime=5s\n[late]\nstartdelay=5s\n";
    let (result, _) = run(text);
    assert_eq!(result.speed.time.simulated_ns, 10 * MS + MS / 2, "the request under way is waited for");
    assert_eq!(result.jobs[3].read.requests, 0);
}

#[test]
fn think_time_follows_the_blocks_that_were_asked_for() {
    let (result, seen) = run("[a]\nfilename=ns1\nbs=4k\nio_size=40k\nthinktime=4ms\n");
    assert_eq!(seen[1].at, 5 * MS);
    assert_eq!(result.jobs[0].runtime_ns, (10 + 9 * 4) * MS);
    // Think time begins when nothing is outstanding.
    let (_, seen) =
        run("[a]\nfilename=ns1\nbs=4k\nio_size=64k\niodepth=4\nthinktime=4ms\nthinktime_blocks=6\n");
    let at: Vec<u64> = seen.iter().map(|s| s.at / MS).collect();
    assert_eq!(at, [0, 0, 0, 0, 1, 1, 6, 6, 6, 6, 7, 7, 12, 12, 12, 12]);
    let (_, seen) = run("[a]\nfilename=ns1\nbs=4k\nio_size=32k\nthinktime=10ms\nthinktime_iotime=3ms\n");
    let at: Vec<u64> = seen.iter().map(|s| s.at / MS).collect();
    assert_eq!(at, [0, 1, 2, 13, 14, 15, 26, 27]);
}

#[test]
fn rates_are_kept_and_caught_up() {
    // fio: 50 requests in a second.
    let (result, seen) = run("[a]\nfilename=ns1\nbs=4k\ntime_based\nruntime=1\nrate_iops=50\n");
    assert_eq!(result.jobs[0].read.requests, 50);
    assert!(seen.iter().enumerate().all(|(i, s)| s.at == i as u64 * 20 * MS));
    let (_, seen) = run("[a]\nfilename=ns1\nrw=write\nbs=4k\nsize=64k\nrate=400k\n");
    assert!(seen.iter().enumerate().all(|(i, s)| s.at == i as u64 * 10 * MS));
    // A rate that the device cannot reach is not a rate.
    let (result, _) = run("[a]\nfilename=ns1\nbs=4k\ntime_based\nruntime=1\nrate_iops=5000\n");
    assert_eq!(result.jobs[0].read.requests, 1000);
    // Both directions have their own.
    let (result, _) =
        run("[a]\nfilename=ns1\nrw=randrw\nbs=4k\ntime_based\nruntime=2\nrate_iops=100,25\niodepth=8\n");
    let job = &result.jobs[0];
    assert_eq!((job.read.requests, job.write.requests), (200, 50));
}

#[test]
fn poisson_arrivals_have_the_mean_and_spread_of_their_law() {
    let (result, seen) = run(
        "[a]\nfilename=ns1\nbs=4k\ntime_based\nruntime=20\nrate_iops=100\nrate_process=poisson\niodepth=64\n",
    );
    let n = result.jobs[0].read.requests as f64;
    assert!((n - 2000.0).abs() < 5.0 * 2000f64.sqrt(), "{n}");
    let gaps: Vec<f64> = seen.windows(2).map(|w| (w[1].at - w[0].at) as f64).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    assert!((variance.sqrt() / mean - 1.0).abs() < 0.1, "an exponential gap deviates by its mean");
}

#[test]
fn flushes_come_after_so_many_writes_and_nothing_overtakes_them() {
    // fio: 25 for 256 writes.
    let (result, seen) = run("[a]\nfilename=ns1\nrw=write\nbs=4k\nfsync=10\niodepth=4\n");
    let job = &result.jobs[0];
    assert_eq!((job.write.requests, job.sync.latency_ns.count, job.sync.latency_ns.max), (256, 25, 5 * MS));
    let of_all = result.latency_ns.flush.as_ref().unwrap();
    assert_eq!((of_all.count, of_all.mean), (25, 5.0 * MS as f64), "and in the result as a whole");
    let flush = seen.iter().position(|s| s.command.op == Op::Flush).unwrap();
    assert_eq!(flush, 10);
    assert!(seen[flush + 1].at >= seen[flush].at + 5 * MS);
    let (result, seen) = run("[a]\nfilename=ns1\nrw=write\nbs=4k\nsize=40k\nend_fsync=1\n");
    assert_eq!((seen.last().unwrap().command.op, result.jobs[0].sync.latency_ns.count), (Op::Flush, 0));
    assert!(result.latency_ns.flush.is_none(), "the last flush is counted nowhere");
    assert_eq!(result.jobs[0].runtime_ns, 15 * MS);
    let (result, _) = run("[a]\nfilename=ns1\nrw=write\nbs=4k\nsize=40k\nsync=1\n");
    assert_eq!(result.jobs[0].write.latency_ns.min, 6 * MS, "a synchronous write ends with its flush");
    let (result, _) = run("[a]\nfilename=ns1\nrw=read\nbs=4k\nsize=40k\nend_fsync=1\nfsync=2\n");
    assert_eq!(result.host.flushes, 0, "a job that writes nothing flushes nothing");
}

#[test]
fn trim_then_write_goes_block_by_block() {
    let (result, seen) = run("[a]\nfilename=ns1\nrw=trimwrite\nbs=4k\nsize=64k\nio_size=64k\n");
    let pairs: Vec<(Op, u64)> = seen.iter().map(|s| (s.command.op, s.command.extent.offset / 4096)).collect();
    assert_eq!(pairs[..4], [(Op::Trim, 0), (Op::Write, 0), (Op::Trim, 1), (Op::Write, 1)]);
    assert_eq!(result.jobs[0].trim.requests, result.jobs[0].write.requests);
}

#[test]
fn ramp_time_and_run_time_bound_what_is_counted() {
    let (result, _) = run("[a]\nfilename=ns1\nbs=4k\ntime_based\nruntime=100ms\nramp_time=50ms\n");
    let job = &result.jobs[0];
    assert_eq!((job.start_ns, job.runtime_ns), (50 * MS, 100 * MS));
    assert!((100..=101).contains(&job.read.requests), "{}", job.read.requests);
    assert!((job.read.iops - 1000.0).abs() < 15.0);
    let (result, _) = run("[a]\nfilename=ns1\nbs=4k\nruntime=10ms\n");
    assert_eq!(result.jobs[0].read.requests, 10, "a run time ends a job before its size does");
}

#[test]
fn names_choose_namespaces_and_hints_follow_writes() {
    let mut fake = Fake::new(&[1 << 20, 1 << 20], |_| MS);
    let text = "[global]\nbs=4k\nio_size=32k\nrw=write\n[a]\nfilename=ns1\nwrite_hint=long\n[b]\nfilename=nvme0n2\nfadvise_stream=7\n\
                [c]\nfilename=ns2\ndataplacement=streams\nplids=2,5\n[d]\nfilename=ns1:ns2\nrw=read\n";
    run_on(&mut fake, text).unwrap();
    let hints = |namespace: u32, op: Op| -> Vec<u16> {
        let mine = fake.seen.iter().filter(|s| s.namespace == namespace && s.command.op == op);
        let mut hints: Vec<u16> = mine.map(|s| s.command.hint.0).collect();
        hints.sort_unstable();
        hints
    };
    assert_eq!(hints(0, Op::Write), [3; 8]);
    assert_eq!(hints(1, Op::Write), [2, 2, 2, 2, 5, 5, 5, 5, 7, 7, 7, 7, 7, 7, 7, 7]);
    assert_eq!((hints(0, Op::Read), hints(1, Op::Read)), (vec![0; 4], vec![0; 4]), "files take turns");
}

#[test]
fn placement_handles_count_from_0_and_their_hints_from_1() {
    let mut fake = Fake::new(&[1 << 20], |_| MS);
    run_on(&mut fake, "[a]\nfilename=ns1\nbs=4k\nio_size=16k\nrw=write\ndataplacement=fdp\nplids=0,3\n")
        .unwrap();
    let hints: Vec<u16> = fake.seen.iter().map(|seen| seen.command.hint.0).collect();
    assert_eq!(hints, [1, 4, 1, 4], "hint 0 is no directive");
}

#[test]
fn group_reporting_adds_jobs_up() {
    let text = |grouped| {
        format!(
            "[global]\nfilename=ns1\nbs=4k\n{grouped}\n[a]\nrw=randread\nnumjobs=3\n[b]\nrw=write\nstonewall\nnumjobs=2\n"
        )
    };
    let (grouped, _) = run(&text("group_reporting"));
    let (single, _) = run(&text("# each"));
    assert_eq!((grouped.jobs.len(), single.jobs.len()), (2, 5));
    assert_eq!((grouped.jobs[0].members, grouped.jobs[0].read.requests), (3, 768));
    assert_eq!(grouped.jobs[0].read.latency_ns.count, 768);
    assert_eq!(grouped.jobs[1].write.bytes, 2 << 20);
    assert_eq!(grouped.run.workload_hash, single.run.workload_hash);
}

#[test]
fn files_that_are_read_are_written_before() {
    let mut fake = Fake::new(&[1 << 20], |_| MS);
    let result = run_on(&mut fake, "[a]\nrw=randread\nbs=4k\nsize=400k\n[b]\nrw=write\nbs=4k\nsize=100k\n")
        .unwrap()
        .result;
    assert_eq!(
        (result.host.read_bytes, result.host.write_bytes),
        (400 * K, 100 * K),
        "the layout is not counted"
    );
    assert!(result.notes.iter().any(|n| n.contains("a.0.0")), "{:?}", result.notes);
}

#[test]
fn a_job_by_time_whose_requests_take_none_is_an_error() {
    let mut fake = Fake::new(&[1 << 20], |_| 0);
    let text = "[a]\nfilename=ns1\nrw=randread\nbs=4k\ntime_based\nruntime=1\n";
    let error = run_on(&mut fake, text).unwrap().result.error.unwrap();
    assert!(error.message.contains("--precondition fill"), "{}", error.message);
    // One by size ends, and says so.
    let mut fake = Fake::new(&[1 << 20], |_| 0);
    let result = run_on(&mut fake, "[a]\nfilename=ns1\nrw=randread\nbs=4k\n").unwrap().result;
    assert!(result.error.is_none() && result.notes.iter().any(|n| n.contains("256 reads")));
}

#[test]
fn the_series_adds_up_to_the_result() {
    let mut fake = Fake::new(&[1 << 20], |c| 100_000 + c.extent.offset % 65_536);
    let text = "[global]\nfilename=ns1\nbs=4k\ntime_based\nruntime=30\n[a]\nrw=randread\niodepth=2\n[b]\nrw=write\nthinktime=1s\nthinktime_blocks=100\n";
    let outcome = run_on(&mut fake, text).unwrap();
    let series = outcome.series.unwrap();
    assert!(
        series.windows.len() <= super::timeline::MAX_WINDOWS && series.windows.len() > 200,
        "{}",
        series.windows.len()
    );
    for (row, job) in outcome.result.jobs.iter().enumerate() {
        for (op, figures) in [&job.read, &job.write].into_iter().enumerate() {
            let cells: Vec<_> = series.windows.iter().map(|w| &w.rows[row][op]).collect();
            assert_eq!(cells.iter().map(|c| c.requests).sum::<u64>(), figures.requests);
            assert_eq!(cells.iter().map(|c| c.bytes).sum::<u64>(), figures.bytes);
            assert_eq!(cells.iter().map(|c| c.latency_max_ns).max().unwrap(), figures.latency_ns.max);
            let buckets: u64 = cells.iter().flat_map(|c| c.buckets.iter()).map(|(_, n)| u64::from(*n)).sum();
            assert_eq!(buckets, figures.requests);
        }
    }
    let ends: Vec<u64> = series.windows.iter().map(|w| w.end_ns).collect();
    assert!(ends.windows(2).all(|w| w[1] > w[0]));
    assert!(ends[..ends.len() - 1].iter().all(|end| end % series.interval_ns == 0));
    // The busy second of the writer and its pause are told apart.
    let quiet = series.windows.iter().filter(|w| w.rows[1][1].requests == 0).count();
    assert!(quiet > series.windows.len() / 2);
}

#[test]
fn zones_that_only_the_jobs_know_cost_the_device_nothing() {
    let text = "[a]\nfilename=ns1\nrw=write\nbs=16k\nzonemode=zbd\nzonesize=64k\nzonecapacity=48k\nloops=2\n";
    let (result, seen) = run(text);
    assert!(seen.iter().all(|s| s.command.op == Op::Write), "a reset is no command here");
    // A zone of 64 KiB has room for three requests; the second loop resets and writes each again.
    let places: Vec<u64> = seen.iter().map(|s| s.command.extent.offset / (16 * K)).collect();
    let once: Vec<u64> = (0..64).filter(|place| place % 4 != 3).collect();
    assert_eq!(places, [once.clone(), once].concat());
    assert_eq!(result.jobs[0].write.requests, 96);
    assert_eq!(result.jobs[0].runtime_ns, 96 * MS);
}

#[test]
fn jobs_without_zones_say_which_options_need_them() {
    let (result, _) = run("[a]\nfilename=ns1\nrw=read\nbs=4k\nmax_open_zones=3\nrandom_generator=lfsr\n");
    let note = result.notes.iter().find(|note| note.contains("max_open_zones, random_generator"));
    assert!(note.is_some_and(|note| note.contains("zonemode")), "{:?}", result.notes);
}

#[test]
fn a_seed_that_no_shift_register_begins_with_is_refused() {
    let mut fake = Fake::new(&[1 << 20], |_| MS);
    let text = |seed: u64| {
        format!(
            "[a]\nfilename=ns1\nrw=randwrite\nbs=256k\nzonemode=zbd\nzonesize=256k\nrandom_generator=lfsr\nrandrepeat=0\n\
             randseed={seed}\n"
        )
    };
    let outcomes: Vec<_> = (1..100).map(|seed| run_on(&mut fake, &text(seed))).collect();
    let refused: Vec<_> = outcomes.into_iter().filter_map(Result::err).map(|e| e.to_string()).collect();
    assert!((2..40).contains(&refused.len()), "an eighth is expected: {}", refused.len());
    assert!(refused[0].contains("t.fio:1") && refused[0].contains("random_generator=lfsr"), "{}", refused[0]);
}
