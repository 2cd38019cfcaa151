"""Makes what a pool's sandboxes have installed: `python3 layer.py resolve|install`, told by JSON on its standard input.

    resolve {"specs": [spec]}   finds what they need, and tells it as a lock: {"lock": "name==version --hash=sha256:…\\n…"}
    install {"lock": text}      installs just that into the folder `layer` of the workspace: {}

Wheels only: nothing of a package runs while it is installed. What pip says goes to stderr as it comes; the last line of
stdout is the outcome, {"error": why} where it failed.
"""

import json
import os
import subprocess
import sys
import tempfile

import packages

FOLDER = "/workspace/layer"
PLACE = "/.hearth/layer/site-packages"  # where it will be
LOCK = "requirements.lock"
PIP = [sys.executable, "-m", "pip", "install", "--no-input", "--progress-bar", "off", "--no-warn-script-location",
       "--disable-pip-version-check", "--no-cache-dir", "--only-binary", ":all:"]


def outcome(told):
    print(json.dumps(told))
    sys.exit(1 if "error" in told else 0)


def why(said):
    if "No module named pip" in said:
        return "the image has no pip"
    if "no such option: --report" in said or "no such option: --dry-run" in said:
        return "the image's pip is older than 22.2 and tells no report"
    blamed = sorted(packages.Pip.blamed(said))
    meaning = packages.meaning(said)
    if not blamed:
        return meaning
    return f"{', '.join(blamed)}: {meaning}, as a wheel for Python {sys.version_info[0]}.{sys.version_info[1]}"


def line_of(entry):
    """One line of the lock out of an entry of pip's report."""
    archive = entry["download_info"]["archive_info"]
    digest = archive.get("hashes", {}).get("sha256") or archive["hash"].partition("sha256=")[2]
    name = packages.Pip.normalised(entry["metadata"]["name"])
    return f"{name}=={entry['metadata']['version']} --hash=sha256:{digest}"


def reported(specs):
    """pip's entries of all that these need."""
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        status, said = packages.run([*PIP, "--dry-run", "--ignore-installed", "--report", report, "--", *specs])
        if status != 0:
            outcome({"error": why(said)})
        with open(report, encoding="utf-8") as f:
            return json.load(f)["install"]


def resolve(task):
    pip = packages.Pip()
    entries = reported(task["specs"])
    versions = {pip.normalised(each["metadata"]["name"]): each["metadata"]["version"] for each in entries}
    # Libraries of the image that would not work with these come along.
    if broken := sorted(pip.broken(versions) - versions.keys()):
        entries = reported([*task["specs"], *broken])
    outcome({"lock": "".join(line + "\n" for line in sorted(map(line_of, entries)))})


def install(task):
    os.mkdir(FOLDER)
    lock = os.path.join(FOLDER, LOCK)
    with open(lock, "w", encoding="utf-8") as f:
        f.write(task["lock"])
    status, said = packages.run([*PIP, "--require-hashes", "--no-deps", "--no-compile", "--target", FOLDER, "--requirement", lock])
    if status != 0:
        outcome({"error": why(said)})
    # Compiled here, as nobody can write there; without times, so that it is the same whenever it was made. A file that
    # does not compile is of another Python's.
    subprocess.run([sys.executable, "-m", "compileall", "-q", "-q", "--invalidation-mode", "unchecked-hash", "-d", PLACE, FOLDER],
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False)
    outcome({})


def main():
    # The workspace has room for what /tmp has not.
    os.environ["TMPDIR"] = tempfile.tempdir = os.path.join("/workspace", "tmp")
    os.makedirs(tempfile.tempdir, exist_ok=True)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    task = json.load(sys.stdin)
    {"resolve": resolve, "install": install}[sys.argv[1]](task)


if __name__ == "__main__":
    main()
