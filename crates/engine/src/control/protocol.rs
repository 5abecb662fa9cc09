//! What is asked over a control socket, and answered.

use crate::zones::ZoneAsk;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A request: an object whose `do` says what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Ask {
    /// The stat document.
    Stat {},
    /// All counters and measurements start anew; wear counts on.
    Reset {},
    /// Writes down what makes the next start quick.
    Checkpoint {},
    /// Records every command from now on.
    RecordStart {
        /// File, as the server sees it. Must not exist; ends in `.csv` or `.csv.zst`.
        path: PathBuf,
    },
    /// Ends the recording, and answers with what is in it.
    RecordStop {},
    /// Copies the device, as it is now, to another image file.
    Snapshot {
        /// File, as the server sees it. Must not exist.
        path: PathBuf,
    },
    /// Writes all dirty blocks of a cache to their disks, and answers with how many there were.
    CacheClean {},
    /// The cache follows other settings from now on: its mode and policies.
    CacheSet {
        /// Keys and values, such as `mode` and `write-through`.
        settings: BTreeMap<String, String>,
    },
    /// Puts a disk behind a cache in memory, as an export of its name.
    CacheAttach {
        /// File or device, as the server sees it.
        disk: PathBuf,
        /// Name of the volume.
        name: String,
    },
    /// Takes a disk away that no client uses, which then has everything.
    CacheDetach {
        /// Name of the volume.
        name: String,
    },
    /// A cache goes on without a member of its mirror.
    CacheFail {
        /// The member, as the server sees it.
        member: PathBuf,
    },
    /// Puts a file or device in place of a member of a cache's mirror, and answers when that has everything.
    CacheReplace {
        /// The member, as the server sees it.
        member: PathBuf,
        /// What takes its place, as the server sees it; a file that is not there is made.
        new: PathBuf,
        /// Whatever the new one holds.
        force: bool,
    },
    /// Reports zones, after their states were changed if that is asked for.
    Zone {
        /// What, and which zones.
        ask: ZoneAsk,
    },
    /// Ends the server as SIGTERM does.
    Shutdown {},
}

/// What a request is answered with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Whether it was done.
    pub ok: bool,
    /// What was asked for; absent where there is nothing to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Name of what went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The same for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl Answer {
    pub(crate) const fn done() -> Self {
        Self { ok: true, result: None, error: None, message: None }
    }

    pub(crate) fn result(result: &impl Serialize) -> Self {
        let result = serde_json::to_value(result).expect("documents of numbers and names are valid JSON");
        Self { result: Some(result), ..Self::done() }
    }

    pub(crate) fn error(name: &str, message: &str) -> Self {
        Self { ok: false, result: None, error: Some(name.to_owned()), message: Some(message.to_owned()) }
    }
}
