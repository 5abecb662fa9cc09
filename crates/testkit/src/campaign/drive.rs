//! Many runs: every operation with every fault, and draws of two faults.

use super::faults::{Access, Fault, Kind};
use super::run::{Broken, Case, End, Plan, Seen, run};
use nandscape_core::rng::{Xoshiro256PlusPlus, below, seeded};
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::io::Write as _;

/// Loads with another seed after so many pairs of faults.
const PAIRS_OF_A_LOAD: u64 = 500;

/// What was tried.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Runs with one fault.
    pub singles: u64,
    /// Runs with two.
    pub pairs: u64,
    /// Of all, those in which a fault came.
    pub failed: u64,
    /// Commands and starts that gave an error.
    pub errors: u64,
    /// Units whose data were lost, as a rule allows.
    pub lost: u64,
    /// Starts that were refused after all stores were mended, as a rule allows.
    pub refused: u64,
}

impl Tally {
    fn count(&mut self, plan: &Plan, seen: &Seen) {
        *(if plan.faults.len() == 1 { &mut self.singles } else { &mut self.pairs }) += 1;
        self.failed += u64::from(seen.has_failed);
        self.errors += seen.errors;
        self.lost += seen.lost;
        self.refused += u64::from(seen.is_refused);
    }

    fn add(&mut self, other: &Self) {
        self.singles += other.singles;
        self.pairs += other.pairs;
        self.failed += other.failed;
        self.errors += other.errors;
        self.lost += other.lost;
        self.refused += other.refused;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} single faults and {} pairs tried, a fault came in {}: {} errors, {} units lost, {} starts refused",
            self.singles, self.pairs, self.failed, self.errors, self.lost, self.refused
        )
    }
}

/// What a seed of a case does without faults, from which plans are drawn.
struct Explored {
    /// By store, its operations.
    operations: Vec<Vec<Access>>,
    singles: Vec<Plan>,
}

impl Case<'_> {
    fn explore(&self, seed: u64) -> Result<Explored, Broken> {
        let plan = Plan { faults: Vec::new(), end: End::Clean, is_mended: true };
        let operations = run(self, seed, &plan, false)?.operations;
        let mut singles = Vec::new();
        for (store, accesses) in operations.iter().enumerate() {
            for (at, access) in (0..).zip(accesses) {
                for kind in Kind::ALL.into_iter().filter(|kind| kind.fits(*access)) {
                    for end in End::ALL {
                        // What comes once needs no mending.
                        for is_mended in [true, false].into_iter().filter(|mended| *mended || kind.stays()) {
                            let faults = vec![Fault { store, at, kind }];
                            singles.push(Plan { faults, end, is_mended });
                        }
                    }
                }
            }
        }
        Ok(Explored { operations, singles })
    }
}

impl Explored {
    /// Two faults anywhere, the second more often soon after the first.
    fn pair(&self, rng: &mut Xoshiro256PlusPlus) -> Plan {
        let mut draw = |near: Option<&Fault>| {
            let store = below(rng, self.operations.len() as u64) as usize;
            let count = self.operations[store].len() as u64 + 1;
            let at = match near.filter(|first| first.store == store && below(rng, 2) == 0) {
                Some(first) => first.at + 1 + below(rng, 8),
                None => below(rng, count),
            };
            Fault { store, at, kind: Kind::ALL[below(rng, Kind::ALL.len() as u64) as usize] }
        };
        let first = draw(None);
        let second = draw(Some(&first));
        let end = End::ALL[below(rng, 3) as usize];
        Plan { faults: vec![first, second], end, is_mended: below(rng, 2) == 0 }
    }
}

/// The environment's word, or `None`.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// A number from the environment; `all` is as many as there are.
fn number(name: &str) -> Option<u64> {
    let text = variable(name)?;
    let all = (text == "all").then_some(u64::MAX);
    Some(all.unwrap_or_else(|| {
        text.parse().unwrap_or_else(|_| panic!("{name}={text}: expected a number, or 'all'"))
    }))
}

fn report(case: &Case<'_>, broken: &Broken, command: &str) -> String {
    let Broken { seed, plan, message, story } = broken;
    let mut text = format!("{}, seed {seed}, {plan}: {message}\n", case.name);
    for line in story {
        let _ = writeln!(text, "  {line}");
    }
    let name = &case.name;
    let _ = writeln!(
        text,
        "  repeat with: CAMPAIGN_CASE='{name}' CAMPAIGN_SEED={seed} CAMPAIGN_PLAN='{plan}' {command}"
    );
    text
}

/// Tries all cases together with `singles` faults, evenly taken from all there are, and `pairs` of faults.
/// Panics with the first broken promise and the command that repeats it: `command` comes after the variables.
///
/// `CAMPAIGN_SINGLES` and `CAMPAIGN_PAIRS` are other numbers (`all`: every single fault), `CAMPAIGN_CASE`
/// limits it to one case, `CAMPAIGN_SEED` is another seed than 1, and `CAMPAIGN_PLAN` is the only plan. With
/// `CAMPAIGN_ALL` it goes on after a broken promise, and panics in the end with the first of each kind, which
/// is what is left of a message without its numbers.
pub fn campaign(label: &str, cases: &[Case<'_>], (singles, pairs): (u64, u64), command: &str) -> Tally {
    let seed = number("CAMPAIGN_SEED").unwrap_or(1);
    let only = variable("CAMPAIGN_CASE");
    let wanted: Vec<&Case<'_>> =
        cases.iter().filter(|case| only.as_ref().is_none_or(|only| *only == case.name)).collect();
    let share = |name: &str, default: u64| {
        let all = number(name).unwrap_or(default);
        if all == u64::MAX { all } else { all.div_ceil(cases.len().max(1) as u64) }
    };
    let (singles, pairs) = (share("CAMPAIGN_SINGLES", singles), share("CAMPAIGN_PAIRS", pairs));
    let mut total = Tally::default();
    let mut kinds = Kinds { goes_on: variable("CAMPAIGN_ALL").is_some(), found: BTreeMap::new() };
    for case in wanted {
        let mut tally = Tally::default();
        let mut broken = |broken: Broken| kinds.add(&broken.message, || report(case, &broken, command));
        match variable("CAMPAIGN_PLAN") {
            Some(text) => {
                let plan: Plan = text.parse().unwrap_or_else(|error| panic!("CAMPAIGN_PLAN: {error}"));
                match run(case, seed, &plan, true) {
                    Ok(seen) => tally.count(&plan, &seen),
                    Err(found) => broken(found),
                }
            }
            None => try_all(case, seed, (singles, pairs), &mut tally, &mut |found| {
                broken(found);
                false
            }),
        }
        let _ = writeln!(std::io::stderr(), "{label}, {}, seed {seed}: {tally}", case.name);
        total.add(&tally);
    }
    let _ = writeln!(std::io::stderr(), "{label}: {total}");
    assert!(kinds.found.is_empty(), "{kinds}");
    total
}

/// Runs plans that once broke a promise: the name of a case, the seed, the plan. Panics with the first that
/// does so again, and where no fault comes any more.
pub fn again(cases: &[Case<'_>], plans: &[(&str, u64, &str)], command: &str) {
    for (name, seed, text) in plans {
        let case = cases.iter().find(|case| case.name == *name).unwrap_or_else(|| panic!("no case '{name}'"));
        let plan: Plan = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        let seen = run(case, *seed, &plan, true)
            .unwrap_or_else(|broken| panic!("{}", report(case, &broken, command)));
        assert!(
            seen.has_failed,
            "{name}, seed {seed}, {text}: nothing failed; choose a plan for the operations as they are now"
        );
    }
}

/// Broken promises by kind.
struct Kinds {
    goes_on: bool,
    /// By the message without its numbers: how many, and the first.
    found: BTreeMap<String, (u64, String)>,
}

impl Kinds {
    fn add(&mut self, message: &str, report: impl Fn() -> String) {
        assert!(self.goes_on, "{}", report());
        let kind: String = message.chars().filter(|letter| !letter.is_ascii_digit()).collect();
        self.found.entry(kind).or_insert_with(|| (0, report())).0 += 1;
    }
}

impl fmt::Display for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (count, first) in self.found.values() {
            write!(f, "{count} like this: {first}")?;
        }
        Ok(())
    }
}

/// `broken` says of each broken promise whether that is enough.
fn try_all(
    case: &Case<'_>,
    seed: u64,
    (singles, pairs): (u64, u64),
    tally: &mut Tally,
    broken: &mut dyn FnMut(Broken) -> bool,
) {
    let mut rng = seeded(seed ^ 0x5EED);
    let mut attempt = |seed: u64, plan: &Plan| match run(case, seed, plan, false) {
        Ok(seen) => {
            tally.count(plan, &seen);
            false
        }
        Err(found) => broken(found),
    };
    let rounds = (0..pairs).step_by(PAIRS_OF_A_LOAD as usize).map(|first| (first, pairs - first));
    for (first, rest) in std::iter::once((0, 0)).chain(rounds) {
        let seed = seed + first / PAIRS_OF_A_LOAD;
        let explored = match case.explore(seed) {
            Ok(explored) => explored,
            Err(found) => {
                broken(found);
                return;
            }
        };
        let count = if rest == 0 { explored.singles.len() as u64 } else { 0 };
        for nth in 0..singles.min(count) {
            // One of each equal part.
            let (first, end) = (nth * count / singles.min(count), (nth + 1) * count / singles.min(count));
            let plan = &explored.singles[(first + below(&mut rng, end - first)) as usize];
            if attempt(seed, plan) {
                return;
            }
        }
        for _ in 0..rest.min(PAIRS_OF_A_LOAD) {
            if attempt(seed, &explored.pair(&mut rng)) {
                return;
            }
        }
    }
}

/// The first broken promise of a case within so many single faults and pairs: for subjects that are broken on
/// purpose.
pub fn finds(case: &Case<'_>, seed: u64, effort: (u64, u64)) -> Option<Broken> {
    let mut first = None;
    try_all(case, seed, effort, &mut Tally::default(), &mut |found| {
        first = Some(found);
        true
    });
    first
}
