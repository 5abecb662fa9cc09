//! A device that fits its workload: small enough that the workload fills it.
//!
//! A drive of 128 GiB says nothing of a trace that writes 2 GiB. The device keeps its planes and pages, and
//! over-provisioning its ratio; it has fewer blocks, and shorter ones where a plane would have too few of
//! them. The time of an erase is then scaled with the block, so that erasing costs as much for each byte.
//! Where that is not enough it has fewer dies, then fewer channels, and does less at the same time.

use crate::build::build_subsystem;
use crate::config::cache::CacheConfig;
use crate::config::{StackConfig, Typed};
use crate::error::RunError;
use crate::jobs::is_job_file;
use crate::keys::shape;
use crate::kinds::{dm_zoned, host_ftl};
use crate::options::open_options;
use crate::recordings;
use nandscape_core::ranges::Ranges;
use nandscape_core::units::{format_bytes, parse_time_ns};
use nandscape_core::{IoRecord, TraceError, TraceOp};
use nandscape_jobs::JobFile;
use nandscape_sim::Room;
use nandscape_sim::jobs::{is_file, unreadable};
use nandscape_trace::{BoxReader, OpenOptions, Target, Workload, WorkloadSpec};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::iter;

/// A plane with fewer blocks has too few victims to choose from.
const FEWEST_BLOCKS: u32 = 32;
/// With as many, blocks that are open or kept free take no room that would be felt: blocks are shortened
/// before a plane has fewer.
const ENOUGH_BLOCKS: u32 = 512;
/// A block with fewer pages, or fewer program operations, is no block: victims would be emptier than those of
/// the whole device, since the valid pages of a few vary more than those of many.
const FEWEST_PAGES: u32 = 16;
const FEWEST_PROGRAMS: u32 = 4;
/// What a device that is to be steady does before the counted part, unless something else is asked for.
const BEFORE: &str = "fill+uniform:1x";
/// The same where a random write costs a whole chunk: they would wear the device out.
const BEFORE_CHUNKS: &str = "fill";
/// Blocks are whole: a device is at most so much emptier than asked for, where it could be any size.
const ROUNDED: f64 = 0.95;
/// Caches are of a multiple of so many bytes, which holds whole sets of every design.
const CACHE_ROUNDED: u64 = 4 << 20;
/// Keys that are set even where they stay what they are.
const ALWAYS: [&str; 2] = ["device.blocks_per_plane", "device.pages_per_block"];
const FLAG: &str = "--fit";
/// Where recordings are read that need no place yet.
const NOWHERE: Room = Room { bytes: 0, page_bytes: 4096 };

/// How the keys of a configuration change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fitted {
    /// Keys and values to set.
    pub sets: Vec<(&'static str, String)>,
    /// What was done, in words.
    pub note: String,
}

/// What a workload says of its writes beside where they go, by which a device may tell apart what dies
/// together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Said {
    /// Nothing.
    Nothing,
    /// Streams or hints of their life.
    Hints,
    /// The files that they are of.
    Files,
}

/// What all of these workloads say of their writes: of each what its first write that says anything does.
///
/// # Errors
///
/// Workloads that cannot be read.
pub fn said(config: &StackConfig, workloads: &[String]) -> Result<Said, RunError> {
    let of = |mut reader: BoxReader| -> Result<Said, RunError> {
        while let Some(record) = reader.next() {
            let record = record?;
            if record.op.is_write() && reader.origin().path.is_some() {
                return Ok(Said::Files);
            }
            if record.op.is_write() && record.hint != 0 {
                return Ok(Said::Hints);
            }
        }
        Ok(Said::Nothing)
    };
    let target = Target { files: config.files(), ..Target::NONE };
    let mut least = Said::Files;
    for workload in workloads {
        if is_job_file(config, workload) {
            for job in JobFile::read(workload)?.jobs.iter().filter(|job| job.recording_file().is_some()) {
                let reader = recordings::source(config, job, NOWHERE, |options| options)
                    .and_then(|source| source.open());
                least = least.min(of(reader.map_err(|error| unreadable(job, &error))?)?);
            }
        } else {
            least = least.min(of(nandscape_trace::open(workload, &open_options(config), target)?)?);
        }
    }
    Ok(least)
}

/// Whether a workload is a trace in a file, which has a footprint of its own, or a job file of nothing but
/// such traces (`read_iolog`); generators, other job files and standard input have none.
///
/// # Errors
///
/// A name that is neither a file nor a generator, and job files that cannot be read.
pub fn has_footprint(config: &StackConfig, workload: &str) -> Result<bool, RunError> {
    if !is_job_file(config, workload) {
        return Ok(is_trace(workload)?);
    }
    for job in JobFile::read(workload)?.jobs {
        let Some(file) = job.recording_file() else { return Ok(false) };
        if !is_trace(file)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_trace(workload: &str) -> Result<bool, TraceError> {
    Ok(matches!(workload.parse()?, WorkloadSpec::File(_)))
}

/// Bytes that a workload touches in the first namespace, its pages moved together. Files of recordings lie
/// side by side there, and others in the namespaces that they name, which are taken as equally large.
fn touched(config: &StackConfig, workload: &str) -> Result<u64, RunError> {
    if !has_footprint(config, workload)? {
        let why = "has no footprint of its own: expected a trace file, or a job file whose jobs have all a read_iolog";
        return Err(refused(format!("workload '{workload}' {why}")));
    }
    if !is_job_file(config, workload) {
        let options = OpenOptions { remap_dense: true, ..open_options(config) };
        let target = Target { files: config.files(), ..Target::NONE };
        return Ok(Workload::new(workload, &options, target)?.span_bytes()?);
    }
    // Of files by their names, those without one by the number of the job; of namespaces.
    let mut files: BTreeMap<String, u64> = BTreeMap::new();
    let mut namespaces: BTreeMap<String, u64> = BTreeMap::new();
    for job in JobFile::read(workload)?.jobs {
        let bytes =
            recordings::span(config, &job, NOWHERE, true).map_err(|error| unreadable(&job, &error))?;
        let name = job.filenames.first().cloned();
        let places = match &name {
            Some(name) if !is_file(name, &[]) => &mut namespaces,
            _ => &mut files,
        };
        let most = places.entry(name.unwrap_or_else(|| format!("job {}", job.number))).or_default();
        *most = bytes.next_multiple_of(u64::from(config.seen_geometry().page_bytes)).max(*most);
    }
    Ok(namespaces.into_values().fold(files.into_values().sum(), u64::max))
}

/// Bytes that a recording of file operations, or of objects, has in a store at its fullest: whole pages, and
/// one more for each object.
fn live(config: &StackConfig, workload: &str) -> Result<u64, RunError> {
    if is_job_file(config, workload) || !is_trace(workload)? {
        let why = "is none of file operations or objects, which stores of files are fitted to";
        return Err(refused(format!("workload '{workload}' {why}")));
    }
    let page = u64::from(config.seen_geometry().page_bytes);
    let target = Target { files: config.files(), ..Target::NONE };
    let mut objects: HashMap<u32, Ranges<()>> = HashMap::new();
    let (mut live, mut most) = (0, 0);
    for record in nandscape_trace::open(workload, &open_options(config), target)? {
        let IoRecord { op, volume, offset, len, .. } = record?;
        if op == TraceOp::ObjectDelete {
            live -= objects.remove(&volume).map_or(0, |mut pages| 1 + taken(&mut pages, 0, u64::MAX));
            continue;
        }
        let end = offset.saturating_add(len);
        let pages = objects.entry(volume).or_insert_with(|| {
            live += 1;
            Ranges::default()
        });
        match op {
            TraceOp::ObjectWrite => live += pages.fill(offset / page, end.div_ceil(page), ()),
            TraceOp::ObjectTruncate => live -= taken(pages, offset.div_ceil(page), u64::MAX),
            TraceOp::ObjectPunch => live -= taken(pages, offset.div_ceil(page), end / page),
            _ => {}
        }
        most = live.max(most);
    }
    Ok(most * page)
}

/// Takes pages away; how many there were.
fn taken(pages: &mut Ranges<()>, from: u64, end: u64) -> u64 {
    iter::from_fn(|| pages.take(from, end.max(from))).map(|(from, end)| end - from).sum()
}

/// Bytes that the largest of these workloads needs on a device.
fn needed(config: &StackConfig, workloads: &[String]) -> Result<u64, RunError> {
    let mut most = 0;
    for workload in workloads {
        let of = if config.stores_objects() { live } else { touched };
        most = of(config, workload)?.max(most);
    }
    Ok(most)
}

/// Whether a drive with units smaller than pages can be assumed below a stack where nothing is said of the
/// device: one that a device can be fitted to, and that random writes do not keep busy for hours.
pub fn suits_default_drive(config: &StackConfig) -> bool {
    let name = config.stack.info.name;
    // A region of a cache is a zone, which a small cache has none of while blocks are long.
    can_fit(config)
        && !config.stack.needs_cache()
        && ![host_ftl::KIND.info.name, dm_zoned::KIND.info.name].contains(&name)
}

/// Whether a device can be fitted below a stack: not below one that hosts have to write in order.
fn can_fit(config: &StackConfig) -> bool {
    config.stores_objects() || config.stack.is_drive() || config.stack.takes_cache()
}

/// Fits the device of these configurations, which have the same flash, to the largest of these workloads.
///
/// Without a cache, what the workload touches, or has in a store of files at its fullest, takes at most
/// `share` of the logical capacity on each of them. Pages that were touched are moved together. The device is
/// filled and overwritten before the counted part, if the configurations write nothing then; not if it is to
/// stay `as_it_is`, or where one is a store of files.
///
/// With caches, the cache holds `share` of what the workload touches, unless its size is said, and its flash
/// is as small as that allows. A disk alone beside them stays what it is.
///
/// # Errors
///
/// Workloads that have no footprint of their own (see [`has_footprint`]), stacks written in order, caches
/// beside devices without one, and devices whose blocks cannot be that few.
pub fn fit(
    configs: &[StackConfig],
    workloads: &[String],
    share: f64,
    as_it_is: bool,
) -> Result<Fitted, RunError> {
    if !(0.01..=1.0).contains(&share) {
        return Err(refused(format!("{share}: expected a share from 1% to 100%")));
    }
    if let Some(config) = configs.iter().find(|config| !can_fit(config)) {
        let name = config.stack.info.name;
        return Err(refused(format!(
            "expected a stack that can be written anywhere, or a store of files, not {name}"
        )));
    }
    let first = &configs[0];
    if first.value("device.scale").is_some() {
        return Err(refused("expected device.scale to be absent: both give a size"));
    }
    if configs.iter().any(|config| config.cache.is_some()) {
        return fit_cache(configs, needed(first, workloads)?, share);
    }
    let mut all = Vec::new();
    // A trace is read once for all that keep the same of it.
    let kept = |config: &StackConfig| (config.files(), config.seen_geometry().page_bytes);
    for (index, config) in configs.iter().enumerate() {
        let alike = configs[..index].iter().position(|other| kept(other) == kept(config));
        let bytes = alike.map_or_else(|| needed(config, workloads), |index| Ok(all[index]))?;
        all.push(bytes);
    }
    let wanted: Vec<u64> = all.iter().map(|bytes| (*bytes as f64 / share).ceil() as u64).collect();
    let found = smallest(configs, &wanted)?;
    let touched = all[found.tightest];
    let (mut sets, shorter) = found.keys(first);
    sets.push(("workload.remap", "dense".to_owned()));
    let mut before = String::new();
    if configs.iter().any(StackConfig::stores_objects) {
        before.push_str("; nothing before the counted part, since a store of files has no addresses");
    } else if !as_it_is && first.precondition.steps.is_empty() {
        let has_chunks = configs.iter().any(|config| config.stack.info.name == dm_zoned::KIND.info.name);
        let steps = if has_chunks { BEFORE_CHUNKS } else { BEFORE };
        sets.push(("workload.precondition", steps.to_owned()));
        before = format!("; {steps} before the counted part");
    }
    let filled = touched as f64 / found.capacity as f64;
    let mut emptier = String::new();
    if filled < ROUNDED * share {
        emptier = format!(" (asked for were {:.0} %, {})", share * 100.0, Size::no_smaller(first));
    }
    let tightest = &configs[found.tightest];
    let does = if tightest.stores_objects() { "has at its fullest" } else { "touches" };
    let of = if configs.len() > 1 { format!(" of {}", tightest.label()) } else { String::new() };
    let note = format!(
        "fitted: {} that the workload {does} fill {:.1} % of {}{of}{emptier}, {shorter}{before}",
        format_bytes(touched),
        filled * 100.0,
        format_bytes(found.capacity),
    );
    Ok(Fitted { sets, note })
}

/// The same for caches over these configurations, of a workload that touches so many bytes.
fn fit_cache(configs: &[StackConfig], touched: u64, share: f64) -> Result<Fitted, RunError> {
    let caches: Vec<&CacheConfig> = configs.iter().filter_map(|config| config.cache.as_ref()).collect();
    if !configs.iter().any(StackConfig::has_cache) || caches.len() < configs.len() {
        return Err(refused("expected a cache in every configuration, or in none"));
    }
    let mut sets = Vec::new();
    let of_it: String;
    let wanted = if let Some(said) = caches.iter().filter_map(|cache| cache.size_said()).max() {
        of_it = format!("as asked for; the workload touches {}", format_bytes(touched));
        said
    } else {
        let bytes = ((touched as f64 * share) as u64).next_multiple_of(CACHE_ROUNDED).max(CACHE_ROUNDED);
        sets.push(("cache.size", bytes.to_string()));
        let share = bytes as f64 / touched as f64 * 100.0;
        of_it = format!("{share:.0} % of the {} that the workload touches", format_bytes(touched));
        bytes
    };
    let mut note = format!("fitted: the cache holds {} ({of_it}) and starts empty", format_bytes(wanted));
    let over_flash: Vec<StackConfig> = configs
        .iter()
        .filter(|config| config.has_cache() && config.cache.as_ref().is_some_and(CacheConfig::is_over_flash))
        .map(|config| of_size(config, wanted))
        .collect();
    if let Some(first) = over_flash.first() {
        let found = smallest(&over_flash, &vec![wanted; over_flash.len()])?;
        let (keys, shorter) = found.keys(first);
        sets.extend(keys);
        let mut emptier = String::new();
        if (wanted as f64) < ROUNDED * found.capacity as f64 {
            emptier = format!(
                " (it fills {:.0} % of that: less, {})",
                wanted as f64 / found.capacity as f64 * 100.0,
                Size::no_smaller(first)
            );
        }
        let capacity = format_bytes(found.capacity);
        let _ = write!(note, "; its flash offers {capacity}{emptier}, {shorter}");
    }
    Ok(Fitted { sets, note })
}

/// A cache of so many bytes.
fn of_size(config: &StackConfig, bytes: u64) -> StackConfig {
    let mut config = config.clone();
    if let Some(design) = config.cache.as_mut().and_then(|cache| cache.design.as_mut()) {
        design.slots = u32::try_from(bytes / u64::from(design.block_bytes)).ok();
    }
    config
}

fn refused(message: impl Into<String>) -> RunError {
    shape(FLAG, message).into()
}

/// What of the device's shape is made smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    channels: u32,
    dies_per_channel: u32,
    blocks: u32,
    pages: u32,
}

impl Shape {
    /// Half the dies of a channel, or else half the channels.
    fn with_half_the_dies(self) -> Option<Self> {
        if self.dies_per_channel > 1 {
            Some(Self { dies_per_channel: self.dies_per_channel / 2, ..self })
        } else {
            (self.channels > 1).then_some(Self { channels: self.channels / 2, ..self })
        }
    }

    fn dies(self) -> u32 {
        self.channels * self.dies_per_channel
    }

    fn keys(self) -> [(&'static str, u32); 4] {
        [
            ("device.channels", self.channels),
            ("device.dies_per_channel", self.dies_per_channel),
            ("device.blocks_per_plane", self.blocks),
            ("device.pages_per_block", self.pages),
        ]
    }
}

/// A size of the device.
struct Size {
    shape: Shape,
    /// Logical capacity of the configuration that has the least room to spare, in bytes.
    capacity: u64,
    tightest: usize,
    is_enough: bool,
}

impl Size {
    /// So large a device for configurations that want so many bytes.
    fn of(configs: &[StackConfig], wanted: &[u64], shape: Shape) -> Result<Self, RunError> {
        let mut size = Self { shape, capacity: 0, tightest: 0, is_enough: true };
        let mut fullest = -1.0;
        for (index, (config, wanted)) in configs.iter().zip(wanted).enumerate() {
            let capacity = capacity(config, shape)?;
            let filled = *wanted as f64 / capacity as f64;
            size.is_enough &= capacity >= (*wanted).max(1);
            if filled > fullest {
                (fullest, size.capacity, size.tightest) = (filled, capacity, index);
            }
        }
        Ok(size)
    }

    /// Whether what one configuration wants fills it.
    fn is_filled(&self, wanted: &[u64]) -> bool {
        wanted[self.tightest] as f64 >= ROUNDED * self.capacity as f64
    }

    /// The keys that make the device of this configuration so large, and what that changes, in words.
    fn keys(&self, config: &StackConfig) -> (Vec<(&'static str, String)>, String) {
        let (shape, whole) = (self.shape, whole(config));
        let mut words = format!("with {} blocks a plane instead of {}", shape.blocks, whole.blocks);
        let mut sets: Vec<(&str, String)> = (shape.keys().into_iter().zip(whole.keys()))
            .filter(|((key, of), (_, whole))| of != whole || ALWAYS.contains(key))
            .map(|((key, of), _)| (key, of.to_string()))
            .collect();
        let erase = config.value("device.timing.erase").and_then(|text| parse_time_ns(&text).ok());
        if let Some(erase) = erase.filter(|_| shape.pages < whole.pages) {
            let scaled = erase * u64::from(shape.pages) / u64::from(whole.pages);
            sets.push(("device.timing.erase", format!("{scaled}ns")));
            let _ = write!(
                words,
                ", blocks of {} pages instead of {} and erases of {} us instead of {} us",
                shape.pages,
                whole.pages,
                scaled / 1000,
                erase / 1000
            );
        }
        if shape.dies() < whole.dies() {
            let _ = write!(
                words,
                ", and {} of {} dies, so that it does less at the same time",
                shape.dies(),
                whole.dies()
            );
        }
        (sets, words)
    }

    /// Why it is not smaller.
    fn no_smaller(config: &StackConfig) -> String {
        format!(
            "which takes a smaller device: a plane has at least {FEWEST_BLOCKS} blocks of {} pages",
            fewest_pages(config)
        )
    }
}

fn whole(config: &StackConfig) -> Shape {
    let whole = config.geometry;
    Shape {
        channels: whole.channels,
        dies_per_channel: whole.dies_per_channel,
        blocks: whole.blocks_per_plane,
        pages: whole.pages_per_block,
    }
}

/// The smallest size that offers each configuration as many bytes as it wants.
fn smallest(configs: &[StackConfig], wanted: &[u64]) -> Result<Size, RunError> {
    let of = |shape| Size::of(configs, wanted, shape);
    let mut shape = whole(&configs[0]);
    // Shorter blocks, if a plane has enough of them; from the shortest up, since small devices build soon.
    let enough = shape.blocks.clamp(FEWEST_BLOCKS, ENOUGH_BLOCKS);
    let halves = iter::successors(Some(shape.pages), |pages| Some(pages / 2));
    let shorter: Vec<u32> = halves.take_while(|pages| *pages >= fewest_pages(&configs[0])).skip(1).collect();
    for &pages in shorter.iter().rev() {
        if of(Shape { blocks: enough, pages, ..shape })?.is_enough {
            shape.pages = pages;
            break;
        }
    }
    shape.blocks = FEWEST_BLOCKS;
    let mut found = of(shape)?;
    while found.is_enough
        && !found.is_filled(wanted)
        && let Some(half) = shape.with_half_the_dies()
    {
        let half = of(half)?;
        if half.is_enough {
            (shape, found) = (half.shape, half);
            continue;
        }
        // As many blocks in all, which is smaller if some of the other ones are open.
        let as_many = of(Shape { blocks: 2 * FEWEST_BLOCKS, ..half.shape })?;
        if as_many.is_enough {
            (shape, found) = (half.shape, as_many);
        }
        break;
    }
    let mut low = FEWEST_BLOCKS;
    while !found.is_enough {
        (low, shape.blocks) = (found.shape.blocks, found.shape.blocks * 2);
        found = of(shape)?;
    }
    // `found` offers enough, `low` does not unless it is the least.
    while low + 1 < found.shape.blocks {
        let middle = of(Shape { blocks: low.midpoint(found.shape.blocks), ..shape })?;
        if middle.is_enough {
            found = middle;
        } else {
            low = middle.shape.blocks;
        }
    }
    Ok(found)
}

/// Pages that a block has at the least.
fn fewest_pages(config: &StackConfig) -> u32 {
    let together = config.value("device.timing.program_pages").and_then(|text| text.parse().ok());
    FEWEST_PAGES.max(FEWEST_PROGRAMS * together.unwrap_or(1))
}

/// The logical capacity of a configuration with so many blocks, with a cache that of its flash; 0 if it is
/// too small for the configuration or its cache.
fn capacity(config: &StackConfig, shape: Shape) -> Result<u64, RunError> {
    let whole = whole(config);
    let mut typed = Typed::new();
    typed.merge_text("the configuration", &config.to_toml())?;
    for (key, count) in shape.keys() {
        typed.set(key, &count.to_string())?;
    }
    let subsystem = match typed.check().and_then(|config| build_subsystem(&config)) {
        Ok(subsystem) => subsystem,
        // Not even the reserve has room, which more blocks put right; or nothing does.
        Err(error) if shape.blocks >= whole.blocks && shape.dies() == whole.dies() => {
            return Err(error.into());
        }
        Err(_) => return Ok(0),
    };
    Ok(match config.cache {
        None => subsystem.namespaces()[0].capacity_bytes,
        Some(_) => subsystem.inspect().layer(0).cost().usable_bytes,
    })
}
