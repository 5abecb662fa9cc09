//! Jobs with `zonemode=zbd` on a device with zones, against logs of fio 3.33 on a zoned `null_blk` device
//! (`tests/guest/fio-zbd/record` made them): the same requests, one by one, for each job. The device is the
//! state machine of `nandscape-namespace`, so a write beside a write pointer, or one zone too many, ends the
//! run.

use nandscape_core::command::{Payload, Reply};
use nandscape_core::zone::{ZoneAction, ZoneCommand, ZoneShape};
use nandscape_core::{
    Allocation, Answer, Clocked, Command, Completion, Control, Extent, Inspect, NamespaceError,
    NamespaceInfo, Op, SimTime, Subsystem, Token,
};
use nandscape_jobs::JobFile;
use nandscape_namespace::zones::{ZoneLayout, ZoneTable};
use nandscape_sim::{JobOptions, Logged, Precondition, RequestLog, RunResult, Snapshot, run_jobs};
use std::cell::RefCell;
use std::collections::BTreeMap;

const BLOCK: u64 = 512;
const MIB: u64 = 1 << 20;
/// Of a read or a write, and of a reset.
const TAKES_NS: [u64; 2] = [10_000, 100_000];

/// A namespace with zones where requests and resets take constant times.
#[derive(Debug)]
struct Zoned {
    info: [NamespaceInfo; 1],
    table: ZoneTable,
    now: u64,
    /// Zones open at once, at most, and resets.
    most_open: u32,
    resets: u32,
}

impl Zoned {
    fn new(zones: u32, size: u64, capacity: u64, max_open: Option<u32>, max_active: Option<u32>) -> Self {
        let layout = ZoneLayout {
            zones,
            conventional: 0,
            size: size / BLOCK,
            capacity: capacity / BLOCK,
            block_bytes: BLOCK as u32,
            max_active,
            max_open,
            extension_bytes: 0,
            random: None,
            reads_across: false,
        };
        let shape = ZoneShape {
            zones,
            conventional: 0,
            size,
            capacity,
            block: BLOCK as u32,
            max_active,
            max_open,
            durable_pages: false,
        };
        let info = NamespaceInfo {
            name: "ns1".to_owned(),
            capacity_bytes: size * u64::from(zones),
            page_bytes: 4096,
            set: 0,
            endurance_group: 0,
            zones: Some(shape),
            objects: false,
        };
        Self { info: [info], table: ZoneTable::new(layout), now: 0, most_open: 0, resets: 0 }
    }
}

nandscape_core::no_state!(impl [] Zoned: "a subsystem of a test");

impl Subsystem for Zoned {
    fn namespaces(&self) -> &[NamespaceInfo] {
        &self.info
    }
    fn prepare(&self, _: u32, _: Op, _: Extent) {}
    fn submit(
        &mut self,
        _: u32,
        command: Command,
        _: Payload<'_>,
        at: SimTime,
    ) -> Result<Answer, NamespaceError> {
        assert!(at.0 >= self.now, "time went back from {} to {at:?}", self.now);
        self.now = at.0;
        let mut takes = TAKES_NS[0];
        match command {
            Command::Block(command) => {
                let (from, blocks) = (command.extent.offset / BLOCK, command.extent.len / BLOCK);
                match command.op {
                    Op::Read => self.table.check_read(from, blocks)?,
                    Op::Write => {
                        self.table.write(from, blocks)?;
                    }
                    _ => {}
                }
            }
            Command::Zone(ZoneCommand::Manage { action: ZoneAction::Reset, zone }) => {
                self.table.manage(ZoneAction::Reset, zone.map(|zone| zone / BLOCK), &mut Vec::new())?;
                takes = TAKES_NS[1];
                self.resets += 1;
            }
            Command::Zone(ZoneCommand::Report { from, filter, room }) => {
                let report = self.table.report(from / BLOCK, filter, room)?;
                return Ok(Answer { done: Token::NONE, reply: Reply::Zones(Box::new(report)) });
            }
            other @ Command::Zone(_) => return Err(NamespaceError::NotSupported { command: other.name() }),
            _ => unreachable!("jobs use two command sets"),
        }
        self.table.check_invariants();
        self.most_open = self.most_open.max(self.table.open());
        Ok(Token(at.0 + takes).into())
    }
    fn shutdown(&mut self, _: SimTime) -> Result<Token, NamespaceError> {
        Ok(Token::NONE)
    }
    fn join(&mut self, a: Token, b: Token) -> Token {
        Token(a.0.max(b.0))
    }
    fn idle(&mut self, _: SimTime, _: SimTime) -> Result<(), NamespaceError> {
        Ok(())
    }
    fn allocation(&self, _: u32, extent: Extent) -> Allocation {
        Allocation { is_mapped: true, bytes: extent.len }
    }
    fn inspect(&self) -> Inspect<'_> {
        Inspect::default()
    }
    fn control(&mut self) -> Control<'_> {
        Control::default()
    }
    fn reset_counters(&mut self, _: SimTime) {
        self.now = 0;
    }
    fn check_invariants(&self) {}
}

impl Clocked for Zoned {
    fn completion(&self, token: Token) -> Option<SimTime> {
        Some(SimTime(token.0))
    }
    fn watch(&mut self, _: Token, _: u64) {
        unreachable!("every completion is known")
    }
    fn advance(&mut self, _: SimTime, _: &mut Vec<Completion>) {}
    fn next_event(&self) -> Option<SimTime> {
        None
    }
    fn idle_from(&self) -> SimTime {
        SimTime(self.now)
    }
}

/// Requests of each job as lines of a recorded log.
#[derive(Debug, Default)]
struct Lines(RefCell<BTreeMap<u32, Vec<String>>>);

impl RequestLog for Lines {
    fn request(&self, request: Logged<'_>) {
        let line = format!("{} {} {}", request.op.name(), request.offset, request.len);
        self.0.borrow_mut().entry(request.job).or_default().push(line);
    }
}

/// Runs a job file; every job is logged.
fn run(device: &mut Zoned, text: &str) -> (RunResult, Vec<Vec<String>>) {
    run_after(device, text, &Precondition::default())
}

fn run_after(device: &mut Zoned, text: &str, precondition: &Precondition) -> (RunResult, Vec<Vec<String>>) {
    let mut file = JobFile::parse("t.fio", text).unwrap_or_else(|e| panic!("{e}"));
    for job in &mut file.jobs {
        job.logs.requests = Some(String::new());
    }
    let lines = Lines::default();
    let options = JobOptions {
        snapshot: Snapshot::Unused,
        precondition,
        seed: 42,
        with_series: false,
        interval_ns: None,
        with_detail: false,
        stop: None,
        log: Some(&lines),
        recordings: None,
    };
    let outcome = run_jobs(device, &file, "t.fio", &options, &mut || {}, &mut |_| {});
    let mut lines = lines.0.into_inner();
    let by_job = (0..file.jobs.len() as u32).map(|job| lines.remove(&job).unwrap_or_default()).collect();
    (outcome.unwrap_or_else(|e| panic!("{e}")).result, by_job)
}

/// Values of the first line of a recorded job file.
fn header(text: &str) -> BTreeMap<&str, u64> {
    let words = text.lines().next().and_then(|line| line.strip_prefix("# ")).expect("a line of values");
    let pair = |word| str::split_once(word, '=').expect("a key and a value");
    words.split(' ').map(pair).map(|(key, value)| (key, value.parse().unwrap())).collect()
}

#[test]
fn requests_on_zones_are_those_of_fio_on_null_blk() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/null_blk");
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .filter_map(|entry| {
            entry.unwrap().file_name().into_string().unwrap().strip_suffix(".fio").map(String::from)
        })
        .collect();
    names.sort();
    assert!(names.len() >= 15, "{names:?}");
    for name in names {
        let read = |suffix: &str| std::fs::read_to_string(format!("{directory}/{name}.{suffix}")).unwrap();
        let (text, log) = (read("fio"), read("log"));
        let header = header(&text);
        let limit = |key: &str| Some(header[key] as u32).filter(|limit| *limit > 0);
        let (size, capacity) = (header["size"] * MIB, header["capacity"] * MIB);
        let limits = (limit("max_open"), limit("max_active"));
        let mut device = Zoned::new(header["zones"] as u32, size, capacity, limits.0, limits.1);
        for run_number in 1..=header["runs"] {
            device.now = 0;
            let (result, ours) = run(&mut device, &text);
            assert_eq!(result.error, None, "{name}, run {run_number}");
            for (job, ours) in result.jobs.iter().zip(&ours) {
                let prefix = format!("{run_number} {} ", job.name);
                let theirs: Vec<&str> = log.lines().filter_map(|line| line.strip_prefix(&*prefix)).collect();
                let at = theirs.iter().zip(ours).position(|(a, b)| a != b);
                let at = at.unwrap_or(theirs.len().min(ours.len()));
                let around = |lines: &[String]| {
                    lines[at.saturating_sub(2).min(lines.len())..].iter().take(5).cloned().collect()
                };
                let theirs: Vec<String> = theirs.into_iter().map(String::from).collect();
                let (of_fio, of_ours): (Vec<String>, Vec<String>) = (around(&theirs), around(ours));
                assert!(
                    theirs == *ours,
                    "{name}, run {run_number}, job {}: request {at} of {} and {}: fio {of_fio:?}, here {of_ours:?}",
                    job.name,
                    theirs.len(),
                    ours.len()
                );
            }
        }
    }
}

#[test]
fn jobs_at_depth_keep_to_write_pointers_and_limits() {
    for jobs in [
        "[a]\nnumjobs=3\nmax_open_zones=4\njob_max_open_zones=2\n",
        "[a]\nmax_open_zones=2\n[b]\nrw=randrw\n",
        "[a]\nzone_reset_threshold=0.2\nzone_reset_frequency=0.1\n[b]\nrw=write\n",
        "[a]\nrw=randrw\nbsrange=4k-96k\n[b]\nrw=read\n[c]\nrw=randtrim\nbs=16k,16k,1m\n",
    ] {
        let mut device = Zoned::new(8, MIB, 768 << 10, Some(4), Some(4));
        let global = "[global]\nrw=randwrite\nbs=16k\niodepth=8\nzonemode=zbd\nio_size=24m\nfilename=ns1\n";
        let (result, lines) = run(&mut device, &format!("{global}{jobs}"));
        assert_eq!(result.error, None, "{jobs}");
        assert!(device.most_open <= 4 && device.resets > 0, "{jobs}: {device:?}");
        assert!(lines[0].len() > 100, "{jobs}: {}", lines[0].len());
    }
}

#[test]
fn resets_take_time_and_are_no_requests() {
    let mut device = Zoned::new(4, MIB, MIB, None, None);
    let (result, lines) = run(&mut device, "[a]\nfilename=ns1\nrw=write\nbs=64k\nzonemode=zbd\nloops=2\n");
    let job = &result.jobs[0];
    assert_eq!((job.write.requests, lines[0].len(), device.resets), (128, 128, 4));
    assert_eq!(job.runtime_ns, 128 * TAKES_NS[0] + 4 * TAKES_NS[1]);
    assert_eq!(job.write.latency_ns.max, TAKES_NS[0], "a write begins when its zone is reset");
}

#[test]
fn a_filled_namespace_has_full_zones() {
    let mut device = Zoned::new(4, MIB, 768 << 10, None, None);
    let fill = Precondition::parse("fill").unwrap();
    let (result, lines) = run_after(
        &mut device,
        "[a]\nfilename=ns1\nrw=randread\nbs=64k\nzonemode=zbd\n[b]\nstonewall\nfilename=ns1\nrw=write\nbs=64k\nzonemode=zbd\n",
        &fill,
    );
    assert_eq!(result.error, None);
    assert_eq!((lines[0].len(), lines[1].len(), device.resets), (64, 48, 4), "a write resets its zone");
}
