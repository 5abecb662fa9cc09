//! Where a sweep keeps its results.
//!
//! `sweep.json` has the plan that the results are of. `points/` has a file for each run: its result document
//! (`00003-seed42.json`), or why there is none (`00003-seed42.error.json`). Files are written under another
//! name and renamed, so that one that is there is whole.

use super::error::SweepError;
use super::plan::{Plan, RunId};
use nandscape_report::{SweepRow, SweepTable, USABLE_SHARE, number_at, pretty, write_atomically};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::Xxh3Default;

const HEADER: &str = "sweep.json";
const POINTS: &str = "points";

/// What the results of a folder are of.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    /// Version of this file.
    sweep: u32,
    /// Version of nandscape that made the results.
    version: String,
    /// Name of the plan's file.
    path: String,
    /// Its text.
    plan: String,
    /// Hashes of the files that it names.
    files: BTreeMap<String, String>,
}

/// A folder with results of a sweep.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Whether a path is such a folder.
    pub fn is_one(path: &Path) -> bool {
        path.join(HEADER).is_file()
    }

    /// Opens a folder for the results of a plan, and makes it if it is not there.
    ///
    /// # Errors
    ///
    /// A folder with results that is not to be resumed, or that are of another plan, of files that have
    /// changed since, or of another version; the message names what differs.
    pub fn create(path: &Path, plan: &Plan, resume: bool) -> Result<Self, SweepError> {
        let folder = Self { path: path.to_owned() };
        match folder.header()? {
            Some(_) if !resume => {
                return Err(folder.refused("has results of a sweep: expected --resume, or another folder"));
            }
            Some(header) => folder.refuse_others(&header, plan)?,
            None => {
                let points = path.join(POINTS);
                fs::create_dir_all(&points).map_err(|error| io(&points, &error))?;
                let header = Header {
                    sweep: 1,
                    version: env!("CARGO_PKG_VERSION").to_owned(),
                    path: plan.path.clone(),
                    plan: plan.text.clone(),
                    files: hashes(plan)?,
                };
                let header = serde_json::to_value(&header).expect("plain data");
                write_atomically(&path.join(HEADER), pretty(&header).as_bytes())?;
            }
        }
        Ok(folder)
    }

    /// Opens a folder whose results are of this plan, to take results from.
    ///
    /// # Errors
    ///
    /// As [`Folder::create`], and folders without a sweep.
    pub fn of_plan(path: &Path, plan: &Plan) -> Result<Self, SweepError> {
        let (folder, header) = Self::with_header(path)?;
        folder.refuse_others(&header, plan)?;
        Ok(folder)
    }

    /// Opens a folder with the plan that its results are of.
    ///
    /// # Errors
    ///
    /// Folders without a sweep, or with a plan that this version does not read.
    pub fn open(path: &Path) -> Result<(Self, Plan), SweepError> {
        let (folder, header) = Self::with_header(path)?;
        let plan = Plan::parse(&header.path, &header.plan)?;
        Ok((folder, plan))
    }

    fn with_header(path: &Path) -> Result<(Self, Header), SweepError> {
        let folder = Self { path: path.to_owned() };
        let header = folder.header()?;
        let header =
            header.ok_or_else(|| folder.refused("has no sweep.json: expected the folder of a sweep"))?;
        Ok((folder, header))
    }

    fn header(&self) -> Result<Option<Header>, SweepError> {
        let path = self.path.join(HEADER);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io(&path, &error)),
        };
        let header: Header = serde_json::from_slice(&bytes)
            .map_err(|error| self.refused(&format!("{HEADER}: {error}: expected what a sweep writes")))?;
        if header.sweep != 1 {
            return Err(self.refused(&format!("{HEADER}: sweep = {}: expected 1", header.sweep)));
        }
        Ok(Some(header))
    }

    fn refused(&self, message: &str) -> SweepError {
        SweepError::Folder { folder: self.path.display().to_string(), message: message.to_owned() }
    }

    fn refuse_others(&self, header: &Header, plan: &Plan) -> Result<(), SweepError> {
        let mut changed = plan.differences(&header.plan);
        if header.version != env!("CARGO_PKG_VERSION") {
            changed.push(format!("nandscape was {} and is {}", header.version, env!("CARGO_PKG_VERSION")));
        }
        let files = hashes(plan)?;
        let others = files.iter().filter(|(path, hash)| header.files.get(*path) != Some(hash));
        changed.extend(others.map(|(path, _)| format!("{path} has other contents")));
        if changed.is_empty() {
            return Ok(());
        }
        Err(self.refused(&format!(
            "its results are of another sweep than {}: {}; expected another folder",
            plan.path,
            changed.join("; ")
        )))
    }

    fn document_path(&self, run: RunId) -> PathBuf {
        self.path.join(POINTS).join(format!("{:05}-seed{}.json", run.point, run.seed))
    }

    fn error_path(&self, run: RunId) -> PathBuf {
        self.path.join(POINTS).join(format!("{:05}-seed{}.error.json", run.point, run.seed))
    }

    /// The document of a run that ended well; `None` where it is still to be run.
    pub(super) fn complete(&self, run: RunId) -> Result<Option<Value>, SweepError> {
        let Some(document) = read(&self.document_path(run))? else { return Ok(None) };
        let is_complete = document["error"].is_null() && document["partial"] == false;
        Ok((is_complete && document["seed"] == run.seed).then_some(document))
    }

    /// Keeps the document of a run.
    pub(super) fn keep(&self, run: RunId, document: &str) -> Result<(), SweepError> {
        write_atomically(&self.document_path(run), document.as_bytes())?;
        remove(&self.error_path(run))
    }

    /// Keeps why a run gave no document.
    pub(super) fn keep_error(&self, run: RunId, message: &str) -> Result<(), SweepError> {
        let text = pretty(&json!({ "point": run.point, "seed": run.seed, "error": message }));
        write_atomically(&self.error_path(run), text.as_bytes())?;
        Ok(())
    }

    /// Writes a file of the folder.
    ///
    /// # Errors
    ///
    /// What the operating system refuses.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, SweepError> {
        let path = self.path.join(name);
        write_atomically(&path, bytes)?;
        Ok(path)
    }

    /// Removes files that a killed process left half-written.
    pub(super) fn tidy(&self) -> Result<(), SweepError> {
        let points = self.path.join(POINTS);
        for entry in fs::read_dir(&points).map_err(|error| io(&points, &error))? {
            let path = entry.map_err(|error| io(&points, &error))?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name.starts_with('.') && path.extension().is_some_and(|end| end == "tmp") {
                remove(&path)?;
            }
        }
        Ok(())
    }

    /// The results of these folders, which are of one plan, as rows; a run without one has no row.
    ///
    /// # Errors
    ///
    /// Files that cannot be read.
    pub fn table(folders: &[Self], plan: &Plan) -> Result<SweepTable, SweepError> {
        let mut rows = Vec::new();
        for run in plan.runs() {
            let mut found = None;
            for folder in folders {
                found = match folder.row(run, plan)? {
                    Some(row) if row.error.is_none() => Some(row),
                    other => found.or(other),
                };
            }
            rows.extend(found);
        }
        Ok(SweepTable {
            workload: plan.only_workload().unwrap_or_default().to_owned(),
            axes: plan.axes.clone(),
            metrics: plan.metrics.clone(),
            rows,
            planned: plan.runs().count(),
        })
    }

    fn row(&self, run: RunId, plan: &Plan) -> Result<Option<SweepRow>, SweepError> {
        let row = SweepRow {
            point: run.point as u32,
            values: plan.points[run.point].clone(),
            seed: run.seed,
            metrics: vec![None; plan.metrics.len()],
            ..SweepRow::default()
        };
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let path = self.document_path(run);
        let found = read(&path)?;
        if found.is_none() && path.exists() {
            // It was written whole, or not at all.
            let error = format!("{}: expected a result document, but it is no JSON", path.display());
            return Ok(Some(SweepRow { error: Some(error), ..row }));
        }
        if let Some(document) = found.filter(|document| document["partial"] == false) {
            let error = document["error"].as_object().map(|error| {
                let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
                format!("failed at request {}: {message}", error.get("request").unwrap_or(&Value::Null))
            });
            // Figures up to an error are no figures of the point.
            let metrics = match error {
                None => plan.metrics.iter().map(|key| figure(&document, key)).collect(),
                Some(_) => row.metrics.clone(),
            };
            return Ok(Some(SweepRow {
                metrics,
                error,
                workload_hash: text(&document["workload_hash"]),
                ..row
            }));
        }
        let error = read(&self.error_path(run))?;
        Ok(error.map(|error| SweepRow { error: Some(text(&error["error"]).unwrap_or_default()), ..row }))
    }
}

/// A metric of a document; `None` of what was not measured.
fn figure(document: &Value, key: &str) -> Option<f64> {
    if key == USABLE_SHARE {
        let cost = |key: &str| number_at(document, &format!("cost.{key}"));
        let pages = cost("total_blocks")? * cost("pages_per_block")?;
        return (pages > 0.0).then_some(cost("logical_pages")? / pages);
    }
    // Distributions of nothing are all 0.
    let of =
        key.rsplit_once('.').filter(|(table, last)| table.starts_with("latency_ns.") && *last != "count");
    if of.is_some_and(|(table, _)| number_at(document, &format!("{table}.count")) == Some(0.0)) {
        return None;
    }
    number_at(document, key)
}

/// A file with JSON; `None` where there is none, or where it is not whole.
fn read(path: &Path) -> Result<Option<Value>, SweepError> {
    match fs::read(path) {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io(path, &error)),
    }
}

fn remove(path: &Path) -> Result<(), SweepError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(io(path, &error)),
        _ => Ok(()),
    }
}

fn io(path: &Path, error: &std::io::Error) -> SweepError {
    SweepError::Io { path: path.display().to_string(), message: error.to_string() }
}

/// Hashes of the files that a plan names.
fn hashes(plan: &Plan) -> Result<BTreeMap<String, String>, SweepError> {
    let hash = |path: String| {
        let failed = |error: std::io::Error| io(Path::new(&path), &error);
        let mut file = fs::File::open(&path).map_err(failed)?;
        let mut hasher = Xxh3Default::new();
        let mut buffer = vec![0; 1 << 16];
        loop {
            match file.read(&mut buffer).map_err(failed)? {
                0 => break,
                n => hasher.update(&buffer[..n]),
            }
        }
        let hash = format!("{:016x}", hasher.digest());
        Ok((path, hash))
    };
    plan.files().into_iter().map(hash).collect()
}
