//! See `fuzz/bodies/image.rs`.

#![no_main]

#[path = "../bodies/image.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = body::feed(bytes);
});
