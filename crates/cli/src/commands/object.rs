//! `nandscape object`: what an image of a store of objects holds.

use super::image;
use crate::args::ObjectVerb;
use crate::console::{Console, Failure, Result};
use nandscape_core::command::stored_runs;
use nandscape_core::units::format_bytes;
use nandscape_core::{ObjectCommand, ObjectId, ObjectStatus, Reply, Subsystem};
use nandscape_engine::{Clock, Data, Engine, Request};
use nandscape_fuse::{Client, Kind, ObjectFs, ROOT};
use nandscape_stack::{StackConfig, Storage, Typed, build_stored, storing};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

/// So many runs of stored bytes are printed; JSON has all.
const MOST_RUNS: usize = 40;

pub fn run(verb: &ObjectVerb, console: Console) -> Result<()> {
    match verb {
        ObjectVerb::Ls { image, json } => list(&Store::open(image)?, *json, console),
        ObjectVerb::Stat { image, object, json } => stat(&Store::open(image)?, object, *json, console),
        ObjectVerb::Check { image, json } => check(image, *json, console),
    }
}

/// A line of `ls`.
#[derive(Serialize)]
struct Line {
    object: u64,
    size: u64,
    allocated: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    paths: Vec<String>,
}

/// An image that was opened to be looked at.
struct Store {
    client: Client,
    /// The tree of names, where 'serve fuse' has made one, and what was found besides.
    files: std::result::Result<(ObjectFs, Vec<String>), String>,
    paths: BTreeMap<u64, (Kind, Vec<String>)>,
}

/// Where the objects of an image are; an error if it has none.
fn storage_of(image: &Path) -> Result<(StackConfig, Storage)> {
    if !image.exists() {
        return Err(Failure::run(format!("{}: no such image", image.display())));
    }
    let storage = Storage::ReadOnlyImage(image.to_owned());
    let config = storing::resolve(&Typed::new(), &storage)?;
    if !config.stores_objects() {
        let stack = config.stack.info.name;
        return Err(Failure::run(format!(
            "{}: stack {stack} keeps no objects: expected an image of oftl or zone-files",
            image.display()
        )));
    }
    Ok((config, storage))
}

impl Store {
    fn open(image: &Path) -> Result<Self> {
        let (config, storage) = storage_of(image)?;
        Ok(Self::over(build_stored(&config, &storage)?.subsystem))
    }

    fn over(subsystem: Box<dyn Subsystem + Send>) -> Self {
        let engine = Arc::new(Engine::new(subsystem, Clock::free()));
        let client = || Client { engine: Arc::clone(&engine), namespace: 0 };
        let files = ObjectFs::load(client(), true).map_err(|error| error.to_string());
        let mut this = Self { client: client(), files, paths: BTreeMap::new() };
        this.paths = this.all_paths();
        this
    }

    /// Every file that a name leads to.
    fn all_paths(&self) -> BTreeMap<u64, (Kind, Vec<String>)> {
        let Ok((files, _)) = &self.files else { return BTreeMap::new() };
        let mut paths = BTreeMap::from([(ROOT, (Kind::Directory, vec!["/".to_owned()]))]);
        let mut dirs = vec![(ROOT, String::new())];
        while let Some((dir, path)) = dirs.pop() {
            let entries = files.list(dir).unwrap_or_default();
            for entry in entries.into_iter().filter(|entry| *entry.name != *b"." && *entry.name != *b"..") {
                let path = format!("{path}/{}", escaped(&entry.name));
                if entry.kind == Kind::Directory {
                    dirs.push((entry.ino, path.clone()));
                }
                paths.entry(entry.ino).or_insert((entry.kind, Vec::new())).1.push(path);
            }
        }
        paths
    }

    fn ask(&self, command: ObjectCommand) -> std::result::Result<Reply, String> {
        let request = Request::object(self.client.namespace, command, Data::None);
        let done = self.client.run(request);
        done.map(|(reply, _)| reply)
            .map_err(|failed| failed.cause.map_or_else(|| "refused".to_owned(), |cause| cause.to_string()))
    }

    fn objects(&self) -> Result<Box<[ObjectStatus]>> {
        match self.ask(ObjectCommand::List).map_err(Failure::run)? {
            Reply::Objects(objects) => Ok(objects),
            other => panic!("a list of objects is {other:?}"),
        }
    }

    fn line(&self, status: &ObjectStatus) -> Line {
        let found = self.paths.get(&status.object.0);
        Line {
            object: status.object.0,
            size: status.size,
            allocated: status.allocated,
            kind: found.map(|(kind, _)| name_of(*kind)),
            paths: found.map_or_else(Vec::new, |(_, paths)| paths.clone()),
        }
    }
}

/// A name with what is no text, or would move the cursor of a terminal, as `\x1b`: two names stay two.
fn escaped(name: &[u8]) -> String {
    let mut text = String::new();
    for chunk in name.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match u8::try_from(letter) {
                Ok(byte @ (..b' ' | b'\\' | 0x7f)) => text.extend(byte.escape_ascii().map(char::from)),
                _ if letter.is_control() => text.extend(letter.escape_unicode()),
                _ => text.push(letter),
            }
        }
        text.extend(chunk.invalid().escape_ascii().map(char::from));
    }
    text
}

const fn name_of(kind: Kind) -> &'static str {
    match kind {
        Kind::File => "file",
        Kind::Directory => "directory",
        Kind::Link => "link",
        Kind::Pipe => "pipe",
        Kind::Socket => "socket",
        Kind::CharDevice => "character device",
        Kind::BlockDevice => "block device",
    }
}

fn list(store: &Store, as_json: bool, console: Console) -> Result<()> {
    let objects = store.objects()?;
    let lines: Vec<Line> = objects.iter().map(|status| store.line(status)).collect();
    if as_json {
        return console.json(&lines);
    }
    let mut text = format!("{:>8}  {:>12}  {:>12}  path\n", "object", "size", "allocated");
    for line in &lines {
        let path = line.paths.first().map_or("-", String::as_str);
        let more =
            if line.paths.len() > 1 { format!(" and {} more", line.paths.len() - 1) } else { String::new() };
        let (size, allocated) = (format_bytes(line.size), format_bytes(line.allocated));
        let _ = writeln!(text, "{:>8}  {size:>12}  {allocated:>12}  {path}{more}", line.object);
    }
    console.result(&text)
}

fn stat(store: &Store, object: &str, as_json: bool, console: Console) -> Result<()> {
    // As it is printed, or as it is.
    let names = [object.to_owned(), escaped(object.as_bytes())].map(|path| match path.strip_prefix('/') {
        Some(_) => path,
        None => format!("/{path}"),
    });
    let by_path = || {
        let found = store.paths.iter().find(|(_, (_, paths))| paths.iter().any(|path| names.contains(path)));
        found.map(|(object, _)| *object)
    };
    let number = object.parse().ok().or_else(by_path);
    let unknown =
        || Failure::run(format!("'{object}': expected the number or the path of an object that exists"));
    let id = ObjectId(number.ok_or_else(unknown)?);
    let asked = store.ask(ObjectCommand::GetAttributes { object: id });
    let attributes = match asked.map_err(|error| Failure::run(format!("object {id}: {error}")))? {
        Reply::Attributes(attributes) => attributes,
        other => panic!("the attributes of an object are {other:?}"),
    };
    let line = store.line(&attributes.status);
    let file = store.files.as_ref().ok().and_then(|(files, _)| files.getattr(id.0).ok());
    let runs = stored_runs(id, |command| store.ask(command)).map_err(Failure::run)?;
    if as_json {
        let mut document = serde_json::to_value(&line).expect("plain data");
        document["attribute_bytes"] = json!(attributes.bytes.len());
        document["runs"] = runs.iter().map(|run| json!({"offset": run.offset, "len": run.len})).collect();
        if let Some(file) = &file {
            let of = &file.attributes;
            document["mode"] = json!(format!("{:04o}", of.mode));
            document["uid"] = json!(of.uid);
            document["gid"] = json!(of.gid);
            document["links"] = json!(file.links);
        }
        return console.json(&document);
    }
    let mut text = String::new();
    let mut put = |name: &str, value: String| {
        let _ = writeln!(text, "{name:12} {value}");
    };
    put("object", id.to_string());
    put("size", format!("{} B", line.size));
    put("allocated", format_bytes(line.allocated));
    if let Some(file) = &file {
        let of = &file.attributes;
        let kind = name_of(of.kind);
        put(
            "file",
            format!("{kind}, mode {:04o}, owner {}:{}, {} links", of.mode, of.uid, of.gid, file.links),
        );
    }
    for path in &line.paths {
        put("path", path.clone());
    }
    put("attributes", format!("{} B", attributes.bytes.len()));
    for run in runs.iter().take(MOST_RUNS) {
        put("stored", format!("{} to {}", run.offset, run.end()));
    }
    if runs.len() > MOST_RUNS {
        put("", format!("... and {} more runs", runs.len() - MOST_RUNS));
    }
    console.result(text.trim_end())
}

fn check(path: &Path, as_json: bool, console: Console) -> Result<()> {
    storage_of(path)?;
    let (checked, subsystem) = image::look_over(path, console)?;
    let (mut notes, mut files, mut has_tree) = (Vec::new(), 0, true);
    if let Some(subsystem) = subsystem {
        let store = Store::over(subsystem);
        files = store.paths.len();
        has_tree = store.files.is_ok();
        notes = store.files.map_or_else(|error| vec![error], |(_, found)| found);
    }
    let is_good = checked.is_good() && has_tree;
    if as_json {
        let mut document = image::document(path, &checked);
        document["files"] = json!(files);
        document["notes"] = json!(notes);
        document["ok"] = json!(is_good);
        console.json(&document)?;
    } else {
        let mut text = String::new();
        for note in &notes {
            let _ = writeln!(text, "the next mount: {note}");
        }
        let _ = write!(text, "{}; {files} files", image::report(path, &checked));
        console.result(&text)?;
    }
    if is_good { Ok(()) } else { Err(Failure::Reported) }
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn names_are_printed_apart_and_leave_the_terminal_alone() {
        for (name, expected) in [
            (&b"plain name"[..], "plain name"),
            ("größe 木".as_bytes(), "größe 木"),
            (b"two\nlines\ttab", "two\\nlines\\ttab"),
            (b"\x1b[31mred\x7f", "\\x1b[31mred\\x7f"),
            ("\u{9b}1m".as_bytes(), "\\u{9b}1m"),
            (b"\xff", "\\xff"),
            (b"\\xff", "\\\\xff"),
        ] {
            assert_eq!(escaped(name), expected, "{name:?}");
        }
    }
}
