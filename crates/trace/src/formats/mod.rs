//! Trace formats, one file each, and how the right one is found.
//!
//! A format is chosen by `--format NAME[:key=value,...]`, by a column map, or from the content: every entry
//! looks at the first 64 KiB (decompressed) and says how sure it is. Ties go to the entry that claims the
//! file's extension; if none does, the error names the candidates.
//!
//! Time stamps: where a format has real ones, `has_real_times` is set, so that a replay may follow them. They
//! are taken for made up, and not set, when at least 32 of the first 1000 requests are there and their mean
//! gap is below 100 ns: ten million requests a second is more than any host issues, so the column is a
//! counter (the YCSB-RocksDB sample counts in steps of 10). A column that never changes says nothing either.

mod alibaba;
mod blkparse;
mod columns;
pub(crate) mod csv;
mod disksim;
mod file_model;
mod fio;
mod fiu;
mod ids;
mod lis;
mod mqsim;
mod msr;
mod nst;
mod ops;
mod oracle_general;
mod spc;
mod strace;
mod systor;
mod tencent;
mod vscsi;

use crate::binary::{BinaryReader, RecordFormat};
use crate::decode::Bytes;
use crate::error::Result;
use crate::error::{io, spec};
use crate::gate::{Clock, ReadSettings};
use crate::options::{BoxReader, OpenOptions, parse_call};
use crate::text::{LineFormat, TextReader};
use crate::writer::RecordWriter;
use nandscape_core::{Info, ParamError, Params, registry};
use std::io::{Cursor, Write};
use std::path::Path;

/// One trace format.
pub struct Format {
    /// Name, summary, source and parameters.
    pub info: Info,
    /// File extensions that mean this format where the content allows several, without the dot.
    pub extensions: &'static [&'static str],
    /// Whether one file may hold several volumes.
    pub many_volumes: bool,
    pub(crate) detect: fn(&Head) -> Confidence,
    pub(crate) read: fn(Input, &Params) -> Result<BoxReader, String>,
    pub(crate) write: Option<WriterMaker>,
}

impl Format {
    /// Whether `convert` can write it.
    pub fn is_writable(&self) -> bool {
        self.write.is_some()
    }
}

pub(crate) type WriterMaker = for<'a> fn(Box<dyn Write + 'a>, &Params) -> Box<dyn RecordWriter + 'a>;

/// Every format, in the order of the documentation.
pub static FORMATS: &[Format] = &[
    csv::ENTRY,
    ops::ENTRY,
    nst::ENTRY,
    msr::ENTRY,
    spc::ENTRY,
    mqsim::ENTRY,
    disksim::ENTRY,
    blkparse::ENTRY,
    fio::ENTRY,
    systor::ENTRY,
    alibaba::ENTRY,
    tencent::ENTRY,
    vscsi::ENTRY,
    oracle_general::ENTRY,
    fiu::ENTRY,
    lis::ENTRY,
    ids::TEXT,
    ids::BINARY,
    columns::ENTRY,
    strace::ENTRY,
];

/// A format by name, or an error with the names there are.
pub fn find(name: &str) -> Result<&'static Format, ParamError> {
    registry::find("format", name, FORMATS, |format| &format.info)
}

/// What a recording in this format is a recording of; `format` is that of its reader.
pub fn level(format: &str) -> Level {
    match format.split_once(':') {
        Some((_, mode)) if file_model::FILE_LEVEL.ends_with(mode) => Level::Files,
        None if [ops::ENTRY.info.name, strace::ENTRY.info.name].contains(&format) => Level::FileSystem,
        _ => Level::Device,
    }
}

/// Where the requests of a recording were seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// What programs asked of files.
    Files,
    /// File operations, whose requests are those below the file system model.
    FileSystem,
    /// A device, or a store of objects.
    Device,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Confidence {
    No,
    /// Nothing speaks against it and the extension is needed to decide.
    Possible,
    /// The shape of every line fits.
    Likely,
    /// A signature or a header line.
    Certain,
}

impl Confidence {
    /// This one if the test was passed.
    pub(crate) fn if_passed(self, is_passed: bool) -> Self {
        if is_passed { self } else { Self::No }
    }
}

pub(crate) struct Head<'a> {
    pub(crate) bytes: &'a [u8],
    /// Whole lines at the start, at most 64, without line ends. Empty lines are left out.
    pub(crate) lines: Vec<&'a [u8]>,
    /// The extension in lower case, without compression suffix.
    pub(crate) extension: String,
}

impl<'a> Head<'a> {
    fn new(bytes: &'a [u8], name: &str) -> Self {
        let complete = bytes.len() < crate::source::HEAD_BYTES;
        let text = bytes.strip_prefix(crate::lines::BYTE_ORDER_MARK).unwrap_or(bytes);
        let mut lines: Vec<&[u8]> = text.split(|&b| b == b'\n').collect();
        if !complete || bytes.ends_with(b"\n") {
            lines.pop();
        }
        lines.truncate(64);
        let lines =
            lines.into_iter().map(|l| l.strip_suffix(b"\r").unwrap_or(l)).filter(|l| !l.is_empty()).collect();
        Self { bytes, lines, extension: extension(name) }
    }

    pub(crate) fn all_lines(&self, test: impl Fn(&[u8]) -> bool) -> bool {
        !self.lines.is_empty() && self.lines.iter().all(|line| test(line))
    }

    pub(crate) fn likely(&self, test: impl Fn(&[u8]) -> bool) -> Confidence {
        Confidence::Likely.if_passed(self.all_lines(test))
    }
}

/// Extension without those of compression.
fn extension(name: &str) -> String {
    let mut path = Path::new(name);
    let of =
        |path: &Path| path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    while matches!(of(path).as_str(), "gz" | "zst" | "zstd" | "xz") {
        path = Path::new(path.file_stem().expect("it has an extension"));
    }
    of(path)
}

pub(crate) struct Input {
    pub(crate) bytes: Bytes,
    pub(crate) name: String,
    pub(crate) settings: ReadSettings,
}

impl Input {
    pub(crate) fn lines<F: LineFormat>(self, name: &str, clock: Clock, format: F) -> TextReader<F> {
        TextReader::new(self.bytes, &self.name, name, clock, &self.settings, format)
    }

    pub(crate) fn records<F: RecordFormat>(self, name: &str, clock: Clock, format: F) -> BinaryReader<F> {
        BinaryReader::new(self.bytes, &self.name, name, clock, &self.settings, format)
    }

    /// Its first bytes, which stay in it.
    pub(crate) fn head(self) -> Result<(Vec<u8>, Self), String> {
        let (head, bytes) = crate::source::head(self.bytes, &self.name).map_err(|error| error.to_string())?;
        Ok((head, Self { bytes, ..self }))
    }
}

pub(crate) fn requested(options: &OpenOptions) -> Result<Option<(&'static Format, Params)>, String> {
    let text = match (&options.format, &options.columns) {
        (Some(format), _) => format.clone(),
        (None, Some(columns)) => format!("columns:{columns}"),
        (None, None) => return Ok(None),
    };
    by_call(&text).map(Some)
}

/// A format out of `name[:key=value,...]`.
pub(crate) fn by_call(text: &str) -> Result<(&'static Format, Params), String> {
    let (name, typed) = parse_call(text)?;
    let format = find(&name).map_err(|error| error.to_string())?;
    let params = Params::check(&format.info, "", &typed).map_err(|error| error.to_string())?;
    Ok((format, params))
}

pub(crate) fn choose(head: &[u8], name: &str, options: &OpenOptions) -> Result<(&'static Format, Params)> {
    if let Some(requested) = requested(options).map_err(|message| spec(name, message))? {
        return Ok(requested);
    }
    if head.is_empty() {
        return Err(io(name, "no records: the file is empty"));
    }
    detect(&Head::new(head, name))
        .map(|format| (format, Params::defaults(&format.info)))
        .map_err(|message| io(name, message))
}

fn detect(head: &Head) -> Result<&'static Format, String> {
    let judged: Vec<_> = FORMATS.iter().map(|format| ((format.detect)(head), format)).collect();
    let best = judged.iter().map(|(confidence, _)| *confidence).max().unwrap_or(Confidence::No);
    let candidates: Vec<_> = judged
        .into_iter()
        .filter(|(confidence, _)| *confidence == best && best > Confidence::No)
        .map(|(_, format)| format)
        .collect();
    let names = |formats: &[&Format]| formats.iter().map(|f| f.info.name).collect::<Vec<_>>().join(", ");
    let by_extension: Vec<_> =
        candidates.iter().copied().filter(|f| f.extensions.contains(&head.extension.as_str())).collect();
    match (candidates.as_slice(), by_extension.as_slice(), best) {
        ([only], _, Confidence::Likely | Confidence::Certain) | (_, [only], _) => Ok(only),
        ([], _, _) | (_, _, Confidence::Possible) => Err(format!(
            "the format is not recognised: give --format (one of {}) or --columns for an odd CSV",
            FORMATS.iter().map(|f| f.info.name).collect::<Vec<_>>().join(", ")
        )),
        (several, _, _) => {
            Err(format!("the content fits several formats ({}): give --format", names(several)))
        }
    }
}

/// Opens a file with a format, after a look at its first time stamps.
pub(crate) fn open(
    format: &'static Format,
    params: &Params,
    head: &[u8],
    bytes: Bytes,
    name: &str,
    settings: ReadSettings,
) -> Result<BoxReader> {
    let make = |bytes, settings| {
        (format.read)(Input { bytes, name: name.to_owned(), settings }, params)
            .map_err(|message| io(name, message))
    };
    let probe_settings = ReadSettings { volumes: Vec::new(), ..settings.clone() };
    let probe = make(Box::new(Cursor::new(head.to_vec())), probe_settings)?;
    let times_made_up = probe.info().has_real_times && times_are_made_up(probe);
    make(bytes, ReadSettings { times_made_up, ..settings })
}

/// The rule of the module's documentation.
fn times_are_made_up(probe: BoxReader) -> bool {
    const LOOKED_AT: usize = 1000;
    const FEWEST: u64 = 32;
    const GAP_MIN_NS: u64 = 100;
    let times: Vec<u64> = probe.take(LOOKED_AT).map_while(|r| r.ok().map(|r| r.at.as_ns())).collect();
    match (times.first(), times.last(), times.len() as u64) {
        (Some(first), Some(last), n) if n > 1 && first == last || n >= FEWEST => {
            (last - first) < (n - 1) * GAP_MIN_NS
        }
        _ => false,
    }
}
