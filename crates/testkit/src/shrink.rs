//! Shortens a failing list of steps: drops ever smaller runs of it while it keeps failing.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a check gives, or what is wrong.
pub type Outcome<T = ()> = Result<T, String>;

/// Runs an action; a panic is a failure like any other.
pub fn guarded<T>(action: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    catch_unwind(AssertUnwindSafe(action)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("without a message");
        Err(format!("panic: {text}"))
    })
}

/// The steps of a failure, one a line.
pub fn listed(steps: &[impl Debug]) -> String {
    steps.iter().map(|step| format!("    {step:?}")).collect::<Vec<_>>().join("\n")
}

/// Runs all steps, and returns what the run saw. The failure is that of a shortened list, with the list.
pub fn run_or_shrink<T: Clone + Debug, S>(
    steps: &[T],
    budget: u32,
    run: impl Fn(&[T]) -> Outcome<S>,
) -> Outcome<S> {
    let mut seen = None;
    let outcome = shrink(steps, budget, |steps| guarded(|| run(steps)).map(|what| seen = Some(what)));
    match outcome {
        None => Ok(seen.expect("a run without failure")),
        Some((kept, error)) => Err(format!("{error}\n  after {} step(s):\n{}", kept.len(), listed(&kept))),
    }
}

/// The shortest list that dropping runs leads to, and its failure. `run` gives `Err` for a failing list; it
/// is called at most `budget` times. `None` if the whole list does not fail.
pub fn shrink<T: Clone, E>(
    steps: &[T],
    budget: u32,
    mut run: impl FnMut(&[T]) -> Result<(), E>,
) -> Option<(Vec<T>, E)> {
    let mut failure = run(steps).err()?;
    let mut kept = steps.to_vec();
    let mut left = budget;
    let mut chunk = kept.len().div_ceil(2);
    while chunk > 0 {
        let mut start = 0;
        let mut has_dropped = false;
        while start < kept.len() && left > 0 {
            left -= 1;
            let mut shorter = kept[..start].to_vec();
            shorter.extend_from_slice(&kept[(start + chunk).min(kept.len())..]);
            match run(&shorter) {
                Err(error) => {
                    failure = error;
                    kept = shorter;
                    has_dropped = true;
                }
                Ok(()) => start += chunk,
            }
        }
        if left == 0 {
            break;
        }
        // A run of single steps may have made others unnecessary.
        if chunk > 1 || !has_dropped {
            chunk /= 2;
        }
    }
    Some((kept, failure))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_matter_is_dropped() {
        let steps: Vec<u32> = (0..200).collect();
        let needs_two = |list: &[u32]| {
            if list.contains(&17) && list.contains(&140) { Err(list.len()) } else { Ok(()) }
        };
        assert_eq!(shrink(&steps, 10_000, needs_two), Some((vec![17, 140], 2)));
        assert_eq!(shrink(&steps[..100], 10_000, needs_two), None);
    }
}
