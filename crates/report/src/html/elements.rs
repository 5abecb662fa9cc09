//! Elements that the parts of the page are made of. Texts are escaped by the caller, but for those of facts.

use super::escape::text;
use super::legend::{self, Entry};
use crate::number::grouped;
use nandscape_core::Op;
use nandscape_sim::metrics::{RequestSample, Series};
use std::fmt::{Display, Write as _};

pub(super) fn cells(values: impl IntoIterator<Item = impl Display>) -> String {
    values.into_iter().map(|value| format!("<td>{value}</td>")).collect::<Vec<_>>().concat()
}

pub(super) fn heads(names: impl IntoIterator<Item = impl Display>) -> String {
    names.into_iter().map(|name| format!("<th scope=\"col\">{name}</th>")).collect::<Vec<_>>().concat()
}

pub(super) fn left_heads(names: impl IntoIterator<Item = impl Display>) -> String {
    let head = |name| format!("<th scope=\"col\" class=\"left\">{name}</th>");
    names.into_iter().map(head).collect()
}

pub(super) fn row(name: &str, cells: &str) -> String {
    format!("<tr><th scope=\"row\" class=\"left\">{name}</th>{cells}</tr>\n")
}

pub(super) fn facts(facts: &[(&str, String)]) -> String {
    let mut out = String::from("<dl class=\"facts\">\n");
    for (name, value) in facts {
        let class = if *name == "Made by" { " class=\"command\"" } else { "" };
        let _ = writeln!(out, "<div{class}><dt>{name}</dt><dd>{}</dd></div>", text(value));
    }
    out + "</dl>\n"
}

/// Single requests of a run in the page.
const MAX_REQUESTS: usize = 6000;

/// The requests of a series that go into the page: every k-th of those kept.
pub(super) fn kept_requests(series: &Series) -> impl Iterator<Item = &RequestSample> {
    let step = series.requests.len().div_ceil(MAX_REQUESTS).max(1);
    series.requests.iter().step_by(step)
}

/// MB/s of a request; a request that costs no time (a read of nothing) has none.
pub(super) fn rate(request: &RequestSample) -> f64 {
    request.bytes as f64 / 1e6 / (request.latency_ns as f64 / 1e9)
}

/// Of the requests of a kind in the page.
pub(super) fn median_rate(series: &Series, op: Op) -> Option<f64> {
    let of_kind = kept_requests(series).filter(|request| (request.op == Op::Read) == (op == Op::Read));
    let mut rates: Vec<f64> = of_kind.map(rate).filter(|rate| rate.is_finite()).collect();
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied()
}

/// How many requests a chart shows.
pub(super) fn shown(kept: usize, total: u64) -> String {
    let kept = kept as u64;
    match grouped(kept) {
        some if kept < total => format!("{some} of {} requests, evenly spaced", grouped(total)),
        all => format!("all {all} requests"),
    }
}

/// One chart: an empty figure that the script fills.
#[derive(Clone, Copy)]
pub(super) struct Chart<'a> {
    /// Kind and number in the page make its id.
    pub kind: &'a str,
    pub number: usize,
    /// Which data are its own: names and numbers.
    pub data: &'a [(&'a str, usize)],
    /// Further attributes of its element, each after a blank.
    pub attributes: &'a str,
    pub title: &'a str,
    pub about: &'a str,
    /// Names of its views; the script knows them by number, and begins with the first that has a name.
    pub tabs: &'a [&'a str],
    pub can_be_log: bool,
    /// Its lines with their values, for those who do not point at them or have no script.
    pub legend: &'a [Entry],
    /// What serves those without a script; empty for nothing.
    pub without: &'a str,
}

pub(super) const CHART: Chart<'static> = Chart {
    kind: "",
    number: 0,
    data: &[],
    attributes: "",
    title: "",
    about: "",
    tabs: &[],
    can_be_log: true,
    legend: &[],
    without: "the tables do without.",
};

impl Chart<'_> {
    pub(super) fn html(&self) -> String {
        let Self { kind, number, title, .. } = self;
        let datum = |(name, number): &(&str, usize)| format!(" data-{name}=\"{number}\"");
        let data: String = self.data.iter().map(datum).collect();
        let attributes = self.attributes;
        let about = match self.about {
            "" => String::new(),
            about => format!("<p class=\"about\">{about}</p>"),
        };
        let mut out = format!(
            "<figure class=\"card chart\" data-chart=\"{kind}\"{data}{attributes} aria-labelledby=\"t-{kind}-{number}\">\n\
             <div class=\"chart-head\"><div><h4 id=\"t-{kind}-{number}\">{title}</h4>{about}</div>\
             <div class=\"controls\">"
        );
        if self.tabs.len() > 1 {
            out.push_str("<div class=\"tabs\" role=\"group\" aria-label=\"View\">");
            let named = |(_, tab): &(usize, &&str)| !tab.is_empty();
            let first = self.tabs.iter().enumerate().find(named).map(|(i, _)| i);
            for (i, tab) in self.tabs.iter().enumerate().filter(named) {
                let is_first = Some(i) == first;
                let _ = write!(
                    out,
                    "<button type=\"button\" data-view=\"{i}\" aria-pressed=\"{is_first}\">{tab}</button>"
                );
            }
            out.push_str("</div>");
        }
        if self.can_be_log {
            out.push_str("<button type=\"button\" class=\"log\" aria-pressed=\"false\" title=\"Logarithmic scale\">log</button>");
        }
        out.push_str("</div></div>\n<div class=\"plot\"></div>");
        out += &legend::html(self.legend);
        if !self.without.is_empty() {
            let _ = write!(
                out,
                "\n<noscript><p class=\"about\">Drawn by a script; {}</p></noscript>",
                self.without
            );
        }
        out + "</figure>\n"
    }
}
