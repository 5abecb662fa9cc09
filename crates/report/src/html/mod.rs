//! One offline file: no request leaves the page (a content security policy says so, too), and it opens from
//! disk.
//!
//! Tables and bars are plain HTML made here, so they can be read, copied and printed without a script.
//! Curves, scatter plots and wear maps are drawn by `assets/report.js` (uPlot and canvas) from the data that
//! `data.rs` puts into the page.

mod answer;
mod bars;
mod beside;
mod caches;
mod config;
mod data;
mod elements;
mod escape;
mod figures;
mod jobs;
mod legend;
mod maps;
mod over_data;
mod sections;
mod stats;
mod sweep;
mod tables;
mod values;
mod zones;

use crate::shape::Shape;
use crate::{Output, ReportContext, ReportError, Run};
use elements::{left_heads, row};
use escape::json_for_script;
use escape::text;
use std::fmt::Write as _;

pub(crate) const OUTPUT: Output = Output {
    wants_series: true,
    wants_programs: true,
    ..Output::new("html", "one offline file with tables and charts", |runs, context| {
        Ok::<_, ReportError>(render_html(runs, context).into_bytes())
    })
};

const UPLOT_JS: &str = include_str!("../../assets/vendor/uplot-1.6.32.iife.min.js");
const UPLOT_CSS: &str = include_str!("../../assets/vendor/uplot-1.6.32.min.css");
const UPLOT_LICENSE: &str = include_str!("../../assets/vendor/uplot-LICENSE");
const REPORT_JS: &str = include_str!("../../assets/report.js");
const REPORT_CSS: &str = include_str!("../../assets/report.css");

/// Nothing may be fetched, submitted or framed; styles and scripts are those in the file.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; \
                      base-uri 'none'; form-action 'none'";

/// Distinct colours of the palette in `assets/report.css`; the next run repeats the first with another dash
/// pattern.
pub(crate) const COLOURS: usize = 8;

pub(crate) struct Group<'a> {
    pub spec: &'a str,
    pub members: Vec<usize>,
}

pub(crate) struct Page<'a> {
    pub runs: &'a [Run],
    pub groups: Vec<Group<'a>>,
    /// Colour of each run: runs with the same label in different workloads have the same.
    pub colours: Vec<usize>,
    pub shapes: Vec<Option<Shape>>,
}

impl<'a> Page<'a> {
    fn new(runs: &'a [Run]) -> Self {
        let mut groups: Vec<Group<'a>> = Vec::new();
        let mut labels: Vec<&str> = Vec::new();
        let mut colours = Vec::new();
        for (i, run) in runs.iter().enumerate() {
            let spec = run.result.workload.spec.as_str();
            match groups.iter_mut().find(|group| group.spec == spec) {
                Some(group) => group.members.push(i),
                None => groups.push(Group { spec, members: vec![i] }),
            }
            let colour = labels.iter().position(|label| *label == run.name()).unwrap_or_else(|| {
                labels.push(run.name());
                labels.len() - 1
            });
            colours.push(colour);
        }
        // The device of a configuration is not there where a cache is over something else.
        let has_device = |run: &Run| run.result.cache.is_none() || !run.result.flash.by_cause.is_empty();
        let shape = |run: &Run| has_device(run).then(|| Shape::from_config(&run.result.run.config)).flatten();
        let shapes = runs.iter().map(shape).collect();
        Self { runs, groups, colours, shapes }
    }

    pub fn name(&self, run: usize) -> String {
        format!(
            "<span class=\"key c{}\" aria-hidden=\"true\"></span>{}",
            self.colours[run] % COLOURS,
            text(self.runs[run].name())
        )
    }

    pub fn first_head(&self) -> &'static str {
        if self.runs.iter().any(|run| run.result.cache.is_some()) { "cache" } else { "FTL" }
    }

    /// Whether there is flash under a run; there need not be under a cache.
    pub fn has_flash(&self, run: usize) -> bool {
        !self.runs[run].result.flash.by_cause.is_empty()
    }

    /// Head of the column of workloads, where there are several; so many rows high.
    pub fn workload_head(&self, rows: usize) -> String {
        if self.groups.len() > 1 {
            format!("<th scope=\"col\" class=\"left\" rowspan=\"{rows}\">workload</th>")
        } else {
            String::new()
        }
    }

    /// The head of a table with a row for each run: what they are, then these heads.
    pub fn head(&self, heads: &str) -> String {
        format!("<tr>{}{}{heads}</tr>", left_heads([self.first_head()]), self.workload_head(1))
    }

    pub fn row(&self, run: usize, cells: &str) -> String {
        row(&self.name(run), &(self.workload_cell(run) + cells))
    }

    pub fn workload_cell(&self, run: usize) -> String {
        if self.groups.len() > 1 {
            format!("<td class=\"left\">{}</td>", text(&self.runs[run].result.workload.spec))
        } else {
            String::new()
        }
    }
}

/// The page. Runs may be none (`reproduce` and `trace stats` have parts of their own in the context).
pub fn render_html(runs: &[Run], context: &ReportContext) -> String {
    let page = Page::new(runs);
    let title = match &context.sweep {
        _ if !context.title.is_empty() => context.title.clone(),
        Some(sweep) => format!("Sweep over {}", sweep.axes.join(" x ")),
        None => default_title(&page),
    };
    let mut parts: Vec<(&str, &str, String)> = Vec::new();
    if !context.reproduction.is_empty() {
        parts.push(("reproduction", "Published and measured", tables::reproduction(&context.reproduction)));
    }
    if !runs.is_empty() {
        parts.push(("summary", "Summary", sections::summary(&page)));
        parts.push(("jobs", "Jobs", jobs::jobs(&page)));
        parts.push(("over-data", over_data::heading(&page), over_data::over_data(&page)));
        parts.push(("latency", "Latency", sections::latency(&page)));
        parts.push(("requests", "Single requests", sections::requests(&page)));
        parts.push(("flash", "Flash operations by cause", bars::flash_operations(&page)));
        parts.push(("cache", "Cache", beside::caches(runs)));
        parts.push(("streams", "Streams and placement handles", beside::streams(runs)));
        parts.push(("zones", "Zones, chunks and objects", zones::zones(&page)));
        parts.push(("wear", "Wear", sections::wear(&page)));
        parts.push(("cost", "Cost", tables::cost(&page)));
    }
    if let Some(table) = &context.sweep {
        parts.push(("sweep", "Sweep", sweep::sweep(table)));
        parts.push(("points", "Points", sweep::table(table)));
    }
    if !context.advice.is_empty() {
        parts.push(("caches", "Misses by size of the cache", caches::caches(&context.advice)));
    }
    if !context.workload_stats.is_empty() {
        parts.push(("workload", "Workload", stats::workloads(&context.workload_stats)));
    }
    if !runs.is_empty() {
        parts.push(("configuration", "Configuration", config::configuration(&page)));
    }
    parts.retain(|(_, _, body)| !body.is_empty());

    let mut out = String::with_capacity(1 << 20);
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"generator\" content=\"nandscape {}\">\n\
         <title>{}</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n{UPLOT_CSS}\n{REPORT_CSS}</style>\n",
        env!("CARGO_PKG_VERSION"),
        text(&title),
    );
    // First of all scripts, so that an error in any later one is seen by the self-check.
    out.push_str(
        "<script>window.__nandscape={errors:[],charts:[]};\
         addEventListener(\"error\",e=>window.__nandscape.errors.push(String(e.message)));\
         addEventListener(\"unhandledrejection\",e=>window.__nandscape.errors.push(String(e.reason)));\
         addEventListener(\"securitypolicyviolation\",e=>window.__nandscape.errors.push(\"blocked: \"+e.blockedURI));\
         </script>\n</head>\n<body>\n",
    );
    out.push_str(&sections::header(&page, context, &title, &parts));
    out.push_str("<main id=\"main\">\n");
    for (id, heading, body) in &parts {
        let _ = write!(
            out,
            "<section id=\"{id}\" aria-labelledby=\"h-{id}\">\n<h2 id=\"h-{id}\">{heading}</h2>\n{body}</section>\n"
        );
    }
    out.push_str("</main>\n");
    out.push_str(&sections::footer(runs, context));
    let _ = writeln!(
        out,
        "<script type=\"application/json\" id=\"data\">{}</script>",
        json_for_script(&data::data(&page, context))
    );
    let _ = write!(
        out,
        "<script>/*\n{}\n*/\n{UPLOT_JS}</script>\n<script>\n{REPORT_JS}</script>\n</body>\n</html>\n",
        UPLOT_LICENSE.replace("*/", "* /")
    );
    out
}

fn default_title(page: &Page<'_>) -> String {
    let mut labels: Vec<&str> = page.runs.iter().map(|run| run.label.as_str()).collect();
    labels.dedup();
    match (page.runs, page.groups.len()) {
        ([], _) => "nandscape report".to_owned(),
        ([run], _) => format!("{} on {}", run.label, run.result.workload.spec),
        (_, 1) => format!("{} runs of {}", page.runs.len(), page.groups[0].spec),
        (_, n) => format!("{} runs of {n} workloads", page.runs.len()),
    }
}
