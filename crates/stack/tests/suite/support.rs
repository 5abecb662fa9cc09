//! What several of these tests do: a device of keys, and a replay on it.

use nandscape_sim::RunResult;
use nandscape_stack::{RunOptions, Typed, replay};

/// A configuration of these keys; later ones override earlier ones.
pub fn typed(device: &[&str], pairs: &[&str]) -> Typed {
    let mut typed = Typed::new();
    for pair in device.iter().chain(pairs) {
        typed.set_pair(pair).unwrap();
    }
    typed
}

/// A replay that ends well, and whose causes add up to what the medium counts.
pub fn run(workload: &str, typed: &Typed) -> RunResult {
    let config = typed.check().unwrap();
    let result = replay(&config, workload, &RunOptions::default()).unwrap().result;
    assert_eq!(result.error, None);
    let causes = &result.flash.by_cause;
    assert_eq!(causes.values().map(|c| c.programs).sum::<u64>(), result.flash.programs);
    assert_eq!(causes.values().map(|c| c.reads).sum::<u64>(), result.flash.reads);
    assert_eq!(causes.values().map(|c| c.erases).sum::<u64>(), result.flash.erases);
    result
}
