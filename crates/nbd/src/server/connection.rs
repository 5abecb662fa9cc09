//! One client from its first byte to its last.

use super::input::Input;
use super::pacer::Pacer;
use super::tls::{Tls, TlsConfig};
use super::transport::{Socket, Transport};
use super::{Events, Shared};
use crate::limits::{HANDSHAKE_TIMEOUT, MAX_OPTION_BYTES};
use crate::negotiation::{Negotiation, NegotiationError, Progress, TlsState};
use crate::transmission::{BadMagic, BatchLimits, Replies, Session, Stop, Worker};
use nandscape_engine::Clock;
use std::io;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Payload bytes of one batch. Less than the engine takes: a client works on the replies to one batch while the next runs, and the bytes
/// stay in the processor's cache.
const BATCH_BYTES: usize = 256 << 10;

/// Room for replies that a connection keeps.
const KEPT_REPLY_BYTES: usize = 1 << 20;

/// Bytes in front of the data of an option.
const OPTION_HEADER_BYTES: usize = 16;

/// Why a connection ended before its client said goodbye.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectionError {
    /// The negotiation went wrong.
    #[error("negotiation: {0}")]
    Negotiation(#[from] NegotiationError),
    /// The client hung up in the middle of something.
    #[error("the client hung up during {phase}")]
    HungUp {
        /// In the middle of what.
        phase: &'static str,
    },
    /// The negotiation took too long.
    #[error("the negotiation took more than {} s", HANDSHAKE_TIMEOUT.as_secs())]
    TimedOut,
    /// Something else stood where a request should.
    #[error(transparent)]
    Request(#[from] BadMagic),
    /// The socket failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Serves a client until it leaves or the server stops.
pub(super) fn serve(shared: &Shared, socket: Socket, tls: Option<&TlsConfig>) -> Result<(), ConnectionError> {
    let deadline = Instant::now() + HANDSHAKE_TIMEOUT;
    let mut input = Input::new(OPTION_HEADER_BYTES + MAX_OPTION_BYTES);
    let state = if tls.is_some() { TlsState::Required } else { TlsState::Absent };
    let negotiation = Negotiation::new(shared.exports.clone(), state);
    let (transport, session) = match negotiate(socket, &mut input, negotiation, tls, deadline) {
        Ok(Some(agreed)) => agreed,
        Ok(None) => return Ok(()),
        Err(ConnectionError::Io(error))
            if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) =>
        {
            return Err(ConnectionError::TimedOut);
        }
        Err(error) => return Err(error),
    };
    transport.set_timeout(None)?;
    (shared.events)(Events::Chosen { export: &session.export.name });
    let outcome = transmit(shared, &*transport, &mut input, session);
    transport.close();
    outcome
}

/// What a negotiation leads to: the way that bytes go from then on, and what is served.
type Agreed = (Box<dyn Transport>, Session);

/// Negotiates until the client has chosen an export; `None` if it leaves in good order.
fn negotiate(
    socket: Socket,
    input: &mut Input,
    mut negotiation: Negotiation,
    tls: Option<&TlsConfig>,
    deadline: Instant,
) -> Result<Option<Agreed>, ConnectionError> {
    let again = socket.again()?;
    let mut transport: Box<dyn Transport> = Box::new(socket);
    let mut out = Vec::new();
    Negotiation::greet(&mut out);
    loop {
        let (taken, progress) = negotiation.advance(input.bytes(), &mut out)?;
        input.consume(taken);
        let left = deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero());
        transport.set_timeout(Some(left.ok_or(ConnectionError::TimedOut)?))?;
        if !matches!(progress, Progress::Again) && !out.is_empty() {
            let sent = transport.send(&out);
            if matches!(progress, Progress::Close) {
                // A client that leaves need not wait for the answer.
                return Ok(None);
            }
            sent?;
            out.clear();
        }
        match progress {
            Progress::Again => {}
            Progress::More => {
                if !input.receive(&*transport, OPTION_HEADER_BYTES + MAX_OPTION_BYTES)? {
                    return Err(ConnectionError::HungUp { phase: "the negotiation" });
                }
            }
            Progress::StartTls => {
                let config = tls.expect("the negotiation offers TLS only where there is some");
                // Whatever came with the option is taken for the beginning of TLS, never for options sent under it.
                let early = input.bytes().to_vec();
                input.consume(early.len());
                transport = Box::new(Tls::accept(again.again()?, config, early, deadline)?);
                negotiation.secured();
            }
            Progress::Transmit(session) => return Ok(Some((transport, session))),
            Progress::Close => return Ok(None),
        }
    }
}

fn transmit(
    shared: &Shared,
    transport: &dyn Transport,
    input: &mut Input,
    session: Session,
) -> Result<(), ConnectionError> {
    if shared.engine.clock() != Clock::Paced {
        return answer(shared, transport, input, session, &mut |replies| transport.send(replies.bytes()));
    }
    let pacer = Pacer::new(&shared.engine, transport);
    std::thread::scope(|scope| {
        let writer =
            std::thread::Builder::new().name("nbd-pace".to_owned()).spawn_scoped(scope, || pacer.run())?;
        let outcome = answer(shared, transport, input, session, &mut |replies| pacer.push(replies));
        pacer.close();
        writer.join().expect("the writer does not panic");
        outcome
    })
}

/// Receives and runs requests, and hands their replies to `send`.
fn answer(
    shared: &Shared,
    transport: &dyn Transport,
    input: &mut Input,
    session: Session,
    send: &mut dyn FnMut(&Replies) -> io::Result<()>,
) -> Result<(), ConnectionError> {
    let limits = BatchLimits { requests: nandscape_engine::BATCH_REQUESTS, bytes: BATCH_BYTES };
    let mut worker = Worker::new(shared.engine.clone(), session, limits);
    let mut replies = Replies::default();
    loop {
        let is_stopping = shared.is_stopping.load(Ordering::Acquire);
        if is_stopping {
            worker.stop();
        }
        let (taken, stop) = worker.step(input.bytes(), &mut replies)?;
        input.consume(taken);
        if !replies.bytes().is_empty() {
            send(&replies)?;
            replies.shrink(KEPT_REPLY_BYTES);
        }
        let is_open = match stop {
            Stop::Full => true,
            Stop::Disconnect => return Ok(()),
            // What arrived has been answered; nothing more is waited for.
            _ if is_stopping => return Ok(()),
            Stop::Needs(bytes) => input.receive(transport, bytes)?,
            Stop::Skip(bytes) => input.skip(transport, bytes)?,
        };
        if !is_open {
            // Without goodbye, but with nothing under way: some clients leave so.
            let phase = "a request";
            return if input.bytes().is_empty() { Ok(()) } else { Err(ConnectionError::HungUp { phase }) };
        }
    }
}
