//! Where the bytes of a workload come from.

pub(crate) use crate::decode::Bytes;
use crate::decode::decompress;
use crate::error::Result;
use crate::error::io;
use crate::generators::Generator;
use nandscape_core::Params;
use std::fs::File;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use tempfile::NamedTempFile;

/// Decompressed bytes that format detection looks at.
pub(crate) const HEAD_BYTES: usize = 64 << 10;

pub(crate) enum Source {
    File(PathBuf),
    /// Input that can be read only once, with a copy once one was needed.
    Once {
        name: String,
        stream: Mutex<Option<Bytes>>,
        copy: OnceLock<NamedTempFile>,
    },
    Memory {
        name: String,
        bytes: Arc<[u8]>,
    },
    Generator {
        entry: &'static Generator,
        params: Params,
    },
}

impl Source {
    /// A file; a pipe or device is copied to a temporary file if it must be `reusable`.
    pub(crate) fn file(path: &Path, reusable: bool) -> Result<Self> {
        let name = path.display().to_string();
        let meta = std::fs::metadata(path).map_err(|error| io(&name, error.to_string()))?;
        if meta.is_dir() {
            return Err(io(&name, "is a directory: expected a trace file"));
        }
        if meta.is_file() {
            return Ok(Self::File(path.to_owned()));
        }
        let file = File::open(path).map_err(|error| io(&name, error.to_string()))?;
        Self::once(name, Box::new(file), reusable)
    }

    pub(crate) fn stdin(reusable: bool) -> Result<Self> {
        Self::once("standard input".to_owned(), Box::new(std::io::stdin()), reusable)
    }

    fn once(name: String, stream: Bytes, reusable: bool) -> Result<Self> {
        if !reusable {
            return Ok(Self::Once { name, stream: Mutex::new(Some(stream)), copy: OnceLock::new() });
        }
        let copy = OnceLock::new();
        let _ = copy.set(spool(stream, &name)?);
        Ok(Self::Once { name, stream: Mutex::new(None), copy })
    }

    pub(crate) fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Once { name, .. } | Self::Memory { name, .. } => name.clone(),
            Self::Generator { entry, .. } => entry.info.name.to_owned(),
        }
    }

    /// The decompressed bytes from the start.
    pub(crate) fn open(&self) -> Result<Bytes> {
        let name = self.name();
        let raw: Bytes = match self {
            Self::File(path) => Box::new(File::open(path).map_err(|error| io(&name, error.to_string()))?),
            Self::Once { stream, copy, .. } => match copy.get() {
                Some(copy) => reopen(copy, &name)?,
                None => stream
                    .lock()
                    .map_err(|_| io(&name, "another thread failed while it held the stream"))?
                    .take()
                    .ok_or_else(|| io(&name, "can be read only once: save it to a file first"))?,
            },
            Self::Memory { bytes, .. } => Box::new(Cursor::new(Arc::clone(bytes))),
            Self::Generator { .. } => unreachable!("a generator has no bytes"),
        };
        decompress(raw).map_err(|error| io(&name, error.to_string()))
    }

    /// Makes sure that the source can be opened again, given what is left of its (decompressed) stream.
    pub(crate) fn keep(&self, bytes: Bytes) -> Result<Bytes> {
        match self {
            Self::Once { name, copy, .. } if copy.get().is_none() => {
                let copy = copy.get_or_init_checked(|| spool(bytes, name))?;
                reopen(copy, name)
            }
            _ => Ok(bytes),
        }
    }
}

/// `OnceLock::get_or_try_init` is not stable yet; here only one thread can hold the stream.
trait GetOrInitChecked<T> {
    fn get_or_init_checked<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<&T, E>;
}

impl<T> GetOrInitChecked<T> for OnceLock<T> {
    fn get_or_init_checked<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        let made = make()?;
        Ok(self.get_or_init(|| made))
    }
}

fn spool(mut stream: Bytes, name: &str) -> Result<NamedTempFile> {
    let failed = |error: std::io::Error| io(name, format!("cannot be kept in a temporary file: {error}"));
    let mut copy = NamedTempFile::new().map_err(failed)?;
    std::io::copy(&mut stream, &mut copy).map_err(failed)?;
    Ok(copy)
}

fn reopen(copy: &NamedTempFile, name: &str) -> Result<Bytes> {
    Ok(Box::new(copy.reopen().map_err(|error| io(name, error.to_string()))?))
}

/// The first bytes, and the whole stream again. A stream that breaks inside its head is an error at the place
/// where it breaks, not here, so that the requests before it are still read.
pub(crate) fn head(mut bytes: Bytes, name: &str) -> Result<(Vec<u8>, Bytes)> {
    let mut head = Vec::with_capacity(HEAD_BYTES);
    let failure = (&mut bytes).take(HEAD_BYTES as u64).read_to_end(&mut head).err();
    if let Some(error) = &failure
        && head.is_empty()
    {
        return Err(io(name, error.to_string()));
    }
    let rest: Bytes = match failure {
        Some(error) => Box::new(Broken(Some(error))),
        None => bytes,
    };
    Ok((head.clone(), Box::new(Cursor::new(head).chain(rest))))
}

/// Gives the error that ended a stream early.
struct Broken(Option<std::io::Error>);

impl Read for Broken {
    fn read(&mut self, _buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}
