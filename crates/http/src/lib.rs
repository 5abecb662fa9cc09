//! What a running server counts and measures, over HTTP: `/metrics` in the `OpenMetrics` text format,
//! `/stat.json` as `nandscape stat --json` prints it.
//!
//! Nothing can be changed from here, and there is no authentication, so an address that others can reach is
//! refused unless it is asked for by name. In a crate of its own, since an HTTP server takes longer to
//! compile than all the rest of a server.

mod metrics;

pub use metrics::encode;

use axum::Json;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use nandscape_engine::control::StatSource;
use std::net::{SocketAddr, TcpListener};
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// Why there is no HTTP server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum HttpError {
    #[error(
        "--http {addr}: expected a loopback address such as 127.0.0.1:9464, or --insecure-http: whoever reaches it reads the statistics"
    )]
    NotLoopback { addr: SocketAddr },
    #[error("--http {addr}: {error}")]
    Io { addr: SocketAddr, error: std::io::Error },
}

/// An HTTP server. Ends when dropped.
#[derive(Debug)]
pub struct Http {
    addr: SocketAddr,
    /// Dropped to end the thread.
    alive: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Http {
    /// Listens at `addr` (port 0: any) in a thread of its own. Addresses other than loopback are refused
    /// unless `anywhere`.
    pub fn start(addr: SocketAddr, anywhere: bool, source: StatSource) -> Result<Self, HttpError> {
        if !anywhere && !addr.ip().is_loopback() {
            return Err(HttpError::NotLoopback { addr });
        }
        let failed = |error| HttpError::Io { addr, error };
        let listener = TcpListener::bind(addr).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let (alive, ended) = oneshot::channel::<()>();
        let serve = move || {
            runtime.block_on(async {
                // The listener is non-blocking, which is all that can be wrong with it.
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
                let served = axum::serve(listener, routes(source)).into_future();
                // A client that reads slowly does not keep the server from ending.
                tokio::select! {
                    _ = served => {}
                    _ = ended => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name("http".into()).spawn(serve).map_err(failed)?;
        Ok(Self { addr: bound, alive: Some(alive), thread: Some(thread) })
    }

    /// Where it listens.
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        self.alive = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported by itself.
            let _ = thread.join();
        }
    }
}

fn routes(source: StatSource) -> Router {
    Router::new()
        .route("/", get(async || "nandscape\n\n/metrics    OpenMetrics\n/stat.json  the stat document\n"))
        .route("/metrics", get(metrics))
        .route("/stat.json", get(async |State(source): State<StatSource>| Json(source())))
        .with_state(source)
}

async fn metrics(State(source): State<StatSource>) -> Response {
    match encode(&source()) {
        Ok(text) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
