//! The control socket: what is asked for is done, and what a client may do to the server is bounded.

use nandscape_engine::control::{Ask, CONNECTIONS, Client, ClientError, Control, Controlled, LINE_BYTES};
use nandscape_engine::zones::{ZoneAsk, ZoneLine, ZoneVerb};
use nandscape_engine::{Background, Clock, Engine, Request, Stat, Stop};
use nandscape_stack::{Typed, build_storing};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

struct Server {
    engine: Arc<Engine>,
    stop: Arc<Stop>,
    _background: Background,
    _control: Control,
    path: PathBuf,
    dir: tempfile::TempDir,
}

fn server() -> Server {
    server_of("block")
}

fn server_of(stack: &str) -> Server {
    let mut typed = Typed::new();
    typed.set_stack(stack).unwrap();
    // Room for what is kept free.
    let blocks = if stack == "block" { "device.blocks_per_plane=16" } else { "device.blocks_per_plane=64" };
    for key in ["device.channels=1", "device.dies_per_channel=1", blocks, "device.page=4KiB"] {
        typed.set_pair(key).unwrap();
    }
    let stack = build_storing(&typed.check().unwrap()).unwrap();
    let (engine, stop) = (Arc::new(Engine::new(stack, Clock::free())), Arc::new(Stop::new()));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.sock");
    let source = Arc::clone(&engine);
    let controlled = Controlled {
        engine: Arc::clone(&engine),
        stop: Arc::clone(&stop),
        stat: Arc::new(move || Stat { config: serde_json::json!({ "a": 1 }), ..source.stat() }),
        snapshot: None,
        exports: Arc::default(),
    };
    let background = Background::start(&engine, |warning| panic!("{warning}")).unwrap();
    let control = Control::start(&path, controlled).unwrap();
    Server { engine, stop, _background: background, _control: control, path, dir }
}

fn write(engine: &Engine, pages: u64) {
    let data = [7; 4096];
    for page in 0..pages {
        let mut batch = [Request::write(0, page * 4096, &data)];
        engine.run(&mut batch);
        batch[0].outcome.as_ref().unwrap();
    }
}

fn refused(client: &mut Client, ask: &Ask) -> (String, String) {
    match client.ask(ask) {
        Err(ClientError::Refused { name, message }) => (name, message),
        other => panic!("{other:?}"),
    }
}

#[test]
fn everything_that_can_be_asked_for_is_done() {
    let server = server();
    let mut client = Client::connect(&server.path).unwrap();
    write(&server.engine, 10);
    let (document, stat) = client.stat().unwrap();
    assert_eq!((stat.host.writes, stat.host.write_bytes), (10, 40_960));
    assert_eq!(document["config"]["a"], 1);
    client.ask(&Ask::Reset {}).unwrap();
    assert_eq!(client.stat().unwrap().1.host.writes, 0);
    client.ask(&Ask::Checkpoint {}).unwrap();
    let path = server.dir.path().join("t.csv");
    client.ask(&Ask::RecordStart { path: path.clone() }).unwrap();
    let (name, message) = refused(&mut client, &Ask::RecordStart { path: path.clone() });
    assert!(name == "cannot-record" && message.contains("running already"), "{name} {message}");
    write(&server.engine, 5);
    assert!(client.stat().unwrap().1.recording.unwrap().is_running);
    let recording = client.ask(&Ask::RecordStop {}).unwrap().unwrap();
    assert_eq!((recording["commands"].as_u64(), recording["is_running"].as_bool()), (Some(5), Some(false)));
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 6);
    let (name, message) = refused(&mut client, &Ask::Snapshot { path });
    assert!(name == "not-supported" && message.contains("--image"), "{name} {message}");
    assert!(!server.stop.is_requested());
    client.ask(&Ask::Shutdown {}).unwrap();
    assert!(server.stop.wait().contains("control socket"));
}

/// Sends raw bytes and reads an answer.
fn raw(path: &Path, bytes: &[u8]) -> String {
    let mut stream = UnixStream::connect(path).unwrap();
    // The server may have answered and closed before all of it was sent.
    let _ = stream.write_all(bytes);
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line).unwrap();
    line
}

#[test]
fn bad_requests_are_answered_by_name_and_hurt_nobody() {
    let server = server();
    for (bytes, name, part) in [
        (&b"{\"do\":\"dance\"}\n"[..], "bad-request", "unknown variant `dance`, expected one of"),
        (b"{\"do\":\"stat\",\"x\":1}\n", "bad-request", "unknown field `x`"),
        (b"{\"do\":\"record-start\"}\n", "bad-request", "missing field `path`"),
        (b"stat\n", "bad-request", "line 1 column 1"),
        (b"\xff\xfe\n", "bad-request", "column 1"),
        (&vec![b' '; LINE_BYTES as usize + 10], "line-too-long", "16384 bytes"),
    ] {
        let answer = raw(&server.path, bytes);
        assert!(answer.contains(&format!("\"error\":\"{name}\"")) && answer.contains(part), "{answer}");
    }
    // Several requests of one connection, the last without an end of line.
    let mut stream = UnixStream::connect(&server.path).unwrap();
    stream.write_all(b"{\"do\":\"stat\"}\n{\"do\":\"nothing\"}\n{\"do\":\"reset\"}").unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let ok: Vec<bool> = text.lines().map(|line| line.starts_with("{\"ok\":true")).collect();
    assert_eq!(ok, [true, false, true]);
}

#[test]
fn connections_are_bounded_and_come_free_again() {
    let server = server();
    let mut open: Vec<Client> = (0..CONNECTIONS).map(|_| Client::connect(&server.path).unwrap()).collect();
    for client in &mut open {
        client.stat().unwrap();
    }
    let answer = raw(&server.path, b"{\"do\":\"stat\"}\n");
    assert!(answer.contains("too-many-connections"), "{answer}");
    drop(open);
    // Threads of closed connections end in their own time.
    while raw(&server.path, b"{\"do\":\"reset\"}\n") != "{\"ok\":true}\n" {
        std::thread::yield_now();
    }
}

#[test]
fn a_socket_is_its_owners_alone_replaces_a_dead_one_and_nothing_else() {
    let server = server();
    let mode = std::fs::metadata(&server.path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let start = |path: &Path| {
        let controlled = Controlled {
            engine: Arc::clone(&server.engine),
            stop: Arc::clone(&server.stop),
            stat: Arc::new(Stat::default),
            snapshot: None,
            exports: Arc::default(),
        };
        Control::start(path, controlled)
    };
    let running = start(&server.path).unwrap_err().to_string();
    assert!(running.contains("c.sock") && running.contains("a server that runs"), "{running}");
    let file = server.dir.path().join("file");
    std::fs::write(&file, "precious").unwrap();
    assert!(start(&file).unwrap_err().to_string().contains("another file"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
    let dead = server.dir.path().join("dead.sock");
    drop(std::os::unix::net::UnixListener::bind(&dead).unwrap());
    let control = start(&dead).unwrap();
    Client::connect(&dead).unwrap().stat().unwrap();
    drop(control);
    assert!(!dead.exists());
}

#[test]
fn the_answer_to_a_shutdown_is_there_before_anybody_hears_of_it() {
    let server = server();
    for round in 0..200 {
        let stop = Arc::new(Stop::new());
        let path = server.dir.path().join("again.sock");
        let controlled = Controlled {
            engine: Arc::clone(&server.engine),
            stop: Arc::clone(&stop),
            stat: Arc::new(Stat::default),
            snapshot: None,
            exports: Arc::default(),
        };
        let control = Control::start(&path, controlled).unwrap();
        let mut client = UnixStream::connect(&path).unwrap();
        client.write_all(b"{\"do\":\"shutdown\"}\n").unwrap();
        stop.wait();
        // The process may end here, with everything that has not been sent.
        client.set_nonblocking(true).unwrap();
        let mut answer = [0; 100];
        let read = client.read(&mut answer).map(|count| answer[..count].to_vec());
        assert_eq!(read.unwrap_or_default(), b"{\"ok\":true}\n", "round {round}");
        drop(control);
    }
}

#[test]
fn the_end_waits_for_what_has_been_asked() {
    let server = server();
    let path = server.dir.path().join("slow.sock");
    let (begun, begins) = channel();
    let (ended, ends) = channel();
    let ends = Mutex::new(ends);
    let controlled = Controlled {
        engine: Arc::clone(&server.engine),
        stop: Arc::new(Stop::new()),
        stat: Arc::new(move || {
            begun.send(()).unwrap();
            // Nobody says that the socket has ended as long as this goes on.
            assert!(
                ends.lock().unwrap().recv_timeout(Duration::from_millis(100)).is_err(),
                "it did not wait"
            );
            Stat::default()
        }),
        snapshot: None,
        exports: Arc::default(),
    };
    let control = Control::start(&path, controlled).unwrap();
    // One has asked, another has said nothing, and a third is only about to be accepted.
    let mut busy = UnixStream::connect(&path).unwrap();
    busy.write_all(b"{\"do\":\"stat\"}\n").unwrap();
    let mut quiet = UnixStream::connect(&path).unwrap();
    begins.recv().unwrap();
    let mut late = UnixStream::connect(&path).unwrap();
    late.write_all(b"{\"do\":\"reset\"}\n").unwrap();
    drop(control);
    let _ = ended.send(());
    for (client, wanted) in [(&mut busy, "{\"ok\":true,"), (&mut late, "{\"ok\":true}"), (&mut quiet, "")] {
        client.set_nonblocking(true).unwrap();
        let mut text = String::new();
        client.read_to_string(&mut text).expect("the answer and the end are there");
        assert!(text.starts_with(wanted) && text.is_empty() == wanted.is_empty(), "{text} for {wanted}");
    }
    assert!(UnixStream::connect(&path).is_err() && !path.exists());
}

#[test]
fn zones_are_told_of_and_changed_over_the_socket() {
    let server = server_of("zone");
    let mut client = Client::connect(&server.path).unwrap();
    write(&server.engine, 3);
    let mut ask = |verb, zone| client.ask(&Ask::Zone { ask: ZoneAsk { verb, zone } });
    ask(ZoneVerb::Open, Some(2)).unwrap();
    ask(ZoneVerb::Finish, Some(3)).unwrap();
    let lines = ask(ZoneVerb::Report, None).unwrap().unwrap();
    let state = |zone: usize| lines[zone]["state"].as_str().unwrap();
    assert_eq!([0, 1, 2, 3].map(state), ["implicitly-open", "empty", "explicitly-open", "full"]);
    assert!(lines[0].get("valid").is_none(), "no layer of the host knows");
    let refused = ask(ZoneVerb::Report, Some(1000)).unwrap_err().to_string();
    assert!(refused.contains("LBA Out of Range"), "{refused}");
    let (document, stat) = client.stat().unwrap();
    let zones = stat.zones.unwrap();
    assert_eq!(zones.open_and_active(), [2, 2]);
    assert_eq!((zones.counts.finishes, zones.zones as usize), (1, lines.as_array().unwrap().len()));
    let history = zones.history.unwrap();
    assert_eq!((history.columns.len(), &history.columns[0].states[..4]), (1, "ieof"));
    assert!(document["zones"].get("shown").is_none() && document["zones"]["history"].is_object());
    client.ask(&Ask::Reset {}).unwrap();
    let zones = client.stat().unwrap().1.zones.unwrap();
    assert_eq!(
        (zones.counts.finishes, zones.open_and_active()),
        (0, [2, 2]),
        "counts start anew, states stay"
    );
}

#[test]
fn zones_below_a_layer_of_the_host_are_shown_with_what_is_valid_and_not_changed() {
    let server = server_of("zone-map");
    let mut client = Client::connect(&server.path).unwrap();
    for _ in 0..2 {
        write(&server.engine, 40);
    }
    let mut ask = |verb, zone| client.ask(&Ask::Zone { ask: ZoneAsk { verb, zone } });
    let lines: Vec<ZoneLine> = serde_json::from_value(ask(ZoneVerb::Report, None).unwrap().unwrap()).unwrap();
    assert_eq!(lines.iter().filter_map(|line| line.valid).sum::<u64>(), 40 * 4096, "{lines:?}");
    assert!(lines[0].valid.is_none(), "metadata");
    let refused = ask(ZoneVerb::Reset, None).unwrap_err().to_string();
    assert!(refused.contains("zone management is not supported"), "{refused}");
    let zones = client.stat().unwrap().1.zones.unwrap();
    let column = &zones.history.unwrap().columns[0];
    assert_eq!(column.valid.len(), column.states.len());
    assert!(column.valid.iter().flatten().any(|percent| *percent > 0), "{column:?}");
    let other = server_of("block");
    let mut block = Client::connect(&other.path).unwrap();
    assert!(block.stat().unwrap().1.zones.is_none());
}

#[test]
fn a_document_with_a_set_that_takes_no_writes_is_read_again() {
    let mut stat = Stat::default();
    stat.faults.read_only.insert("0".to_owned(), "too many blocks are worn out".to_owned());
    let text = serde_json::to_string(&stat).unwrap();
    let again: Stat = serde_json::from_str(&text).unwrap();
    assert_eq!(again.faults.read_only, stat.faults.read_only);
}
