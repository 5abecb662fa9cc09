//! From a text and options to a stream of requests that can be opened any number of times.

use crate::error::Result;
use crate::error::{io, spec};
use crate::formats;
use crate::gate::ReadSettings;
use crate::generators;
use crate::options::{BoxReader, OpenOptions, Target, parse_call};
use crate::pages::{DenseMap, PageSet};
use crate::source::{self, Bytes, Source};
use crate::wrappers::dense::{dense, touches};
use crate::wrappers::limit::Limit;
use crate::wrappers::placed::Placed;
use crate::wrappers::repeat::{Deletes, Repeat};
use crate::wrappers::time_scale::time_scaled;
use crate::wrappers::volumes::{Ends, side_by_side};
use nandscape_core::{Params, TraceError};
use nandscape_host::fs::Below;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

/// What a workload text names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkloadSpec {
    /// A trace file.
    File(PathBuf),
    /// `-`: a trace on standard input.
    Stdin,
    /// `name` or `name:key=value,...` of a registered generator.
    Generator {
        /// Name in [`generators::GENERATORS`].
        name: String,
        /// Keys and values as typed.
        params: BTreeMap<String, String>,
    },
}

impl FromStr for WorkloadSpec {
    type Err = TraceError;

    /// A registered generator name (alone or before the first colon) is a generator, `-` is standard input,
    /// anything else a file. A file that is named like a generator is reached as `./name`, or without that if
    /// its name has capitals.
    fn from_str(text: &str) -> Result<Self> {
        if text == "-" {
            return Ok(Self::Stdin);
        }
        let typed = text.split(':').next().unwrap_or(text).trim();
        let name = if Path::new(text).exists() { typed.to_owned() } else { typed.to_ascii_lowercase() };
        let Err(unknown) = generators::find(&name) else {
            let (_, params) = parse_call(text).map_err(|message| spec(text, message))?;
            return Ok(Self::Generator { name, params });
        };
        let looks_like_call = text.contains(':')
            && text.contains('=')
            && !name.contains(['/', '\\', '.'])
            && !Path::new(text).exists();
        if looks_like_call {
            return Err(spec(text, unknown));
        }
        Ok(Self::File(PathBuf::from(text)))
    }
}

impl fmt::Display for WorkloadSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Stdin => f.write_str("-"),
            Self::Generator { name, params } => {
                f.write_str(name)?;
                for (index, (key, value)) in params.iter().enumerate() {
                    write!(f, "{}{key}={value}", if index == 0 { ':' } else { ',' })?;
                }
                Ok(())
            }
        }
    }
}

/// A workload that can be opened again and again, also from several threads. Cloning is cheap.
#[derive(Clone)]
pub struct Workload(Arc<Inner>);

struct Inner {
    name: String,
    source: Arc<Source>,
    options: OpenOptions,
    target: Target,
    dense: OnceLock<Result<Arc<DenseMap>>>,
    /// It is not the last time that the workload is read.
    is_repetition: bool,
}

/// Opens a workload once. Standard input is streamed where one pass is enough, and kept in a temporary file
/// where it is not (`repeat`, `remap_dense`, formats with several volumes).
pub fn open(text: &str, options: &OpenOptions, target: Target) -> Result<BoxReader> {
    let reusable = options.repeat > 1 || options.remap_dense;
    Workload::build(text, options, target, reusable)?.open()
}

impl Workload {
    /// Checks the text and the options. Input that can be read only once (standard input, a pipe) is copied
    /// to a temporary file first.
    pub fn new(text: &str, options: &OpenOptions, target: Target) -> Result<Self> {
        Self::build(text, options, target, true)
    }

    fn build(text: &str, options: &OpenOptions, target: Target, reusable: bool) -> Result<Self> {
        let workload_spec: WorkloadSpec = text.parse()?;
        check_options(text, options, &workload_spec)?;
        let name = workload_spec.to_string();
        let source = match workload_spec {
            WorkloadSpec::File(path) => Source::file(&path, reusable)?,
            WorkloadSpec::Stdin => Source::stdin(reusable)?,
            WorkloadSpec::Generator { name, params } => {
                let entry = generators::find(&name).expect("the parser found it");
                let params = Params::check(&entry.info, "", &params).map_err(|error| spec(text, error))?;
                Source::Generator { entry, params }
            }
        };
        let source = Arc::new(source);
        let inner = Inner::new(name, source, options, target);
        // Errors of a generator's parameters should come now and not at the first open.
        if matches!(*inner.source, Source::Generator { .. }) {
            inner.raw()?;
        }
        Ok(Self(Arc::new(inner)))
    }

    /// A trace that is in memory already, compressed or not. `name` stands in messages, and its extension
    /// helps detection.
    pub fn from_bytes(name: &str, bytes: &[u8], options: &OpenOptions, target: Target) -> Result<Self> {
        check_options(name, options, &WorkloadSpec::File(PathBuf::from(name)))?;
        let source = Arc::new(Source::Memory { name: name.to_owned(), bytes: bytes.into() });
        Ok(Self(Arc::new(Inner::new(name.to_owned(), source, options, target))))
    }

    /// What was typed, in a canonical order of keys.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Whether its requests come from a generator, and so from the seed.
    pub fn is_generated(&self) -> bool {
        matches!(*self.0.source, Source::Generator { .. })
    }

    /// The options it was made with.
    pub fn options(&self) -> &OpenOptions {
        &self.0.options
    }

    /// The same workload for another device.
    #[must_use]
    pub fn with_target(&self, target: Target) -> Self {
        let Inner { name, source, options, .. } = &*self.0;
        Self(Arc::new(Inner::new(name.clone(), Arc::clone(source), options, target)))
    }

    /// Opens it from the start for the nth repetition: a trace is the same, a generator has another seed. A
    /// repetition, which is any but 0, leaves no objects.
    pub fn open_again(&self, repetition: u32) -> Result<BoxReader> {
        if repetition == 0 {
            return self.open();
        }
        let mut again = self.with_target(self.0.target);
        let inner = Arc::get_mut(&mut again.0).expect("nobody else has it yet");
        if self.is_generated() {
            inner.options.seed = inner.options.seed.wrapping_add(u64::from(repetition));
        } else {
            inner.dense = self.0.dense.clone();
        }
        inner.is_repetition = true;
        again.open()
    }

    /// Opens it from the start.
    pub fn open(&self) -> Result<BoxReader> {
        let (inner, passes) = (Arc::clone(&self.0), self.0.options.repeat);
        let deletes = if inner.is_repetition { Deletes::Always } else { Deletes::Between };
        if passes == 1 && deletes == Deletes::Between {
            return inner.once();
        }
        Ok(Box::new(Repeat::new(Box::new(move || inner.once()), passes, deletes)?))
    }

    /// Bytes from address 0 to the largest end of any request, as opened (so after a dense remap). One pass.
    pub fn span_bytes(&self) -> Result<u64> {
        Ok(self.span()?.0)
    }

    /// The same, and the requests of all repetitions, which a dense remap does not count.
    pub fn span(&self) -> Result<(u64, Option<u64>)> {
        if self.0.options.remap_dense {
            return Ok((self.0.dense_map()?.pages() * crate::pages::GRANULE, None));
        }
        let (mut span, mut requests) = (0, 0u64);
        for record in self.0.once()? {
            span = span.max(record?.end());
            requests += 1;
        }
        Ok((span, Some(requests.saturating_mul(self.0.options.repeat))))
    }
}

fn check_options(text: &str, options: &OpenOptions, workload: &WorkloadSpec) -> Result<()> {
    if options.repeat == 0 {
        return Err(spec(text, "repeat = 0: expected 1 or more"));
    }
    if !(options.time_scale > 0.0 && options.time_scale <= 1e9) {
        return Err(spec(
            text,
            format!("time_scale = {}: expected a number above 0, up to 1e9", options.time_scale),
        ));
    }
    let is_generator = matches!(workload, WorkloadSpec::Generator { .. });
    if is_generator && (options.format.is_some() || options.columns.is_some()) {
        return Err(spec(
            text,
            "format and columns apply to files; this is a generator (a file of that name is ./name)",
        ));
    }
    if options.format.is_some() && options.columns.is_some() {
        return Err(spec(text, "format and columns exclude each other: the columns are the format"));
    }
    formats::requested(options).map(|_| ()).map_err(|message| spec(text, message))
}

impl Inner {
    fn new(name: String, source: Arc<Source>, options: &OpenOptions, target: Target) -> Self {
        let options = options.clone();
        Self { name, source, options, target, dense: OnceLock::new(), is_repetition: false }
    }

    fn settings(&self) -> ReadSettings {
        ReadSettings {
            volumes: self.options.volumes.clone(),
            force: self.options.force,
            times_made_up: false,
            files: self.target.files,
            // A dense space is made of what a volume of any size gives.
            volume_bytes: if self.options.remap_dense { 0 } else { self.target.volume_bytes },
        }
    }

    fn raw(&self) -> Result<BoxReader> {
        if let Source::Generator { entry, params } = &*self.source {
            let context = generators::Context { target: self.target, seed: self.options.seed };
            return (entry.build)(params, context).map_err(|error| spec(&self.name, error));
        }
        let bytes = self.source.open()?;
        let name = self.source.name();
        let (head, bytes) = source::head(bytes, &name)?;
        let (format, params) = formats::choose(&head, &name, &self.options)?;
        let spool = format.many_volumes && self.options.volumes.is_empty();
        let bytes: Bytes = if spool { self.source.keep(bytes)? } else { bytes };
        formats::open(format, &params, &head, bytes, &name, self.settings())
    }

    fn limited(&self) -> Result<BoxReader> {
        let reader = self.raw()?;
        let reader = match self.options.limit {
            Some(limit) => Box::new(Limit::new(reader, limit)),
            None => reader,
        };
        // A dense space is made of blocks before there is a device.
        let has_blocks = self.target.files != Below::Objects
            && (self.target.capacity_bytes > 0 || self.options.remap_dense);
        // Generators know what they are for.
        if !has_blocks || matches!(*self.source, Source::Generator { .. }) {
            return Ok(reader);
        }
        let volume_bytes = self.settings().volume_bytes;
        Ok(Box::new(Placed::new(reader, Target { volume_bytes, ..self.target })))
    }

    /// Everything but the repetition.
    fn once(self: &Arc<Self>) -> Result<BoxReader> {
        let reader = self.limited()?;
        // Files and objects of a store have no addresses that could be moved.
        let has_addresses = self.target.files != Below::Objects;
        let reader: BoxReader = if self.options.remap_dense && has_addresses {
            Box::new(dense(reader, &self.name, self.dense_map()?))
        } else if matches!(*self.source, Source::Generator { .. }) {
            reader
        } else {
            let inner = Arc::clone(self);
            Box::new(side_by_side(reader, &self.name, Box::new(move || inner.ends())))
        };
        Ok(if (self.options.time_scale - 1.0).abs() > f64::EPSILON {
            Box::new(time_scaled(reader, self.options.time_scale))
        } else {
            reader
        })
    }

    /// Largest end of each volume, by one pass.
    fn ends(&self) -> Result<Ends> {
        let mut ends = Ends::new();
        for record in self.limited()? {
            let record = record?;
            let end = ends.entry(record.volume).or_insert(0);
            *end = (*end).max(record.end());
        }
        Ok(ends)
    }

    /// The dense address space, built by one pass at first use.
    fn dense_map(&self) -> Result<Arc<DenseMap>> {
        let build = || {
            let mut set = PageSet::new();
            for record in self.limited()? {
                let record = record?;
                if touches(record.op) {
                    set.insert(record.volume, record.offset, record.len);
                }
            }
            if set.is_empty() {
                return Err(io(&self.name, "no read or write to remap: expected at least one"));
            }
            Ok(Arc::new(DenseMap::new(set)))
        };
        self.dense.get_or_init(build).clone()
    }
}
