//! See `fuzz/bodies/spec.rs`.

#![no_main]

#[path = "../bodies/spec.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = body::feed(bytes);
});
