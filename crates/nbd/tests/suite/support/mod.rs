//! A device that stores bytes, a server over it, and a client that says exactly what it is told.
#![allow(dead_code, reason = "each test uses its part")]

use nandscape_engine::{Clock, Engine};
use nandscape_nbd::server::ServerOptions;
use nandscape_nbd::wire::{
    BASE_ALLOCATION, MAGIC, OPTION_MAGIC, OPTION_REPLY_MAGIC, REQUEST_MAGIC, SIMPLE_REPLY_MAGIC,
    STRUCTURED_REPLY_MAGIC, option,
};
use nandscape_nbd::{Export, Server, Stopper};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tempfile::TempDir;

/// Bytes of a page of [`engine`].
pub const PAGE: u64 = 4096;

/// A page-mapped device of 16 MiB in memory, with two namespaces.
pub fn engine(clock: Clock) -> Arc<Engine> {
    let mut typed = nandscape_stack::Typed::new();
    let keys = "device.channels=2 device.dies_per_channel=2 device.planes_per_die=1 device.blocks_per_plane=32 \
                device.pages_per_block=32 device.page=4KiB device.sector=4KiB device.oob=128B namespaces.count=2";
    for pair in keys.split_whitespace() {
        typed.set_pair(pair).unwrap();
    }
    let subsystem = nandscape_stack::build_storing(&typed.check().unwrap()).unwrap();
    Arc::new(Engine::new(subsystem, clock))
}

/// The exports of an engine, the second of them read-only.
pub fn exports(engine: &Engine) -> Vec<Export> {
    let infos = engine.namespaces().iter().enumerate();
    infos
        .map(|(index, info)| Export { is_read_only: index == 1, ..Export::new(index as u32, info) })
        .collect()
}

/// A server on a socket file, until it is dropped.
pub struct Served {
    pub dir: TempDir,
    pub stopper: Stopper,
    pub engine: Arc<Engine>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Served {
    pub fn new(options: ServerOptions) -> Self {
        Self::with_clock(options, Clock::free())
    }

    pub fn with_clock(options: ServerOptions, clock: Clock) -> Self {
        let engine = engine(clock);
        let dir = tempfile::tempdir().unwrap();
        let mut server = Server::new(engine.clone(), exports(&engine), options, |_| {}).unwrap();
        server.listen_unix(&dir.path().join("socket"), None).unwrap();
        let stopper = server.stopper();
        let thread = Some(std::thread::spawn(move || server.run()));
        Self { dir, stopper, engine, thread }
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("socket")
    }

    pub fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(self.socket()).unwrap();
        // A test that waits longer than this has found a hang.
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// A client that has chosen an export.
    pub fn client(&self, export: &str, is_structured: bool) -> Client {
        let mut client = Client { stream: self.connect(), is_structured };
        client.negotiate(export);
        client
    }

    pub fn stop(&mut self) -> io::Result<()> {
        self.stopper.stop();
        self.thread.take().map_or(Ok(()), |thread| thread.join().unwrap())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let stopped = self.stop();
        if !std::thread::panicking() {
            stopped.unwrap();
        }
    }
}

/// A client on a stream of any kind.
pub struct Client<S = UnixStream> {
    pub stream: S,
    pub is_structured: bool,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub cookie: u64,
    pub errno: u32,
    /// Of a read that went well; what stands behind the header of a chunk otherwise.
    pub data: Vec<u8>,
    /// Of a structured read: kinds of the chunks, 1 for data and 2 for a hole, and where each begins.
    pub chunks: Vec<(u16, u64)>,
}

/// A request on the wire.
pub fn request(kind: u16, flags: u16, cookie: u64, offset: u64, len: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = REQUEST_MAGIC.to_be_bytes().to_vec();
    bytes.extend(flags.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend(offset.to_be_bytes());
    bytes.extend(len.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// An option on the wire.
pub fn option_bytes(kind: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = OPTION_MAGIC.to_be_bytes().to_vec();
    bytes.extend(kind.to_be_bytes());
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(data);
    bytes
}

fn named(name: &str, tail: &[u8]) -> Vec<u8> {
    let mut bytes = (name.len() as u32).to_be_bytes().to_vec();
    bytes.extend(name.as_bytes());
    bytes.extend(tail);
    bytes
}

impl<S: Read + Write> Client<S> {
    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    pub fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.bytes())
    }

    pub fn u64(&mut self) -> u64 {
        u64::from_be_bytes(self.bytes())
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    pub fn take(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    /// The server's first words and the client's.
    pub fn greet(&mut self) {
        assert_eq!((self.u64(), self.u64()), (MAGIC, OPTION_MAGIC));
        assert_eq!(self.bytes(), 3u16.to_be_bytes());
        self.send(&3u32.to_be_bytes());
    }

    /// Asks an option; gives the type of the last answer.
    pub fn option(&mut self, kind: u32, data: &[u8]) -> u32 {
        self.send(&option_bytes(kind, data));
        loop {
            assert_eq!(self.u64(), OPTION_REPLY_MAGIC);
            assert_eq!(self.u32(), kind);
            let (verdict, len) = (self.u32(), self.u32());
            self.take(len as usize);
            if verdict == 1 || verdict >= 1 << 31 {
                return verdict;
            }
        }
    }

    pub fn choose(&mut self, export: &str) {
        if self.is_structured {
            assert_eq!(self.option(option::STRUCTURED_REPLY, &[]), 1);
            let mut queries = 1u32.to_be_bytes().to_vec();
            queries.extend(named(BASE_ALLOCATION, &[]));
            assert_eq!(self.option(option::SET_META_CONTEXT, &named(export, &queries)), 1);
        }
        assert_eq!(self.option(option::GO, &named(export, &[0, 0])), 1);
    }

    pub fn negotiate(&mut self, export: &str) {
        self.greet();
        self.choose(export);
    }

    /// The next answer; `len` bytes of data are expected with a simple reply of success.
    pub fn answer(&mut self, len: usize) -> Answer {
        match self.u32() {
            SIMPLE_REPLY_MAGIC => {
                let (errno, cookie) = (self.u32(), self.u64());
                Answer {
                    cookie,
                    errno,
                    data: self.take(if errno == 0 { len } else { 0 }),
                    chunks: Vec::new(),
                }
            }
            STRUCTURED_REPLY_MAGIC => {
                let mut answer = Answer { cookie: 0, errno: 0, data: Vec::new(), chunks: Vec::new() };
                while !self.chunk(&mut answer) {
                    assert_eq!(self.u32(), STRUCTURED_REPLY_MAGIC);
                }
                answer
            }
            magic => panic!("a reply begins with {magic:#x}"),
        }
    }

    /// A chunk of a structured reply without its magic, added to what came before. Whether it is the last
    /// one.
    fn chunk(&mut self, answer: &mut Answer) -> bool {
        let (flags, kind) = (u16::from_be_bytes(self.bytes()), u16::from_be_bytes(self.bytes()));
        let (cookie, len) = (self.u64(), self.u32());
        assert!(flags <= 1 && (answer.chunks.is_empty() || answer.cookie == cookie), "{flags:#x} {cookie}");
        answer.cookie = cookie;
        let content = self.take(len as usize);
        let number = |at: usize| u32::from_be_bytes(content[at..at + 4].try_into().unwrap());
        match kind {
            1 => answer.data.extend(&content[8..]),
            2 => {
                assert_eq!(len, 12, "a hole is an offset and a length");
                answer.data.resize(answer.data.len() + number(8) as usize, 0);
            }
            5 => answer.data.extend(&content[4..]),
            _ => {
                answer.errno = number(0);
                answer.data = content[6..].to_vec();
            }
        }
        if kind <= 2 {
            let offset = u64::from_be_bytes(content[..8].try_into().unwrap());
            answer.chunks.push((kind, offset));
        }
        flags == 1
    }

    /// A request and its answer.
    pub fn ask(&mut self, kind: u16, flags: u16, offset: u64, len: u32, payload: &[u8]) -> Answer {
        let cookie = 0x1234_5678_9abc_def0 ^ offset;
        self.send(&request(kind, flags, cookie, offset, len, payload));
        let answer = self.answer(if kind == 0 { len as usize } else { 0 });
        assert_eq!(answer.cookie, cookie);
        answer
    }

    pub fn read(&mut self, offset: u64, len: u32) -> Vec<u8> {
        let answer = self.ask(0, 0, offset, len, &[]);
        assert_eq!(answer.errno, 0);
        answer.data
    }

    pub fn write(&mut self, offset: u64, data: &[u8]) {
        assert_eq!(self.ask(1, 0, offset, data.len() as u32, data).errno, 0);
    }

    /// Whether the server has closed the connection; waits for it.
    pub fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Ok(_) => true,
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }
}
