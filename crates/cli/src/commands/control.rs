//! `nandscape control`: tells a running server to do something.

use crate::args::{ControlAction, ControlArgs};
use crate::console::{Console, Failure};
use nandscape_engine::control::{Ask, Client, ClientError, PlaceError, find};
use std::path::{Path, PathBuf};

/// Asks, and prints what the server says to it.
pub fn run(args: &ControlArgs, console: Console) -> Result<(), Failure> {
    let ask = match &args.action {
        ControlAction::Reset => Ask::Reset {},
        ControlAction::Checkpoint => Ask::Checkpoint {},
        ControlAction::RecordStart { file } => Ask::RecordStart { path: absolute(file)? },
        ControlAction::RecordStop => Ask::RecordStop {},
        ControlAction::Snapshot { file } => Ask::Snapshot { path: absolute(file)? },
        ControlAction::Shutdown => Ask::Shutdown {},
    };
    match connect(args.socket.as_deref())?.ask(&ask)? {
        Some(result) => console.result(&format!("{result:#}")),
        None => Ok(()),
    }
}

/// The server works in another directory than its client.
fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| Failure::run(format!("{}: {error}", path.display())))
}

/// The server at a socket, or the only one.
pub fn connect(socket: Option<&Path>) -> Result<Client, Failure> {
    let path = socket.map_or_else(find, |path| Ok(path.to_owned()))?;
    Ok(Client::connect(&path)?)
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        Self::run(error)
    }
}

impl From<PlaceError> for Failure {
    fn from(error: PlaceError) -> Self {
        match error {
            PlaceError::Several { .. } => Self::usage(error),
            _ => Self::run(error),
        }
    }
}
