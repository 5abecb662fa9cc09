#!/usr/bin/env python3
"""Runs job files with `zonemode` in fio and in nandscape, and compares request by request: on a regular file, and
some of them here also on a namespace with zones of the same size.

Both write their requests with `write_iolog`; operation, offset and length of every request must agree, in order,
for each job. Depth is 1 (`psync`) where the order of completions would matter.

    tests/jobs/compare_zones.py --binary target/debug/nandscape [--only NAME]

Without fio it says so and ends with success.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
GLOBAL = "[global]\nioengine=psync\nfilename={file}\nsize=8m\nbs=16k\nzonemode=zbd\nzonesize=1m\n"
# In fio a filename of a job goes beside that of [global].
TWO_FILES = GLOBAL.replace("filename={file}", "filename={file}:{file}2")
# Sections of job files by name, behind GLOBAL where they have no [global] of their own.
JOBS = {
    "sequential": "[a]\nrw=write\n",
    "sequential_twice": "[a]\nrw=write\nloops=2\n",
    "sequential_io_size": "[a]\nrw=write\nio_size=13m\n",
    "sequential_remainder": "[a]\nrw=write\nbs=48k\n",
    "sequential_remainder_limited": "[a]\nrw=write\nbs=48k\nmax_open_zones=1\n",
    "sequential_bsrange": "[a]\nrw=write\nbsrange=4k-60k\n",
    "sequential_bssplit": "[a]\nrw=write\nbssplit=4k/50:64k/20:12k/30\n",
    "capacity": "[a]\nrw=write\nzonecapacity=768k\n[b]\nstonewall\nrw=randwrite\nzonecapacity=768k\n",
    "capacity_remainder": "[a]\nrw=write\nzonecapacity=700k\n[b]\nstonewall\nrw=randread\nzonecapacity=700k\n",
    "random": "[a]\nrw=randwrite\n",
    "random_limited": "[a]\nrw=randwrite\nmax_open_zones=3\nio_size=24m\n",
    "random_limited_remainder": "[a]\nrw=randwrite\nmax_open_zones=3\nbs=48k\nio_size=24m\n",
    "random_one_open": "[a]\nrw=randwrite\nmax_open_zones=1\nbs=64k\n",
    "random_norandommap": "[a]\nrw=randwrite\nmax_open_zones=2\nnorandommap\nio_size=32m\n",
    "random_lfsr": "[a]\nrw=randwrite\nmax_open_zones=4\nrandom_generator=lfsr\nio_size=20m\n",
    "random_wide": "[a]\nrw=randwrite\nmax_open_zones=4\nrandom_generator=tausworthe64\n",
    "random_seed": "[a]\nrw=randwrite\nmax_open_zones=4\nrandseed=7\nio_size=20m\n[b]\nstonewall\nrw=randrw\nrandseed=7\n",
    "random_allrandrepeat": "[a]\nrw=randrw\nallrandrepeat=1\nbsrange=4k-32k\n",
    "random_bsrange": "[a]\nrw=randwrite\nbsrange=4k-64k\nmax_open_zones=5\n",
    "random_bssplit": "[a]\nrw=randwrite\nbssplit=4k/50:32k/50\nmax_open_zones=5\n",
    "random_every_fourth": "[a]\nrw=randwrite:4\nmax_open_zones=3\n",
    "random_percentage": "[a]\nrw=randwrite\npercentage_random=60\nmax_open_zones=3\n",
    "random_number_ios": "[a]\nrw=randwrite\nnumber_ios=77\nmax_open_zones=2\n",
    "mix": "[a]\nrw=randrw\nrwmixread=70\nmax_open_zones=4\nio_size=24m\n",
    "mix_sequential": "[a]\nrw=rw\nrwmixread=40\n",
    "mix_beyond": "[a]\nrw=randrw\nread_beyond_wp=1\nmax_open_zones=4\n",
    "mix_sizes": "[a]\nrw=randrw\nbs=4k,32k,1m\nrwmixread=80\nmax_open_zones=4\n",
    "read_empty": "[a]\nrw=randread\n",
    "read_beyond": "[a]\nrw=randread\nread_beyond_wp=1\n[b]\nstonewall\nrw=read\nread_beyond_wp=1\n",
    "read_after_write": "[w]\nrw=randwrite\nio_size=3m\nmax_open_zones=3\n[r]\nstonewall\nrw=randread\n[s]\nstonewall\nrw=read\n",
    "read_some_zones": "[w]\nrw=write\nsize=3m\noffset=2m\n[r]\nstonewall\nrw=randread\n[s]\nstonewall\nrw=read\nbsrange=4k-80k\n",
    "reset_threshold": "[a]\nrw=randwrite\nmax_open_zones=4\nzone_reset_threshold=0.3\nzone_reset_frequency=0.05\nio_size=32m\n",
    "reset_frequency": "[a]\nrw=randwrite\nzone_reset_frequency=0.1\nio_size=16m\n",
    "reset_sequential": "[a]\nrw=write\nzone_reset_threshold=0.5\nzone_reset_frequency=0.25\nio_size=16m\n",
    "several_limited": "[a]\nrw=randwrite\nmax_open_zones=6\njob_max_open_zones=2\nio_size=5m\n"
                       "[b]\nstonewall\nrw=randwrite\nmax_open_zones=6\njob_max_open_zones=3\nio_size=9m\n",
    "several_apart": "[a]\nrw=randwrite\nsize=4m\n[b]\nrw=randwrite\nsize=4m\noffset=4m\n",
    "zone_units": "[a]\nrw=write\nsize=3z\noffset=2z\nio_size=5z\n",
    "rounding": "[a]\nrw=randwrite\noffset=300k\nsize=5300k\n[b]\nstonewall\nrw=randread\noffset=300k\nsize=5300k\n",
    "skip": "[a]\nrw=write\nzoneskip=1z\n[b]\nstonewall\nrw=read\nzoneskip=1z\n",
    "skip_beyond": "[b]\nstonewall\nrw=read\nzoneskip=2z\nread_beyond_wp=1\n",
    "trim": "[w]\nrw=write\nio_size=6m\n[t]\nstonewall\nrw=trim\nbs=16k,16k,1m\nio_size=3m\n[r]\nstonewall\nrw=randtrim\nbs=16k,16k,1m\n",
    "trimwrite": "[w]\nrw=trimwrite\nbs=1m\n[r]\nstonewall\nrw=randtrimwrite\nbs=1m\n",
    "files": TWO_FILES + "[a]\nrw=randwrite\nmax_open_zones=2\nsize=12m\n",
    "files_random": TWO_FILES + "[a]\nrw=randrw\nmax_open_zones=2\nsize=12m\nfile_service_type=random:3\n",
    "not_a_power": "[a]\nrw=randwrite\nzonesize=1536k\nmax_open_zones=2\n",
    "asynchronous": "[a]\nioengine=libaio\nrw=randwrite\nmax_open_zones=3\nbsrange=4k-48k\nio_size=20m\n"
                    "[b]\nstonewall\nioengine=libaio\nrw=randrw\nmax_open_zones=3\nloops=2\n",
    "time_based": "[w]\nrw=write\nsize=2m\nio_size=2m\n[a]\nstonewall\nrw=randrw\nsize=4m\ntime_based\nruntime=1\n",
    "flushes": "[a]\nrw=randwrite\nfsync=7\nmax_open_zones=2\nio_size=3m\n",
    "stride": "[a]\nrw=read\nzonemode=strided\nzonesize=256k\nzonerange=1m\nzoneskip=512k\n",
    "stride_random": "[a]\nrw=randread\nzonemode=strided\nzonesize=512k\nzoneskip=256k\n",
    "stride_random_range": "[a]\nrw=randwrite\nzonemode=strided\nzonesize=2m\nzonerange=1m\nio_size=12m\n",
    "stride_backwards": "[a]\nrw=write:-32k\nzonemode=strided\nzonesize=512k\n",
}
# Those whose requests on a namespace with zones are the same, since nothing depends on where the file ends.
ON_ZONES = ["sequential", "sequential_remainder", "random_limited", "random_limited_remainder", "random_bsrange", "random_seed", "mix",
            "mix_beyond", "read_after_write", "reset_threshold", "several_limited", "zone_units", "trim"]
# Job files that fio refuses, or ends with an error.
REFUSED = {
    "zonesize=1m\nzonemode=none": "zonesize",
    "zonemode=strided\nzonesize=0": "zonesize",
    "zonesize=0": "zonesize",
    "zonesize=256": "zonesize",
    "zonecapacity=2m": "zonecapacity",
    "bs=2m": "bs",
    "zonecapacity=4k\nbs=8k": "bs",
    "job_max_open_zones=2": "job_max_open_zones",
    "max_open_zones=5000": "max_open_zones",
    "zone_reset_threshold=2": "zone_reset_threshold",
    "rw=trim\nbs=4k": "bs",
    "bs=5000": "bs",
    "size=100k": "zone",
    "zoneskip=4k": "zoneskip",
    "zonesize=16m": "zonesize",
}


def requests(path):
    """Operations, offsets and lengths of a log, by file."""
    if not path.exists():
        return []
    rows = []
    for line in path.read_text().splitlines():
        words = line.split()
        if len(words) == 5 and words[2] in ("read", "write", "trim", "sync"):
            # A flush has no place; fio leaves there what the request before it had.
            place = (0, 0) if words[2] == "sync" else (int(words[3]), int(words[4]))
            rows.append((os.path.basename(words[1]).replace("ns1", "data"), words[2], *place))
    return rows


def job_file(text, work, kind, file=None):
    """The job file with a log for each section."""
    lines, names = [], []
    for line in (text if text.startswith("[global]") else GLOBAL + text).format(file=file or work / "data").splitlines():
        lines.append(line)
        if line.startswith("[") and line != "[global]":
            names.append(line[1:-1])
            lines.append(f"write_iolog={work / f'{kind}.{names[-1]}'}")
    path = work / f"{kind}.fio"
    path.write_text("\n".join(lines) + "\n")
    return path, names


def run(command, work):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, cwd=work)


def data_files(work):
    for name in ("data", "data2"):
        with open(work / name, "wb") as file:
            file.truncate(8 << 20)


def compare(name, text, binary, fio, failures):
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        data_files(work)
        theirs_file, names = job_file(text, work, "theirs")
        ours_file, _ = job_file(text, work, "ours")
        runs = [("ours", name, ours_file, "small.toml")]
        if name in ON_ZONES:
            runs.append(("zoned", f"{name} on zones", job_file(text, work, "zoned", "ns1")[0], "zones.toml"))
        theirs = run([fio, theirs_file], work)
        if theirs.returncode:
            failures.append(f"{name}: fio {theirs.returncode} {theirs.stderr}")
            return 0
        return sum(compare_run(work, one, text, names, binary, failures) for one in runs)


def compare_run(work, one, text, names, binary, failures):
    kind, name, path, config = one
    ours = run([binary, "replay", path, "--config", HERE / config, "--quiet"], work)
    if ours.returncode:
        failures.append(f"{name}: nandscape {ours.returncode} {ours.stderr}")
        return 0
    total = 0
    for job in names:
        ours_rows, theirs_rows = requests(work / f"{kind}.{job}"), requests(work / f"theirs.{job}")
        if "time_based" in text:
            # Who makes more requests in that time does not matter.
            both = min(len(ours_rows), len(theirs_rows))
            if both > 500:
                del ours_rows[both:], theirs_rows[both:]
        total += len(theirs_rows)
        if ours_rows == theirs_rows:
            continue
        at = next((i for i, (a, b) in enumerate(zip(ours_rows, theirs_rows)) if a != b), min(len(ours_rows), len(theirs_rows)))
        failures.append(
            f"{name}, job {job}, request {at} of fio's {len(theirs_rows)} and nandscape's {len(ours_rows)}:\n"
            f"  fio       {theirs_rows[max(0, at - 2):at + 4]}\n  nandscape {ours_rows[max(0, at - 2):at + 4]}"
        )
    return total


def compare_refusals(binary, fio, failures):
    for text, key in REFUSED.items():
        with tempfile.TemporaryDirectory() as directory:
            work = pathlib.Path(directory)
            data_files(work)
            path, _ = job_file("[a]\nrw=write\n" + text + "\n", work, "refused")
            theirs = run([fio, path], work)
            ours = run([binary, "replay", path, "--config", HERE / "small.toml", "--quiet"], work)
            shown = text.replace("\n", " ")
            if theirs.returncode == 0 and "got signal" not in theirs.stdout + theirs.stderr:
                failures.append(f"{shown}: fio accepts it")
            if ours.returncode == 0 or key not in ours.stderr or "panicked" in ours.stderr:
                failures.append(f"{shown}: exit {ours.returncode}, expected an error that names {key}: {ours.stderr}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True, help="the nandscape command")
    parser.add_argument("--only", help="one job file by name")
    options = parser.parse_args()
    fio = shutil.which("fio")
    if fio is None:
        print("SKIP: fio is absent: job files with zones were not compared with it")
        return 0
    version = run([fio, "--version"], ".").stdout.strip()
    if version != "fio-3.33":
        print(f"SKIP: {version} is not fio-3.33, whose order of requests is followed: job files with zones were not compared")
        return 0
    binary = os.path.abspath(options.binary)
    failures, total = [], 0
    chosen = {name: text for name, text in JOBS.items() if options.only in (None, name)}
    for name, text in chosen.items():
        total += compare(name, text, binary, fio, failures)
    if options.only is None:
        compare_refusals(binary, fio, failures)
    for failure in failures:
        print(f"FAIL {failure}")
    print(f"{len(chosen)} job files with zones, {total} requests in both: {len(failures)} differences")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
