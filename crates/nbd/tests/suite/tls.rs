//! TLS on a loopback address: with and without client certificates, and what a client may not do before it.

use crate::support;

use nandscape_engine::Clock;
use nandscape_nbd::Server;
use nandscape_nbd::server::{ListenError, ServerOptions, TlsConfig};
use nandscape_nbd::wire::option;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use support::{Client, engine, exports};

/// An authority, and files of what it signed: `ca.pem`, `server.pem`, `server.key`.
struct Authority {
    dir: tempfile::TempDir,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key.
type Identity = (CertificateDer<'static>, PrivateKeyDer<'static>);

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("ca.pem"), certificate.pem()).unwrap();
        let this = Self { dir, issuer: Issuer::new(params, key) };
        let (certificate, key) = this.sign();
        std::fs::write(this.file("server.pem"), certificate.pem()).unwrap();
        std::fs::write(this.file("server.key"), key.serialize_pem()).unwrap();
        this
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn sign(&self) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        (params.signed_by(&key, &self.issuer).unwrap(), key)
    }

    fn identity(&self) -> Identity {
        let (certificate, key) = self.sign();
        let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
        (certificate.der().clone(), key)
    }

    fn config(&self, client_ca: Option<&Path>) -> TlsConfig {
        TlsConfig::load(&self.file("server.pem"), &self.file("server.key"), client_ca).unwrap()
    }
}

/// Serves on a free port of the loopback interface while `act` runs.
fn serving(tls: TlsConfig, act: impl FnOnce(SocketAddr)) {
    let engine = engine(Clock::free());
    let mut server = Server::new(engine.clone(), exports(&engine), ServerOptions::default(), |_| {}).unwrap();
    server.listen_tcp("127.0.0.1:0".parse().unwrap(), Some(tls), false).unwrap();
    let uri = server.uris().remove(0);
    let address = uri.strip_prefix("nbds://").unwrap().strip_suffix("/ns1").unwrap().parse().unwrap();
    let stopper = server.stopper();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| server.run());
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| act(address)));
        stopper.stop();
        running.join().unwrap().unwrap();
        outcome.unwrap();
    });
}

fn connect(address: SocketAddr) -> Client<TcpStream> {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut client = Client { stream, is_structured: true };
    client.greet();
    client
}

/// The same client under TLS.
fn secure<S: Read + Write>(
    client: Client<S>,
    trusted: &Path,
    identity: Option<Identity>,
) -> Client<StreamOwned<ClientConnection, S>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(trusted).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let builder = builder.with_root_certificates(roots);
    let config = match identity {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => builder.with_client_auth_cert(vec![certificate], key).unwrap(),
    };
    let connection = ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap();
    Client { stream: StreamOwned::new(connection, client.stream), is_structured: true }
}

#[test]
fn data_goes_both_ways_under_tls_and_nothing_without_it() {
    let authority = Authority::new();
    serving(authority.config(None), |address| {
        let mut client = connect(address);
        let reqd = 1 << 31 | 5;
        assert_eq!(client.option(option::LIST, &[]), reqd);
        assert_eq!(client.option(option::STRUCTURED_REPLY, &[]), reqd);
        assert_eq!(client.option(option::STARTTLS, &[]), 1);
        let mut client = secure(client, &authority.file("ca.pem"), None);
        client.choose("ns1");
        let data: Vec<u8> = (0..3_000_000u32).map(|i| ((i * 7) >> 3) as u8).collect();
        client.write(12345, &data);
        assert_eq!(client.read(12345, data.len() as u32), data);
    });
}

#[test]
fn a_socket_file_may_have_tls_too_and_its_address_says_so() {
    let authority = Authority::new();
    let engine = engine(Clock::free());
    let mut server = Server::new(engine.clone(), exports(&engine), ServerOptions::default(), |_| {}).unwrap();
    let path = authority.file("socket");
    server.listen_unix(&path, Some(authority.config(None))).unwrap();
    assert!(server.uris()[0].starts_with("nbds+unix:///ns1?socket="), "{:?}", server.uris());
    let stopper = server.stopper();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| server.run());
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let stream = UnixStream::connect(&path).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            let mut client = Client { stream, is_structured: true };
            client.greet();
            assert_eq!(client.option(option::GO, &[0; 6]), 1 << 31 | 5, "nothing is served without TLS");
            assert_eq!(client.option(option::STARTTLS, &[]), 1);
            let mut client = secure(client, &authority.file("ca.pem"), None);
            client.choose("ns1");
            client.write(4000, &[7; 10_000]);
            assert_eq!(client.read(4000, 10_000), [7; 10_000]);
        }));
        stopper.stop();
        running.join().unwrap().unwrap();
        outcome.unwrap();
    });
}

#[test]
fn only_clients_of_the_authority_come_in_where_one_is_named() {
    let authority = Authority::new();
    let other = Authority::new();
    let ca = authority.file("ca.pem");
    serving(authority.config(Some(&ca)), |address| {
        for (identity, is_welcome) in
            [(Some(authority.identity()), true), (Some(other.identity()), false), (None, false)]
        {
            let mut client = connect(address);
            assert_eq!(client.option(option::STARTTLS, &[]), 1);
            let mut client = secure(client, &ca, identity);
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                client.choose("ns1");
                client.read(0, 10)
            }));
            assert_eq!(outcome.is_ok(), is_welcome);
        }
    });
}

#[test]
fn options_slipped_in_behind_starttls_are_not_taken_for_protected_ones() {
    let authority = Authority::new();
    serving(authority.config(None), |address| {
        let mut client = connect(address);
        let mut both = support::option_bytes(option::STARTTLS, &[]);
        both.extend(support::option_bytes(option::STRUCTURED_REPLY, &[]));
        client.send(&both);
        // The acknowledgement of STARTTLS, and then no second one: what followed was taken for a broken
        // handshake.
        client.take(20);
        let mut rest = Vec::new();
        _ = std::io::Read::read_to_end(&mut client.stream, &mut rest);
        assert!(rest.len() < 20 && !rest.starts_with(&[0, 3, 0xe8]), "{rest:?}");
    });
}

#[test]
fn files_that_are_no_certificates_and_open_addresses_are_refused_by_name() {
    let authority = Authority::new();
    let (certificate, key) = (authority.file("server.pem"), authority.file("server.key"));
    let error = TlsConfig::load(&key, &key, None).unwrap_err().to_string();
    assert!(error.contains("server.key") && error.contains("certificate"), "{error}");
    let error = TlsConfig::load(&certificate, &certificate, None).unwrap_err().to_string();
    assert!(error.contains("server.pem") && error.contains("private key"), "{error}");
    let error = TlsConfig::load(&authority.file("absent"), &key, None).unwrap_err().to_string();
    assert!(error.contains("absent"), "{error}");

    let engine = engine(Clock::free());
    let mut server = Server::new(engine.clone(), exports(&engine), ServerOptions::default(), |_| {}).unwrap();
    let open = "0.0.0.0:0".parse().unwrap();
    assert!(matches!(server.listen_tcp(open, None, false), Err(ListenError::Exposed { .. })));
    server.listen_tcp(open, Some(authority.config(None)), false).unwrap();
    server.listen_tcp(open, None, true).unwrap();
    server.listen_tcp("127.0.0.1:0".parse().unwrap(), None, false).unwrap();
}
