//! What every front end of `serve` has in common: the engine, its start and its end.
//!
//! A front end calls [`Session::start`], begins to serve [`Session::engine`], says where with
//! [`Session::ready`], sleeps in [`Session::wait`], stops serving, and calls [`Session::finish`].

use crate::args::ServeArgs;
use crate::commands::cache::files::{discard_lost, disks, pairs};
use crate::commands::stat::{requests, share};
use crate::commands::typed_device;
use crate::console::{Console, Failure, Result};
use nandscape_cache::compose::Design;
use nandscape_cache::manage::ManageError;
use nandscape_core::{NamespaceResult, units};
use nandscape_engine::control::{Control, Controlled, Exports, Snapshot, StatSource, default_path};
use nandscape_engine::{Background, Clock, Engine, RecordingStat, Stat, Stop};
use nandscape_http::{Http, HttpError};
use nandscape_stack::{ImageHandle, StackConfig, Storage, Stored, storing};
use nandscape_volumes::{CacheFile, CacheFileError, CacheStat, Handle, Serving, cache_in_memory, open_cache};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

pub struct Session {
    pub engine: Arc<Engine>,
    /// How to end the server from elsewhere, such as a mount that was taken away.
    pub stop: Arc<Stop>,
    console: Console,
    /// Whoever looks at the engine from aside; gone before it is shut down.
    aside: Aside,
    cache: Option<Arc<Handle>>,
    /// What clients can choose, which the control socket changes; for the front end to set.
    pub exports: Arc<OnceLock<Arc<dyn Exports>>>,
}

/// What runs beside the front end.
struct Aside {
    _http: Option<Http>,
    _control: Option<Control>,
    _background: Background,
}

/// Refuses a stack that stores files, where blocks are served.
pub fn blocks_only(files: Option<&str>) -> Result<()> {
    files.map_or(Ok(()), |name| {
        Err(Failure::usage(format!(
            "stack {name}: a store of files has no blocks to serve: expected another stack, or 'serve fuse' \
             without --loop"
        )))
    })
}

impl Session {
    /// Builds the stack that the arguments describe; the image of one that `is_read_only` is not changed. The
    /// front end is given the name of a stack that stores files, or none, to `check` before anything is
    /// opened or made.
    /// From here on SIGINT, SIGTERM and SIGHUP ask for the end; a second one ends the process at once, as a
    /// loss of power would.
    pub fn start(
        args: &ServeArgs,
        is_read_only: bool,
        check: impl FnOnce(Option<&str>) -> Result<()>,
        console: Console,
    ) -> Result<Self> {
        if let Some(fast) = &args.cached.cache {
            check(None)?;
            return Self::start_cache(args, fast, console);
        }
        let storage = match args.image.clone() {
            None => Storage::Memory,
            Some(path) if is_read_only => Storage::ReadOnlyImage(path),
            Some(path) => Storage::Image(path),
        };
        let mut config =
            nandscape_stack::storing::resolve(&typed_device(&args.device, args.ftl.as_deref())?, &storage)?;
        check(config.stores_objects().then_some(config.stack.info.name))?;
        config.faults.plan.on_power_cut = Some(end_as_if_killed);
        let stop = stop_on_signals()?;
        let begin = std::time::Instant::now();
        let Stored { subsystem, image } = nandscape_stack::build_stored(&config, &storage)?;
        let engine = Arc::new(Engine::new(subsystem, clock(args)));
        tell_start(&engine, begin.elapsed().as_secs_f64(), console);
        let stat = stat_source(&engine, &config);
        Self::with(args, engine, stat, image, stop, console)
    }

    /// The volumes of a cache, instead of a device.
    fn start_cache(args: &ServeArgs, fast: &Path, console: Console) -> Result<Self> {
        let disks = disks(&args.cached.disks)?;
        let stop = stop_on_signals()?;
        let begin = std::time::Instant::now();
        let in_memory_of = fast.to_str().and_then(|text| text.strip_prefix("ram:"));
        let serving = if let Some(size) = in_memory_of {
            in_memory(args, size, &disks)?
        } else {
            if let Some(name) = &args.cached.cache_preset {
                let hint = "expected it with ram:SIZE alone; a cache that is there has the design that it was created with";
                return Err(Failure::usage(format!("--cache-preset {name}: {hint}")));
            }
            if let Some(pair) = args.device.sets.first() {
                let hint = "expected it before the start: nandscape cache set";
                return Err(Failure::usage(format!("--set {pair} of a cache that is there: {hint}")));
            }
            let fast = std::fs::canonicalize(fast)
                .map_err(|error| Failure::run(format!("{}: open: {error}", fast.display())))?;
            if args.cached.discard_lost {
                discard_lost(&mut CacheFile::open(&fast, false)?, None, console)?;
            }
            open_cache(&fast, &disks, args.cached.trust_disks)?
        };
        serving.notes.iter().flat_map(|note| note.lines()).for_each(|line| console.note(line));
        console.note(&format!("opened in {:.2} s", begin.elapsed().as_secs_f64()));
        if in_memory_of.is_some() && disks.is_empty() {
            console.note("no disk yet: 'nandscape cache attach ram DISK --name NAME' adds one");
        }
        let clock = if args.pace { Clock::Paced } else { Clock::Real };
        let engine = Arc::new(Engine::new(serving.subsystem, clock));
        let handle = Arc::new(serving.handle);
        handle.wait_for_completions();
        handle.tell(move |text| console.note(text));
        let source: StatSource = {
            let (engine, handle) = (Arc::clone(&engine), Arc::clone(&handle));
            Arc::new(move || {
                let report = engine.look(|subsystem| subsystem.inspect().cache()).unwrap_or_default();
                let cached = serde_json::to_value(handle.stat(&report)).ok();
                Stat { cached, ..engine.stat() }
            })
        };
        let session = Self::with(args, engine, source, None, stop, console)?;
        Ok(Self { cache: Some(handle), ..session })
    }

    fn with(
        args: &ServeArgs,
        engine: Arc<Engine>,
        stat: StatSource,
        image: Option<ImageHandle>,
        stop: Arc<Stop>,
        console: Console,
    ) -> Result<Self> {
        if let Some(path) = &args.record {
            engine.start_recording(path).map_err(Failure::run)?;
            console.note(&format!("recording to {}", path.display()));
        }
        let background =
            Background::start(&engine, move |warning| console.note(warning)).map_err(Failure::run)?;
        let exports = Arc::new(OnceLock::new());
        let controlled = Controlled {
            engine: Arc::clone(&engine),
            stop: Arc::clone(&stop),
            stat: Arc::clone(&stat),
            snapshot: image.map(|image| snapshots(&engine, image)),
            exports: Arc::clone(&exports),
        };
        let control = control(args, controlled, console)?;
        let http = http(args, stat, console)?;
        let aside = Aside { _http: http, _control: control, _background: background };
        Ok(Self { engine, stop, console, aside, cache: None, exports })
    }

    pub fn cache(&self) -> Option<&CacheStat> {
        self.cache.as_deref().map(Handle::at_start)
    }

    /// Whether nothing can be written, since the cache cannot be changed.
    pub fn is_read_only(&self) -> bool {
        self.cache().is_some_and(|cache| cache.read_only.is_some())
    }

    /// Says on stdout where clients find what is served, one place a line.
    pub fn ready(&self, places: &[String]) {
        self.console.announce(&places.join("\n"));
    }

    pub fn wait(&self) {
        let why = self.stop.wait();
        self.console.note(&format!("{why}: shutting down"));
    }

    /// Leaves the device in a state that opens at once. The front end has answered everything and takes no
    /// more.
    pub fn finish(self) -> Result<()> {
        drop(self.aside);
        let recording = self.engine.stop_recording().ok();
        if let Some(cache) = &self.cache {
            cache.close_next();
        }
        let shut: NamespaceResult<_> = self.engine.with(|subsystem, at| subsystem.shutdown(at));
        // What it did at its end is part of it.
        let cached = self.cache.as_ref().map(|cache| {
            let report = self.engine.look(|subsystem| subsystem.inspect().cache()).unwrap_or_default();
            cache.stat(&report)
        });
        for line in summary(&self.engine.stat(), recording.as_ref(), cached.as_ref(), shut.is_ok()) {
            self.console.note(&line);
        }
        let lost = cached.as_ref().map_or(0, |cache| cache.lost.iter().map(|range| range.len).sum::<u64>());
        shut.map_err(|error| Failure::run(format!("shutdown: {error}")))?;
        match recording.and_then(|recording| Some((recording.path, recording.error?))) {
            Some((path, error)) => Err(Failure::run(format!("{path}: the recording is not whole: {error}"))),
            None if lost > 0 => Err(Failure::run(format!("{lost} bytes that were written are lost"))),
            None => Ok(()),
        }
    }
}

/// Says what was found on the flash, where something was, and what is wrong from the start.
fn tell_start(engine: &Engine, seconds: f64, console: Console) {
    engine.look(|subsystem| {
        let sets = subsystem.inspect().sets();
        for set in 0..sets {
            let of_set = if sets > 1 { format!("set {set} ") } else { String::new() };
            if let Some(report) = subsystem.inspect().layer(set).recovery() {
                console.note(&format!("{of_set}opened in {seconds:.2} s: {}", report.summary()));
            }
            if let Some(why) = subsystem.inspect().layer(set).read_only() {
                console.note(&format!("{of_set}read-only: {why}"));
            }
        }
    });
}

/// The control socket. If nothing was said of it and it cannot be, the server runs without.
fn control(args: &ServeArgs, controlled: Controlled, console: Console) -> Result<Option<Control>> {
    if args.no_control {
        return Ok(None);
    }
    let place = args.control.clone().map_or_else(default_path, Ok);
    match place.and_then(|path| Control::start(&path, controlled)) {
        Ok(control) => Ok(Some(control)),
        Err(error) if args.control.is_some() => Err(Failure::run(error)),
        Err(error) => {
            console.note(&format!("{error}; serving without a control socket"));
            Ok(None)
        }
    }
}

fn http(args: &ServeArgs, stat: StatSource, console: Console) -> Result<Option<Http>> {
    let Some(addr) = args.http else { return Ok(None) };
    let http = Http::start(addr, args.insecure_http, stat);
    let http = http.map_err(|error| match error {
        HttpError::NotLoopback { .. } => Failure::usage(error),
        error => Failure::run(error),
    })?;
    console.note(&format!("statistics on http://{}/metrics", http.addr()));
    Ok(Some(http))
}

/// Takes snapshots of an image: its moment under the lock of the stack, the copy beside what runs.
fn snapshots(engine: &Arc<Engine>, image: ImageHandle) -> Snapshot {
    let engine = Arc::clone(engine);
    Box::new(move |target| {
        let begun = engine.with(|subsystem, at| storing::snapshot(subsystem, at, &image, target));
        begun.map_err(|error| error.to_string())?.finish().map_err(|error| error.to_string())
    })
}

/// Stat documents that say which device they speak of.
fn stat_source(engine: &Arc<Engine>, config: &StackConfig) -> StatSource {
    let (engine, mut config) = (Arc::clone(engine), config.to_json());
    // How a workload would be replayed has no meaning here.
    if let Some(tables) = config.as_object_mut() {
        tables.remove("workload");
    }
    Arc::new(move || Stat { config: config.clone(), ..engine.stat() })
}

/// Lost ranges that are named at the end.
const LOST_MAX: usize = 50;

fn summary(
    stat: &Stat,
    recording: Option<&RecordingStat>,
    cached: Option<&CacheStat>,
    is_shut: bool,
) -> Vec<String> {
    let amplification = match (cached, stat.waf.bytes) {
        (Some(_), _) => String::new(),
        (None, Some(waf)) => format!("; write amplification {waf:.3}"),
        (None, None) => "; write amplification none".to_owned(),
    };
    let mut lines = vec![requests(&stat.host) + &amplification];
    if let Some(cache) = cached {
        let dirty = match cache.gauges.dirty {
            _ if !is_shut => "the cache is not closed".to_owned(),
            0 if !cache.lost.is_empty() => "the disks have everything but what is lost".to_owned(),
            0 => "the disks have everything".to_owned(),
            dirty => format!("{dirty} blocks are dirty and stay in the cache"),
        };
        let [reads, writes] = [cache.read_hit_ratio, cache.write_hit_ratio].map(share);
        lines.push(format!("{reads} of the reads and {writes} of the writes were hits; {dirty}"));
        lines.extend(cache.trouble.clone());
        let failed = cache.mirror.iter().filter(|member| member.failed.is_some());
        lines.extend(failed.map(ToString::to_string));
        let ranges = cache.lost.iter().take(LOST_MAX);
        lines.extend(
            ranges.map(|lost| format!("lost: {}, {} bytes at offset {}", lost.volume, lost.len, lost.offset)),
        );
        if cache.lost.len() > LOST_MAX {
            lines.push(format!("lost: {} more ranges", cache.lost.len() - LOST_MAX));
        }
    }
    if let Some(pace) = stat.service.pace {
        let [p50, p99, max] = [pace.late_ns.p50, pace.late_ns.p99, pace.late_ns.max].map(units::format_ns);
        let by = format!("by p50 {p50}, p99 {p99}, at most {max} over all");
        lines.push(format!("{} of {} answers were late ({by})", pace.late, pace.answers));
    }
    if !stat.faults.errors.is_empty() {
        let kinds: Vec<String> =
            stat.faults.errors.iter().map(|(name, count)| format!("{count} {name}")).collect();
        lines.push(format!("failed requests: {}", kinds.join(", ")));
    }
    for (set, why) in &stat.faults.read_only {
        lines.push(format!("set {set} is read-only: {why}"));
    }
    if let Some(recording) = recording {
        let out = match recording.left_out {
            0 => String::new(),
            n => format!(", {n} refused ones left out"),
        };
        lines.push(format!("{}: {} commands{out}", recording.path, recording.commands));
    }
    lines
}

/// A power cut that the configuration asked for: nothing is answered, written or closed any more.
fn end_as_if_killed(operation: u64) {
    let console = Console::new(false);
    console.note(&format!("the power is cut at operation {operation}, as faults.power_cut asked for"));
    console.finish();
    std::process::exit(KILLED);
}

/// Exit status of a process that SIGKILL ended.
const KILLED: i32 = 128 + 9;

/// A cache in memory, as it was typed.
fn in_memory(args: &ServeArgs, size: &str, disks: &[(String, PathBuf)]) -> Result<Serving> {
    let bytes = units::parse_size(size).ok().filter(|bytes| *bytes >= 4096);
    let bytes = bytes
        .ok_or_else(|| Failure::usage(format!("--cache ram:{size}: expected a size such as ram:256MiB")))?;
    if disks.is_empty() && args.no_control {
        return Err(Failure::usage(
            "--cache ram:SIZE --no-control: expected the disks that it is for, since none can come: --disk NAME=PATH",
        ));
    }
    let mut typed = pairs("--set ", &args.device.sets)?;
    typed.insert(
        "preset".to_owned(),
        args.cached.cache_preset.clone().unwrap_or_else(|| "rapidcache".to_owned()),
    );
    let design = Design::parse("cache.", &typed).map_err(Failure::usage)?;
    cache_in_memory(bytes, &design, disks, args.cached.trust_disks).map_err(|error| match error {
        error @ CacheFileError::Manage { source: ManageError::Taken { .. }, .. } => Failure::run(format!(
            "{error}; what that cache has may be newer than the disk: detach it, or --trust-disks"
        )),
        error => error.into(),
    })
}

/// Memory for requests, as it was typed; at least so much.
pub fn memory(args: &ServeArgs, least: u64) -> Result<u64> {
    let bytes = units::parse_size(&args.memory).ok().filter(|bytes| *bytes >= least);
    bytes.ok_or_else(|| {
        let least = units::format_bytes(least);
        Failure::usage(format!("--memory {}: expected a size of at least {least}", args.memory))
    })
}

const fn clock(args: &ServeArgs) -> Clock {
    match args.depth {
        _ if args.pace => Clock::Paced,
        Some(depth) => Clock::Free { depth },
        None => Clock::free(),
    }
}

fn stop_on_signals() -> Result<Arc<Stop>> {
    let stop = Arc::new(Stop::new());
    let stopped = Arc::clone(&stop);
    let failed = |error: std::io::Error| Failure::run(format!("cannot wait for signals: {error}"));
    // Whoever is to outlive its terminal ignores that signal, as nohup does.
    let hangup = (!is_ignored(SIGHUP)).then_some(SIGHUP);
    let mut signals = Signals::new([SIGINT, SIGTERM].into_iter().chain(hangup)).map_err(failed)?;
    let wait = move || {
        for signal in signals.forever() {
            if stopped.is_requested() {
                std::process::exit(128 + signal);
            }
            stopped.request(match signal {
                SIGINT => "interrupted",
                SIGHUP => "the terminal was closed",
                _ => "terminated",
            });
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(wait).map_err(failed)?;
    Ok(stop)
}

/// Whether this process was started to ignore a signal.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
