"""OpenTelemetry's own Collector, built from traces/collector and run on loopback. It forwards all that it receives to another
receiver."""

import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import urllib.request

from harness import free_port, wait_for

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "traces", "collector")
FILES = ("main.go", "go.mod", "go.sum")
OLDEST = (1, 22)  # Go, as go.mod says
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "hearth")
GIVEN = os.environ.get("HEARTH_TEST_COLLECTOR")


def kept():
    """Returns the path of the program, which is named after its version and its source."""
    text = {name: open_bytes(os.path.join(SOURCE, name)) for name in FILES}
    version = re.search(rb"collector/otelcol v(\S+)", text["go.mod"])[1].decode()
    return os.path.join(CACHE, f"collector-{version}-{hashlib.sha256(b''.join(text.values())).hexdigest()[:8]}")


def open_bytes(path):
    with open(path, "rb") as f:
        return f.read()


def go():
    """Returns a Go that can build it: the first one in PATH, or the one from Go's own archive. Raises OSError if neither can."""
    seen = []
    for path in (os.environ.get("PATH"), "/usr/local/go/bin"):
        if found := shutil.which("go", path=path):
            said = subprocess.run([found, "version"], capture_output=True, text=True, check=True).stdout.strip()
            version = re.search(r"go(\d+)\.(\d+)", said)
            if version and tuple(map(int, version.groups())) >= OLDEST:
                return found
            seen.append(said)
    raise OSError(f"Go {'.'.join(map(str, OLDEST))} is needed, and there is {' and '.join(seen) or 'none'}")


def program(build):
    """Returns the collector that HEARTH_TEST_COLLECTOR names, or the one built once. Raises OSError if there is none."""
    if GIVEN or os.path.exists(kept()):
        return GIVEN or kept()
    if not build:
        raise OSError("it is not built; HEARTH_TEST_CLIENTS=all builds it once, in two minutes")
    folder = os.path.join(CACHE, "collector-build")  # stays if the build fails: the next one goes on from there
    os.makedirs(folder, exist_ok=True)
    env = {**os.environ, "GOPATH": f"{folder}/path", "GOCACHE": f"{folder}/cache", "GOFLAGS": "-modcacherw -trimpath", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
    command = ["nice", go(), "build", "-ldflags", "-s -w", "-o", f"{folder}/collector", "."]
    try:
        done = subprocess.run(command, cwd=SOURCE, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=1800, check=False)
    except subprocess.TimeoutExpired as e:
        raise OSError("go build took over half an hour") from e
    if done.returncode:
        raise OSError(f"go build failed: {done.stderr.strip()[-1000:]}")
    os.rename(f"{folder}/collector", kept())
    shutil.rmtree(folder)
    return kept()


class Collector:
    def __init__(self, path, onward):
        self.path, self.onward, self.port, self.own = path, onward, free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.port}"

    def settings(self):
        pipeline = {"receivers": ["otlp"], "processors": ["batch"], "exporters": ["otlphttp"]}
        scraped = {"pull": {"exporter": {"prometheus": {"host": "127.0.0.1", "port": self.own}}}}
        return {"receivers": {"otlp": {"protocols": {"http": {"endpoint": f"127.0.0.1:{self.port}"}}}},
                "processors": {"batch": {"timeout": "50ms"}},
                "exporters": {"otlphttp": {"endpoint": self.onward}},
                "service": {"pipelines": {"traces": pipeline}, "telemetry": {"logs": {"encoding": "json"}, "metrics": {"readers": [scraped]}}}}

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        try:
            self.folder = self.stack.enter_context(tempfile.TemporaryDirectory(prefix="hearth-collector-"))
            with open(f"{self.folder}/settings.yaml", "w", encoding="utf-8") as f:
                json.dump(self.settings(), f)  # which is YAML, too
            log = self.stack.enter_context(open(f"{self.folder}/log", "wb"))
            self.process = subprocess.Popen([self.path, "--config", f"file:{self.folder}/settings.yaml"], stdout=log, stderr=log)
            self.stack.callback(self.end)
            wait_for("the collector", self.ready, 20)
        except BaseException:
            self.stack.close()
            raise
        return self

    def __exit__(self, *_):
        self.stack.close()

    def end(self):
        self.process.terminate()
        self.process.wait(20)

    def ready(self):
        assert self.process.poll() is None, self.log()
        return "Everything is ready" in self.log()

    def log(self):
        return open_bytes(f"{self.folder}/log").decode()

    def complaints(self):
        """Returns its own log above the level info, except for warnings about old names in its settings."""
        told = map(json.loads, self.log().splitlines())
        return [each for each in told if each["level"] not in ("debug", "info") and "deprecated" not in each["msg"]]

    def count(self, name):
        """Returns the sum of one of its own counters, over all labels."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.own}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        return sum(float(each.rsplit(" ", 1)[1]) for each in lines if re.match(rf"otelcol_{name}(_total)?[ {{]", each))
