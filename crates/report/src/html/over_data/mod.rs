//! What a run did over the data that it wrote or read: a chart a file, registered in [`CURVES`].

mod dirty;
mod erases;
mod hits;
mod map;
mod throughput;
mod waf;

use super::Page;
use super::elements::{CHART, Chart};
use super::legend::{Entry, Show, ink, last};
use super::sections::{for_each_group, has_series};
use crate::Run;
use crate::metrics::program_bytes;
use nandscape_sim::cached::CachePoint;
use nandscape_sim::metrics::Sample;
use serde_json::Value;

pub(super) struct Curves {
    pub kind: &'static str,
    pub title: &'static str,
    pub about: &'static str,
    pub show: Show,
    /// The least value of a linear scale.
    pub floor: u32,
    pub columns: &'static [Column],
    /// The names of its views in a group of runs; empty where there is one, and of those left out. `None`
    /// where a chart would show nothing.
    pub tabs: fn(&Ends<'_>) -> Option<&'static [&'static str]>,
}

/// A column of the page's data: its name, and its value at a moment of a run.
pub(super) type Column = (&'static str, fn(&Moment<'_>) -> Value);

pub(super) static CURVES: &[Curves] =
    &[throughput::CURVES, waf::CURVES, map::CURVES, erases::CURVES, hits::CURVES, dirty::CURVES];

pub(super) struct Moment<'a> {
    pub now: &'a Sample,
    pub before: Option<&'a Sample>,
    /// Bytes of flash that a program writes.
    pub program_bytes: f64,
    /// The cache, if there is one, and what it did since the point before.
    pub cache: Option<(CachePoint, CachePoint)>,
}

impl Moment<'_> {
    /// What has come of a figure since the point before.
    pub fn since(&self, of: impl Fn(&Sample) -> f64) -> f64 {
        of(self.now) - self.before.map_or(0.0, of)
    }

    pub fn of_cache(&self, value: impl Fn(&CachePoint) -> Value) -> Value {
        self.cache.as_ref().map_or(Value::Null, |(so_far, _)| value(so_far))
    }

    pub fn of_cache_since(&self, value: impl Fn(&CachePoint) -> Value) -> Value {
        self.cache.as_ref().map_or(Value::Null, |(_, interval)| value(interval))
    }
}

/// The last points of the runs of a group.
pub(super) struct Ends<'a> {
    page: &'a Page<'a>,
    group: usize,
}

impl Ends<'_> {
    /// Whether a figure is above nothing at the end of some run.
    pub fn any(&self, of: impl Fn(&Sample) -> u64) -> bool {
        self.lasts().any(|(_, sample)| of(sample) > 0)
    }

    /// The same of the caches of the runs.
    pub fn any_cache(&self, of: impl Fn(&CachePoint) -> u64) -> bool {
        self.lasts().any(|(run, sample)| run.cache_at(sample).is_some_and(|cache| of(&cache) > 0))
    }

    fn lasts(&self) -> impl Iterator<Item = (&Run, &Sample)> {
        let runs = self.page.groups[self.group].members.iter().map(|i| &self.page.runs[*i]);
        runs.filter_map(|run| Some((run, run.series.as_ref()?.samples.last()?)))
    }
}

/// A workload that writes nothing is drawn over what it reads.
pub(super) fn heading(page: &Page<'_>) -> &'static str {
    let writes =
        |group: &super::Group<'_>| group.members.iter().any(|i| page.runs[*i].result.host.write_bytes > 0);
    match (page.groups.iter().any(writes), page.groups.iter().all(writes)) {
        (_, true) => "Over the data written",
        (false, _) => "Over the data read",
        _ => "Over the data written or read",
    }
}

pub(super) fn over_data(page: &Page<'_>) -> String {
    for_each_group(page, |group| {
        if !has_series(page, group) {
            return String::new();
        }
        let mut out = String::from("<div class=\"grid\">\n");
        let members = page.groups[group].members.iter().filter_map(|i| {
            let samples = &page.runs[*i].series.as_ref().filter(|series| series.samples.len() > 1)?.samples;
            Some((*i, self::columns(&page.runs[*i], samples)))
        });
        let members: Vec<_> = members.collect();
        for curves in CURVES {
            let Some(tabs) = (curves.tabs)(&Ends { page, group }) else { continue };
            let &Curves { kind, title, about, show, floor, columns, .. } = curves;
            let view = tabs.iter().position(|tab| !tab.is_empty()).unwrap_or(0);
            let entry = |(run, all): &(usize, Vec<(&str, Vec<Value>)>)| {
                let (_, values) = all.iter().find(|(name, _)| *name == columns[view].0)?;
                let value = show.of(last(values)?);
                Some(Entry { ink: ink(page.colours[*run]), label: page.runs[*run].name().to_owned(), value })
            };
            let legend: Vec<Entry> = members.iter().filter_map(entry).collect();
            let show = show.name();
            let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
            let names = names.join(" ");
            let attributes = format!(" data-columns=\"{names}\" data-show=\"{show}\" data-floor=\"{floor}\"");
            let (data, attributes) = ([("group", group)], attributes.as_str());
            out += &Chart {
                kind,
                number: group,
                data: &data,
                attributes,
                title,
                about,
                tabs,
                legend: &legend,
                ..CHART
            }
            .html();
        }
        out + "</div>\n"
    })
}

/// The columns of the charts that have a value somewhere.
pub(super) fn columns(run: &Run, samples: &[Sample]) -> Vec<(&'static str, Vec<Value>)> {
    let mut moments = Vec::with_capacity(samples.len());
    let program_bytes = program_bytes(&run.result).unwrap_or(0.0);
    let (mut before, mut cache_before) = (None, CachePoint::default());
    for now in samples {
        let cache = run.cache_at(now).map(|cache| (cache, cache.since(&cache_before)));
        cache_before = cache.map_or(cache_before, |(cache, _)| cache);
        moments.push(Moment { now, before, program_bytes, cache });
        before = Some(now);
    }
    let columns = CURVES.iter().flat_map(|curves| curves.columns);
    let columns = columns.map(|(name, value)| (*name, moments.iter().map(value).collect::<Vec<_>>()));
    columns.filter(|(_, values)| values.iter().any(|value| !value.is_null())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_chart_has_names_of_its_own_and_values_that_the_script_can_show() {
        let (mut kinds, mut columns) =
            (BTreeSet::new(), BTreeSet::from(["x", "w50", "w99", "w999", "r50", "r99", "r999"]));
        let script = include_str!("../../../assets/report.js");
        let shows = script.lines().find_map(|line| line.trim().strip_prefix("const SHOW = ")).unwrap();
        for curves in CURVES {
            assert!(kinds.insert(curves.kind), "{} twice", curves.kind);
            assert!(
                shows.contains(curves.show.name()),
                "{}: {:?} is not in {shows}",
                curves.kind,
                curves.show
            );
            for (column, _) in curves.columns {
                assert!(columns.insert(column), "{}: {column} twice", curves.kind);
            }
        }
    }
}
