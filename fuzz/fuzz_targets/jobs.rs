//! See `fuzz/bodies/jobs.rs`.

#![no_main]

#[path = "../bodies/jobs.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = body::feed(bytes);
});
