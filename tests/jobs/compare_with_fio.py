#!/usr/bin/env python3
"""Runs the same job files in fio, on a temporary file, and in nandscape, and reads both outputs with the same
code.

What a job file fixes must be equal: bytes and requests of each direction of each job that is bound by its
size, flushes of a writer, report groups, percentiles that are listed. Times and rates are those of two
different devices and are only checked to be consistent in themselves; how often a job that is bound by time
gets its turn depends on the host in fio, so there each program is held to what the file allows. Job files that fio refuses must be
refused; those that it accepts must be accepted or refused by the name of an option.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent

# Job files whose sums are fixed by sizes alone. `{file}` is the file or namespace; both programs get the very
# same text. (fio goes one request beyond a size that is no multiple of the block if the file happens to be
# longer; hence fresh files.)
BOUND = {
    "sequential": "[global]\nioengine=psync\nfilename={file}\nsize=2m\n[r]\nrw=read\nbs=4k\n[w]\nrw=write\nbs=64k\nstonewall\n",
    "random": "[g]\nfilename={file}\nrw=randwrite\nbs=4k\nsize=4m\n",
    "mix": "[g]\nfilename={file}\nrw=randrw\nrwmixread=70\nbs=4k\nsize=4m\nrandseed=7\n",
    "sizes": "[g]\nfilename={file}\nrw=randwrite\nbsrange=4k-32k\nsize=4m\n[h]\nfilename={file}\nrw=write\nbssplit=4k/50:8k/50\nsize=1m\nstonewall\n",
    "limits": "[global]\nfilename={file}\nbs=4k\nsize=1m\n[a]\nrw=read\nnumber_ios=17\n[b]\nrw=write\nio_size=3m\nstonewall\n[c]\nrw=read\nloops=3\nstonewall\n[d]\nrw=write:4k\nstonewall\n",
    "kb_base_1024": "[a]\nfilename={dir}/fresh_1024\nrw=write\nbs=512\nsize=4KiB\n",
    "kb_base_1000": "[b]\nfilename={dir}/fresh_1000\nrw=write\nbs=500\nsize=4kB\nkb_base=1000\n",
    "flushes": "[g]\nfilename={file}\nrw=write\nbs=4k\nsize=1m\nfsync=10\nend_fsync=1\n",
    "copies": "[global]\nfilename={file}\nbs=4k\nsize=256k\ngroup_reporting\n[a]\nrw=write\nnumjobs=3\noffset_increment=256k\n[b]\nrw=randread\nstonewall\npercentile_list=50:99:99.9999\n",
    "depths": "[g]\nioengine=libaio\niodepth=8\nfilename={file}\nrw=randread\nbs=16k\nsize=4m\nrandom_distribution=zipf:1.1\n",
    "rate": "[g]\nfilename={file}\nrw=read\nbs=4k\nsize=64k\nrate_iops=100\n",
    "own_files": "[global]\ndirectory={dir}\nbs=8k\nsize=512k\nnrfiles=1\n[r]\nrw=randread\nnumjobs=2\n[w]\nrw=write\n",
    "recording": "[global]\nread_iolog={dir}/requests.log\nreplay_redirect={file}\n[times]\n[scaled]\nstonewall\n"
    "replay_no_stall=1\nreplay_scale=2\nreplay_align=4k\n[faster]\nstonewall\nreplay_time_scale=200\n",
    "time": "[g]\nfilename={file}\nrw=randread\nbs=4k\nsize=64k\nrate_iops=50\ntime_based\nruntime=1\n",
}
# The log that "recording" replays.
LOG = "fio version 3 iolog\n0 x add\n0 x open\n" + "".join(
    f"{at * 500} x {what}\n"
    for at, what in enumerate(
        ("write 0 4096", "read 4096 8192", "sync 0 0", "write 16384 65536", "read 0 512", "write 81920 4096")
    )
) + "5000 x close\n"
# Requests that a job of `BOUND` may make where its end is a moment: in fio, whose last request may fall on
# either side of that moment and which a busy host delays, and here, where time is exact.
BY_TIME = {"time": {"fio": range(1, 52), "nandscape": range(50, 51)}}
# Job files that differ only in whether they are accepted.
PARSE = [
    "rw=read", "rw=randread:8", "rw=read:", "rw=foo", "rw=write:-8k", "bs=4k,8k,16k", "bs=,8k", "bs=0", "bs=x", "bssplit=4k/50:8k",
    "bssplit=4k", "bsrange=1k-4k", "bsrange=4k", "bsrange=8k-4k", "iodepth=abc", "iodepth=4k", "iodepth=", "iodepth", "rwmixread=200",
    "rwmixwrite=30", "write_hint=foo", "write_hint=medium", "runtime=10", "runtime=10ms", "runtime=1h", "stonewall", "stonewall=1",
    "stonewall=yes", "time_based", "random_distribution=zipf", "random_distribution=zipf:0.8", "random_distribution=zipf:-1",
    "random_distribution=pareto:0.2", "random_distribution=pareto:1.2", "random_distribution=normal:20",
    "random_distribution=zoned:60/10:30/20:10/70", "random_distribution=zoned:60/10:30/20", "random_distribution=zoned_abs:95/16k:5/16k",
    "random_distribution=flat", "percentage_random=150", "percentage_random=40", "thinktime=100", "thinktime=2ms", "thinktime_blocks=4",
    "rate=1m,500k", "rate_iops=100,", "rate_process=poisson", "rate_process=burst", "startdelay=1-2", "ramp_time=1", "fsync=8", "sync=dsync",
    "sync=2", "norandommap", "randrepeat=0", "randseed=7", "random_generator=lfsr", "loops=2", "number_ios=5", "percentile_list=50:99.9",
    "verify=crc32c", "zonemode=zbd", "zonemode=foo", "zonesize=1m", "max_open_zones=5000",
    "zone_reset_threshold=2", "zone_reset_frequency=0.1", "zoneskip=1z", "randrepeat=x", "random_generator=foo", "nrfiles=4", "flow=3", "read_iolog=x", "replay_skip=foo", "replay_skip=trim", "replay_no_stall=1", "replay_align=4k", "replay_time_scale=0", "latency_target=10", "direct=1", "invalidate=0",
    "group_reporting", "new_group", "exitall", "wait_for=nobody", "offset=4k", "offset=50%", "size=120%", "unlink=1", "xyzzy=1",
    "description=a word or two", "thread", "refill_buffers", "buffer_compress_percentage=50", "log_avg_msec=100", "fdatasync=3",
]


def read_jobs(text):
    """What a script keeps of a fio result: the code that must work for both."""
    document = json.loads(text[text.index("{"):])
    jobs = []
    for job in document["jobs"]:
        row = {"name": job["jobname"], "group": job["groupid"], "error": job["error"], "sync": job["sync"]["total_ios"]}
        for direction in ("read", "write", "trim"):
            part = job[direction]
            row[direction] = (part["io_bytes"], part["total_ios"])
            if part["total_ios"]:
                clat = part["clat_ns"]
                assert clat["N"] == part["total_ios"], (row, clat["N"])
                assert clat["min"] <= clat["mean"] <= clat["max"], (row, clat)
                points = list(clat["percentile"].values())
                assert points == sorted(points), (row, points)
                assert part["bw"] in (part["bw_bytes"] // 1024, part["bw_bytes"] // 1024 + 1), (row, part["bw"])
                row[direction + "_percentiles"] = list(clat["percentile"])
        depths = [value for key, value in job["iodepth_level"].items()]
        # fio counts flushes there as well, which makes more than 100.
        assert sum(depths) > 99 or not any(depths), depths
        levels = [v for key in ("latency_ns", "latency_us", "latency_ms") for v in job[key].values()]
        assert abs(sum(levels) - 100) < 1 or not any(levels), levels
        jobs.append(row)
    return document, jobs


def keys(value, path=""):
    """Paths of all keys; names that are data (options, percentiles) left out."""
    if isinstance(value, list):
        return set().union(*(keys(v, path) for v in value)) if value else set()
    if not isinstance(value, dict):
        return {path}
    open_ended = path.endswith(("options", "percentile"))
    return {path} if open_ended else set().union({path}, *(keys(v, f"{path}/{k}") for k, v in value.items()))


def run(command, **more):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, **more)


def compare_bound(binary, fio, work, failures):
    config = HERE / "small.toml"
    (work / "requests.log").write_text(LOG)
    for name, text in BOUND.items():
        job_file = work / f"{name}.fio"
        job_file.write_text(text.format(file=work / "data", dir=work))
        theirs = run([fio, "--output-format=json", job_file], cwd=work)
        ours = run([binary, "replay", job_file, "--config", config, "--fio-json", "-", "--quiet"], cwd=work)
        if theirs.returncode or ours.returncode:
            failures.append(f"{name}: fio {theirs.returncode} {theirs.stderr}, nandscape {ours.returncode} {ours.stderr}")
            continue
        their_document, their_jobs = read_jobs(theirs.stdout)
        our_document, our_jobs = read_jobs(ours.stdout)
        # Which places a mix or split draws first is a matter of the generator; the sum of both directions is
        # not.
        def told(job, program):
            rows = dict(job)
            if name in BY_TIME:
                size, count = rows.pop("read")
                if size != 4096 * count or count not in BY_TIME[name][program]:
                    failures.append(f"{name}: {program} made {count} requests of {size} bytes, expected {BY_TIME[name][program]} of 4096")
            if name in ("mix", "sizes", "depths"):
                total = [sum(rows[d][i] for d in ("read", "write", "trim")) for i in (0, 1)]
                for d in ("read", "write", "trim"):
                    del rows[d]
                rows["bytes"] = total[0]
                if name != "sizes":
                    rows["ios"] = total[1]
            return rows
        for theirs_row, ours_row in zip(their_jobs, our_jobs, strict=True):
            theirs_told, ours_told = told(theirs_row, "fio"), told(ours_row, "nandscape")
            if theirs_told != ours_told:
                failures.append(f"{name}: fio {theirs_told}\n  nandscape {ours_told}")
        missing = keys(their_document) - keys(our_document)
        # Per-disk figures of the host are not ours to give.
        missing = {k for k in missing if not k.startswith("/disk_util")}
        if missing:
            failures.append(f"{name}: keys of fio that are absent: {sorted(missing)}")


def compare_parsing(binary, fio, work, failures):
    config = HERE / "small.toml"
    accepted = refused = 0
    for option in PARSE:
        job_file = work / "parse.fio"
        job_file.write_text(f"[first]\nfilename={work / 'data'}\nsize=64k\n[job]\nfilename={work / 'data'}\nsize=64k\n{option}\n")
        theirs = run([fio, "--parse-only", job_file], cwd=work).returncode == 0
        ours = run([binary, "replay", job_file, "--config", config, "--quiet", "--json"], cwd=work)
        key = option.split("=")[0]
        named = f"{job_file}:" in ours.stderr and key in ours.stderr
        if ours.returncode not in (0, 1, 2) or "panicked" in ours.stderr:
            failures.append(f"{option}: exit {ours.returncode}: {ours.stderr}")
        elif ours.returncode and not named:
            failures.append(f"{option}: refused without naming file, line and option: {ours.stderr}")
        elif not theirs and ours.returncode == 0:
            failures.append(f"{option}: fio refuses it, nandscape does not")
        accepted += ours.returncode == 0
        refused += ours.returncode != 0
    return accepted, refused


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True, help="the nandscape command")
    options = parser.parse_args()
    fio = shutil.which("fio")
    if fio is None:
        print("SKIP: fio is absent: job files were not compared with it")
        return 0
    failures = []
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        binary = os.path.abspath(options.binary)
        compare_bound(binary, fio, work, failures)
        accepted, refused = compare_parsing(binary, fio, work, failures)
    for failure in failures:
        print(f"FAIL {failure}")
    print(f"{len(BOUND)} job files run in both, {accepted} options accepted and {refused} refused: {len(failures)} differences")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
