//! See `fuzz/bodies/read.rs`.

#![no_main]

#[path = "../bodies/read.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = body::feed(bytes);
});
