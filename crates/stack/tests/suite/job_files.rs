//! The shipped job files: each is explained, and runs as the command in its header says, on a smaller device
//! and for a shorter time.

use nandscape_jobs::JobFile;
use nandscape_sim::RunResult;
use nandscape_sim::result::JobResult;
use nandscape_stack::jobs::{is_job_file, run_job_file, run_parsed};
use nandscape_stack::{CompareOptions, Run, RunOptions, StackConfig, Typed, compare, replay};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn shipped() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join("configs")).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "fio"));
    paths.sort();
    paths
}

/// The configuration of the first command in the header, which must name the file itself.
fn configuration(path: &Path) -> StackConfig {
    let text = std::fs::read_to_string(path).unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    assert!(text.starts_with("# ") && text.lines().all(|line| line.len() <= 110), "{name}");
    let mut lines = text.lines().map(|line| line.trim_start_matches(['#', ';', ' ']));
    let first = lines.by_ref().find_map(|line| line.strip_prefix("nandscape replay "));
    let mut words: Vec<&str> =
        first.unwrap_or_else(|| panic!("{name}: the header shows no command")).split(' ').collect();
    while words.last() == Some(&"\\") {
        words.pop();
        words.extend(lines.next().expect("the command goes on").split(' '));
    }
    assert_eq!(words[0], format!("configs/{name}"));
    let mut typed = Typed::new();
    for pair in words[1..].chunks(2) {
        match pair {
            ["--device", device] => typed.merge_preset(device).unwrap(),
            ["--config", file] => typed.merge_file(root().join(file).to_str().unwrap()).unwrap(),
            ["--set", key_value] => typed.set_pair(key_value).unwrap(),
            ["--precondition", spec] => typed.set("workload.precondition", spec).unwrap(),
            other => panic!("{name}: the test knows no {other:?}"),
        }
    }
    // Unchanged parallelism, and little to fill.
    typed.set("device.blocks_per_plane", "16").unwrap();
    typed.check().unwrap()
}

fn run(path: &Path, runtime_ns: u64) -> Run {
    let config = configuration(path);
    let name = path.to_str().unwrap();
    assert!(is_job_file(&config, name));
    let mut file = JobFile::read(name).unwrap();
    for job in &mut file.jobs {
        for recording in &mut job.recording.files {
            root().join(&recording).to_str().unwrap().clone_into(recording);
        }
        job.runtime_ns = job.runtime_ns.map(|ns| ns.min(runtime_ns));
        job.ramp_ns = job.ramp_ns.min(runtime_ns / 10);
    }
    run_parsed(&config, &file, name, &RunOptions::default()).unwrap_or_else(|e| panic!("{name}: {e}"))
}

#[test]
fn each_runs_the_command_of_its_header() {
    let all = shipped();
    assert!(all.len() >= 3);
    for path in all {
        let result = run(&path, 50_000_000).result;
        let name = path.display();
        assert_eq!(result.error, None, "{name}");
        for job in &result.jobs {
            let requests = job.read.requests + job.write.requests + job.trim.requests;
            assert!(requests > 5, "{name}: {} has {requests} requests", job.name);
            assert!(
                job.latency_levels.iter().map(|level| level.percent).sum::<f64>() > 99.9,
                "{name}: {}",
                job.name
            );
        }
        let read: u64 = result.jobs.iter().map(|job| job.read.bytes).sum();
        assert!(read <= result.host.read_bytes && result.host.reads > 100, "{name}");
        let by_cause: u64 = result.flash.by_cause.values().map(|count| count.programs).sum();
        assert_eq!(by_cause, result.flash.programs, "{name}");
    }
}

#[test]
fn a_job_file_compares_layers_and_does_not_mix_with_traces() {
    let path = root().join("configs/random-read.fio").to_str().unwrap().to_owned();
    let configs: Vec<StackConfig> = ["page-map", "pm-gcl"]
        .iter()
        .map(|ftl| {
            let mut typed = Typed::new();
            typed.merge_preset("thesis").unwrap();
            typed.set_ftl(ftl).unwrap();
            typed.set("workload.precondition", "fill:10%").unwrap();
            typed.check().unwrap()
        })
        .collect();
    let how = CompareOptions { jobs: Some(1), ..CompareOptions::default() };
    let options = RunOptions::default();
    let runs = compare(&configs, std::slice::from_ref(&path), how, &options).unwrap();
    assert_eq!(runs.iter().map(|run| run.label.as_str()).collect::<Vec<_>>(), ["page-map", "pm-gcl"]);
    assert!(runs.iter().all(|run| run.result.jobs.len() == 4 && run.result.error.is_none()));
    // The preset has a depth for traces.
    assert!(runs[0].result.notes.iter().any(|note| note.contains("workload.depth = 1")));
    let mixed = compare(&configs, &[path, "uniform:count=10".to_owned()], how, &options).unwrap_err();
    assert!(mixed.to_string().contains("job files and traces"), "{mixed}");
}

fn recording(name: &str) -> String {
    root().join("traces").join(name).to_str().unwrap().to_owned()
}

/// A drive of 644 MiB with streams, filled.
fn filled(sets: &[(&str, &str)]) -> StackConfig {
    let mut typed = Typed::new();
    typed.merge_preset("dc-tlc-28op").unwrap();
    let shape = [("device.blocks_per_plane", "64"), ("device.pages_per_block", "24"), ("ftl.streams", "4")];
    for (key, value) in shape.iter().chain(&[("workload.precondition", "fill")]).chain(sets) {
        typed.set(key, value).unwrap();
    }
    typed.check().unwrap()
}

fn run_text(config: &StackConfig, text: &str) -> Run {
    let file = JobFile::parse("hosts.fio", text).unwrap();
    run_parsed(config, &file, "hosts.fio", &RunOptions::default()).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn a_recording_alone_is_replayed_as_a_trace_is() {
    let trace = recording("lammps.block.csv.zst");
    for (sets, options) in [
        (&[][..], ""),
        (&[("scheduler", "read-first")], ""),
        (&[("workload.depth", "32")], "replay_no_stall=1"),
        (&[("host.policy", "autostream-sfr"), ("host.plug", "8")], ""),
        (&[("workload.remap", "dense")], ""),
    ] {
        let config = filled(sets);
        let alone = replay(&config, &trace, &RunOptions::default()).unwrap().result;
        let job = format!("[a]\nread_iolog={trace}\nfilename=ns1\n{options}\n");
        let result = run_text(&config, &job).result;
        assert_eq!(result.error, None);
        assert!(result.flash.erases > 0 && result.host == alone.host, "{sets:?}");
        let figures = |of: &RunResult| format!("{:?} {:?}", of.flash, of.latency_ns);
        assert_eq!(figures(&result), figures(&alone), "{sets:?}");
        assert_eq!(result.speed.time.simulated_ns, alone.speed.time.simulated_ns, "{sets:?}");
        assert_eq!(result.jobs[0].policy, alone.between.policy, "{sets:?}");
    }
}

#[test]
fn each_host_has_a_policy_of_its_own_and_its_own_place() {
    let traces = [recording("lammps.block.csv.zst"), recording("git.ops.csv.zst")];
    let [first, second] = &traces;
    let sets = [("host.policy", "autostream-sfr"), ("namespaces.count", "2"), ("workload.remap", "dense")];
    let config = filled(&sets);
    let text = format!("[one]\nread_iolog={first}\nfilename=ns1\n[two]\nread_iolog={second}\nfilename=ns2\n");
    let jobs = run_text(&config, &text).result.jobs;
    for (job, trace) in jobs.iter().zip(&traces) {
        let policy = job.policy.as_ref().expect("a recording has a policy");
        let writes: u64 = policy.streams.iter().map(|stream| stream.writes).sum();
        assert_eq!((policy.name.as_str(), writes), ("autostream-sfr", job.write.requests));
        // What another host does is nothing to it.
        let alone =
            run_text(&config, &format!("[one]\nread_iolog={trace}\nfilename={}\n", job.namespaces[0]));
        assert_eq!(alone.result.jobs[0].policy, job.policy, "{trace}");
    }
}

#[test]
fn copies_of_a_host_have_a_row_each_or_are_added_up() {
    let trace = recording("lammps.block.csv.zst");
    let config = filled(&[("host.policy", "autostream-sfr"), ("workload.remap", "dense")]);
    let job = format!("[a]\nread_iolog={trace}\nfilename=ns1\nnumjobs=2\n");
    let writes = |job: &JobResult| {
        let policy = job.policy.as_ref().expect("a recording has a policy");
        policy.streams.iter().map(|stream| stream.writes).sum::<u64>()
    };
    let apart = run_text(&config, &job).result.jobs;
    assert_eq!(apart.iter().map(writes).collect::<Vec<_>>(), [2475, 2475]);
    let together = run_text(&config, &format!("{job}group_reporting\n")).result.jobs;
    assert_eq!(together.iter().map(writes).collect::<Vec<_>>(), [4950]);
    assert!(together[0].policy.as_ref().unwrap().streams.is_sorted_by_key(|stream| stream.stream));
}

#[test]
fn a_policy_that_reads_all_first_is_refused_where_there_is_no_end() {
    let trace = recording("lammps.block.csv.zst");
    let config = filled(&[("host.policy", "oracle"), ("workload.remap", "dense")]);
    let run = |options: &str| {
        let text = format!("[a]\nread_iolog={trace}\nfilename=ns1\n{options}\n");
        let file = JobFile::parse("hosts.fio", &text).unwrap();
        run_parsed(&config, &file, "hosts.fio", &RunOptions::default())
    };
    assert_eq!(run("loops=2").unwrap().result.jobs[0].write.requests, 4950);
    let error = run("time_based\nruntime=1").unwrap_err().to_string();
    assert!(
        error.contains("host.policy = oracle") && error.contains("loops instead of time_based"),
        "{error}"
    );
}

#[test]
fn keys_of_traces_are_refused_with_the_option_that_does_it() {
    let path = root().join("configs/random-read.fio").to_str().unwrap().to_owned();
    let mut typed = Typed::new();
    typed.merge_preset("thesis").unwrap();
    typed.set("workload.limit", "8").unwrap();
    let error = replay(&typed.check().unwrap(), &path, &RunOptions::default()).unwrap_err().to_string();
    assert!(error.contains("workload.limit") && error.contains("number_ios"), "{error}");
}

#[test]
fn deeper_queues_give_more_and_wait_longer() {
    let result = run(&root().join("configs/random-read.fio"), 50_000_000).result;
    for pair in result.jobs.windows(2) {
        assert!(pair[1].read.iops > pair[0].read.iops, "{} {}", pair[0].name, pair[1].name);
        assert!(pair[1].read.latency_ns.p99_9 >= pair[0].read.latency_ns.p99_9);
        assert_eq!(pair[1].start_ns, pair[0].start_ns + pair[0].runtime_ns, "one after the other");
    }
}

#[test]
fn the_writers_of_pm963_write_in_the_order_of_their_rates() {
    let result = run(&root().join("configs/pm963.fio"), 200_000_000).result;
    let rate = |name: &str| result.jobs.iter().find(|job| job.name == name).unwrap().write.bytes_per_s;
    // How far apart they are is a matter of the device: where writes wait for reads, think times are a small
    // part.
    let rates = ["writer-10x", "writer-3x", "writer-2x", "writer-1x"].map(rate);
    assert!(rates.windows(2).all(|pair| pair[0] > pair[1]), "{rates:?}");
    let readers = result.jobs.iter().find(|job| job.name == "readers").unwrap();
    assert_eq!((readers.members, readers.depth), (6, 64));
}

#[test]
fn requests_of_a_job_file_are_logged_as_fio_logs_them() {
    let directory = tempfile::tempdir().unwrap();
    let (job_file, log) = (directory.path().join("zones.fio"), directory.path().join("log"));
    let text = format!(
        "[global]\nfilename=ns1\nbs=512k\nsize=1z\nzonemode=zbd\nwrite_iolog={}\n\
         [w]\nrw=write\nloops=2\n[r]\nstonewall\nrw=read\n",
        log.display()
    );
    std::fs::write(&job_file, text).unwrap();
    let mut typed = Typed::new();
    typed.merge_file(root().join("tests/jobs/zones.toml").to_str().unwrap()).unwrap();
    let config = typed.check().unwrap();
    // The second run begins the file anew.
    for _ in 0..2 {
        let run = run_job_file(&config, job_file.to_str().unwrap(), &RunOptions::default());
        assert_eq!(run.unwrap_or_else(|e| panic!("{e}")).result.error, None);
    }
    let text = std::fs::read_to_string(&log).unwrap();
    let lines: Vec<&str> =
        text.lines().map(|line| line.split_once(' ').map_or(line, |(_, rest)| rest)).collect();
    let expected = [
        "version 3 iolog",
        "ns1 add",
        "ns1 open",
        "ns1 write 0 524288",
        "ns1 write 524288 524288",
        "ns1 write 0 524288",
        "ns1 write 524288 524288",
        "ns1 read 0 524288",
        "ns1 read 524288 524288",
        "ns1 close",
    ];
    assert_eq!(lines, expected);
}

/// Columns of a log: milliseconds, value, direction, bytes.
fn log_lines(path: &Path) -> Vec<[u64; 4]> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let line = |line: &str| {
        let numbers: Vec<u64> = line.split(", ").map(|number| number.parse().unwrap()).collect();
        assert_eq!((numbers.len(), numbers[4]), (5, 0), "{line}");
        [numbers[0], numbers[1], numbers[2], numbers[3]]
    };
    text.lines().map(line).collect()
}

#[test]
fn completions_of_a_job_file_are_logged_as_fio_logs_them() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let each = at("each").display().to_string();
    let text = format!(
        "[global]\nfilename=ns1\nbs=4k\nsize=1m\n\
         [all]\nrw=randrw\nnumber_ios=40\nwrite_bw_log={each}\nwrite_iops_log={each}\nwrite_lat_log={each}\n\
         [windows]\nstonewall\nrw=randwrite\ntime_based\nruntime=2\nramp_time=1\nrate_iops=100\nlog_avg_msec=500\n\
         write_bw_log={each}\nwrite_iops_log={each}\nwrite_lat_log={each}\n\
         [shared]\nstonewall\nnumjobs=2\nrw=read\nnumber_ios=3\nper_job_logs=0\nwrite_iops_log={each}\n"
    );
    std::fs::write(at("logs.fio"), text).unwrap();
    let mut typed = Typed::new();
    typed.merge_file(root().join("tests/jobs/small.toml").to_str().unwrap()).unwrap();
    let config = typed.check().unwrap();
    // The second run begins the files anew.
    let run = || run_job_file(&config, at("logs.fio").to_str().unwrap(), &RunOptions::default());
    run().unwrap();
    let run = run().unwrap().result;
    let all = &run.jobs[0];
    let latencies = log_lines(&at("each_lat.1.log"));
    assert_eq!(latencies, log_lines(&at("each_clat.1.log")));
    assert_eq!(log_lines(&at("each_slat.1.log")), [[0; 4]; 0]);
    for (direction, measured) in [(0, &all.read), (1, &all.write)] {
        let of_it = latencies.iter().filter(|line| line[2] == direction);
        let (count, sum) = of_it.fold((0, 0), |(count, sum), line| (count + 1, sum + line[1]));
        assert_eq!(count, measured.requests);
        assert!((sum as f64 / count as f64 - measured.latency_ns.mean).abs() < 1.0);
    }
    assert!(latencies.iter().all(|line| line[3] == 4096) && latencies.is_sorted_by_key(|line| line[0]));
    let rates = log_lines(&at("each_bw.1.log"));
    let expected = latencies.iter().map(|[ms, ns, direction, bytes]| {
        [*ms, 4_096_000_000_u64.checked_div(*ns).unwrap_or(0), *direction, *bytes]
    });
    assert_eq!(rates, expected.collect::<Vec<_>>());
    assert!(log_lines(&at("each_iops.1.log")).iter().all(|line| line[1] == 1));

    // Time begins after the ramp; 100 requests of 4 KiB a second.
    let windows = log_lines(&at("each_iops.2.log"));
    assert_eq!(windows[..3], [[500, 100, 1, 0], [1000, 100, 1, 0], [1500, 100, 1, 0]], "{windows:?}");
    assert_eq!(windows.len(), 4, "{windows:?}");
    assert_eq!(log_lines(&at("each_bw.2.log"))[0], [500, 400, 1, 0]);
    let mean = log_lines(&at("each_lat.2.log")).iter().map(|line| line[1] as f64).sum::<f64>() / 4.0;
    assert!((mean / run.jobs[1].write.latency_ns.mean - 1.0).abs() < 0.02, "{mean}");

    assert_eq!(log_lines(&at("each_iops.log")).len(), 6);
    assert!(!at("each_iops.3.log").exists() && !at("each_iops.4.log").exists());
}
