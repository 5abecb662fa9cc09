//! TLS under the protocol, by `rustls`.

use super::transport::{Socket, Transport};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};
use std::fmt::Display;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const RECEIVE_BYTES: usize = 64 << 10;

/// Plaintext that is encrypted and sent at once.
const SEND_BYTES: usize = 64 << 10;

/// TLS that cannot be set up: a file cannot be used, or the files do not go together.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TlsError(String);

impl From<rustls::Error> for TlsError {
    fn from(error: rustls::Error) -> Self {
        Self(format!("TLS: {error}"))
    }
}

/// The server's certificate, and whose clients may come in.
#[derive(Clone, Debug)]
pub struct TlsConfig(Arc<ServerConfig>);

impl TlsConfig {
    /// Reads PEM files: a chain of certificates with the server's own first, its private key, and, if clients
    /// are to show a certificate, those that may have signed it.
    pub fn load(certificate: &Path, key: &Path, client_ca: Option<&Path>) -> Result<Self, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let chain = certificates(certificate)?;
        let key = PrivateKeyDer::from_pem_file(key)
            .map_err(|e| refused(key, format!("{e}: expected a private key in PEM")))?;
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?;
        let builder = match client_ca {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for root in certificates(path)? {
                    roots.add(root)?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                    .build()
                    .map_err(|e| refused(path, e))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        Ok(Self(Arc::new(builder.with_single_cert(chain, key)?)))
    }
}

fn refused(path: &Path, why: impl Display) -> TlsError {
    TlsError(format!("{}: {why}", path.display()))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let expected = "expected certificates in PEM";
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(found) if found.is_empty() => Err(refused(path, format!("no certificate: {expected}"))),
        Ok(found) => Ok(found),
        Err(error) => Err(refused(path, format!("{error}: {expected}"))),
    }
}

/// A socket under TLS. One thread receives, and the same or another sends.
pub(super) struct Tls {
    socket: Arc<Socket>,
    connection: Mutex<ServerConnection>,
    incoming: Mutex<Incoming>,
    /// Held while ciphertext is made and sent, so that records go out in order.
    outgoing: Mutex<Vec<u8>>,
}

/// Ciphertext that has arrived and is not decrypted.
struct Incoming {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Tls {
    /// Shakes hands with a client, whose first bytes may have arrived.
    pub fn accept(
        socket: Arc<Socket>,
        config: &TlsConfig,
        early: Vec<u8>,
        deadline: Instant,
    ) -> io::Result<Self> {
        let mut connection = ServerConnection::new(Arc::clone(&config.0)).map_err(io::Error::other)?;
        let (end, mut buffer) = (early.len(), early);
        buffer.resize(RECEIVE_BYTES.max(end), 0);
        let mut shaking = Shaking { socket: &socket, deadline, incoming: Incoming { buffer, start: 0, end } };
        while connection.is_handshaking() {
            connection.complete_io(&mut shaking)?;
        }
        let incoming = Mutex::new(shaking.incoming);
        Ok(Self { connection: Mutex::new(connection), incoming, outgoing: Mutex::default(), socket })
    }

    fn connection(&self) -> std::sync::MutexGuard<'_, ServerConnection> {
        self.connection.lock().expect("nothing panics while it holds the TLS state")
    }

    /// Sends what the TLS state has to say, after `plain` was given to it.
    fn flush(&self, plain: &[u8]) -> io::Result<()> {
        let mut out = self.outgoing.lock().expect("nothing panics while it sends");
        out.clear();
        let mut connection = self.connection();
        connection.writer().write_all(plain)?;
        while connection.wants_write() {
            connection.write_tls(&mut *out)?;
        }
        drop(connection);
        self.socket.send(&out)
    }
}

impl Transport for Tls {
    fn recv(&self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut incoming = self.incoming.lock().expect("nothing panics while it receives");
        loop {
            let mut connection = self.connection();
            match connection.reader().read(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                outcome => return outcome,
            }
            // There is no plaintext left, so there is room for more.
            if incoming.start < incoming.end {
                let taken = connection.read_tls(&mut &incoming.buffer[incoming.start..incoming.end])?;
                incoming.start += taken;
                let state = connection.process_new_packets();
                let speaks = connection.wants_write();
                drop(connection);
                // An alert in front of an error, or the answer to a change of keys.
                let sent = if speaks { self.flush(&[]) } else { Ok(()) };
                state.map_err(io::Error::other)?;
                sent?;
                continue;
            }
            drop(connection);
            (incoming.start, incoming.end) = (0, 0);
            let received = self.socket.recv(&mut incoming.buffer)?;
            if received == 0 {
                return Ok(0);
            }
            incoming.end = received;
        }
    }

    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        bytes.chunks(SEND_BYTES).try_for_each(|chunk| self.flush(chunk))
    }

    fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.socket.set_timeout(timeout)
    }

    fn close(&self) {
        self.connection().send_close_notify();
        // The client may have gone already.
        _ = self.flush(&[]);
    }
}

/// A socket during the handshake, which has an end in time however slowly bytes come.
struct Shaking<'a> {
    socket: &'a Arc<Socket>,
    deadline: Instant,
    incoming: Incoming,
}

impl Shaking<'_> {
    fn limit(&self) -> io::Result<()> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { self.socket.set_timeout(Some(left)) }
    }
}

impl Read for Shaking<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let Incoming { buffer, start, end } = &mut self.incoming;
        if start < end {
            let taken = bytes.len().min(*end - *start);
            bytes[..taken].copy_from_slice(&buffer[*start..][..taken]);
            *start += taken;
            return Ok(taken);
        }
        self.limit()?;
        self.socket.recv(bytes)
    }
}

impl Write for Shaking<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.limit()?;
        self.socket.send(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
