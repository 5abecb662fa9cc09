//! `nandscape serve fuse`: files of a mount, and loop devices over them.

use super::session::{Session, blocks_only, memory};
use super::{FrontEnd, typed};
use crate::args::ServeFuseArgs;
use crate::console::{Console, Failure, Result};
use clap::Args;
use nandscape_core::{Info, units};
use nandscape_fuse::{
    LEAST_MEMORY_BYTES, LoopDevice, LoopOptions, Mount, MountError, MountOptions, Quota, SECTORS, guard,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How often a busy mount is tried again.
const RETRY: Duration = Duration::from_millis(250);

pub const ENTRY: FrontEnd = FrontEnd {
    info: Info {
        name: "fuse",
        summary: "As files of a FUSE mount, and as loop devices for the kernel's own file systems",
        source: "",
        params: &[],
    },
    arguments: ServeFuseArgs::augment_args,
    run: |given, console| run(&typed(given)?, console),
};

/// Serves until a signal comes or somebody else unmounts.
fn run(args: &ServeFuseArgs, console: Console) -> Result<()> {
    let sector = sector(&args.sector)?;
    let memory_bytes = memory(&args.stack, LEAST_MEMORY_BYTES)?;
    let (mut quotas, mut prepared) = (BTreeMap::new(), None);
    let check = |files: Option<&str>| {
        if args.with_loop {
            blocks_only(files)?;
        }
        if args.writeback && files.is_none() {
            return Err(Failure::usage(
                "--writeback: expected a store of files (--stack zone-files or oftl)",
            ));
        }
        quotas = limits(args, files.is_some())?;
        prepared = Some(Mount::prepare(&args.mount).map_err(Failure::run)?);
        Ok(())
    };
    let session = Session::start(&args.stack, args.read_only, check, console)?;
    if session.engine.namespaces().is_empty() {
        return Err(Failure::usage("--cache ram:SIZE: expected the disks that it is for: --disk NAME=PATH"));
    }
    let stores_files = stores_files(&session);
    let (dir, notes) = prepared.expect("the session was checked");
    // Before the threads that serve are started, since they inherit it.
    let warnings = if stores_files { Vec::new() } else { guard::stand_below_block_device() };
    for note in notes.into_iter().chain(warnings) {
        console.note(&note);
    }
    let is_read_only = args.read_only || session.is_read_only();
    let gathers_writes = args.writeback;
    let threads = usize::from(args.threads);
    let options = MountOptions { is_read_only, gathers_writes, quotas, threads, memory_bytes };
    let tell = Box::new(move |message: &str| console.note_of("fuse: request failed", &message));
    let stop = Arc::clone(&session.stop);
    let ended = move || stop.request("the mount has ended");
    let mount = Mount::start(&session.engine, &dir, options, tell, ended).map_err(Failure::run)?;
    for note in mount.notes() {
        console.note(note);
    }
    let mut server = Server { mount, loops: Vec::new(), console };
    let served = server.serve(args, sector, &session);
    // Whatever went wrong above, what was written is kept.
    let down = server.take_down();
    drop(server);
    served.and(down).and(session.finish())
}

/// Whether the files are the clients' own.
fn stores_files(session: &Session) -> bool {
    session.engine.namespaces().iter().any(|info| info.objects)
}

/// An option that limits what the files of users may take.
struct Limit {
    option: &'static str,
    expected: &'static str,
    parse: fn(&str) -> Option<u64>,
    place: fn(&mut Quota) -> &mut Option<u64>,
}

const SPACE: Limit = Limit {
    option: "--quota",
    expected: "UID=SIZE, such as 1000=2GiB",
    parse: |text| units::parse_size(text).ok(),
    place: |quota| &mut quota.bytes,
};

const FILES: Limit = Limit {
    option: "--quota-files",
    expected: "UID=N, such as 1000=5000",
    parse: |text| text.parse().ok(),
    place: |quota| &mut quota.files,
};

/// What the files of users may take.
fn limits(args: &ServeFuseArgs, stores_files: bool) -> Result<BTreeMap<u32, Quota>> {
    let mut quotas: BTreeMap<u32, Quota> = BTreeMap::new();
    let given = args.quota.iter().map(|text| (SPACE, text));
    for (Limit { option, expected, parse, place }, text) in
        given.chain(args.quota_files.iter().map(|text| (FILES, text)))
    {
        let wrong = |what: &str| Err(Failure::usage(format!("{option} {text}: {what}")));
        if !stores_files {
            return wrong("expected a store of files (--stack zone-files or oftl)");
        }
        let pair = text.split_once('=').and_then(|(uid, limit)| Some((uid.parse().ok()?, parse(limit)?)));
        let Some((uid, limit)) = pair else { return wrong(&format!("expected {expected}")) };
        if place(quotas.entry(uid).or_default()).replace(limit).is_some() {
            return wrong(&format!("user {uid} has a limit already"));
        }
    }
    Ok(quotas)
}

fn sector(text: &str) -> Result<u32> {
    let bytes = units::parse_size(text).ok().and_then(|bytes| u32::try_from(bytes).ok());
    bytes
        .filter(|bytes| SECTORS.contains(bytes))
        .ok_or_else(|| Failure::usage(format!("--sector {text}: expected 512, 1024, 2048 or 4096")))
}

/// Everything that has to be taken down again.
struct Server {
    mount: Mount,
    loops: Vec<LoopDevice>,
    console: Console,
}

impl Server {
    /// Sets up the loop devices, says what there is, and waits.
    fn serve(&mut self, args: &ServeFuseArgs, sector: u32, session: &Session) -> Result<()> {
        if args.with_loop {
            let is_read_only = args.read_only || session.is_read_only();
            let options = LoopOptions { sector, is_read_only };
            for file in self.mount.files() {
                self.loops.push(LoopDevice::attach(file, options).map_err(Failure::run)?);
            }
        }
        self.announce(args.json, session);
        session.wait();
        Ok(())
    }

    /// Prints a path for each namespace, which also says that they are ready.
    fn announce(&self, as_json: bool, session: &Session) {
        let stores_files = stores_files(session);
        let dir = stores_files.then(|| self.mount.dir());
        let files = self.mount.files().iter().map(PathBuf::as_path);
        let places = files.chain(dir).enumerate().map(|(index, file)| {
            let device = self.loops.get(index).map(LoopDevice::path);
            (file, device)
        });
        if as_json {
            let served: Vec<serde_json::Value> = places
                .zip(session.engine.namespaces())
                .map(|((file, device), info)| {
                    let kind = if stores_files { "directory" } else { "file" };
                    serde_json::json!({
                        "namespace": info.name,
                        kind: file,
                        "loop": device,
                        "capacity_bytes": info.capacity_bytes,
                        "page_bytes": info.page_bytes,
                    })
                })
                .collect();
            return self.console.announce(&format!("{:#}", serde_json::Value::Array(served)));
        }
        let shown = |(file, device): (&Path, Option<&Path>)| device.unwrap_or(file).display().to_string();
        session.ready(&places.map(shown).collect::<Vec<_>>());
    }

    /// Takes down loop devices and mount. While somebody uses them they stay; a second signal ends the
    /// process all the same.
    fn take_down(&mut self) -> Result<()> {
        for device in &mut self.loops {
            device.detach();
        }
        let mut told = Vec::new();
        loop {
            let users = match self.mount.unmount() {
                Err(MountError::Busy { users, .. }) => users,
                outcome => return outcome.map_err(Failure::run),
            };
            std::thread::sleep(RETRY);
            // A loop device takes a moment to go, so nobody is told of what is gone by then.
            if users != told && matches!(self.mount.unmount(), Err(MountError::Busy { .. })) {
                let by = if users.is_empty() {
                    "a process that cannot be seen from here".to_owned()
                } else {
                    users.join(", ")
                };
                self.console
                    .note(&format!("in use by {by}; waiting for that to end (a second signal ends at once)"));
                told = users;
            }
        }
    }
}
