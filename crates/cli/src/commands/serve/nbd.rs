//! `nandscape serve nbd`.

use super::session::{Session, blocks_only, memory};
use super::{FrontEnd, typed};
use crate::args::ServeNbdArgs;
use crate::console::{Console, Failure, Result};
use clap::Args;
use nandscape_core::{Info, NamespaceInfo};
use nandscape_nbd::limits::LEAST_MEMORY_BYTES;
use nandscape_nbd::server::{ConnectionError, Events, ListenError, ServerOptions, TlsConfig};
use nandscape_nbd::{Export, Server};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;

const DEFAULT_SOCKET: &str = "nandscape.sock";

/// The port that IANA gave the protocol.
const DEFAULT_PORT: u16 = 10809;

pub const ENTRY: FrontEnd = FrontEnd {
    info: Info {
        name: "nbd",
        summary: "Over NBD, the network block device protocol: for qemu, nbdcopy, fio, Linux's nbd client ...",
        source: "",
        params: &[],
    },
    arguments: ServeNbdArgs::augment_args,
    run: |given, console| run(&typed(given)?, console),
};

fn run(args: &ServeNbdArgs, console: Console) -> Result<()> {
    let address = args.listen.as_deref().map(resolve).transpose()?;
    let tls = match (&args.tls_cert, &args.tls_key) {
        (Some(certificate), Some(key)) => {
            Some(TlsConfig::load(certificate, key, args.tls_client_ca.as_deref()).map_err(Failure::run)?)
        }
        _ => None,
    };
    if tls.is_some() && address.is_none() && !args.tls_socket {
        return Err(Failure::usage(
            "--tls-cert: expected --listen, or --tls-socket for TLS on the socket file",
        ));
    }
    let memory_bytes = memory(&args.stack, LEAST_MEMORY_BYTES)?;
    let is_read_only = args.read_only.as_ref().is_some_and(Vec::is_empty);
    let session = Session::start(&args.stack, is_read_only, blocks_only, console)?;
    let mut exports = exports(args, session.engine.namespaces())?;
    for volume in session.cache().into_iter().flat_map(|cache| &cache.volumes) {
        for export in exports.iter_mut().filter(|export| export.name == volume.name) {
            export.description = format!("cached volume over {}", volume.disk.display());
        }
    }
    if session.is_read_only() {
        for export in &mut exports {
            export.is_read_only = true;
        }
    }
    let options = ServerOptions {
        connections: usize::from(args.connections),
        memory_bytes,
        adds_read_only: is_read_only,
        ..ServerOptions::default()
    };
    let mut server =
        Server::new(Arc::clone(&session.engine), exports, options, move |event| report(&event, console))
            .map_err(Failure::run)?;
    // Nobody else sets it.
    let _ = session.exports.set(server.exports());
    if let Some(address) = address {
        server.listen_tcp(address, tls.clone(), args.insecure_listen).map_err(|error| match error {
            ListenError::Exposed { .. } => Failure::usage(format!(
                "--listen {error}; set up TLS (--tls-cert), or allow it with --insecure-listen"
            )),
            error => Failure::run(error),
        })?;
    }
    if args.socket.is_some() || address.is_none() {
        let path = args.socket.as_deref().unwrap_or(Path::new(DEFAULT_SOCKET));
        server.listen_unix(path, tls.filter(|_| args.tls_socket)).map_err(Failure::run)?;
    }
    let places: Vec<String> = server.uris().iter().map(|uri| format!("listening on {uri}")).collect();
    let stopper = server.stopper();
    let stop = Arc::clone(&session.stop);
    let serving = std::thread::Builder::new().name("nbd-accept".to_owned()).spawn(move || {
        let outcome = server.run();
        // Whatever ended it, the process is to end too.
        stop.request("the server ended");
        outcome
    });
    let serving = serving.map_err(Failure::run)?;
    session.ready(&places);
    session.wait();
    stopper.stop();
    let outcome = serving.join().expect("the server does not panic");
    session.finish()?;
    outcome.map_err(|error| Failure::run(format!("waiting for clients: {error}")))
}

/// What clients may choose.
fn exports(args: &ServeNbdArgs, namespaces: &[NamespaceInfo]) -> Result<Vec<Export>> {
    let find = |flag: &str, name: &String| {
        let found = namespaces.iter().position(|info| info.name == *name);
        found.ok_or_else(|| {
            let names: Vec<&str> = namespaces.iter().map(|info| info.name.as_str()).collect();
            Failure::usage(format!("{flag} {name}: expected one of {}", names.join(", ")))
        })
    };
    let mut chosen: Vec<usize> =
        args.exports.iter().map(|name| find("--export", name)).collect::<Result<_, _>>()?;
    if chosen.is_empty() {
        chosen = (0..namespaces.len()).collect();
    }
    let mut exports: Vec<Export> =
        chosen.iter().map(|index| Export::new(*index as u32, &namespaces[*index])).collect();
    if let Some(names) = &args.read_only {
        let indices: Vec<usize> =
            names.iter().map(|name| find("--read-only", name)).collect::<Result<_, _>>()?;
        for export in &mut exports {
            export.is_read_only = indices.is_empty() || indices.contains(&(export.namespace as usize));
        }
    }
    Ok(exports)
}

/// The address that was typed, with the default port where it has none.
fn resolve(text: &str) -> Result<SocketAddr> {
    let wrong = |why: String| {
        Failure::usage(format!(
            "--listen {text}: {why}; expected an address such as 127.0.0.1 or [::1]:10809"
        ))
    };
    let with_port = match text.rsplit_once(':') {
        // A bare IPv6 address has colons of its own.
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
            port.parse::<u16>().map_err(|_| wrong(format!("'{port}' is no port")))?;
            text.to_owned()
        }
        Some(_) if !text.starts_with('[') => format!("[{text}]:{DEFAULT_PORT}"),
        _ => format!("{text}:{DEFAULT_PORT}"),
    };
    let mut found = with_port.to_socket_addrs().map_err(|error| wrong(error.to_string()))?;
    found.next().ok_or_else(|| wrong("no such address".to_owned()))
}

/// Tells of a connection that went wrong. Strangers can bring that about as often as they like.
fn report(event: &Events<'_>, console: Console) {
    match event {
        Events::Failed(error) => console.note_of(kind(error), error),
        Events::TurnedAway => console.note_of("nbd: a client was turned away", &"--connections are in use"),
        Events::NotAccepted(error) => console.note_of("nbd: a client could not be accepted", error),
        _ => {}
    }
}

/// Which errors of connections are counted together.
const fn kind(error: &ConnectionError) -> &'static str {
    match error {
        ConnectionError::Negotiation(_) | ConnectionError::TimedOut => {
            "nbd: connection ended in the negotiation"
        }
        ConnectionError::TooSlow => "nbd: connection ended for others",
        _ => "nbd: connection ended",
    }
}
