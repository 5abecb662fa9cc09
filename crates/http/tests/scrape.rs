//! A scrape over a real socket, read as a collector would.

use nandscape_engine::{Clock, Engine, Request, Stat};
use nandscape_http::{Http, HttpError};
use nandscape_stack::{Typed, build_storing};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

fn server(clock: Clock) -> (Arc<Engine>, Http) {
    let mut typed = Typed::new();
    for key in
        ["device.channels=1", "device.dies_per_channel=1", "device.blocks_per_plane=16", "device.page=4KiB"]
    {
        typed.set_pair(key).unwrap();
    }
    let engine = Arc::new(Engine::new(build_storing(&typed.check().unwrap()).unwrap(), clock));
    let source = Arc::clone(&engine);
    let http = Http::start("127.0.0.1:0".parse().unwrap(), false, Arc::new(move || source.stat())).unwrap();
    (engine, http)
}

fn get(addr: SocketAddr, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(addr).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.to_ascii_lowercase(), body.to_owned())
}

/// Samples by name with labels, after the rules of the format were checked: every family is declared once,
/// before its samples; counters end in `_total`; the unit is the end of the name; the last line is `# EOF`.
fn parse(text: &str) -> (BTreeMap<String, f64>, BTreeSet<String>) {
    let (mut samples, mut types) = (BTreeMap::new(), BTreeMap::new());
    let body = text.strip_suffix("# EOF\n").expect("the end is marked");
    for line in body.lines() {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        match words[..] {
            ["#", "TYPE", family, kind] => {
                assert!(
                    types.insert(family.to_owned(), kind.to_owned()).is_none(),
                    "{family} declared twice"
                );
            }
            ["#", "UNIT", family, unit] => assert!(family.ends_with(&format!("_{unit}")), "{line}"),
            ["#", "HELP", ..] => {}
            _ => {
                let (name, value) = line.rsplit_once(' ').expect(line);
                let bare = name.split('{').next().unwrap();
                let family = match types.get(bare.strip_suffix("_total").unwrap_or(bare)).map(String::as_str)
                {
                    Some("counter") => bare.strip_suffix("_total").expect(line),
                    Some("gauge") => bare,
                    _ => bare.strip_suffix("_info").expect(line),
                };
                assert!(types.contains_key(family), "{line}");
                let value: f64 = value.parse().expect(line);
                assert!(samples.insert(name.to_owned(), value).is_none(), "{line} twice");
            }
        }
    }
    (samples, types.into_keys().collect())
}

#[test]
fn a_scrape_is_open_metrics_and_agrees_with_the_stat_document() {
    let (engine, http) = server(Clock::Paced);
    let data = [1; 4096];
    for page in [0, 1, 2, 0, 1] {
        engine.run(&mut [Request::write(0, page * 4096, &data)]);
    }
    let (head, body) = get(http.addr(), "/metrics");
    assert!(
        head.starts_with("http/1.1 200") && head.contains("application/openmetrics-text; version=1.0.0"),
        "{head}"
    );
    let (samples, families) = parse(&body);
    let stat = engine.stat();
    for (name, value) in [
        ("nandscape_host_requests_total{namespace=\"ns1\",op=\"write\"}", 5.0),
        ("nandscape_host_bytes_total{namespace=\"ns1\",op=\"write\"}", 5.0 * 4096.0),
        ("nandscape_flash_operations_total{cause=\"host\",op=\"program\"}", 5.0),
        ("nandscape_write_amplification{window=\"start\"}", stat.waf.pages.unwrap()),
        ("nandscape_blocks{state=\"erased\"}", stat.space.free_blocks as f64),
        ("nandscape_live_bytes", 3.0 * 4096.0),
        ("nandscape_paced_answers_total", 5.0),
        (
            "nandscape_latency_seconds{clock=\"model\",op=\"write\",quantile=\"1\"}",
            stat.service.latency_ns.write.max as f64 / 1e9,
        ),
    ] {
        let got = samples.get(name).unwrap_or_else(|| panic!("{name} is not in\n{body}"));
        assert!((got - value).abs() < 1e-12, "{name}: {got}, expected {value}");
    }
    // Names are what dashboards are made of: each family is in the documentation.
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/serving.md");
    let documented = std::fs::read_to_string(path).unwrap();
    for family in families {
        assert!(documented.contains(&format!("`{family}`")), "{family} is not in docs/serving.md");
    }
}

#[test]
fn a_cache_is_scraped_by_its_names_in_the_stat_document() {
    let cached = serde_json::json!({
        "counters": { "read_hits": 7, "bypass": { "bytes": [1] } },
        "gauges": { "dirty": 3 },
        "volumes": [{ "name": "data", "blocks": 9, "dirty_blocks": 3 }],
        "health": "degraded",
    });
    let source = move || Stat { cached: Some(cached.clone()), ..Stat::default() };
    let http = Http::start("127.0.0.1:0".parse().unwrap(), false, Arc::new(source)).unwrap();
    let (samples, families) = parse(&get(http.addr(), "/metrics").1);
    for (name, value) in [
        ("nandscape_cache_events_total{event=\"read_hits\"}", 7.0),
        ("nandscape_cache_state{gauge=\"dirty\"}", 3.0),
        ("nandscape_cache_volume_blocks{volume=\"data\",state=\"cached\"}", 9.0),
        ("nandscape_cache_volume_blocks{volume=\"data\",state=\"dirty\"}", 3.0),
        ("nandscape_cache_degraded", 1.0),
    ] {
        assert_eq!(samples.get(name), Some(&value), "{name} in {samples:?}");
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/serving.md");
    let documented = std::fs::read_to_string(path).unwrap();
    for family in families.iter().filter(|family| family.contains("_cache_")) {
        assert!(documented.contains(&format!("`{family}`")), "{family} is not in docs/serving.md");
    }
}

#[test]
fn the_stat_document_is_served_and_other_paths_and_addresses_are_not() {
    let (_, http) = server(Clock::free());
    let (head, body) = get(http.addr(), "/stat.json");
    assert!(head.contains("application/json"));
    let stat: Stat = serde_json::from_str(&body).unwrap();
    assert_eq!((stat.server.schema, stat.server.clock.mode.as_str()), (1, "free"));
    assert!(get(http.addr(), "/etc/passwd").0.starts_with("http/1.1 404"));
    assert!(get(http.addr(), "/").1.contains("/metrics"));
    let anywhere: SocketAddr = "0.0.0.0:0".parse().unwrap();
    let refused = Http::start(anywhere, false, Arc::new(Stat::default)).unwrap_err();
    assert!(
        matches!(refused, HttpError::NotLoopback { .. }) && refused.to_string().contains("--insecure-http")
    );
    drop(Http::start(anywhere, true, Arc::new(Stat::default)).unwrap());
    let taken = Http::start(http.addr(), false, Arc::new(Stat::default)).unwrap_err().to_string();
    assert!(taken.contains(&http.addr().to_string()), "{taken}");
    // Ends although a client is connected and says nothing.
    let idle = TcpStream::connect(http.addr()).unwrap();
    drop(http);
    drop(idle);
}
