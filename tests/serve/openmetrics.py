"""A scrape of `serve --http` as a collector reads it, with the parser of Prometheus's own client library, and
what docs/serving.md says of it. Imported, not run, by tests that have `harness` in their path."""

import pathlib
import re
import sys
import urllib.request

import harness
from harness import check

# Debian's python3-prometheus-client is for Debian's python3, which need not be the first one in PATH.
sys.path.append("/usr/lib/python3/dist-packages")
try:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families
except ImportError:
    text_string_to_metric_families = None

DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "docs/serving.md"


def missing():
    """Why nothing can be read; None where it can."""
    return "prometheus_client (package python3-prometheus-client) is absent" if text_string_to_metric_families is None else None


def url(messages):
    """Where a server that said this gives its statistics."""
    found = re.search(r"http://\S+/metrics", messages)
    check(found is not None, f"no address of statistics in {messages}")
    return found[0]


def key(name, **labels):
    """A sample as `scrape` names it."""
    return f"nandscape_{name}", tuple(sorted(labels.items()))


def scrape(address):
    """Samples by name and labels, families by name."""
    with urllib.request.urlopen(address, timeout=10) as answer:
        kind, text = answer.headers["Content-Type"], answer.read().decode()
    check(kind.startswith("application/openmetrics-text; version=1.0.0"), f"content type {kind}")
    samples, families = {}, {}
    try:
        for family in text_string_to_metric_families(text):
            families[family.name] = family
            for sample in family.samples:
                name = (sample.name, tuple(sorted(sample.labels.items())))
                check(name not in samples, f"{name} twice")
                samples[name] = sample.value
    except ValueError as error:
        raise harness.Failed(f"{error} in\n{text}") from error
    return samples, families


def documented():
    """Type and labels of every family in the documentation."""
    found = {}
    for line in DOCUMENT.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) >= 5 and cells[1].startswith("`nandscape_"):
            for name in re.findall(r"`(\w+)`", cells[1]):
                found[name] = (cells[2], set(re.findall(r"`(\w+)`", cells[3])))
    check(len(found) > 20, f"the documentation has a table of families: {found}")
    return found


def check_documented(families):
    """Each family is in the documentation, with its type and labels. Gives the names of those that are there
    and not in the scrape."""
    wanted = documented()
    for name, family in families.items():
        check(name in wanted, f"{name} is not in docs/serving.md")
        kind, labels = wanted[name]
        check(family.type == kind, f"{name} is a {family.type}, in docs/serving.md a {kind}")
        for sample in family.samples:
            check(set(sample.labels) == labels, f"{sample}: labels in docs/serving.md: {labels}")
    return set(wanted) - set(families)


def of_cache(names):
    """Those that are about a cache."""
    return {name for name in names if name.startswith("nandscape_cache_")}
