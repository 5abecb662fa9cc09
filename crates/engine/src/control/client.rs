//! The other end of a control socket.

use super::protocol::{Answer, Ask};
use crate::stat::Stat;
use serde_json::Value;
use std::io::{BufRead, BufReader, Error, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An answer is no longer than this.
const ANSWER_BYTES: u64 = 64 << 20;
/// A snapshot may take its time.
const PATIENCE: Duration = Duration::from_secs(3600);

/// A server that did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ClientError {
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: Error },
    #[error("{}: expected the control socket of a server, which this file is not", path.display())]
    NoSocket { path: PathBuf },
    #[error("{}: expected an answer in JSON: {message}", path.display())]
    Answer { path: PathBuf, message: String },
    #[error("{message} ({name})")]
    Refused { name: String, message: String },
}

/// A connection to a server.
#[derive(Debug)]
pub struct Client {
    path: PathBuf,
    reader: BufReader<UnixStream>,
}

impl Client {
    /// Connects to the socket at `path`.
    pub fn connect(path: &Path) -> Result<Self, ClientError> {
        let failed = |error| ClientError::Io { path: path.to_owned(), error };
        if std::fs::metadata(path).is_ok_and(|meta| !meta.file_type().is_socket()) {
            return Err(ClientError::NoSocket { path: path.to_owned() });
        }
        let stream = UnixStream::connect(path).map_err(failed)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        Ok(Self { path: path.to_owned(), reader: BufReader::new(stream) })
    }

    /// Asks for something, and waits for the answer.
    pub fn ask(&mut self, ask: &Ask) -> Result<Option<Value>, ClientError> {
        let mut line = serde_json::to_vec(ask).map_err(|error| self.broken(&error.to_string()))?;
        line.push(b'\n');
        self.reader.get_mut().write_all(&line).map_err(|error| self.failed(error))?;
        let mut text = Vec::new();
        let read = self.reader.by_ref().take(ANSWER_BYTES).read_until(b'\n', &mut text);
        read.map_err(|error| self.failed(error))?;
        if text.is_empty() {
            return Err(self.failed(Error::other("the server closed the connection")));
        }
        let answer: Answer =
            serde_json::from_slice(&text).map_err(|error| self.broken(&error.to_string()))?;
        if answer.ok {
            return Ok(answer.result);
        }
        let (name, message) = (answer.error.unwrap_or_default(), answer.message.unwrap_or_default());
        Err(ClientError::Refused { name, message })
    }

    /// The stat document, as it came and read.
    pub fn stat(&mut self) -> Result<(Value, Stat), ClientError> {
        let value = self.ask(&Ask::Stat {})?.unwrap_or_default();
        let stat = serde_json::from_value(value.clone()).map_err(|error| self.broken(&error.to_string()))?;
        Ok((value, stat))
    }

    fn failed(&self, error: Error) -> ClientError {
        ClientError::Io { path: self.path.clone(), error }
    }

    fn broken(&self, message: &str) -> ClientError {
        ClientError::Answer { path: self.path.clone(), message: message.to_owned() }
    }
}
