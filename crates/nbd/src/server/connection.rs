//! One client from its first byte to its last.

use super::input::{Input, ReceiveError};
use super::pacer::Pacer;
use super::tls::{Tls, TlsConfig};
use super::transport::{Socket, Transport};
use super::{Events, Shared};
use crate::limits::{HANDSHAKE_TIMEOUT, MAX_OPTION_BYTES};
use crate::negotiation::{Negotiation, NegotiationError, Progress, TlsState};
use crate::transmission::{BadMagic, BatchLimits, Replies, Session, Stop, Worker};
use nandscape_engine::Clock;
use nandscape_engine::budget::{Evict, NoMemory};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Payload bytes of one batch. Less than the engine takes: a client works on the replies to one batch while
/// the next runs, and the bytes stay in the processor's cache.
const BATCH_BYTES: usize = 256 << 10;

/// Bytes in front of the data of an option.
const OPTION_HEADER_BYTES: usize = 16;

/// Why a connection ended before its client said goodbye.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ConnectionError {
    #[error("negotiation: {0}")]
    Negotiation(#[from] NegotiationError),
    #[error("the client hung up during {phase}")]
    HungUp { phase: &'static str },
    #[error("the negotiation took more than {} s", HANDSHAKE_TIMEOUT.as_secs())]
    TimedOut,
    #[error(transparent)]
    Request(#[from] BadMagic),
    #[error("the client sent or took too little while others waited for the memory of its request")]
    TooSlow,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Serves a client until it leaves or the server stops.
pub(super) fn serve(
    shared: &Shared,
    socket: &Arc<Socket>,
    tls: Option<&TlsConfig>,
) -> Result<(), ConnectionError> {
    let deadline = Instant::now() + HANDSHAKE_TIMEOUT;
    let mut input = Input::new()?;
    let state = if tls.is_some() { TlsState::Required } else { TlsState::Absent };
    let negotiation = Negotiation::new(shared.exports.all(), state);
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
    let export = session.export.clone();
    let Some(_chosen) = shared.exports.enter(&export) else {
        // It was taken away while the client chose it.
        transport.close();
        return Ok(());
    };
    (shared.events)(Events::Chosen { export: &session.export.name });
    let evicted = Arc::clone(socket);
    let client = Client { shared, transport: &*transport, evict: Arc::new(move || evicted.evict()) };
    let outcome = client.transmit(&mut input, session);
    transport.close();
    let is_evicted = socket.is_evicted.load(Ordering::Acquire);
    if outcome.is_err() && is_evicted { Err(ConnectionError::TooSlow) } else { outcome }
}

/// What a negotiation leads to: the way that bytes go from then on, and what is served.
type Agreed = (Box<dyn Transport>, Session);

/// Negotiates until the client has chosen an export; `None` if it leaves in good order.
fn negotiate(
    socket: &Arc<Socket>,
    input: &mut Input,
    mut negotiation: Negotiation,
    tls: Option<&TlsConfig>,
    deadline: Instant,
) -> Result<Option<Agreed>, ConnectionError> {
    let mut transport: Box<dyn Transport> = Box::new(Arc::clone(socket));
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
                // Whatever came with the option is the beginning of TLS, never options sent under it.
                let early = input.bytes().to_vec();
                input.consume(early.len());
                transport = Box::new(Tls::accept(Arc::clone(socket), config, early, deadline)?);
                negotiation.secured();
            }
            Progress::Transmit(session) => return Ok(Some((transport, session))),
            Progress::Close => return Ok(None),
        }
    }
}

/// A client that has chosen an export.
struct Client<'a> {
    shared: &'a Shared,
    transport: &'a dyn Transport,
    /// Ends the client when it keeps others waiting.
    evict: Evict,
}

impl Client<'_> {
    fn transmit(&self, input: &mut Input, session: Session) -> Result<(), ConnectionError> {
        if self.shared.engine.clock() != Clock::Paced {
            return self.answer(input, session, &mut |replies| {
                replies.client_is_due();
                self.transport.send(replies.bytes())
            });
        }
        let pacer = Pacer::new(&self.shared.engine, self.transport, &self.shared.budget, &self.evict);
        std::thread::scope(|scope| {
            let writer = std::thread::Builder::new()
                .name("nbd-pace".to_owned())
                .spawn_scoped(scope, || pacer.run())?;
            let outcome = self.answer(input, session, &mut |replies| pacer.push(replies));
            pacer.close();
            writer.join().expect("the writer does not panic");
            outcome
        })
    }

    /// Receives and runs requests, and hands their replies to `send`.
    fn answer(
        &self,
        input: &mut Input,
        session: Session,
        send: &mut dyn FnMut(&mut Replies) -> io::Result<()>,
    ) -> Result<(), ConnectionError> {
        let Self { shared, transport, ref evict } = *self;
        let limits = BatchLimits { requests: nandscape_engine::BATCH_REQUESTS, bytes: BATCH_BYTES };
        let mut worker = Worker::new(shared.engine.clone(), session, limits);
        let mut replies = Replies::new(Arc::clone(&shared.budget), Arc::clone(evict));
        loop {
            let is_stopping = shared.is_stopping.load(Ordering::Acquire);
            if is_stopping {
                worker.stop();
            }
            let (taken, stop) = worker.step(input.bytes(), &mut replies)?;
            input.consume(taken);
            if !replies.bytes().is_empty() {
                send(&mut replies)?;
                replies.release();
            }
            let is_open = match stop {
                Stop::Full => true,
                Stop::Disconnect => return Ok(()),
                // What arrived has been answered; nothing more is waited for.
                _ if is_stopping => return Ok(()),
                Stop::Needs(bytes) => match input.receive_long(transport, bytes, &shared.budget, evict) {
                    Ok(is_open) => is_open,
                    Err(ReceiveError::Io(error)) => return Err(error.into()),
                    // The server stops, which the next round sees.
                    Err(ReceiveError::Memory(NoMemory::Closed)) => true,
                    // Its payload is skipped.
                    Err(ReceiveError::Memory(_)) => {
                        worker.refuse_next_write();
                        true
                    }
                },
                Stop::Skip(bytes) => input.skip(transport, bytes)?,
            };
            if !is_open {
                // Without goodbye, but with nothing under way: some clients leave so.
                let error = ConnectionError::HungUp { phase: "a request" };
                return if input.bytes().is_empty() { Ok(()) } else { Err(error) };
            }
        }
    }
}
