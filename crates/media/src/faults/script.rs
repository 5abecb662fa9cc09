//! Faults written down, one a line: the number of an operation, what happens, and to what.

use super::plan::{Fault, FaultPlan, PowerCut, Scripted};
use nandscape_core::{Ppn, UnitId};

/// A line of a script is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct FaultScriptError {
    /// Which line, from 1.
    pub line: usize,
    /// What is wrong and what was expected.
    pub message: String,
}

const FAULTS: &str = "program-fail, erase-fail, unreadable page=N, rot page=N bit=N, stuck die=N, slow die=N factor=N, power-cut lost or \
                      power-cut torn";

/// Adds the lines of a script to a plan. `#` begins a comment, empty lines are skipped.
pub fn parse_script(text: &str, plan: &mut FaultPlan) -> Result<(), FaultScriptError> {
    for (index, line) in text.lines().enumerate() {
        let content = line.split('#').next().unwrap_or("");
        let mut words = content.split_whitespace();
        let Some(first) = words.next() else { continue };
        let error = |message: String| FaultScriptError { line: index + 1, message };
        let at = first.parse().map_err(|_| {
            error(format!("'{first}' is not the number of an operation: expected a whole number from 0"))
        })?;
        let Some(name) = words.next() else {
            return Err(error(format!("nothing happens at operation {at}: expected one of {FAULTS}")));
        };
        let words: Vec<&str> = words.collect();
        if name == "power-cut" {
            let is_torn = match words[..] {
                [] | ["lost"] => false,
                ["torn"] => true,
                _ => return Err(error(format!("'{}': expected lost or torn", words.join(" ")))),
            };
            if plan.power_cut.is_some() {
                return Err(error("the power is cut already: expected one power-cut".to_owned()));
            }
            plan.power_cut = Some(PowerCut { at, is_torn });
        } else {
            let fault = fault(name, &words).map_err(error)?;
            plan.script.push(Scripted { at, fault });
        }
    }
    Ok(())
}

fn fault(name: &str, words: &[&str]) -> Result<Fault, String> {
    let keys: &[&str] = match name {
        "program-fail" | "erase-fail" => &[],
        "unreadable" => &["page"],
        "rot" => &["page", "bit"],
        "stuck" => &["die"],
        "slow" => &["die", "factor"],
        _ => return Err(format!("'{name}' is not a fault: expected one of {FAULTS}")),
    };
    let mut values: Vec<Option<u64>> = vec![None; keys.len()];
    for word in words {
        let (key, text) = word.split_once('=').unwrap_or((word, ""));
        let place = keys.iter().position(|known| *known == key).ok_or_else(|| {
            let expected = if keys.is_empty() { "nothing".to_owned() } else { keys.join("= and ") + "=" };
            format!("'{word}' after {name}: expected {expected}")
        })?;
        let value = text.parse::<u32>().ok().map(u64::from);
        let value = value.ok_or_else(|| format!("'{word}': expected a whole number up to 4294967295"))?;
        if values[place].replace(value).is_some() {
            return Err(format!("'{word}': expected {key} once"));
        }
    }
    let value = |place: usize| values[place].ok_or_else(|| format!("{name} without {}=", keys[place]));
    Ok(match name {
        "program-fail" => Fault::Program,
        "erase-fail" => Fault::Erase,
        "unreadable" => Fault::Unreadable { page: Ppn(value(0)? as u32) },
        "rot" => Fault::Rot { page: Ppn(value(0)? as u32), bit: value(1)? },
        "stuck" => Fault::Stuck { die: UnitId(value(0)? as u32) },
        _ => {
            let factor = value(1)? as u32;
            if !(1..=1000).contains(&factor) {
                return Err(format!("factor={factor}: expected 1 to 1000"));
            }
            Fault::Slow { die: UnitId(value(0)? as u32), factor }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_has_its_line() {
        let text = "# a comment\n\n10 program-fail\n11 erase-fail # here too\n0 unreadable page=7\n\
                    5 rot bit=3 page=9\n6 stuck die=1\n7 slow die=2 factor=4\n900 power-cut torn\n";
        let mut plan = FaultPlan::default();
        parse_script(text, &mut plan).unwrap();
        let faults: Vec<Fault> = plan.script.iter().map(|line| line.fault).collect();
        assert_eq!(
            faults,
            [
                Fault::Program,
                Fault::Erase,
                Fault::Unreadable { page: Ppn(7) },
                Fault::Rot { page: Ppn(9), bit: 3 },
                Fault::Stuck { die: UnitId(1) },
                Fault::Slow { die: UnitId(2), factor: 4 },
            ]
        );
        assert_eq!(plan.power_cut, Some(PowerCut { at: 900, is_torn: true }));
    }

    #[test]
    fn a_wrong_line_is_named_with_what_was_expected() {
        for (text, line, part) in [
            ("x program-fail", 1, "'x'"),
            ("\n5", 2, "nothing happens"),
            ("5 explode", 1, "program-fail"),
            ("5 rot page=1", 1, "without bit="),
            ("5 rot page=1 bit=-1", 1, "'bit=-1'"),
            ("5 stuck page=1", 1, "expected die="),
            ("5 stuck die=99999999999", 1, "4294967295"),
            ("5 stuck die=1 die=2", 1, "once"),
            ("5 slow die=1 factor=0", 1, "1 to 1000"),
            ("5 program-fail now", 1, "expected nothing"),
            ("5 power-cut gently", 1, "lost or torn"),
            ("5 power-cut\n6 power-cut", 2, "already"),
        ] {
            let error = parse_script(text, &mut FaultPlan::default()).unwrap_err();
            assert_eq!(error.line, line, "{text}: {error}");
            assert!(error.message.contains(part), "{text}: {error}");
        }
    }
}
