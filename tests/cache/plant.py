"""A cache over files and its server, for the tests of `nandscape cache` and `serve --cache`."""

import hashlib
import json
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "fuse"), str(HERE.parent / "nbd")]

import client as nbd  # noqa: E402, F401
import harness  # noqa: E402
from harness import check, run  # noqa: E402


def digest(path):
    """Checksum of a file."""
    sha = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            sha.update(piece)
    return sha.hexdigest()


def make_disk(path, size):
    """A disk of zeroes."""
    with open(path, "xb") as file:
        file.truncate(size)


class Plant:
    """A directory with a cache and disks."""

    def __init__(self, binary, work, *, size="16MiB", create=()):
        self.binary, self.work = str(binary), work
        self.fast = work / "fast"
        self.server = None
        self.log = work / "server.log"
        if size is not None:
            self.cache("create", self.fast, "--size", size, *create)

    def cache(self, verb, *words, ok=(0,)):
        """Runs a verb of `cache`, and gives what it printed."""
        return run(self.binary, "cache", verb, *words, ok=ok)

    def attach(self, name, size):
        """A new disk behind the cache."""
        disk = self.work / f"{name}.disk"
        make_disk(disk, size)
        self.cache("attach", self.fast, disk, "--name", name)
        return disk

    def status(self):
        """The status as a document."""
        done = subprocess.run([self.binary, "cache", "status", str(self.fast), "--json"], capture_output=True, check=False)
        check(done.returncode == 0, f"cache status: {done.stderr.decode()}")
        return json.loads(done.stdout)

    def start(self, kind, *words, cache=None):
        """Starts a server and waits until it says where it is."""
        return self.launch("serve", kind, "--cache", cache or self.fast, *words)

    def launch(self, *words):
        """Starts a server by any command."""
        command = [self.binary, *map(str, words)]
        with open(self.log, "ab") as log:
            self.server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        line = self.server.stdout.readline()
        check(line, f"{' '.join(command)}: ended with {self.server.wait() if not line else 0}\n{self.messages()}")
        return line.strip()

    def nbd(self, *words, **keywords):
        """Serves over NBD; gives the socket."""
        socket = self.work / "s.sock"
        self.start("nbd", "--socket", socket, *words, **keywords)
        return str(socket)

    def messages(self):
        """What servers have said."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def said(self, message):
        """What servers have said, once that has the message: they do not wait for their log."""
        limit = time.monotonic() + 60
        while message not in self.messages():
            check(time.monotonic() < limit, f"no server says '{message}':\n{self.messages()}")
            time.sleep(0.05)
        return self.messages()

    def kill(self):
        """Pulls the plug."""
        self.server.kill()
        self.server.wait()
        self.server.stdout.close()

    def stop(self):
        """Ends the server in good order."""
        self.server.terminate()
        status = self.server.wait(60)
        self.server.stdout.close()
        check(status == 0, f"the server ended with {status}\n{self.messages()}")

    def clear(self):
        """Nothing outlives a failure."""
        if self.server is not None and self.server.poll() is None:
            self.kill()
        if harness.dead_or_mounted(self.work / "device"):
            subprocess.run(["umount", "-l", self.work / "device"], capture_output=True, check=False)
