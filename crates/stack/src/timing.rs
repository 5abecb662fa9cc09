//! `[device.timing]`: its keys, and what they mean together.

use crate::keys::Result;
use nandscape_core::params::Typed;
use nandscape_core::{Geometry, Info, Key, Param, ParamError, Params, keys, units};
use nandscape_media::scheduler::{Follows, PARALLEL, SCHEDULERS, SchedulerEntry};
use nandscape_media::{
    BlockTimes, GcOrder, HostLink, Intake, Options, SlcTiming, Suspension, Timing, WriteBuffer,
};

keys! { PARAMS:
    MODE: String = choice(&["serial", "parallel"]) or "parallel",
        "serial: one page operation at a time, transfers included; parallel: dies and buses are resources";
    SCHEDULER: String = choice(PARALLEL) or "fifo",
        "parallel mode: fifo fixes completions at submission; read-first is event-driven and lets reads \
         overtake";
    READ: String = text() or "60us",
        "array read of a page; a list such as 46us,53us,60us is used in rotation by page number in the block";
    PROGRAM: u64 = time() or "700us", "array program of a page, or of all pages of a program unit";
    ERASE: u64 = time() or "3ms", "block erase";
    CHANNEL_BYTES_PER_S: u64 = size(1, 1 << 50) or "800MB", "bytes per second of one channel bus";
    COMMAND: u64 = time() or "0ns", "command overhead of each operation on the channel bus";
    ERASE_PAGE: Option<u64> = time(),
        "an erase takes so much longer for each page of the block that was programmed";
    PROGRAM_PAGES: Option<u32> = int(1, 64),
        "consecutive pages of a block programmed in one array operation; from 2 needs write_buffer";
    READ_PAGES: Option<u32> = int(1, 64),
        "consecutive pages of a block that lie on as many planes, so that reads of them that wait at a die run \
         as one";
    SLC_PROGRAM: Option<u64> = time(),
        "array program in blocks with one bit a cell (ftl.slc_blocks), of the pages that the cells of a program \
         unit then hold";
    SLC_READ: Option<u64> = time(), "array read of a page in such a block";
    PROGRAM_SPREAD: Option<f64> = share(),
        "most that the program time of a word line is off, the same on every block";
    PROGRAM_JITTER: Option<f64> = share(), "most that each program is off that";
    CHANNEL_COMMAND: Option<u64> = time(), "time of a read in the command core of its channel, one at a time";
    CHANNEL_DECODE: Option<u64> = time(), "time of a read in the decoder of its channel, one at a time";
    DATA_OUT: Option<u64> = time(), "bus overhead of the data of a read";
    BURST: Option<u64> = size(0, 1 << 50),
        "bytes of program data after which a read may take the bus; absent: a page is one piece";
    READ_HOLD_OFF: Option<u64> = time(),
        "the data of a program page waits for the reads of its channel, at most so long";
    LOAD_OVERLAP: Option<bool> = flag(),
        "the data of the next program is loaded while the array programs (cached program)";
    READ_OVERLAP: Option<bool> = flag(),
        "the array reads the next page while the data of the last one leaves the die (cached read)";
    MULTI_PLANE: Option<bool> = flag(),
        "operations of one kind on equal page numbers of different planes that wait at a die run as one";
    CONTENTION: Option<String> = choice(&["on", "off"]),
        "off: bus, command core and decoder take their time but never make anything wait";
    SUSPEND: Option<String> = choice(&["none", "program", "program-erase"]),
        "what a read of the host stops at its die; absent: none";
    SUSPEND_STOP: Option<u64> = time(), "from the decision to stop until the die takes the read";
    SUSPEND_ERASE_STOP: Option<u64> = time(), "the same of an erase; absent: suspend_stop";
    SUSPEND_RESUME: Option<u64> = time(), "from the end of the last read until the array goes on";
    SUSPEND_RUN: Option<u64> = time(), "the array runs so long before the first stop and between two";
    SUSPEND_TAIL: Option<u64> = time(), "no stop when the array needs no longer than this";
    SUSPEND_MOST: Option<u32> = int(1, 1_000_000), "stops of one program; 10 if absent";
    SUSPEND_ERASE_MOST: Option<u32> = int(1, 1_000_000), "stops of one erase; absent: suspend_most";
    HOST_BYTES_PER_S: Option<u64> = size(0, 1 << 50),
        "bytes per second of the host link in each direction; absent: no time";
    HOST_READ: Option<u64> = time(), "from the submission of a read until its channel knows of it";
    HOST_WRITE: Option<u64> = time(), "from the submission of a write until it asks for room or its die";
    HOST_COMPLETION: Option<u64> = time(), "from the last byte until the host knows";
    WRITE_BUFFER: Option<u64> = size(0, 1 << 50),
        "size of the controller's write buffer: writes are answered when they are in it; absent: none";
    WRITE_BUFFER_KIND: Option<String> = choice(&["volatile", "protected"]),
        "volatile: a flush waits for the programs; protected: it does not; volatile if absent";
    WRITE_PACING: Option<bool> = flag(),
        "more than half of the write buffer fills only at the pace at which programs end, so that the latency \
         of writes is even";
    WRITE_DRAIN: Option<f64> = share(),
        "share of the write buffer: while it is fuller, a die takes reads and writes of the host by age and no \
         read stops or holds off a program; absent: reads always go first";
    INTAKE_BYTES_PER_S: Option<u64> = size(0, 1 << 50),
        "bytes per second that the controller takes in the long run, of the host and of the layer, whatever \
         the dies can program; a write buffer full is taken at once; absent: no limit";
    INTAKE_TURN: Option<u64> = size(512, 1 << 30),
        "bytes of the layer's programs that the controller takes between commands of the host; 8 KiB if absent";
    INTAKE_SPREAD: Option<f64> = share(),
        "share of the controller's time for each page or turn that varies exponentially about its mean; \
         absent: the time is always the same";
    GC_ORDER: Option<String> = choice(&["fifo", "host-first", "rate-limited"]),
        "fifo: by age; host-first: at dies and in command cores; rate-limited: programs and erases of GC at \
         most at gc_rate; fifo if absent";
    GC_RATE: Option<u64> = size(1, 1 << 50),
        "rate-limited: bytes per second that GC may program on the whole device while no host write waits \
         for an erase";
}

/// Keys of `[device.timing]`. All from `program_pages` on are off where they are absent.
pub static TIMING: Info = Info {
    name: "device.timing",
    summary: "latencies and scheduling",
    source: "docs/timing.md",
    params: PARAMS,
};

/// Longer than any real operation, short enough that sums stay far below 2^64 ns.
const LONGEST_NS: u64 = 3_600_000_000_000;

pub(crate) fn scheduler_of(timing: &Params) -> &'static SchedulerEntry {
    let name = if timing.get(MODE) == "serial" { "serial" } else { timing.get(SCHEDULER) };
    let found = SCHEDULERS.iter().find(|entry| entry.info.name == name);
    found.expect("the values were checked against the same registry")
}

pub(crate) fn timing_of(timing: &Params) -> Result<Timing> {
    let reads = reads_ns(timing)?;
    Ok(Timing {
        read_ns: reads.iter().sum::<u64>() / reads.len() as u64,
        program_ns: time(timing, PROGRAM)?,
        erase_ns: time(timing, ERASE)?,
        channel_bytes_per_s: timing.get(CHANNEL_BYTES_PER_S),
        command_ns: time(timing, COMMAND)?,
    })
}

/// The options of the scheduler. Refuses by name what the chosen one cannot do and what makes no sense
/// together.
pub(crate) fn options_of(geometry: &Geometry, timing: &Params) -> Result<Options> {
    refuse_unsupported(timing)?;
    let reads_ns = reads_ns(timing)?;
    let options = Options {
        reads_ns: if reads_ns.len() > 1 { reads_ns } else { Vec::new() },
        program_spread: share(timing, PROGRAM_SPREAD)?,
        program_jitter: share(timing, PROGRAM_JITTER)?,
        program_pages: timing.get(PROGRAM_PAGES).unwrap_or(1),
        read_pages: timing.get(READ_PAGES).unwrap_or(1),
        blocks: BlockTimes { erase_page_ns: time(timing, ERASE_PAGE)?, slc: slc(timing)? },
        core_ns: time(timing, CHANNEL_COMMAND)?,
        decode_ns: time(timing, CHANNEL_DECODE)?,
        data_out_ns: time(timing, DATA_OUT)?,
        burst_bytes: timing.get(BURST).unwrap_or(0).min(u64::from(geometry.page_bytes)) as u32,
        hold_off_ns: time(timing, READ_HOLD_OFF)?,
        load_overlap: timing.get(LOAD_OVERLAP) == Some(true),
        read_overlap: timing.get(READ_OVERLAP) == Some(true),
        multi_plane: timing.get(MULTI_PLANE) == Some(true),
        contention: timing.get(CONTENTION) != Some("off"),
        suspension: suspension(timing)?,
        host: HostLink {
            bytes_per_s: timing.get(HOST_BYTES_PER_S).unwrap_or(0),
            read_front_ns: time(timing, HOST_READ)?,
            write_front_ns: time(timing, HOST_WRITE)?,
            completion_ns: time(timing, HOST_COMPLETION)?,
        },
        buffer: WriteBuffer {
            bytes: timing.get(WRITE_BUFFER).unwrap_or(0),
            is_volatile: timing.get(WRITE_BUFFER_KIND) != Some("protected"),
            is_paced: timing.get(WRITE_PACING) == Some(true),
            drain_above: (share(timing, WRITE_DRAIN)? * timing.get(WRITE_BUFFER).unwrap_or(0) as f64) as u64,
        },
        intake: Intake {
            bytes_per_s: timing.get(INTAKE_BYTES_PER_S).unwrap_or(0),
            turn: timing.get(INTAKE_TURN).map_or(8 << 10, |bytes| bytes as u32),
            spread: timing.get(INTAKE_SPREAD).unwrap_or(0.0),
        },
        gc_order: gc_order(geometry, timing)?,
    };
    check_units(geometry, timing, &options)?;
    Ok(options)
}

fn check_units(geometry: &Geometry, timing: &Params, options: &Options) -> Result<()> {
    let pages = options.program_pages;
    if !geometry.pages_per_block.is_multiple_of(pages) {
        let expected = format!("a divisor of device.pages_per_block, which is {}", geometry.pages_per_block);
        return Err(timing.error(PROGRAM_PAGES, expected).into());
    }
    let row = options.read_pages;
    let whole = if pages > 1 { pages } else { geometry.pages_per_block };
    if !whole.is_multiple_of(row) {
        let expected = format!("a divisor of {whole}, the pages of a program unit or else of a block");
        return Err(timing.error(READ_PAGES, expected).into());
    }
    if row > 1 && options.multi_plane {
        let expected = "1 with device.timing.multi_plane, where a block lies on one plane";
        return Err(timing.error(READ_PAGES, expected).into());
    }
    let unit = u64::from(pages) * u64::from(geometry.page_bytes);
    if pages > 1 && options.buffer.bytes == 0 {
        let expected = "1, or a device.timing.write_buffer in which the pages of a unit are gathered";
        return Err(timing.error(PROGRAM_PAGES, expected).into());
    }
    if options.buffer.is_paced && options.buffer.bytes == 0 {
        return Err(timing.error(WRITE_PACING, "a device.timing.write_buffer that fills at a pace").into());
    }
    if share(timing, WRITE_DRAIN)? > 0.0 && options.buffer.bytes == 0 {
        return Err(timing.error(WRITE_DRAIN, "a device.timing.write_buffer that is drained").into());
    }
    if options.buffer.bytes > 0 && options.buffer.bytes < unit {
        let expected = format!("at least the {} of a program unit", units::format_bytes(unit));
        return Err(timing.error(WRITE_BUFFER, expected).into());
    }
    Ok(())
}

/// Keys of the host link and the write buffer.
const OF_HOST: &[Param] = &[
    HOST_BYTES_PER_S.param,
    HOST_READ.param,
    HOST_WRITE.param,
    HOST_COMPLETION.param,
    WRITE_BUFFER.param,
    WRITE_BUFFER_KIND.param,
];
/// Values that switch a key off.
const OFF: &[(Param, &str)] = &[
    (PROGRAM_PAGES.param, "1"),
    (READ_PAGES.param, "1"),
    (LOAD_OVERLAP.param, "false"),
    (READ_OVERLAP.param, "false"),
    (WRITE_PACING.param, "false"),
    (MULTI_PLANE.param, "false"),
    (CONTENTION.param, "on"),
    (SUSPEND.param, "none"),
    (GC_ORDER.param, "fifo"),
];

fn refuse_unsupported(timing: &Params) -> Result<(), ParamError> {
    let scheduler = scheduler_of(timing);
    if scheduler.follows == Follows::Everything {
        return Ok(());
    }
    let key = if timing.get(MODE) == "serial" { "mode" } else { "scheduler" };
    let expected = || {
        let able = SCHEDULERS.iter().find(|entry| entry.follows == Follows::Everything);
        let able = able.map_or("", |entry| entry.info.name);
        let name = scheduler.info.name;
        format!("mode = \"parallel\" with scheduler = \"{able}\", since {key} = \"{name}\" cannot do this")
    };
    if timing.get(READ).contains(',') {
        return Err(timing.error(READ, expected()));
    }
    for (param, value) in timing.iter() {
        // Every mode follows what has a default.
        let is_known =
            !param.default.is_empty() || (scheduler.follows >= Follows::Host && OF_HOST.contains(param));
        let is_zero = units::parse_size(value).is_ok_and(|n| n == 0)
            || units::parse_time_ns(value).is_ok_and(|n| n == 0)
            || units::parse_share(value).is_ok_and(|n| n == 0.0);
        if !is_known && !is_zero && !OFF.contains(&(*param, value)) {
            return Err(timing.error(*param, expected()));
        }
    }
    Ok(())
}

fn reads_ns(timing: &Params) -> Result<Vec<u64>, ParamError> {
    let error = || {
        timing.error(READ, "a time such as 50us of at most one hour, or a list of up to 64 such as 46us,53us")
    };
    let list: Vec<u64> = timing
        .get(READ)
        .split(',')
        .map(|text| units::parse_time_ns(text.trim()).ok().filter(|ns| *ns <= LONGEST_NS))
        .collect::<Option<_>>()
        .ok_or_else(error)?;
    if list.len() > 64 { Err(error()) } else { Ok(list) }
}

/// A time, 0 where it is absent.
fn time<T>(timing: &Params, key: Key<T>) -> Result<u64, ParamError>
where
    T: for<'a> Typed<Out<'a>: Into<Option<u64>>>,
{
    match timing.get(key).into() {
        Some(ns) if ns > LONGEST_NS => Err(timing.error(key, "at most one hour")),
        ns => Ok(ns.unwrap_or(0)),
    }
}

/// A share below 1, 0 where it is absent.
fn share(timing: &Params, key: Key<Option<f64>>) -> Result<f64, ParamError> {
    match timing.get(key) {
        Some(share) if share >= 1.0 => Err(timing.error(key, "less than 100%")),
        share => Ok(share.unwrap_or(0.0)),
    }
}

/// Times of blocks with one bit a cell.
fn slc(timing: &Params) -> Result<Option<SlcTiming>, ParamError> {
    if timing.get(SLC_PROGRAM).is_some() != timing.get(SLC_READ).is_some() {
        let (one, other) = if timing.get(SLC_READ).is_none() {
            (SLC_READ, "slc_program")
        } else {
            (SLC_PROGRAM, "slc_read")
        };
        return Err(timing.error(one, format!("a time, since device.timing.{other} is given")));
    }
    let (program_ns, read_ns) = (time(timing, SLC_PROGRAM)?, time(timing, SLC_READ)?);
    Ok(timing.get(SLC_PROGRAM).map(|_| SlcTiming { read_ns, program_ns }))
}

fn suspension(timing: &Params) -> Result<Suspension, ParamError> {
    let what = timing.get(SUSPEND).unwrap_or("none");
    Ok(Suspension {
        programs: what != "none",
        erases: what == "program-erase",
        stop_ns: time(timing, SUSPEND_STOP)?,
        erase_stop_ns: match timing.get(SUSPEND_ERASE_STOP) {
            None => time(timing, SUSPEND_STOP)?,
            Some(_) => time(timing, SUSPEND_ERASE_STOP)?,
        },
        resume_ns: time(timing, SUSPEND_RESUME)?,
        run_ns: time(timing, SUSPEND_RUN)?,
        tail_ns: time(timing, SUSPEND_TAIL)?,
        most: timing.get(SUSPEND_MOST).unwrap_or(10),
        erase_most: timing.get(SUSPEND_ERASE_MOST).or(timing.get(SUSPEND_MOST)).unwrap_or(10),
    })
}

fn gc_order(geometry: &Geometry, timing: &Params) -> Result<GcOrder, ParamError> {
    let order = timing.get(GC_ORDER);
    match (timing.get(GC_RATE), order == Some("rate-limited")) {
        (None, true) => Err(timing.error(GC_RATE, "bytes per second, since gc_order is rate-limited")),
        (Some(_), false) => Err(timing.error(GC_RATE, "nothing unless gc_order is rate-limited")),
        (Some(rate), true) => {
            // Every start at a die programs a unit at most.
            let pages = timing.get(PROGRAM_PAGES).unwrap_or(1);
            let bytes = u128::from(pages) * u128::from(geometry.page_bytes) * u128::from(geometry.units());
            let gap_ns = bytes * 1_000_000_000 / u128::from(rate);
            Ok(GcOrder::RateLimited { gap_ns: gap_ns.min(u128::from(LONGEST_NS)) as u64 })
        }
        (None, false) if order == Some("host-first") => Ok(GcOrder::HostFirst),
        (None, false) => Ok(GcOrder::Fifo),
    }
}
