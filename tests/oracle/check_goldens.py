#!/usr/bin/env python3
"""Checks the oracle itself against the golden counters. Give names of traces to check only those."""

import json
import pathlib
import sys

import thesis_oracle

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden" / "thesis"


def flat(result):
    causes = result["flash"]["by_cause"]
    moved = {what: causes["gc"][what] + causes["merge"][what] for what in ("programs", "reads")}
    return {
        "host_pages_written": result["host"]["write_pages"],
        "programs_host": causes["host"]["programs"],
        "programs_gc": moved["programs"],
        "reads_gc": moved["reads"],
        "reads_rmw+reads_host": causes["host"]["reads"],
        "blocks_erased": result["flash"]["erases"],
        "gc_runs": result["gc"]["runs"],
        "map_entries": result["map"]["updates"],
        "map_bytes": result["map"]["update_bytes"],
        "log_table_updates": result["map"]["log_table_updates"],
        "merge_switch": result["merges"]["switch"],
        "merge_full": result["merges"]["full"],
        "merge_evictions": result["merges"]["evicted"],
        "in_place_rewrites": result["merges"]["in_place"],
        "map_table_bytes": result["map"]["table_bytes"],
        "live_pages": result["live_pages"],
        "time_serial_us": result["time"]["simulated_ns"] // 1000,
        "erase_counts_unit_major": result["wear"]["per_block"],
        "erase_min": min(result["wear"]["per_block"]),
        "erase_max": max(result["wear"]["per_block"]),
    }


def main():
    failed = 0
    for name in sys.argv[1:] or ["full", "lammps", "macdrp", "small"]:
        expected = json.loads((GOLDEN / f"{name}.json").read_text())
        trace = thesis_oracle.read_csv(GOLDEN / f"{name}.csv")
        for ftl in thesis_oracle.STRATEGIES:
            want = expected[ftl.upper().replace("-", "_")]
            result = thesis_oracle.replay(trace, ftl)
            wrong = [
                f"{key}: {got}"
                for key, got in flat(result).items()
                if all(part in want for part in key.split("+"))
                and got != (want[key] if "+" not in key else sum(want[part] for part in key.split("+")))
            ]
            if (result["error"] is None) != (want["error"] is None):
                wrong.append(f"error: {result['error']}")
            print(name, ftl, "agrees" if not wrong else f"DIFFERS: {wrong}", flush=True)
            failed += bool(wrong)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
