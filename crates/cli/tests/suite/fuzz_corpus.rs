//! The bodies of the fuzz targets, on their corpora: inputs written by hand in `fuzz/corpus/TARGET`, and
//! those that fuzzing found, in `fuzz/corpus/TARGET.tar.zst`. A body panics where a fuzz target would fail.

#[path = "../../../../fuzz/bodies/cache.rs"]
mod cache;
#[path = "../../../../fuzz/bodies/config.rs"]
mod config;
#[path = "../../../../fuzz/bodies/control.rs"]
mod control;
#[path = "../../../../fuzz/bodies/image.rs"]
mod image;
#[path = "../../../../fuzz/bodies/jobs.rs"]
mod jobs;
#[path = "../../../../fuzz/bodies/nbd.rs"]
mod nbd;
#[path = "../../../../fuzz/bodies/read.rs"]
mod read;
#[path = "../../../../fuzz/bodies/spec.rs"]
mod spec;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

fn by_hand(target: &str) -> Vec<Vec<u8>> {
    let folder = fuzz().join("corpus").join(target);
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries.map(|entry| std::fs::read(entry.unwrap().path()).unwrap()).collect()
}

fn found(target: &str) -> Vec<Vec<u8>> {
    // A target that was never fuzzed for long has none.
    let Ok(file) = File::open(fuzz().join("corpus").join(format!("{target}.tar.zst"))) else {
        return Vec::new();
    };
    let mut archive = tar::Archive::new(zstd::Decoder::new(file).unwrap());
    let files =
        archive.entries().unwrap().map(Result::unwrap).filter(|entry| entry.header().entry_type().is_file());
    let read = |mut entry: tar::Entry<'_, _>| {
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        bytes
    };
    files.map(read).collect()
}

fn replay(target: &str, body: fn(&[u8])) {
    let inputs = [by_hand(target), found(target)].concat();
    assert!(inputs.len() > 2, "only {} inputs of {target}", inputs.len());
    for input in &inputs {
        body(input);
    }
}

#[test]
fn damaged_caches_are_opened_without_a_panic() {
    replay("cache", cache::feed);
}

#[test]
fn configurations_are_read_without_a_panic() {
    replay("config", config::feed);
}

#[test]
fn control_lines_are_read_without_a_panic() {
    replay("control", control::feed);
}

#[test]
fn damaged_images_are_opened_without_a_panic() {
    replay("image", image::feed);
}

#[test]
fn job_files_are_read_without_a_panic() {
    replay("jobs", jobs::feed);
}

#[test]
fn nbd_clients_are_answered_without_a_panic() {
    replay("nbd", |bytes| {
        nbd::feed(bytes);
    });
    let mut planned = 0;
    for bytes in by_hand("nbd") {
        planned += nbd::feed(&bytes);
        // Cut short, and with each of the first bytes changed.
        for at in 0..bytes.len().min(400) {
            nbd::feed(&bytes[..at]);
            for mask in [0x01, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[at] ^= mask;
                nbd::feed(&changed);
            }
        }
    }
    assert!(planned > 20, "only {planned} requests of the corpus got through");
}

#[test]
fn traces_are_read_without_a_panic() {
    let samples = by_hand("read").len();
    assert!(
        samples >= nandscape_trace::formats::FORMATS.len(),
        "only {samples} inputs: expected one for each format"
    );
    replay("read", read::feed);
}

#[test]
fn generators_are_read_without_a_panic() {
    replay("spec", spec::feed);
}
