//! Job files as people write them: inheritance, copies, includes, variables, and what is said of those that
//! are wrong.

use nandscape_jobs::job::{BlockSize, DataPlacement, RateProcess};
use nandscape_jobs::{Amount, Distribution, Job, JobError, JobFile};
use proptest::prelude::*;

fn parse(text: &str) -> Result<JobFile, JobError> {
    JobFile::parse("load.fio", text)
}

fn one(options: &str) -> Job {
    let file = parse(&format!("[a]\n{}\n", options.replace(' ', "\n"))).unwrap_or_else(|e| panic!("{e}"));
    file.jobs.into_iter().next().unwrap()
}

fn message(options: &str) -> String {
    parse(&format!("[a]\n{}\n", options.replace(' ', "\n"))).expect_err(options).to_string()
}

#[test]
fn global_options_hold_for_the_jobs_below_and_the_last_word_wins() {
    let text = "; comment\n[global]\nbs=8k ; and another\niodepth=4\n[a]\nbs=16k\n[global]\niodepth=9\nrw=randwrite\n[b]\nnumjobs=2\n";
    let file = parse(text).unwrap();
    let told: Vec<(&str, u64, u32, bool)> = file
        .jobs
        .iter()
        .map(|j| (j.name.as_str(), j.block_size[0].max, j.depth, j.pattern.is_random))
        .collect();
    assert_eq!(told, [("a", 16384, 4, false), ("b", 8192, 9, true), ("b", 8192, 9, true)]);
    assert_eq!(file.jobs.iter().map(|j| (j.number, j.copy)).collect::<Vec<_>>(), [(0, 0), (1, 0), (2, 1)]);
}

#[test]
fn stonewall_holds_for_the_first_copy_and_begins_a_group() {
    let file = parse("[a]\n[b]\nstonewall\nnumjobs=2\n[c]\nnew_group\n[d]\n").unwrap();
    let told: Vec<(u32, bool)> = file.jobs.iter().map(|j| (j.group, j.waits_for_previous)).collect();
    assert_eq!(told, [(0, false), (1, true), (1, false), (2, false), (2, false)]);
}

#[test]
fn options_are_what_fio_means_by_them() {
    let job = one(
        "rw=randrw:8 rwmixwrite=30 bs=4k,64k io_limit=10% offset=1m iodepth=32 runtime=90 ramp_time=500ms",
    );
    assert_eq!((job.jump_every, job.read_percent, job.depth), (8, 70, 32));
    assert_eq!((job.block_size[0].max, job.block_size[1].max), (4096, 65536));
    assert_eq!((job.io_size, job.offset), (Amount::Percent(10.0), Amount::Bytes(1 << 20)));
    assert_eq!((job.runtime_ns, job.ramp_ns), (Some(90_000_000_000), 500_000_000));
    let job =
        one("rw=write:-8k thinktime=100 thinktime_blocks=8 startdelay=2-1 rate=,5m rate_process=poisson");
    assert_eq!((job.skip_bytes, job.think_ns, job.think_blocks), (-8192, 100_000, 8));
    assert_eq!(job.start_delay_ns, (1_000_000_000, 2_000_000_000));
    assert_eq!((job.rate[0].bytes_per_s, job.rate[1].bytes_per_s), (0, 5 << 20));
    assert_eq!(job.rate_process, RateProcess::Poisson);
    let job = one("bssplit=4k/60:64k,8k/100 random_distribution=zipf:1.2:0.5 fdp=1 fdp_pli=0,3-5");
    assert_eq!(job.block_size[0].split, [(4096, 60.0), (65536, 40.0)]);
    assert_eq!(job.block_size[1], BlockSize::fixed(8192));
    assert_eq!(job.distribution[1], Distribution::Zipf { theta: 1.2, centre: Some(0.5) });
    assert_eq!((job.placement, job.placement_ids), (DataPlacement::Fdp, vec![0, 3, 4, 5]));
    let job = one("kb_base=1000 bs=4KiB size=1m percentile_list=99.9999:50");
    assert_eq!((job.block_size[0].max, job.size), (4096, Amount::Bytes(1_000_000)));
    assert_eq!(job.percentiles, [50.0, 99.9999]);
}

#[test]
fn a_synchronous_engine_has_one_request_outstanding_and_says_so() {
    let file = parse("[a]\nioengine=psync\niodepth=16\ndirect=1\ninvalidate=0\n").unwrap();
    assert_eq!(file.jobs[0].depth, 1);
    assert!(
        file.notes[0].contains("iodepth=16") && file.notes[1].contains("direct, invalidate"),
        "{:?}",
        file.notes
    );
    assert_eq!(one("ioengine=libaio iodepth=16").depth, 16);
    assert!(message("ioengine=net").contains("block requests"));
}

#[test]
fn what_is_wrong_is_named_with_file_line_option_value_and_what_was_expected() {
    for (options, parts) in [
        ("bs=4q", &["load.fio:2", "bs=4q", "4k"][..]),
        ("iodept=4", &["load.fio:2", "'iodept'", "'iodepth'"]),
        ("rw=rand", &["rw=rand", "randread"]),
        ("verify=md5", &["load.fio:2", "verify=md5", "no bytes"]),
        ("bs=4k zonemode=zoned", &["load.fio:3", "zonemode=zoned", "strided or zbd"]),
        ("zonesize=1m", &["zonesize=1048576", "zonemode"]),
        ("zonemode=strided", &["zonemode=strided", "zonesize"]),
        ("max_open_zones=5000", &["max_open_zones=5000", "4096"]),
        ("zone_reset_threshold=2", &["zone_reset_threshold=2", "0 to 1"]),
        ("zoneskip=10%", &["zoneskip=10%", "4z"]),
        ("size=xz", &["size=xz", "4z"]),
        ("bssplit=4k/50:8k/20", &["add up to 70"]),
        ("rwmixread=200", &["from 0 to 100"]),
        ("time_based", &["'a'", "runtime"]),
        ("rate=1m rate_iops=10", &["rate and rate_iops"]),
        ("wait_for=b", &["wait_for=b"]),
        ("iodepth", &["iodepth", "a value"]),
        ("size=${NANDSCAPE_NO_SUCH}", &["NANDSCAPE_NO_SUCH"]),
        ("numjobs=$ncpus", &["machine"]),
        ("numjobs=65536 numjobs=70000", &["numjobs=70000"]),
        ("random_distribution=pareto:2", &["between 0 and 1"]),
        ("plids=1,2", &["dataplacement"]),
        ("read_iolog=-", &["read_iolog=-", "a trace file"]),
        ("read_iolog=a rate_iops=10", &["'a'", "replay_time_scale"]),
        ("read_iolog=a zonemode=strided zonesize=1m", &["zonemode"]),
        ("read_iolog=a filename=ns1:ns2", &["one filename"]),
        ("read_iolog=a replay_align=3000", &["replay_align=3000", "a power of two"]),
        ("read_iolog=a replay_skip=reads", &["replay_skip=reads", "read, write, trim and sync"]),
        ("merge_blktrace_file=x", &["merge_blktrace_file=x", "a job of its own"]),
        ("include\tnosuch.fio", &["load.fio:2", "nosuch.fio"]),
    ] {
        let message = message(options);
        for part in parts {
            assert!(message.contains(part), "{options}: '{message}' lacks '{part}'");
        }
    }
    assert!(parse("bs=4k\n[a]\n").unwrap_err().to_string().contains("load.fio:1"));
    assert!(
        parse("[a\n").is_err()
            && parse("[]\n").is_err()
            && parse("").is_err()
            && parse("[global]\nbs=4k\n").is_err()
    );
}

#[test]
fn a_recording_says_itself_what_is_requested() {
    let file = parse(
        "[global]\nbs=4k\nreplay_scale=2\n[a]\nread_iolog=x:y\\:1\nreplay_redirect=ns2\nnumjobs=3\nrw=randread\n\
         replay_align=4k\nreplay_skip=read,sync\nreplay_time_scale=50\n[b]\nrw=write\n[c]\nread_iolog=z\niodepth=4\n\
         [d]\nread_iolog=z\nioengine=psync\n",
    )
    .unwrap();
    // Copies take one after the other.
    let files: Vec<_> = file.jobs.iter().map(Job::recording_file).collect();
    assert_eq!(files, [Some("x"), Some("y:1"), Some("x"), None, Some("z"), Some("z")]);
    let job = &file.jobs[0];
    assert_eq!(job.filenames, ["ns2"]);
    assert!(job.pattern.writes && job.pattern.trims, "whatever rw says");
    assert_eq!((job.recording.place(20_000), job.recording.rate_percent), (8192, 50));
    assert_eq!((job.recording.skips, job.recording.skips_flushes), ([true, false, false], true));
    // Without a depth it has none; a synchronous engine has one request under way.
    assert_eq!(file.jobs.iter().map(|job| job.depth).collect::<Vec<_>>(), [0, 0, 0, 1, 4, 1]);
    let is_file = |name: &str| name != "ns2";
    assert!(!job.has_file_for_recording(is_file) && file.jobs[4].has_file_for_recording(is_file));
    let has = |part: &str| file.notes.iter().any(|note| note.contains(part));
    assert!(has("bs, rw (read_iolog says what is requested)"), "{:?}", file.notes);
    assert!(has("replay_scale (matters only with read_iolog)"), "{:?}", file.notes);
}

#[test]
fn options_that_are_switched_off_are_not_refused() {
    let job = one("verify=0 zonemode=none flow=0 rate_min=0 nrfiles=1 latency_target=0");
    assert_eq!(job.depth, 1);
}

#[test]
fn included_files_are_found_beside_the_one_that_names_them() {
    let folder = std::env::temp_dir().join(format!("nandscape-jobs-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("inner")).unwrap();
    std::fs::write(folder.join("main.fio"), "include inner/common.fio\n[a]\n").unwrap();
    std::fs::write(folder.join("inner/common.fio"), "[global]\niodepth=7\ninclude more.fio\n").unwrap();
    std::fs::write(folder.join("inner/more.fio"), "bs=8k\n").unwrap();
    std::fs::write(folder.join("circle.fio"), "include circle.fio\n[a]\n").unwrap();
    let file = JobFile::read(folder.join("main.fio").to_str().unwrap()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((file.jobs[0].depth, file.jobs[0].block_size[0].max), (7, 8192));
    let circle = JobFile::read(folder.join("circle.fio").to_str().unwrap()).unwrap_err().to_string();
    assert!(circle.contains("include each other"), "{circle}");
    std::fs::remove_dir_all(folder).unwrap();
    assert!(JobFile::read("/nonexistent/x.fio").unwrap_err().to_string().contains("/nonexistent/x.fio"));
}

/// Words that make interesting job files when put together.
const WORDS: &[&str] = &[
    "[a]",
    "[global]",
    "rw=",
    "randrw",
    ":8",
    "bs=",
    "4k",
    "64k",
    ",",
    "/",
    "50",
    ":",
    "bssplit=",
    "size=",
    "%",
    "100",
    "iodepth=",
    "\n",
    "\n",
    "include x",
    "${",
    "}",
    "$",
    "random_distribution=",
    "zoned:",
    "zipf:",
    "(",
    ")",
    "*",
    "-",
    "0x",
    "numjobs=",
    "99999999999999999999",
    "=",
    "#",
    ";",
    "\u{e9}",
    "plids=",
    "percentile_list=",
    "startdelay=",
    "runtime=",
    "1.5",
    "k",
    "stonewall",
    "bsrange=",
    "offset=",
];

proptest! {
    /// No text makes the reader panic.
    #[test]
    fn any_text_is_read_or_refused(words in prop::collection::vec(prop::sample::select(WORDS), 0..40)) {
        let _ = parse(&words.concat());
    }
}
