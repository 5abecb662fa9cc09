//! States of preconditioned devices in files: saved after the preconditioning, loaded instead of it.
//!
//! A run that loads a state gives the same result as the run that saved it. So everything that shapes the
//! state is in the file's description, and a run in which any of it differs is refused with the key: the
//! version of nandscape, the device and all that stands over it, preconditioning, seed, and what else the run
//! wrote before the counted part.

mod format;

use crate::config::StackConfig;
use crate::error::RunError;
use format::{Reader, Writer, check_target};
use nandscape_core::state::Sink;
use nandscape_core::{Archive, StateError, StateResult, Subsystem};
use nandscape_report::{ReportError, write_atomically_with};
use nandscape_sim::precondition::Archiver;
use nandscape_sim::result::StateSource;
use nandscape_sim::{RunResult, Snapshot};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

/// What becomes of the state after the preconditioning. A path that ends with `/`, or is a folder, stands
/// for a file in it that is named after the configuration.
#[derive(Clone, Copy, Debug)]
pub enum StateUse<'a> {
    /// It is saved there.
    Save(&'a Path),
    /// It is loaded from there.
    Load(&'a Path),
}

impl StateUse<'_> {
    const fn path(&self) -> &Path {
        match self {
            Self::Save(path) | Self::Load(path) => path,
        }
    }

    fn is_folder(&self) -> bool {
        self.path().as_os_str().as_encoded_bytes().ends_with(b"/") || self.path().is_dir()
    }

    fn file_for(&self, config: &StackConfig) -> PathBuf {
        if self.is_folder() {
            return self.path().join(format!("{:016x}.state", digest(config)));
        }
        self.path().to_owned()
    }
}

/// What a state was made with.
#[derive(Debug, Serialize, Deserialize)]
struct Description {
    version: String,
    precondition: String,
    seed: u64,
    prepared: String,
    config: Value,
}

impl Description {
    fn new(config: &StackConfig, prepared: &str) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            precondition: precondition_of(config).to_owned(),
            seed: config.seed,
            prepared: prepared.to_owned(),
            config: config.shape(),
        }
    }

    /// Refuses a state that another one is wanted instead of, by the first key that differs.
    fn check(&self, present: &Self) -> StateResult {
        let (own, other) = (self.keys(), present.keys());
        let all: BTreeSet<&String> = own.keys().chain(other.keys()).collect();
        // The version first: with another one the keys may be others too.
        let all = all.iter().filter(|key| **key == "version").chain(&all);
        let value = |keys: &BTreeMap<String, String>, key: &str| {
            keys.get(key).cloned().unwrap_or_else(|| "no such key".to_owned())
        };
        for key in all {
            let (saved, present) = (value(&own, key), value(&other, key));
            if saved != present {
                return Err(StateError::Configuration { key: (*key).clone(), saved, present });
            }
        }
        Ok(())
    }

    fn keys(&self) -> BTreeMap<String, String> {
        let mut keys = BTreeMap::from([
            ("version".to_owned(), self.version.clone()),
            ("workload.precondition".to_owned(), self.precondition.clone()),
            ("workload.seed".to_owned(), self.seed.to_string()),
        ]);
        // Known only once the workload has been read.
        if !self.prepared.is_empty() {
            keys.insert("the workload".to_owned(), self.prepared.clone());
        }
        add_keys(&mut keys, "", &self.config);
        keys
    }
}

fn add_keys(keys: &mut BTreeMap<String, String>, path: &str, value: &Value) {
    let Value::Object(table) = value else {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        keys.insert(path.to_owned(), text);
        return;
    };
    for (key, value) in table {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        add_keys(keys, &path, value);
    }
}

fn precondition_of(config: &StackConfig) -> &str {
    config.workload.get(crate::config::PRECONDITION)
}

/// Names the file of a configuration in a folder: by what shapes the state but the preconditioning, which a
/// run that loads need not repeat.
fn digest(config: &StackConfig) -> u64 {
    xxh3_64(format!("{} {}", config.seed, config.shape()).as_bytes())
}

/// Refuses one file for the states of several devices.
pub(crate) fn check_alone<'a>(
    configs: impl IntoIterator<Item = &'a StackConfig>,
    state: Option<StateUse<'_>>,
) -> Result<(), RunError> {
    let Some(state) = state.filter(|state| !state.is_folder()) else { return Ok(()) };
    let distinct = configs.into_iter().map(digest).collect::<BTreeSet<_>>().len();
    if distinct < 2 {
        return Ok(());
    }
    let message = format!(
        "one file holds the state of one device and seed, and there are {distinct}: expected a folder, such as {}/",
        state.path().display()
    );
    Err(RunError::State { file: state.path().to_owned(), error: StateError::File(message) })
}

/// The state of one run.
pub(crate) struct RunState<'a> {
    state: Option<StateUse<'a>>,
    file: PathBuf,
    /// The configuration, with the preconditioning of the state where it says none.
    pub config: Cow<'a, StackConfig>,
}

impl<'a> RunState<'a> {
    /// Looks at the file, so that what is wrong with it is found before anything is run.
    pub fn new(config: &'a StackConfig, state: Option<StateUse<'a>>) -> Result<Self, RunError> {
        let mut this = Self { state, file: PathBuf::new(), config: Cow::Borrowed(config) };
        let Some(state) = state else { return Ok(this) };
        this.file = state.file_for(config);
        let with_file = |error| RunError::State { file: this.file.clone(), error };
        if let StateUse::Save(path) = state {
            if config.precondition.steps.is_empty() {
                let message = "nothing to save: expected --precondition, such as fill+uniform:1x";
                return Err(with_file(StateError::File(message.to_owned())));
            }
            if state.is_folder() {
                let made = std::fs::create_dir_all(path);
                made.map_err(|error| with_file(StateError::File(format!("make its folder: {error}"))))?;
            }
            check_target(&this.file).map_err(with_file)?;
            return Ok(this);
        }
        let saved = open(&this.file).map_err(with_file)?.1;
        if config.precondition.steps.is_empty() {
            this.config = Cow::Owned(config.with("workload.precondition", &saved.precondition)?);
        }
        // The workload is not known yet.
        let present = Description::new(&this.config, &saved.prepared);
        saved.check(&present).map_err(|error| RunError::State { file: this.file.clone(), error })?;
        Ok(this)
    }

    /// Refuses what cannot be saved before it is preconditioned.
    pub fn check_can_save(&self, subsystem: &mut dyn Subsystem) -> Result<(), RunError> {
        let Some(StateUse::Save(_)) = self.state else { return Ok(()) };
        let saved = subsystem.state(&mut Archive::Save(&mut Nowhere));
        saved.map_err(|error| RunError::State { file: self.file.clone(), error })
    }

    /// What saves or loads the state.
    pub fn archiver(&self) -> impl Fn(&mut dyn Subsystem, &str) -> StateResult {
        move |subsystem, prepared| {
            let description = Description::new(&self.config, prepared);
            let done = match self.state {
                Some(StateUse::Load(_)) => load(&self.file, &description, subsystem),
                _ => save(&self.file, &description, subsystem),
            };
            done.map_err(|error| StateError::File(format!("{}: {error}", self.file.display())))
        }
    }

    /// What becomes of the state, with the [`Self::archiver`].
    pub fn snapshot<'b>(&self, archiver: &'b Archiver<'b>) -> Snapshot<'b> {
        match self.state {
            None => Snapshot::Unused,
            Some(StateUse::Save(_)) => Snapshot::Save(archiver),
            Some(StateUse::Load(_)) => Snapshot::Load(archiver),
        }
    }

    /// Says in a result that its state was loaded.
    pub fn tell(&self, result: &mut RunResult) {
        let Some(StateUse::Load(_)) = self.state else { return };
        let file = self.file.display().to_string();
        let precondition = precondition_of(&self.config).to_owned();
        let note = format!("the state after the preconditioning ({precondition}) was loaded from {file}");
        result.notes.push(note);
        result.run.state = Some(StateSource { file, precondition });
    }
}

/// Takes a state and keeps nothing.
struct Nowhere;

impl Sink for Nowhere {
    fn put(&mut self, _: &[u8]) -> StateResult {
        Ok(())
    }
}

fn open(file: &Path) -> Result<(Reader, Description), StateError> {
    let (reader, description) = Reader::open(file)?;
    let description = serde_json::from_slice(&description)
        .map_err(|error| StateError::File(format!("its description: {error}")))?;
    Ok((reader, description))
}

fn save(file: &Path, description: &Description, subsystem: &mut dyn Subsystem) -> StateResult {
    check_target(file)?;
    let description = serde_json::to_vec(description).map_err(|error| StateError::File(error.to_string()))?;
    let mut failed = None;
    let written = write_atomically_with(file, |target| {
        let saved = Writer::new(target, &description).and_then(|mut writer| {
            subsystem.state(&mut Archive::Save(&mut writer))?;
            writer.finish()
        });
        saved.map_err(|error| {
            let source = std::io::Error::other(error.to_string());
            failed = Some(error);
            ReportError::Io { path: file.to_owned(), action: "write", source }
        })
    });
    match failed {
        Some(error) => Err(error),
        None => written.map_err(|error| StateError::File(error.to_string())),
    }
}

fn load(file: &Path, present: &Description, subsystem: &mut dyn Subsystem) -> StateResult {
    let (mut reader, saved) = open(file)?;
    saved.check(present)?;
    subsystem.state(&mut Archive::Load(&mut reader))?;
    reader.finish()
}
