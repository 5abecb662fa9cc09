"""What the tests here share: a `serve nbd` in a directory of its own, and the command to ask it things.
Imported, not run."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[1:1] = [str(HERE.parent / "fuse"), str(HERE.parent / "nbd")]
import client  # noqa: E402
import harness  # noqa: E402
import openmetrics  # noqa: E402
from harness import check  # noqa: E402

PATIENCE = 60.0
# A small device with pages of 4 KiB, full soon.
KEYS = {
    "device.channels": 2,
    "device.dies_per_channel": 2,
    "device.planes_per_die": 1,
    "device.blocks_per_plane": 64,
    "device.pages_per_block": 32,
    "device.page": "4KiB",
    "device.sector": "4KiB",
}


def device_words(keys=None):
    """Those keys on the command line."""
    return [word for key, value in {**KEYS, **(keys or {})}.items() for word in ("--set", f"{key}={value}")]


class Bench:
    """A directory, the command under test, and the servers started in it."""

    def __init__(self, binary, work):
        self.binary, self.work = str(binary), work
        # Servers are found by their users' directory: here there are no others.
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": str(work)}
        self.servers = []

    def nandscape(self, *words, status=0):
        """Runs the command; gives what it said on stdout and stderr. Any other exit status stops the test."""
        words = [self.binary, *(str(word) for word in words)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=False, env=self.environment, cwd=self.work)
        said = f"{' '.join(words[1:])}: exit status {done.returncode}\n{done.stdout}{done.stderr}"
        check(done.returncode == status and "panicked" not in done.stderr, f"{said}\nexpected {status}")
        return done.stdout, done.stderr

    def refused(self, status, parts, *words):
        """Runs the command, which must fail with this status and say all of these."""
        out, err = self.nandscape(*words, status=status)
        for part in parts:
            check(part in err, f"{' '.join(map(str, words))}: '{err}' lacks '{part}'")
        check(out == "", f"{' '.join(map(str, words))} fails, and prints {out}")

    def ask(self, *words):
        """Runs the command for its JSON."""
        return json.loads(self.nandscape(*words)[0])

    def serve(self, *words, keys=None, name="s", wait=True, prefix=()):
        """Starts `serve nbd` on the socket `name`.sock and waits until clients can come; `wait=False` only
        starts it. `prefix` goes before the command."""
        server = Server(self, name, [*device_words(keys), *words], prefix)
        self.servers.append(server)
        if wait:
            check(server.ready(), f"the server does not start: {server.messages()}")
        return server

    def clear(self):
        """Takes away what is left, after a failure."""
        for server in self.servers:
            if server.process.poll() is None:
                server.process.kill()
            server.process.communicate()


class Server:
    """A `serve nbd` that was started."""

    def __init__(self, bench, name, words, prefix=()):
        self.socket = bench.work / f"{name}.sock"
        self.log = bench.work / f"{name}.log"
        self.words = [*prefix, bench.binary, "serve", "nbd", "--socket", str(self.socket), *map(str, words)]
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                self.words, stdout=subprocess.PIPE, stderr=log, text=True, env=bench.environment, cwd=bench.work
            )

    def ready(self):
        """Waits until it serves, or has ended: whether it serves."""
        return self.process.stdout.readline().startswith("listening on")

    def connect(self, name=""):
        """A client."""
        return client.Client(self.socket, name)

    def messages(self):
        """What it has said."""
        return self.log.read_text(encoding="utf-8")

    def metrics_url(self):
        """Where it gives its statistics over HTTP."""
        return openmetrics.url(self.messages())

    def ended(self, status):
        """Waits for its end, which must be with this status."""
        try:
            got = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise harness.Failed(f"the server goes on: {self.messages()}") from None
        check(got == status and "panicked" not in self.messages(), f"the server ended with {got}, expected {status}: {self.messages()}")

    def stop(self):
        """Asks it to end; it must, cleanly."""
        self.process.send_signal(signal.SIGTERM)
        self.ended(0)


@contextlib.contextmanager
def bench(options):
    """A bench that leaves nothing behind."""
    with harness.scratch() as work:
        table = Bench(pathlib.Path(options.binary).resolve(), work)
        try:
            yield table
        except client.Wrong as wrong:
            raise harness.Failed(str(wrong)) from wrong
        finally:
            table.clear()


def main(test, description, more=lambda parser: None):
    """Runs a test with its options; `more` adds some."""
    parser = harness.argparse.ArgumentParser(description=description, formatter_class=harness.argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("NANDSCAPE", HERE.parents[1] / "target/debug/nandscape")
    parser.add_argument("--binary", default=default, help="the nandscape to test")
    parser.add_argument("--seed", type=int, default=1)
    more(parser)
    options = parser.parse_args()
    harness.main(lambda: test(options))
