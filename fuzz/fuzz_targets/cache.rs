//! See `fuzz/bodies/cache.rs`.

#![no_main]

#[path = "../bodies/cache.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = body::feed(bytes);
});
