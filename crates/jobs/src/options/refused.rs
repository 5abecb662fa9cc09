//! Options that would change what is measured and cannot be done, so that a result without them would
//! mislead. A value that switches the option off is fine.

use super::IsOff;

/// `0` or nothing that counts.
const ZERO: IsOff = |value| {
    value.is_some_and(|v| v.bytes().take_while(u8::is_ascii_digit).all(|b| b == b'0') && v.starts_with('0'))
};
const NONE: IsOff = |value| matches!(value, Some("none" | "0"));
const ONE: IsOff = |value| value == Some("1");
const NEVER: IsOff = |_| false;

/// Names as in [`super::ignored`], the values that switch the option off, the reason. In the order of fio's
/// documentation.
pub(super) static OPTIONS: &[(&str, IsOff, &str)] = &[
    ("opendir", NEVER, "there are no directories behind a namespace; name the namespace with filename"),
    ("nrfiles|nr_files", ONE, "a job has the files that filename lists; list them there"),
    ("filesize", ZERO, "files are as large as the size of their job; use size"),
    ("file_append", ZERO, "regions begin where offset says; use offset"),
    ("fill_device|fill_fs", ZERO, "a namespace is full when it was written once; use size=100%"),
    (
        "verify",
        NONE,
        "replays carry no bytes that could be compared; serve the device and run fio against it instead",
    ),
    ("verify_only", ZERO, "replays carry no bytes that could be compared"),
    ("trim_percentage", ZERO, "it discards verified blocks, and there is no verify; use rw=trimwrite"),
    (
        "merge_blktrace_file",
        NEVER,
        "logs are not merged into one; give each a job of its own with read_iolog",
    ),
    ("exec_prerun", NEVER, "a job file runs no programs here"),
    ("exec_postrun", NEVER, "a job file runs no programs here"),
    ("rate_min|ratemin", ZERO, "jobs are not stopped for being slow; read the rate from the result"),
    ("rate_iops_min", ZERO, "jobs are not stopped for being slow; read the rate from the result"),
    ("max_latency", ZERO, "jobs are not stopped for being slow; read the maximum from the result"),
    ("latency_target", ZERO, "the search for a queue depth is not done; run the job at several depths"),
    ("flow", ZERO, "tokens between jobs are not kept; use rate or thinktime"),
    ("steadystate|ss", NEVER, "runs do not stop at a steady state; use runtime and read the series"),
    ("write_barrier", ZERO, "barrier writes are no command of a namespace; use fsync"),
    ("exit_what", |value| value == Some("all"), "exitall ends all jobs or none"),
    ("unified_rw_reporting", NONE, "directions are reported apart; the table has their sum, too"),
    ("dp_scheme|plid_scheme", NEVER, "a scheme file is not read; list the ids with plids"),
];
