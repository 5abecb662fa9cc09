//! `[fs]`: what a served device makes of the file system on it.

use super::{InterfaceEntry, Place};
use crate::keys::{ConfigError, Result};
use nandscape_core::{Extent, Info, Op, ParamError, Params, TraceOp, keys};
use nandscape_extfs::{Classified, Kind, KindSink, KindStreams};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::time::Instant;

keys! { PARAMS:
    CLASSIFY: String = choice(&["off", "ext4"]) or "off",
        "ext4: follow the structures of ext2, ext3 and ext4 in the writes, and give each write the stream of \
         what it holds";
    STREAMS: String = text() or "prototype",
        "prototype (journal 1, inode table 2, superblock, descriptors and bitmaps 3, directories 4), none, \
         or a list such as journal=1,directory=1";
    OFFSET: u64 = size(0, 1 << 60) or "0", "byte of each namespace at which its file system begins";
    RECORD: Option<String> = text(),
        "file (CSV) for every command with its kind, which replays can read; it must not exist";
}

pub const ENTRY: InterfaceEntry = InterfaceEntry {
    info: Info {
        name: "fs",
        summary: "streams by what a file system keeps in a block, for served devices",
        source: "[FStream], [streams-article 2]",
        params: PARAMS,
    },
    place: Place::Served,
    trial: &["ftl.streams=4", "fs.classify=ext4"],
    is_chosen: |params| params.get(CLASSIFY) != "off",
    check: |params| {
        streams(params)?;
        if params.get(RECORD).is_some_and(|path| !path.is_empty()) && params.get(CLASSIFY) == "off" {
            return Err(params.error(RECORD, "fs.classify = ext4 beside it").into());
        }
        Ok(())
    },
    host_ids: |_, ids, _| ids,
    default_ids: |_, _| 0,
    wrap: |params, below, subsystem| {
        let (streams, ids) = (streams(params)?, below.host_ids);
        let highest = streams.highest();
        if highest > ids {
            let expected = format!(
                "streams up to {ids}, those of the device (ftl.streams), or none: stream {highest} is above"
            );
            return Err(params.error(STREAMS, expected).into());
        }
        let has_volumes = subsystem.namespaces().len() > 1;
        let mut classified = Classified::new(subsystem, streams, params.get(OFFSET));
        if let Some(path) = params.get(RECORD).filter(|path| !path.is_empty()) {
            classified.record(Box::new(Recorder::create(path, has_volumes)?));
        }
        Ok(Box::new(classified))
    },
};

fn streams(params: &Params) -> Result<KindStreams, ParamError> {
    KindStreams::parse(params.get(STREAMS)).map_err(|expected| params.error(STREAMS, expected))
}

/// Writes the native CSV with kinds. A write of several kinds is a line for each.
struct Recorder {
    out: BufWriter<File>,
    start: Instant,
    has_volumes: bool,
    failed: Option<String>,
    path: String,
}

impl Recorder {
    fn create(path: &str, has_volumes: bool) -> Result<Self> {
        let error = |e: std::io::Error| ConfigError::Io { path: path.to_owned(), message: e.to_string() };
        let mut out = BufWriter::with_capacity(1 << 18, File::create_new(path).map_err(error)?);
        let volume = if has_volumes { ",volume" } else { "" };
        writeln!(out, "ts_us,op,offset,len{volume},kind").map_err(error)?;
        Ok(Self { out, start: Instant::now(), has_volumes, failed: None, path: path.to_owned() })
    }

    fn line(&mut self, namespace: u32, op: Op, extent: Extent, kind: Kind) -> std::io::Result<()> {
        let (us, letter) = (self.start.elapsed().as_micros(), TraceOp::from(op).letter());
        write!(self.out, "{us},{letter},{},{}", extent.offset, extent.len)?;
        if self.has_volumes {
            write!(self.out, ",{namespace}")?;
        }
        writeln!(self.out, ",{}", kind.block_kind().name())
    }

    /// After the first error nothing more is written: what follows could not be replayed in its place.
    fn note(&mut self, outcome: std::io::Result<()>) {
        if let Err(error) = outcome {
            self.failed.get_or_insert(format!("{}: {error}", self.path));
        }
    }
}

impl KindSink for Recorder {
    fn record(&mut self, namespace: u32, op: Op, extent: Extent, kind: Kind) {
        if self.failed.is_none() {
            let outcome = self.line(namespace, op, extent, kind);
            self.note(outcome);
        }
    }

    fn flush(&mut self) {
        if self.failed.is_none() {
            let outcome = self.out.flush();
            self.note(outcome);
        }
    }

    fn error(&self) -> Option<String> {
        self.failed.clone()
    }
}
