//! See `fuzz/bodies/control.rs`.

#![no_main]

#[path = "../bodies/control.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = body::feed(bytes);
});
