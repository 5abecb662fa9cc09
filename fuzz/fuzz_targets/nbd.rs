//! See `fuzz/bodies/nbd.rs`.

#![no_main]

#[path = "../bodies/nbd.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = body::feed(bytes);
});
