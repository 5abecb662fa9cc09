//! Arbitrary lines on either end of a control socket. What is understood must mean the same after it was
//! written again.

use nandscape_engine::control::{Answer, Ask};

pub fn feed(bytes: &[u8]) {
    if let Ok(ask) = serde_json::from_slice::<Ask>(bytes) {
        let line = serde_json::to_string(&ask).expect("a request is valid JSON");
        assert_eq!(serde_json::from_str::<Ask>(&line).expect("it was valid"), ask);
    }
    if let Ok(answer) = serde_json::from_slice::<Answer>(bytes) {
        let line = serde_json::to_string(&answer).expect("an answer is valid JSON");
        assert!(!line.contains('\n'), "an answer of several lines");
        serde_json::from_str::<Answer>(&line).expect("it was valid");
    }
}
