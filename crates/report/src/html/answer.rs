//! What stands above everything else, the same for every kind of report: what went wrong, the verdict, the
//! phases, four to six key figures, and what must not be taken from them.

use super::escape::text;
use super::{Page, tables};
use crate::metrics::{Metric, SUMMARY};
use crate::notes::cautions;
use crate::number::grouped;
use crate::phases;
use crate::sweep::Front;
use crate::verdict::{silence, verdict};
use crate::{ReportContext, Run, advice, reproduction};
use nandscape_sim::RunResult;
use std::fmt::Write as _;

/// Key figures of an answer.
const MOST_FIGURES: usize = 6;
/// Runs of which a figure has a line; of more it has the least and the largest.
const MOST_LINES: usize = 5;
/// Requests of a kind below this share of all say little of a run.
const FEW: f64 = 0.01;

/// Figures of runs by group and name, in the order of their weight, with their titles.
const KEY: [(&str, &str, &str); 12] = [
    ("", "WAF", "write amplification"),
    ("hits", "reads", "read hit ratio"),
    ("hits", "writes", "write hit ratio"),
    ("cache device", "written", "written to the cache device"),
    ("disk", "written", "written to the disk"),
    ("write latency", "p99", "write p99"),
    ("read latency", "p99", "read p99"),
    ("throughput", "write", "write throughput"),
    ("throughput", "read", "read throughput"),
    ("erases", "max", "erases of the most worn block"),
    ("", "usable", "usable capacity"),
    ("DRAM", "device", "DRAM of the device"),
];

/// The answer to one question: a workload, a sweep, an advice, published figures.
#[derive(Default)]
struct Answer {
    /// Whose it is, if there are several.
    heading: String,
    sentences: Vec<String>,
    /// Whose phase, and the sentence.
    phases: Vec<(String, String)>,
    figures: Vec<Figure>,
}

struct Figure {
    title: String,
    /// For those who do not know the word.
    about: String,
    lines: Vec<Line>,
}

struct Line {
    /// The run, as HTML, or what the value belongs to; may be empty.
    whose: String,
    value: String,
    is_best: bool,
}

impl Figure {
    fn single(title: &str, value: String, whose: &str) -> Self {
        let line = Line { whose: text(whose), value, is_best: false };
        Self { title: title.to_owned(), about: String::new(), lines: vec![line] }
    }
}

/// The answers of a report; empty where there is nothing to say.
pub(super) fn answer(page: &Page<'_>, context: &ReportContext) -> String {
    let mut answers = of_runs(page);
    answers.extend(of_reproduction(context));
    answers.extend(of_sweep(context));
    answers.extend(of_advice(context));
    let mut out = problems(page.runs);
    out += &context.sweep.as_ref().map_or(String::new(), super::sweep::failures);
    let has_several = answers.len() > 1;
    for answer in &answers {
        if has_several {
            let _ = writeln!(out, "<h3>{}</h3>", text(&answer.heading));
        }
        out += &answer.html();
    }
    out += &doubts(page.runs, context);
    if out.is_empty() {
        return out;
    }
    format!("<section class=\"answer\" aria-label=\"Answer\">\n{out}</section>\n")
}

impl Answer {
    fn html(&self) -> String {
        let mut out = String::new();
        if !self.sentences.is_empty() {
            let sentences: Vec<String> = self.sentences.iter().map(|sentence| text(sentence)).collect();
            let _ = writeln!(out, "<p class=\"verdict\">{}</p>", sentences.join("<br>\n"));
        }
        if !self.phases.is_empty() {
            out += "<ul class=\"phases\" aria-label=\"Phases\">\n";
            for (whose, sentence) in &self.phases {
                let whose = if whose.is_empty() {
                    String::new()
                } else {
                    format!("<strong>{}</strong>: ", text(whose))
                };
                let _ = writeln!(out, "<li>{whose}{}</li>", text(sentence));
            }
            out += "</ul>\n";
        }
        if !self.figures.is_empty() {
            let figures: String = self.figures.iter().map(Figure::html).collect();
            let _ = writeln!(out, "<dl class=\"figures\">\n{figures}</dl>");
        }
        out
    }
}

impl Figure {
    fn html(&self) -> String {
        let about =
            if self.about.is_empty() { String::new() } else { format!(" title=\"{}\"", text(&self.about)) };
        let mut out = format!("<div{about}><dt>{}</dt>", text(&self.title));
        for Line { whose, value, is_best } in &self.lines {
            let value = text(value);
            let value = if *is_best { format!("<b>{value}</b>") } else { value };
            let whose = if whose.is_empty() { String::new() } else { format!("<span>{whose}</span>") };
            let _ = write!(out, "<dd><strong>{value}</strong>{whose}</dd>");
        }
        out + "</div>\n"
    }
}

fn of_runs(page: &Page<'_>) -> Vec<Answer> {
    let of_group = |group: usize| {
        let runs: Vec<&Run> = page.groups[group].members.iter().map(|i| &page.runs[*i]).collect();
        let mut phases = phases::sentences(&runs, "All runs");
        if runs.len() == 1 {
            for (whose, _) in &mut phases {
                whose.clear();
            }
        }
        Answer {
            heading: page.groups[group].spec.to_owned(),
            sentences: verdict(&runs),
            phases,
            figures: figures(page, group, &runs),
        }
    };
    (0..page.groups.len()).map(of_group).collect()
}

fn figures(page: &Page<'_>, group: usize, runs: &[&Run]) -> Vec<Figure> {
    let share = |of: fn(&RunResult) -> u64| {
        let all = |run: &&Run| {
            of(&run.result) as f64 / (run.result.host.reads + run.result.host.writes).max(1) as f64
        };
        runs.iter().map(all).fold(0.0, f64::max)
    };
    let (has_reads, has_writes) = (share(|r| r.host.reads) >= FEW, share(|r| r.host.writes) >= FEW);
    let is_worn = silence(runs).is_none();
    let says_something = |metric: &Metric| match (metric.group, metric.name) {
        ("", "WAF") | ("erases", _) => is_worn,
        ("hits", "reads") | ("read latency", _) | ("throughput", "read") => has_reads,
        ("hits", "writes") | ("write latency", _) | ("throughput", "write") => has_writes,
        _ => true,
    };
    let figure = |(of, name, title): &(&str, &str, &str)| {
        let metric = SUMMARY.iter().find(|metric| (metric.group, metric.name) == (*of, *name))?;
        let best = tables::best(page, metric);
        let mut lines: Vec<(usize, f64)> = page.groups[group]
            .members
            .iter()
            .filter_map(|run| Some((*run, metric.mean(&page.runs[*run].result)?)))
            .collect();
        if lines.is_empty() || !says_something(metric) {
            return None;
        }
        if lines.len() > MOST_LINES {
            lines.sort_by(|a, b| a.1.total_cmp(&b.1));
            lines = vec![lines[0], lines[lines.len() - 1]];
        }
        let line = |(run, value): &(usize, f64)| Line {
            whose: if runs.len() > 1 { page.name(*run) } else { String::new() },
            value: metric.kind.show_alone(*value),
            is_best: best[*run],
        };
        let lines = lines.iter().map(line).collect();
        Some(Figure { title: (*title).to_owned(), about: metric.about.to_owned(), lines })
    };
    KEY.iter().filter_map(figure).take(MOST_FIGURES).collect()
}

fn of_reproduction(context: &ReportContext) -> Option<Answer> {
    let rows = &context.reproduction;
    let figures = reproduction::key_figures(rows);
    (!rows.is_empty()).then(|| Answer {
        heading: "Published and measured".to_owned(),
        sentences: reproduction::verdict(rows),
        figures: figures.into_iter().map(|(title, value, of)| Figure::single(title, value, &of)).collect(),
        ..Answer::default()
    })
}

fn of_sweep(context: &ReportContext) -> Option<Answer> {
    let table = context.sweep.as_ref()?;
    let points = table.points();
    let front = Front::new(table, &points);
    let figures = front.key_figures(table, &points);
    Some(Answer {
        heading: "Sweep".to_owned(),
        sentences: front.verdict(table, &points),
        figures: figures.iter().map(|(title, value, at)| Figure::single(title, value.clone(), at)).collect(),
        ..Answer::default()
    })
}

fn of_advice(context: &ReportContext) -> impl Iterator<Item = Answer> {
    context.advice.iter().map(|(advice, _)| Answer {
        heading: advice.workload.clone(),
        sentences: vec![advice::answer(advice)],
        figures: advice::key_figures(advice)
            .into_iter()
            .map(|(title, value)| Figure::single(title, value, ""))
            .collect(),
        ..Answer::default()
    })
}

fn problems(runs: &[Run]) -> String {
    let mut items = String::new();
    for run in runs {
        if let Some(error) = &run.result.error {
            let _ = writeln!(
                items,
                "<li><strong>{}</strong> failed at request {}: {}</li>",
                text(&run.label),
                grouped(error.request),
                text(&error.message)
            );
        }
        if run.result.partial {
            let _ = writeln!(
                items,
                "<li><strong>{}</strong> was interrupted after {} requests; its figures are those until then.</li>",
                text(&run.label),
                grouped(run.result.workload.requests)
            );
        }
    }
    if items.is_empty() {
        return items;
    }
    format!(
        "<div class=\"problems\" role=\"note\" aria-label=\"Runs that did not end well\"><ul>\n{items}</ul></div>\n"
    )
}

fn doubts(runs: &[Run], context: &ReportContext) -> String {
    let mut items = String::new();
    for (who, note) in cautions(runs.iter(), "All runs") {
        let _ = writeln!(items, "<li><strong>{}</strong>: {}</li>", text(&who), text(&note));
    }
    if let Some(caution) = context.sweep.as_ref().and_then(crate::SweepTable::caution) {
        let _ = writeln!(items, "<li>{}</li>", text(&caution));
    }
    if items.is_empty() {
        return items;
    }
    format!(
        "<div class=\"cautions\" role=\"note\" aria-label=\"What the figures do not mean\"><ul>\n{items}</ul></div>\n"
    )
}
