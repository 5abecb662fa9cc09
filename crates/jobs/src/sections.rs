//! The text of a job file as sections and options, with `include` and `${VARIABLES}` done.

use crate::error::{JobError, Place};
use crate::values::KbBase;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub place: Place,
    pub key: String,
    /// `None` where there was no `=`.
    pub value: Option<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub place: Place,
    pub name: String,
    pub entries: Vec<Entry>,
}

impl Section {}

/// Where included files and environment variables come from.
pub(crate) trait Source {
    fn read(&self, path: &Path) -> Result<String, String>;
    fn variable(&self, name: &str) -> Option<String>;
}

pub(crate) struct System;

impl Source for System {
    fn read(&self, path: &Path) -> Result<String, String> {
        let bytes = std::fs::read(path).map_err(|e| e.to_string())?;
        if bytes.len() > MAX_BYTES {
            return Err(format!("{} bytes are more than a job file has (at most {MAX_BYTES})", bytes.len()));
        }
        String::from_utf8(bytes).map_err(|_| "it is not text (UTF-8)".to_owned())
    }

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }
}

/// No job file is larger.
const MAX_BYTES: usize = 16 << 20;
/// fio's own limit of nested includes is 10.
const MAX_INCLUDES: u32 = 10;

pub(crate) fn read_sections(name: &str, text: &str, source: &dyn Source) -> Result<Vec<Section>, JobError> {
    let mut sections = Vec::new();
    let directory = Path::new(name).parent().map(Path::to_path_buf).unwrap_or_default();
    read_into(name, text, &directory, source, 0, &mut sections)?;
    Ok(sections)
}

fn read_into(
    name: &str,
    text: &str,
    directory: &Path,
    source: &dyn Source,
    depth: u32,
    sections: &mut Vec<Section>,
) -> Result<(), JobError> {
    for (index, line) in text.strip_prefix('\u{feff}').unwrap_or(text).lines().enumerate() {
        let place = Place { file: name.to_owned(), line: index as u32 + 1 };
        // As in fio, ';' and '#' end a line wherever they stand.
        let line = line.split([';', '#']).next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        if let Some(rest) = line.strip_prefix('[') {
            let section = rest.split_once(']').filter(|(_, after)| after.trim().is_empty());
            let Some((section, _)) = section.filter(|(name, _)| !name.trim().is_empty()) else {
                return Err(JobError::syntax(place, line, "a section such as [job] or [global]"));
            };
            sections.push(Section { place, name: section.trim().to_owned(), entries: Vec::new() });
        } else if let Some(path) = line.strip_prefix("include").filter(|rest| rest.starts_with([' ', '\t'])) {
            include(path.trim(), place, directory, source, depth, sections)?;
        } else {
            let entry = entry(line, place, source)?;
            let Some(section) = sections.last_mut() else {
                return Err(JobError::syntax(
                    entry.place,
                    line,
                    "a section such as [global] or [job] before the first option",
                ));
            };
            section.entries.push(entry);
        }
    }
    Ok(())
}

fn include(
    path: &str,
    place: Place,
    directory: &Path,
    source: &dyn Source,
    depth: u32,
    sections: &mut Vec<Section>,
) -> Result<(), JobError> {
    if depth >= MAX_INCLUDES {
        let expected = format!("at most {MAX_INCLUDES} files that include each other");
        return Err(JobError::syntax(place, path, &expected));
    }
    let path: PathBuf = directory.join(path);
    let what = path.display().to_string();
    let text = source.read(&path).map_err(|error| {
        let message = format!("cannot read {what}: {error}");
        JobError { place: place.clone(), message }
    })?;
    let inner = path.parent().map(Path::to_path_buf).unwrap_or_default();
    read_into(&what, &text, &inner, source, depth + 1, sections)
}

fn entry(line: &str, place: Place, source: &dyn Source) -> Result<Entry, JobError> {
    let (key, value) = match line.split_once('=') {
        Some((key, value)) => (key.trim(), Some(substitute(value.trim(), &place, source)?)),
        None => (line, None),
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    if key.is_empty() || !key.chars().all(is_name) {
        return Err(JobError::syntax(place, line, "an option such as bs=4k"));
    }
    Ok(Entry { key: key.to_owned(), value, place })
}

/// Replaces `${NAME}` by the environment variable, and fio's keywords that do not depend on the machine.
fn substitute(value: &str, place: &Place, source: &dyn Source) -> Result<String, JobError> {
    let mut out = String::with_capacity(value.len());
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let Some((name, tail)) = after.split_once('}') else {
            return Err(JobError::syntax(place.clone(), value, "'}' after '${'"));
        };
        let Some(text) = source.variable(name) else {
            let expected = format!("the environment variable {name} to be set");
            return Err(JobError::syntax(place.clone(), value, &expected));
        };
        out.push_str(&text);
        rest = tail;
    }
    out.push_str(rest);
    for (keyword, machine) in [("$pagesize", false), ("$mb_memory", true), ("$ncpus", true)] {
        if out.contains(keyword) {
            if machine {
                let expected = "a number: this keyword stands for the machine that runs fio, and no machine is emulated here";
                return Err(JobError::syntax(place.clone(), value, expected));
            }
            out = out.replace(keyword, "4096");
        }
    }
    Ok(out)
}

/// fio reads `kb_base` before all other options, wherever it stands.
pub(crate) fn kb_base(entries: &[Entry]) -> Result<KbBase, JobError> {
    let mut base = KbBase::Binary;
    for entry in entries.iter().filter(|e| e.key == "kb_base") {
        base = match entry.value.as_deref() {
            Some("1024") => KbBase::Binary,
            Some("1000") => KbBase::Decimal,
            value => {
                let shown = value.unwrap_or_default();
                let message = format!("kb_base={shown}: expected 1024 or 1000");
                return Err(JobError { place: entry.place.clone(), message });
            }
        };
    }
    Ok(base)
}
