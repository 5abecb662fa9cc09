//! `[device.timing]`: its keys, and what they mean together.

use crate::keys::ConfigError;
use nandscape_core::{Geometry, Info, Param, ParamError, Params, units};
use nandscape_media::{GcOrder, HostLink, Options, Suspension, Timing, WriteBuffer};

/// Keys of `[device.timing]`. All from `program_pages` on are off where they are absent.
pub static TIMING: Info = Info {
    name: "device.timing",
    summary: "latencies and scheduling",
    source: "docs/timing.md",
    params: &[
        Param::choice("mode", &["serial", "parallel"], "parallel").means(
            "serial: one page operation at a time, transfers included; parallel: dies and buses are \
             resources",
        ),
        Param::choice("scheduler", &["fifo", "read-first"], "fifo").means(
            "parallel mode: fifo fixes completions at submission; read-first is event-driven and lets \
             reads overtake",
        ),
        Param::text("read", "60us").means(
            "array read of a page; a list such as 46us,53us,60us is used in rotation by page number in the \
             block",
        ),
        Param::time("program", "700us").means("array program of a page, or of all pages of a program unit"),
        Param::time("erase", "3ms").means("block erase"),
        Param::size("channel_bytes_per_s", 1, 1 << 50, "800MB").means("bytes per second of one channel bus"),
        Param::time("command", "0ns").means("command overhead of each operation on the channel bus"),
        Param::int("program_pages", 1, 64, "").means(
            "consecutive pages of a block programmed in one array operation; from 2 needs write_buffer",
        ),
        Param::share("program_spread", "")
            .means("most that the program time of a word line is off, the same on every block"),
        Param::share("program_jitter", "").means("most that each program is off that"),
        Param::time("channel_command", "")
            .means("time of a read in the command core of its channel, one at a time"),
        Param::time("channel_decode", "")
            .means("time of a read in the decoder of its channel, one at a time"),
        Param::time("data_out", "").means("bus overhead of the data of a read"),
        Param::size("burst", 0, 1 << 50, "")
            .means("bytes of program data after which a read may take the bus; absent: a page is one piece"),
        Param::time("read_hold_off", "")
            .means("the data of a program page waits for the reads of its channel, at most so long"),
        Param::flag("load_overlap", "")
            .means("the data of the next program is loaded while the array programs (cached program)"),
        Param::flag("multi_plane", "").means(
            "operations of one kind on equal page numbers of different planes that wait at a die run as one",
        ),
        Param::choice("contention", &["on", "off"], "")
            .means("off: bus, command core and decoder take their time but never make anything wait"),
        Param::choice("suspend", &["none", "program", "program-erase"], "")
            .means("what a read of the host stops at its die; absent: none"),
        Param::time("suspend_stop", "").means("from the decision to stop until the die takes the read"),
        Param::time("suspend_resume", "").means("from the end of the last read until the array goes on"),
        Param::time("suspend_run", "").means("the array runs so long before the first stop and between two"),
        Param::time("suspend_tail", "").means("no stop when the array needs no longer than this"),
        Param::int("suspend_most", 1, 1_000_000, "").means("stops of one operation; 10 if absent"),
        Param::size("host_bytes_per_s", 0, 1 << 50, "")
            .means("bytes per second of the host link in each direction; absent: no time"),
        Param::time("host_read", "").means("from the submission of a read until its channel knows of it"),
        Param::time("host_write", "")
            .means("from the submission of a write until it asks for room or its die"),
        Param::time("host_completion", "").means("from the last byte until the host knows"),
        Param::size("write_buffer", 0, 1 << 50, "").means(
            "size of the controller's write buffer: writes are answered when they are in it; absent: none",
        ),
        Param::choice("write_buffer_kind", &["volatile", "protected"], "")
            .means("volatile: a flush waits for the programs; protected: it does not; volatile if absent"),
        Param::choice("gc_order", &["fifo", "host-first", "rate-limited"], "").means(
            "fifo: by age; host-first: at dies and in command cores; rate-limited: programs and erases of \
             GC at most at gc_rate; fifo if absent",
        ),
        Param::size("gc_rate", 1, 1 << 50, "").means(
            "rate-limited: bytes per second that GC may program on the whole device while no host write \
             waits for an erase",
        ),
    ],
};

/// How virtual time passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimingMode {
    /// One operation at a time.
    Serial,
    /// Dies and buses are resources; first come first served.
    Fifo,
    /// Dies and buses are resources; event-driven, reads first.
    ReadFirst,
}

/// Longer than any real operation, short enough that sums stay far below 2^64 ns.
const LONGEST_NS: u64 = 3_600_000_000_000;

pub(crate) fn mode_of(timing: &Params) -> TimingMode {
    match (timing.text("mode"), timing.text("scheduler")) {
        ("serial", _) => TimingMode::Serial,
        (_, "read-first") => TimingMode::ReadFirst,
        _ => TimingMode::Fifo,
    }
}

pub(crate) fn timing_of(timing: &Params) -> Result<Timing, ConfigError> {
    let reads = reads_ns(timing)?;
    Ok(Timing {
        read_ns: reads.iter().sum::<u64>() / reads.len() as u64,
        program_ns: time(timing, "program")?,
        erase_ns: time(timing, "erase")?,
        channel_bytes_per_s: timing.size("channel_bytes_per_s"),
        command_ns: time(timing, "command")?,
    })
}

/// The options of the scheduler. Refuses by name what the chosen one cannot do and what makes no sense
/// together.
pub(crate) fn options_of(geometry: &Geometry, timing: &Params) -> Result<Options, ConfigError> {
    refuse_unsupported(timing)?;
    let reads_ns = reads_ns(timing)?;
    let options = Options {
        reads_ns: if reads_ns.len() > 1 { reads_ns } else { Vec::new() },
        program_spread: share(timing, "program_spread")?,
        program_jitter: share(timing, "program_jitter")?,
        program_pages: timing.get("program_pages").map_or(1, |_| timing.int32("program_pages")),
        core_ns: time(timing, "channel_command")?,
        decode_ns: time(timing, "channel_decode")?,
        data_out_ns: time(timing, "data_out")?,
        burst_bytes: size(timing, "burst").min(u64::from(geometry.page_bytes)) as u32,
        hold_off_ns: time(timing, "read_hold_off")?,
        load_overlap: timing.get("load_overlap") == Some("true"),
        multi_plane: timing.get("multi_plane") == Some("true"),
        contention: timing.get("contention") != Some("off"),
        suspension: suspension(timing)?,
        host: HostLink {
            bytes_per_s: size(timing, "host_bytes_per_s"),
            read_front_ns: time(timing, "host_read")?,
            write_front_ns: time(timing, "host_write")?,
            completion_ns: time(timing, "host_completion")?,
        },
        buffer: WriteBuffer {
            bytes: size(timing, "write_buffer"),
            is_volatile: timing.get("write_buffer_kind") != Some("protected"),
        },
        gc_order: gc_order(geometry, timing)?,
    };
    check_units(geometry, timing, &options)?;
    Ok(options)
}

fn check_units(geometry: &Geometry, timing: &Params, options: &Options) -> Result<(), ConfigError> {
    let pages = options.program_pages;
    if !geometry.pages_per_block.is_multiple_of(pages) {
        let expected = format!("a divisor of device.pages_per_block, which is {}", geometry.pages_per_block);
        return Err(timing.error("program_pages", expected).into());
    }
    let unit = u64::from(pages) * u64::from(geometry.page_bytes);
    if pages > 1 && options.buffer.bytes == 0 {
        let expected = "1, or a device.timing.write_buffer in which the pages of a unit are gathered";
        return Err(timing.error("program_pages", expected).into());
    }
    if options.buffer.bytes > 0 && options.buffer.bytes < unit {
        let expected = format!("at least the {} of a program unit", units::format_bytes(unit));
        return Err(timing.error("write_buffer", expected).into());
    }
    Ok(())
}

/// Keys that `fifo` can follow too.
const FIFO: &[&str] =
    &["host_bytes_per_s", "host_read", "host_write", "host_completion", "write_buffer", "write_buffer_kind"];
/// Keys that every mode follows.
const ALWAYS: &[&str] = &["mode", "scheduler", "read", "program", "erase", "channel_bytes_per_s", "command"];
/// Values that switch a key off.
const OFF: &[(&str, &str)] = &[
    ("program_pages", "1"),
    ("load_overlap", "false"),
    ("multi_plane", "false"),
    ("contention", "on"),
    ("suspend", "none"),
    ("gc_order", "fifo"),
];

fn refuse_unsupported(timing: &Params) -> Result<(), ParamError> {
    let mode = mode_of(timing);
    if mode == TimingMode::ReadFirst {
        return Ok(());
    }
    let name = if mode == TimingMode::Fifo { "scheduler = \"fifo\"" } else { "mode = \"serial\"" };
    let expected =
        || format!("mode = \"parallel\" with scheduler = \"read-first\", since {name} cannot do this");
    if timing.text("read").contains(',') {
        return Err(timing.error("read", expected()));
    }
    for (key, value) in timing.iter() {
        let is_known = ALWAYS.contains(&key) || (mode == TimingMode::Fifo && FIFO.contains(&key));
        let is_zero = units::parse_size(value).is_ok_and(|n| n == 0)
            || units::parse_time_ns(value).is_ok_and(|n| n == 0)
            || units::parse_share(value).is_ok_and(|n| n == 0.0);
        if !is_known && !is_zero && !OFF.contains(&(key, value)) {
            return Err(timing.error(key, expected()));
        }
    }
    Ok(())
}

fn reads_ns(timing: &Params) -> Result<Vec<u64>, ParamError> {
    let error = || {
        timing
            .error("read", "a time such as 50us of at most one hour, or a list of up to 64 such as 46us,53us")
    };
    let list: Vec<u64> = timing
        .text("read")
        .split(',')
        .map(|text| units::parse_time_ns(text.trim()).ok().filter(|ns| *ns <= LONGEST_NS))
        .collect::<Option<_>>()
        .ok_or_else(error)?;
    if list.len() > 64 { Err(error()) } else { Ok(list) }
}

/// A time, 0 where it is absent.
fn time(timing: &Params, name: &str) -> Result<u64, ParamError> {
    match timing.get(name).map(|_| timing.time_ns(name)) {
        Some(ns) if ns > LONGEST_NS => Err(timing.error(name, "at most one hour")),
        ns => Ok(ns.unwrap_or(0)),
    }
}

fn size(timing: &Params, name: &str) -> u64 {
    timing.get(name).map_or(0, |_| timing.size(name))
}

/// A share below 1, 0 where it is absent.
fn share(timing: &Params, name: &str) -> Result<f64, ParamError> {
    match timing.get(name).map(|_| timing.share(name)) {
        Some(share) if share >= 1.0 => Err(timing.error(name, "less than 100%")),
        share => Ok(share.unwrap_or(0.0)),
    }
}

fn suspension(timing: &Params) -> Result<Suspension, ParamError> {
    let what = timing.get("suspend").unwrap_or("none");
    Ok(Suspension {
        programs: what != "none",
        erases: what == "program-erase",
        stop_ns: time(timing, "suspend_stop")?,
        resume_ns: time(timing, "suspend_resume")?,
        run_ns: time(timing, "suspend_run")?,
        tail_ns: time(timing, "suspend_tail")?,
        most: timing.get("suspend_most").map_or(10, |_| timing.int32("suspend_most")),
    })
}

fn gc_order(geometry: &Geometry, timing: &Params) -> Result<GcOrder, ParamError> {
    let limited = timing.get("gc_order") == Some("rate-limited");
    match timing.get("gc_rate") {
        None if limited => Err(timing.error("gc_rate", "bytes per second, since gc_order is rate-limited")),
        Some(_) if !limited => Err(timing.error("gc_rate", "nothing unless gc_order is rate-limited")),
        _ if limited => {
            // Every start at a die programs a unit at most.
            let pages = timing.get("program_pages").map_or(1, |_| timing.int("program_pages"));
            let bytes = u128::from(pages) * u128::from(geometry.page_bytes) * u128::from(geometry.units());
            let gap_ns = bytes * 1_000_000_000 / u128::from(timing.size("gc_rate"));
            Ok(GcOrder::RateLimited { gap_ns: gap_ns.min(u128::from(LONGEST_NS)) as u64 })
        }
        _ if timing.get("gc_order") == Some("host-first") => Ok(GcOrder::HostFirst),
        _ => Ok(GcOrder::Fifo),
    }
}
