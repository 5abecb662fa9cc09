"""What the tests of `serve fuse` share: what is missing here, the server, file systems on its loop device."""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
CONFIG = HERE / "small.toml"
PATIENCE = 60.0


class Failed(Exception):
    """What a test found wrong."""


def check(condition, message):
    """Stops the test with a message unless the condition holds."""
    if not condition:
        raise Failed(message)


def run(*command, ok=(0,), timeout=300, **keywords):
    """Runs a command and gives what it printed. Another exit status than those in `ok` stops the test with
    all it printed."""
    words = [str(word) for word in command]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout, check=False, **keywords)
    text = done.stdout if isinstance(done.stdout, str) else done.stdout.decode(errors="replace")
    check(done.returncode in ok, f"{' '.join(words)}: exit status {done.returncode}\n{text}")
    return text


def missing(*tools, devices=True):
    """Why a test cannot run on this machine, or None."""
    if devices:
        if os.geteuid() != 0:
            return "root is needed for mounts and loop devices"
        for path in ("/dev/fuse", "/dev/loop-control"):
            if not os.path.exists(path):
                return f"{path} is absent"
    absent = [tool for tool in tools if shutil.which(tool) is None]
    return f"{', '.join(absent)} absent" if absent else None


def skip(what, why):
    """Says that something did not run. Where nothing may be missing, that is a failure."""
    print(f"SKIP: {what}: {why}")
    if os.environ.get("NANDSCAPE_REQUIRE") == "1" and "absent" in why and "/dev/" not in why:
        raise Failed(f"{what}: {why}, which is required here")


def arguments(description):
    """The parser with what every test takes."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.environ.get("NANDSCAPE", HERE.parents[1] / "target/debug/nandscape"), help="the nandscape to test")
    parser.add_argument("--config", default=CONFIG, help="stack to serve")
    parser.add_argument("--set", dest="sets", action="append", default=[], metavar="KEY=VALUE", help="configuration key")
    parser.add_argument("--ftl", help="translation layer")
    parser.add_argument("--image", action="store_true", help="keep the bytes in an image file instead of memory")
    return parser


# Stacks whose files the server mounts itself: no other file system stands between them and the flash.
DIRECT = ("zone-files", "oftl")


def on_stack(options, name):
    """The arguments for a stack of that name."""
    return argparse.Namespace(**{**vars(options), "ftl": name, "sets": [*options.sets, f"stack.kind={name}"]})


class Server:
    """A `nandscape serve fuse`, its directories and its loop device."""

    def __init__(self, options, work, *, image=None, loop=True, extra=()):
        self.mount = work / "device"
        self.log = work / "server.log"
        command = [options.binary, "serve", "fuse", "--mount", self.mount, "--json", "--config", options.config]
        command += ["--loop"] if loop else []
        command += ["--ftl", options.ftl] if options.ftl else []
        command += [word for pair in options.sets for word in ("--set", pair)]
        if image is None and options.image:
            image = work / "device.image"
        command += ["--image", image] if image is not None else []
        self.command = [str(word) for word in [*command, *extra]]
        self.process = None
        self.served = None

    def start(self):
        """Starts it and waits until it serves."""
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=log)
        return self

    def ready(self):
        """Waits until it serves; gives itself."""
        text = b""
        while not text.rstrip().endswith(b"]"):
            line = self.process.stdout.readline()
            if not line:
                raise Failed(f"{' '.join(self.command)}: ended with {self.process.wait()}\n{self.messages()}")
            text += line
        self.served = json.loads(text)
        return self

    @property
    def file(self):
        """The first file of the mount."""
        return pathlib.Path(self.served[0]["file"])

    @property
    def directory(self):
        """The directory of the clients' own files."""
        return pathlib.Path(self.served[0]["directory"])

    @property
    def device(self):
        """The first loop device."""
        return pathlib.Path(self.served[0]["loop"])

    def messages(self):
        """What it has said."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def stop(self):
        """Asks it to end; it must, cleanly, and leave nothing behind."""
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failed(f"the server did not end after SIGTERM\n{self.messages()}") from None
        finally:
            self.process.stdout.close()
        check(status == 0, f"the server ended with {status}\n{self.messages()}")
        check(not os.path.ismount(self.mount), f"{self.mount} is still mounted")

    def kill(self):
        """Pulls the plug. Nothing may keep a killed server: what waited for it would wait for ever."""
        self.process.kill()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            # Ends what it waits for.
            subprocess.run(["umount", "-f", self.mount], capture_output=True, check=False)
            raise Failed(f"the server outlives SIGKILL\n{self.messages()}") from None
        self.process.stdout.close()

    def clear(self):
        """Takes away whatever is left, after a failure."""
        if self.process is not None and self.process.poll() is None:
            self.kill()
        if self.served is not None or dead_or_mounted(self.mount):
            subprocess.run(["umount", "-l", self.mount], capture_output=True, check=False)


def dead_or_mounted(path):
    """Whether a mount covers a directory, answered or not."""
    with open("/proc/self/mountinfo", encoding="utf-8") as table:
        return any(line.split(" ")[4] == str(path) for line in table)


@contextlib.contextmanager
def scratch(keep=False):
    """A directory for one test. Nothing is removed while something is still mounted in it."""
    work = pathlib.Path(tempfile.mkdtemp(prefix="nandscape-fuse-"))
    try:
        yield work
    finally:
        if keep:
            print(f"kept {work}")
        elif not any(dead_or_mounted(path) for path in [work / "device", work / "files"]):
            shutil.rmtree(work, ignore_errors=True)


@contextlib.contextmanager
def serving(options, work, **keywords):
    """A server that is stopped in the end, and killed where the test has failed."""
    server = Server(options, work, **keywords)
    try:
        yield server.start().ready()
        server.stop()
    finally:
        server.clear()


@contextlib.contextmanager
def mounted(device, directory, *mount_options):
    """A file system that is unmounted in the end."""
    directory.mkdir(exist_ok=True)
    words = ["-o", ",".join(mount_options)] if mount_options else []
    run("mount", *words, device, directory)
    try:
        yield directory
    except BaseException:
        subprocess.run(["umount", directory], capture_output=True, check=False)
        raise
    unmount(directory)


def unmount(directory):
    """Unmounts; the kernel may need a moment to let go."""
    for attempt in range(40):
        done = subprocess.run(["umount", directory], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return
        check("busy" in done.stderr and attempt < 39, f"umount {directory}: {done.stderr}")
        time.sleep(0.25)


# How file systems are made and looked over. They read only; a damaged one is an exit status other than 0.
FILE_SYSTEMS = {
    "ext2": (["mkfs.ext2", "-q", "-F"], ["e2fsck", "-f", "-n"]),
    "ext3": (["mkfs.ext3", "-q", "-F"], ["e2fsck", "-f", "-n"]),
    "ext4": (["mkfs.ext4", "-q", "-F"], ["e2fsck", "-f", "-n"]),
    "xfs": (["mkfs.xfs", "-q", "-f"], ["xfs_repair", "-n"]),
    "btrfs": (["mkfs.btrfs", "-q", "-f"], ["btrfs", "check", "--readonly"]),
}


def file_system_missing(name):
    """Why a file system cannot be tested here, or None."""
    make, look = FILE_SYSTEMS[name]
    why = missing(make[0], look[0])
    if why is None:
        if shutil.which("modprobe"):
            subprocess.run(["modprobe", "-q", name], capture_output=True, check=False)
        known = pathlib.Path("/proc/filesystems").read_text(encoding="utf-8").split()
        why = None if name in known else "the kernel does not have it"
    return why


def make_file_system(name, device):
    """Makes it."""
    run(*FILE_SYSTEMS[name][0], device)


def look_over(name, device):
    """Runs its checker."""
    run(*FILE_SYSTEMS[name][1], device)


def main(test):
    """Runs a test's main function; a failure is told in words and by the exit status."""
    sys.stdout.reconfigure(line_buffering=True)
    try:
        test()
    except Failed as failed:
        print(f"FAILED: {failed}", file=sys.stderr)
        sys.exit(1)
