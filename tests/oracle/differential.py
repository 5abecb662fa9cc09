#!/usr/bin/env python3
"""Random devices, options and traces through the oracle and the real strategies: every counter and every
block's erase count must agree.

    differential.py --cases 500 --seed 1                               drives the nandscape binary
    differential.py --cases 500 --seed 1 --driver PATH/thesis_counters    drives the small example of
    crates/ftl
    differential.py --case 1234567                                       one case again; --keep leaves its
    trace behind

A case is a function of its own seed alone, so the seed that a failure prints repeats it.
"""

import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

import thesis_oracle

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

COMPARED = [
    ("host", ["reads", "writes", "trims", "flushes", "read_bytes", "write_bytes", "read_pages", "write_pages"]),
    ("flash", ["programs", "reads", "erases", "by_cause"]),
    ("map", ["table_bytes", "updates", "update_bytes", "log_table_updates"]),
    ("gc", ["runs", "moved_pages"]),
    ("merges", ["switch", "full", "evicted", "in_place"]),
    ("wear", ["per_block"]),
    ("time", ["simulated_ns"]),
]


def divisors(number):
    return [d for d in range(1, number + 1) if number % d == 0]


def pick_device(rng):
    if rng.random() < 0.05:
        return dict(thesis_oracle.THESIS), 4096
    sector = rng.choice([512, 1024, 4096])
    device = {
        "channels": rng.choice([1, 1, 2, 3, 4, 8]),
        "dies_per_channel": rng.choice([1, 1, 2, 3, 4]),
        "planes_per_die": rng.choice([1, 1, 1, 2]),
        "blocks_per_plane": rng.choice([2, 3, 4, 6, 8, 16, 24]),
        "pages_per_block": rng.choice([1, 2, 4, 5, 8, 16, 32]),
        "page": sector * rng.choice([1, 2, 4, 8]),
    }
    return device, sector


def pick_options(rng, ftl, device):
    units = device["channels"] * device["dies_per_channel"]
    blocks = device["planes_per_die"] * device["blocks_per_plane"]
    options = {}
    if ftl in ("sbm-gcl", "hsbm-gcl") and rng.random() < 0.6:
        options["pn"] = rng.choice(divisors(units))
        options["bn"] = rng.choice(divisors(blocks))
    if ftl == "sbm-gcl" and rng.random() < 0.3:
        options["full"] = "in-place"
    if ftl == "hsbm-gcl":
        if rng.random() < 0.7:
            options["logs"] = rng.choice([1, 2, 3, 4, 8, 16, 32])
        if rng.random() < 0.4:
            options["log_victim"] = "lru"
        if rng.random() < 0.4:
            options["identity"] = "covering"
    if rng.random() < 0.15:
        options["rmw"] = "false"
    return options


class Traffic:
    """Requests inside the first `span` bytes, of several habits at once."""

    def __init__(self, rng, span, page, superblock):
        self.rng, self.span, self.page, self.superblock = rng, span, page, superblock
        self.aligned = rng.random() < 0.5
        self.unit = page if self.aligned else rng.choice([1, 512, 512, page])
        self.biggest = max(1, min(span, rng.choice([page, 4 * page, superblock, 3 * superblock, span])))
        self.hot = rng.random() < 0.5
        self.cursor = 0
        self.weights = rng.choice(
            [
                [1, 0, 0, 0, 0],
                [6, 3, 1, 0, 0],
                [8, 1, 2, 1, 0.3],
                [4, 1, 4, 2, 0.3],
            ]
        )

    def offset(self, length):
        last = self.span - length
        habit = self.rng.random()
        if habit < 0.25:
            if self.cursor > last:
                self.cursor = 0
            at = self.cursor
            self.cursor += length
            return at
        if habit < 0.5:
            at = self.rng.randint(0, last) // self.superblock * self.superblock
        elif self.hot and habit < 0.9:
            at = int(last * self.rng.random() ** 6)
        else:
            at = self.rng.randint(0, last)
        return at // self.unit * self.unit

    def next(self):
        op = self.rng.choices("WRDZF", self.weights)[0]
        if op == "F":
            return op, 0, 0
        if self.rng.random() < 0.15:
            length = min(self.superblock, self.span)
        else:
            length = int(self.biggest * self.rng.random() ** 3) // self.unit * self.unit
        length = max(1, self.unit, length)
        length = min(length, self.span)
        return op, self.offset(length), length


def make_case(seed):
    rng = random.Random(seed)
    device, sector = pick_device(rng)
    ftl = rng.choice(list(thesis_oracle.STRATEGIES))
    options = pick_options(rng, ftl, device)
    blocks = device["channels"] * device["dies_per_channel"] * device["planes_per_die"] * device["blocks_per_plane"]
    bad = []
    if rng.random() < 0.3 and blocks > 4:
        bad = sorted(rng.sample(range(blocks), rng.randint(1, max(1, blocks // 6))))
    probe = thesis_oracle.STRATEGIES[ftl](thesis_oracle.Flash(device, bad), options)
    page = device["page"]
    capacity = probe.capacity_pages * page
    if capacity == 0:
        return make_case(seed + 1)
    superblock = getattr(probe, "size", device["pages_per_block"]) * page
    fraction = rng.choice([0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0])
    span = max(page, int(capacity * fraction) // page * page)
    traffic = Traffic(rng, span, page, superblock)
    # Enough to go round the device a few times, and bounded, since the oracle scans.
    budget = min(rng.choice([1, 3, 6]) * probe.capacity_pages, 60_000)
    trace, pages = [], 0
    if rng.random() < 0.3:
        chunk = rng.choice([page, superblock])
        trace = [("W", at, min(chunk, span - at)) for at in range(0, span, chunk)]
    while pages < budget and len(trace) < 8000:
        record = traffic.next()
        trace.append(record)
        pages += record[2] // page + 1
    return {
        "seed": seed, "device": device, "sector": sector, "ftl": ftl, "options": options, "bad": bad, "trace": trace,
    }  # fmt: skip


def run_real(case, args, path):
    with open(path, "w") as file:
        file.write("ts_us,op,offset,len\n")
        file.writelines(f"{i},{op},{offset},{length}\n" for i, (op, offset, length) in enumerate(case["trace"]))
    settings = [f"device.{key}={value}" for key, value in case["device"].items()]
    settings.append(f"device.sector={case['sector']}")
    settings += [f"ftl.{key}={value}" for key, value in case["options"].items()]
    if case["bad"]:
        settings.append("device.bad_blocks=" + ",".join(map(str, case["bad"])))
    if args.driver:
        command = [args.driver, path, "--ftl", case["ftl"]]
    else:
        command = [args.binary, "replay", path, "--device", "thesis", "--ftl", case["ftl"], "--json", "--detail"]
    for setting in settings:
        command += ["--set", setting]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    try:
        return json.loads(done.stdout), command
    except json.JSONDecodeError:
        return {"crash": done.stderr[-2000:] or done.stdout[-2000:], "status": done.returncode}, command


def differences(want, got):
    if "crash" in got:
        return [f"no result document (exit {got['status']}): {got['crash']}"]
    found = []
    want_failed, got_failed = want["error"], got.get("error")
    if (want_failed is None) != (got_failed is None):
        found.append(f"error: oracle {want_failed}, real {got_failed}")
    elif want_failed and want_failed["request"] != got_failed["request"]:
        found.append(f"failing request: oracle {want_failed['request']}, real {got_failed['request']}")
    for section, keys in COMPARED:
        for key in keys:
            if key not in got.get(section, {}):
                if section != "host":
                    found.append(f"{section}.{key} is missing")
                continue
            left, right = want[section][key], got[section][key]
            if left != right:
                if key == "per_block":
                    left = {i: (a, b) for i, (a, b) in enumerate(zip(left, right)) if a != b}
                    right = f"(block: (oracle, real)), lengths {len(want[section][key])} and {len(got[section][key])}"
                found.append(f"{section}.{key}: oracle {left}, real {right}")
    if "live_pages" in got and want["live_pages"] != got["live_pages"]:
        found.append(f"live_pages: oracle {want['live_pages']}, real {got['live_pages']}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int, help="run this one case")
    parser.add_argument("--binary", default=os.environ.get("NANDSCAPE", str(ROOT / "target" / "release" / "nandscape")))
    parser.add_argument("--driver", help="path of the thesis_counters example; default: use --binary")
    parser.add_argument("--keep", action="store_true", help="keep the trace of a failing case")
    args = parser.parse_args()

    if args.case is not None:
        seeds = [args.case]
    else:
        seeds = [random.Random(f"{args.seed}/{number}").getrandbits(48) for number in range(args.cases)]
    failed = faults = requests = 0
    seen = {}
    with tempfile.TemporaryDirectory() as folder:
        for number, seed in enumerate(seeds):
            case = make_case(seed)
            path = os.path.join(folder, f"{seed}.csv")
            got, command = run_real(case, args, path)
            want = thesis_oracle.replay(case["trace"], case["ftl"], case["device"], case["options"], case["bad"])
            found = differences(want, got)
            seen[case["ftl"]] = seen.get(case["ftl"], 0) + 1
            faults += want["error"] is not None
            requests += len(case["trace"])
            if found:
                failed += 1
                print(f"case {seed} differs: {case['ftl']} {case['options']} {case['device']} bad {case['bad']}")
                for line in found[:12]:
                    print("   ", line)
                if args.keep:
                    kept = f"case-{seed}.csv"
                    os.replace(path, kept)
                    print("    repeat:", " ".join([*command[:1], kept if args.driver else f"replay {kept}", *command[2 if args.driver else 3:]]))
                if failed >= 5:
                    print("giving up after 5")
                    break
            if os.path.exists(path):
                os.unlink(path)
            if (number + 1) % 100 == 0:
                print(f"{number + 1} cases, {failed} differ", file=sys.stderr, flush=True)
    by_ftl = ", ".join(f"{name} {count}" for name, count in sorted(seen.items()))
    print(f"{sum(seen.values())} cases ({by_ftl}), {requests} requests, {faults} ending in a fault: {failed} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
