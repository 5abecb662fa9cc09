//! A client of one namespace of the engine: runs its commands, and says what became of them in the terms of
//! the system.

use crate::errors::errno_of;
use nandscape_core::{NamespaceError, Reply};
use nandscape_engine::{Due, Engine, Request};
use std::sync::Arc;

/// A namespace of the engine.
#[derive(Clone, Debug)]
pub struct Client {
    /// The engine.
    pub engine: Arc<Engine>,
    /// Its index in [`Engine::namespaces`].
    pub namespace: u32,
}

impl Client {
    /// Runs a command; on a paced clock, says when it is to be answered.
    pub fn run(&self, request: Request<'_>) -> Result<(Reply, Option<Due>), Failed> {
        let mut batch = [request];
        self.engine.run(&mut batch);
        let [request] = batch;
        match request.outcome {
            Ok(served) => {
                let due = self.engine.due(&served);
                Ok((served.reply, due))
            }
            Err(error) => {
                let errno = errno_of(&request.command, &error);
                Err(Failed { errno, cause: Some(error) })
            }
        }
    }
}

/// What a call did.
#[derive(Clone, Debug, Default)]
pub struct Done {
    /// Bytes read or written.
    pub len: usize,
    /// When the device would have answered, where the engine is paced; else now.
    pub due: Option<Due>,
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// What the client is told.
    pub errno: i32,
    /// What the stack said; absent where the call itself was wrong.
    pub cause: Option<NamespaceError>,
}

impl Failed {
    pub(crate) const fn number(errno: i32) -> Self {
        Self { errno, cause: None }
    }

    /// What the stack said.
    pub(crate) fn why(self) -> String {
        self.cause.map_or("an error".to_owned(), |cause| cause.to_string())
    }
}
