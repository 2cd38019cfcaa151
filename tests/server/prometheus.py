"""A real Prometheus that scrapes a server of the tests, and `promtool`."""

import contextlib
import json
import subprocess
import tempfile
import urllib.parse
import urllib.request

from harness import free_port


@contextlib.contextmanager
def prometheus(server, rules=None):
    """Runs one that scrapes the server each second. Yields a function that asks its API."""
    with scraping({"hearth": [server.ops_port]}, rules) as get:
        yield get


@contextlib.contextmanager
def scraping(ports, rules=None):
    """Does the same for several jobs, each with the ports of servers that may come later. Its files are not on a server's
    disk."""
    with tempfile.TemporaryDirectory(prefix="hearth-prometheus-", ignore_cleanup_errors=True) as folder, running(folder, ports, rules) as get:
        yield get


@contextlib.contextmanager
def running(folder, ports, rules):
    port = free_port()
    settings = {"global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": [rules] if rules else [],
                "scrape_configs": [{"job_name": job, "static_configs": [{"targets": [f"127.0.0.1:{each}" for each in its]}]} for job, its in ports.items()]}
    with open(f"{folder}/prometheus.yml", "w", encoding="utf-8") as f:
        json.dump(settings, f)  # which is YAML, too
    with open(f"{folder}/log", "wb") as log:
        process = subprocess.Popen(["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                                    "--enable-feature=exemplar-storage", f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)

    def get(what, **parameters):
        with contextlib.suppress(OSError):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/{what}?{urllib.parse.urlencode(parameters)}", timeout=10) as answer:
                return json.load(answer)["data"]
        return None
    try:
        yield get
    finally:
        process.terminate()
        process.wait(20)


def promtool(*words, text=None):
    done = subprocess.run(["promtool", *words], input=text, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
