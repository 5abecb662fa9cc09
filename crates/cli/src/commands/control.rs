//! `nandscape control`: tells a running server to do something.

use crate::args::{ControlAction, ControlArgs};
use crate::console::{Console, Failure, Result};
use nandscape_engine::control::{Ask, Client, ClientError, PlaceError, find, unnamed};
use std::path::{Path, PathBuf};

pub fn run(args: &ControlArgs, console: Console) -> Result<()> {
    let ask = match &args.action {
        ControlAction::Reset => Ask::Reset {},
        ControlAction::Checkpoint => Ask::Checkpoint {},
        ControlAction::RecordStart { file } => Ask::RecordStart { path: absolute(file)? },
        ControlAction::RecordStop => Ask::RecordStop {},
        ControlAction::Snapshot { file } => Ask::Snapshot { path: absolute(file)? },
        ControlAction::Shutdown => Ask::Shutdown {},
    };
    if args.socket.is_none() && matches!(ask, Ask::Shutdown {}) {
        return Err(unnamed().into());
    }
    match connect(args.socket.as_deref(), console)?.ask(&ask)? {
        Some(result) => console.result(&format!("{result:#}")),
        None => Ok(()),
    }
}

/// The server works in another directory than its client.
fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|error| Failure::run(format!("{}: {error}", path.display())))
}

/// The server at a socket; or the only one, which is named then, since nobody has.
pub fn connect(socket: Option<&Path>, console: Console) -> Result<Client> {
    let Some(path) = socket else {
        let path = find()?;
        let client = Client::connect(&path)?;
        console.note(&format!("server: {}", path.display()));
        return Ok(client);
    };
    Ok(Client::connect(path)?)
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        Self::run(error)
    }
}

impl From<PlaceError> for Failure {
    fn from(error: PlaceError) -> Self {
        match error {
            PlaceError::Several { .. } | PlaceError::Unnamed { .. } => Self::usage(error),
            _ => Self::run(error),
        }
    }
}
