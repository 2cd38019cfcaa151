"""The rendered chart, as files to read and to compare: they show the effect of a change of the chart.

    python3 tests/cluster/goldens.py      writes them anew"""

import difflib
import os
import re
import shutil
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "server"))
from chart import helm  # noqa: E402

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "rendered")
# File name: the version of Kubernetes, and more arguments for Helm. The definitions are those of `hearth crds`.
RENDERED = {"defaults-1.20": ("1.20.2", ["--set", "image.repository=registry.example/hearth"]),
            "everything-1.34": ("1.34.0", ["-f", "VALUES", "--api-versions", "monitoring.coreos.com/v1"])}
# Lint compares the output of helm/dashboards.
DASHBOARD = re.compile(r"^(  hearth-\w+\.json: )\|\n(?:    .*\n)+", re.MULTILINE)
# The rendering makes keys and tokens.
RANDOM = re.compile(r"^(  (?:key|agent-key|admin|config\.yaml): )\S{20,}$", re.MULTILINE)


def rendering(name):
    version, words = RENDERED[name]
    words = ["template", "one", "CHART", "-n", "hearth", "--kube-version", version, "--set", "customResources.install=false", *words]
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # Helm is not root
        values = shutil.copy(os.path.join(FOLDER, "everything.values.yaml"), folder)
        text = helm(*[values if each == "VALUES" else each for each in words], cluster=False)
        return RANDOM.sub(r"\1(random)", DASHBOARD.sub(r"\1(a dashboard)\n", text))


def path(name):
    return os.path.join(FOLDER, f"{name}.yaml")


def as_written():
    """the chart renders what is written down, for an old version with the defaults and for a current one with everything"""
    for name in RENDERED:
        with open(path(name), encoding="utf-8") as file:
            known = file.read().splitlines()
        difference = "\n".join(difflib.unified_diff(known, rendering(name).splitlines(), "written", "rendered", lineterm=""))
        assert not difference, f"{name}; python3 tests/cluster/goldens.py writes it anew:\n{difference}"


CASES = [as_written]

if __name__ == "__main__":
    for each in RENDERED:
        with open(path(each), "w", encoding="utf-8") as out:
            out.write(rendering(each))
