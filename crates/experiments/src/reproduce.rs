//! Published experiments, repeated: published, measured, ratio. One file per source, one line per experiment
//! in [`REPRODUCTIONS`].

mod cache_article;
mod cache_cleaning;
mod drives;
mod live;
mod nvm_sets;
mod oftl;
mod pm963;
mod policies;
mod recordings;
mod runs;
mod streams;
mod table;
mod thesis;
mod zones;

use crate::Result;
use nandscape_core::Info;
use nandscape_jobs::JobFile;
use nandscape_report::{ReproductionRow, Run};
use nandscape_stack::config::{ConfigError, StackConfig, Typed};
use nandscape_stack::jobs::run_parsed;
use nandscape_stack::{RunError, RunOptions, replay};
use rayon::prelude::*;
use runs::Runs;
use std::fmt::Display;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use table::Table;

pub use live::{LIVE, Live};

/// Whether an experiment has all of its rows.
type Done = Result<()>;

/// A published experiment.
#[derive(Clone, Copy, Debug)]
pub struct Reproduction {
    /// Id, what it is, tags of its sources.
    pub info: Info,
    rows: fn(&Context<'_>, &mut Table) -> Done,
    must_explain: bool,
    /// How its rules are shown to be able to fail; `None` where that is not built yet.
    pub sabotage: Option<Sabotage>,
}

/// A run that is spoiled on purpose ([`Context::is_sabotaged`]).
#[derive(Clone, Copy, Debug)]
pub struct Sabotage {
    /// What is done to it.
    pub what: &'static str,
    /// Names of the rows whose rules must not be kept then, or [`Sabotage::EVERY_RULE`].
    pub turns: &'static [&'static str],
}

impl Sabotage {
    /// No rule of the experiment may be kept.
    pub const EVERY_RULE: &'static [&'static str] = &["every rule"];

    /// The rows that were to turn and did not, of a spoiled run.
    pub fn survivors(&self, rows: &[ReproductionRow]) -> Vec<String> {
        let has_turned = |row: &ReproductionRow| row.verdict.is_some_and(|verdict| !verdict.is_good());
        if self.turns == Self::EVERY_RULE {
            let rules = rows.iter().filter(|row| row.verdict.is_some());
            return rules.filter(|row| !has_turned(row)).map(|row| row.name.clone()).collect();
        }
        // Without its recording a rule has no row.
        let is_skipped = rows.iter().any(|row| row.note.starts_with(recordings::SKIPPED));
        let turned = |name: &str| match rows.iter().find(|row| row.name == name) {
            Some(row) => has_turned(row),
            None => is_skipped,
        };
        self.turns.iter().filter(|name| !turned(name)).map(|name| (*name).to_owned()).collect()
    }
}

/// Experiments whose figures are the same for every seed: what they write is fixed.
const FIXED: [&str; 12] = [
    "thesis-fig-2.3",
    "thesis-fig-2.5",
    "thesis-fig-2.6",
    "thesis-fig-2.7",
    "thesis-table-sizes",
    "streams-example",
    "zone-size",
    "atc21-fig-5",
    "atc21-fig-6",
    "atc21-waf",
    "atc21-sst-size",
    "oftl-captured",
];

impl Reproduction {
    /// Whether figures of it depend on the seed.
    pub fn is_seeded(&self) -> bool {
        !FIXED.contains(&self.info.name)
    }

    /// Runs it.
    pub fn run(&self, context: &Context<'_>) -> Result<Vec<ReproductionRow>> {
        let mut table = Table::new(self.info.name, self.must_explain);
        (self.rows)(context, &mut table)?;
        Ok(table.finish())
    }

    /// The source, with which the name begins. Experiments of one source may share runs.
    fn family(&self) -> &'static str {
        self.info.name.split('-').next().unwrap_or_default()
    }
}

/// Rows of an experiment by seed.
pub type BySeed = Vec<(u64, Vec<ReproductionRow>)>;

/// Runs experiments in each of these contexts, in the first alone where the seed changes nothing; several at
/// a time, but one after the other those that share runs. Tells of each when it begins.
pub fn run_all(
    wanted: &[&'static Reproduction],
    contexts: &[Context<'_>],
    begins: impl Fn(&Reproduction) + Sync,
) -> Result<Vec<BySeed>> {
    let families: Vec<_> = wanted.chunk_by(|one, other| one.family() == other.family()).collect();
    let run = |one: &&'static Reproduction| {
        begins(one);
        let needed = if one.is_seeded() { contexts } else { &contexts[..1] };
        needed.par_iter().map(|context| Ok((context.seed, one.run(context)?))).collect::<Result<BySeed>>()
    };
    let done = families.into_par_iter().map(|family| family.iter().map(run).collect::<Result<Vec<_>>>());
    Ok(done.collect::<Result<Vec<_>>>()?.concat())
}

const fn experiment(
    name: &'static str,
    summary: &'static str,
    source: &'static str,
    rows: fn(&Context<'_>, &mut Table) -> Done,
) -> Reproduction {
    Reproduction {
        info: Info { name, summary, source, params: &[] },
        rows,
        must_explain: false,
        sabotage: None,
    }
}

/// Every experiment.
pub static REPRODUCTIONS: LazyLock<Vec<Reproduction>> = LazyLock::new(|| {
    let others = [
        policies::POLICIES,
        policies::CAPTURED,
        streams::EXAMPLE,
        streams::RULES,
        pm963::PM963,
        drives::DRIVES,
        nvm_sets::NVM_SETS,
        cache_article::CACHE_ARTICLE,
        cache_cleaning::CACHE_CLEANING,
        zones::ZN540,
        zones::ZONE_SIZE,
        zones::OVERWRITE,
        zones::TARGETS,
        zones::READS,
        zones::FILES,
        zones::FILES_STREAMS,
        zones::FILES_WAF,
        zones::FILES_TAILS,
        zones::FILES_TABLES,
        oftl::TABLE_3,
        oftl::FIG_8,
        oftl::FIG_9,
        oftl::CAPTURED,
    ];
    [&thesis::EXPERIMENTS[..], &others].concat()
});

/// What a reproduction may use, and the runs that experiments share: one context for several of them runs
/// each replay once.
#[derive(Debug)]
pub struct Context<'a> {
    /// Seed of the generators.
    pub seed: u64,
    /// Set from outside to stop early; a stopped reproduction gives [`RunError::Interrupted`].
    pub stop: Option<&'a AtomicBool>,
    /// Experiments that have a smaller scale run at that one.
    pub is_quick: bool,
    /// Experiments that have a [`Sabotage`] do it.
    pub is_sabotaged: bool,
    thesis: Runs<thesis::Point>,
    files: Runs<zones::FilesPoint>,
    objects: Runs<oftl::Point>,
    drives: Runs<drives::Point>,
}

impl<'a> Context<'a> {
    /// A context without any run yet.
    pub fn new(seed: u64, stop: Option<&'a AtomicBool>) -> Self {
        Self {
            seed,
            stop,
            is_quick: false,
            is_sabotaged: false,
            thesis: Runs::default(),
            files: Runs::default(),
            objects: Runs::default(),
            drives: Runs::default(),
        }
    }

    fn scale<S>(&self, full: S, small: S) -> S {
        if self.is_quick { small } else { full }
    }

    pub(crate) fn check_stop(&self) -> Result<()> {
        let is_stopped = self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
        if is_stopped { Err(RunError::Interrupted) } else { Ok(()) }
    }

    /// A checked configuration: the keys over a preset of a device, and the seed.
    fn config(
        &self,
        preset: Option<&str>,
        keys: &[(&str, &dyn Display)],
    ) -> Result<StackConfig, ConfigError> {
        let mut typed = Typed::new();
        if let Some(preset) = preset {
            typed.merge_preset(preset)?;
        }
        typed.set("workload.seed", &self.seed.to_string())?;
        for (key, value) in keys {
            typed.set(key, &value.to_string())?;
        }
        typed.check()
    }

    /// Runs jobs to their end; `id` names their file.
    fn run_jobs(&self, config: &StackConfig, id: &str, jobs: &str, options: RunOptions<'_>) -> Result<Run> {
        self.check_stop()?;
        let run =
            run_parsed(config, &JobFile::parse(id, jobs)?, id, &RunOptions { stop: self.stop, ..options })?;
        let label = run.label.clone();
        self.whole(run, label)
    }

    /// Replays a workload to its end; `label` names the run in errors.
    fn replay(
        &self,
        config: &StackConfig,
        workload: &str,
        label: String,
        options: RunOptions<'_>,
    ) -> Result<Run> {
        self.check_stop()?;
        let run = replay(config, workload, &RunOptions { stop: self.stop, ..options })?;
        self.whole(run, label)
    }

    /// A run of its whole workload.
    fn whole(&self, run: Run, label: String) -> Result<Run> {
        self.check_stop()?;
        match &run.result.error {
            Some(error) => Err(RunError::Failed { label, message: error.message.clone() }),
            None if run.result.partial => Err(RunError::Interrupted),
            None => Ok(run),
        }
    }
}

/// Least and greatest value: infinity and 0 of none.
fn extremes(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    values
        .into_iter()
        .fold((f64::INFINITY, 0.0), |(least, most), value| (least.min(value), f64::max(most, value)))
}
