"""Installs and looks up packages in a workspace: `python3 packages.py`, told what to do by a line of JSON on its standard input.

    {"manager": "auto|pip|npm", "install": [spec], "check": [name], "from": path or null, "list": bool,
     "shut": {manager: why it has no way to an index; then what is absent fails, and nothing is asked}}

What the package manager says goes to stderr as it comes; the last line of stdout is the outcome:

    {"manager": "pip", "packages": {name: {"state": "installed|failed|absent", "version", "error"}}}

With `"first": true` an execution is to follow that needs what is named in `install`, and with `"imports": true` also what its
code, which comes behind that line, imports: then only what is not there is asked of an index, and the outcome has besides
`"unknown": {import: why}`, and if it failed `error` and the end of what was said, `said`.
"""

import contextlib
import errno
import fcntl
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import urllib.error
import urllib.request

import imports

WORKSPACE = "/workspace"
UNPACKED, HELD = os.path.join(WORKSPACE, ".hearth-packages-"), ".held"  # between them: anything
TAIL = 16_384
SAID = 6_000


def fail(message):
    print(json.dumps({"error": message}))
    sys.exit(1)


def run(argv):
    """The exit status and the end of what was said, which goes on to stderr as it comes."""
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    tail = b""
    while piece := process.stdout.read1(65_536):
        sys.stderr.buffer.write(piece)
        sys.stderr.buffer.flush()
        tail = (tail + piece)[-TAIL:]
    status = process.wait()
    said = tail.decode("utf-8", "replace")
    return status, said + f"\nerror: it was killed by signal {-status}" if status < 0 else said


@contextlib.contextmanager
def room_to_unpack():
    """The folder for temporary files: /tmp is memory, and small. Folders of processes that were killed go first."""
    for left in glob.glob(UNPACKED + "*" + HELD):
        with contextlib.suppress(OSError), locked(left):
            shutil.rmtree(left, ignore_errors=True)
    try:
        made = tempfile.mkdtemp(prefix=UNPACKED, dir=WORKSPACE)
    except OSError as e:
        fail(no_room("") if e.errno in (errno.ENOSPC, errno.EDQUOT) else f"{WORKSPACE} cannot be written: {e.strerror}")
    with locked(made):
        folder = os.environ["TMPDIR"] = tempfile.tempdir = made + HELD
        os.rename(made, folder)  # others look at it only now that it is locked
        try:
            yield
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def locked(folder):
    """Holds the lock of a folder that nobody else holds; OSError where somebody does."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(fd)


# What package managers say, and what it means to whoever asked. The first that fits counts.
MEANINGS = [
    (r"No module named pip\b", "the image's Python has no pip"),
    (r"(?s)pip-install-[^/\s]+/([\w.-]+)_[0-9a-f]{32}/.*?([^\s'\"<>]+:\d+) is not on the allow-list",
     r"there is no wheel of \1 for this Python and platform, and its build fetches from \2, which is not on the allow-list of this workspace; an older version may have a wheel"),
    (r"([^\s']+:\d+ is not on the allow-list[^\n)'\">]*)", r"\1"),
    (r"the index points to an address that is denied[^\n]*?mirrors\.hosts",
     "the index points to an address that is denied; an operator may name its host in mirrors.hosts"),
    (r"No space left on device|Disk quota exceeded|ENOSPC", ""),  # no_room()
    (r"Cannot allocate memory|MemoryError|ENOMEM", "the workspace's memory is used up"),
    (r"conflicting dependencies|ResolutionImpossible|ERESOLVE",
     "what was asked for contradicts itself or what it needs: loosen the versions"),
    (r"metadata-generation-failed|Failed building wheel|subprocess-exited-with-error",
     "there is no wheel of it for this Python and platform, and it cannot be built here"),
    (r"the index has no project|No matching distribution found|the registry has no package|E404|ETARGET|notarget",
     "the index has no such package, or no release of it that fits"),
    (r"no Python index is mirrored|no npm registry is mirrored|mirrors no package index",
     "the operator has named no index of this kind"),
    (r"is unreachable|Max retries exceeded|Connection refused|NewConnectionError|ECONNREFUSED|HTTP error 50\d|E50\d",
     "the index is unreachable"),
    (r"THESE PACKAGES DO NOT MATCH THE HASHES|EINTEGRITY", "the file is not what the index says it is"),
]


def no_room(said):
    """Returns the file system that is full: the workspace, where packages are unpacked and installed, unless the text names another path."""
    found = re.search(r"(?:No space left on device|Disk quota exceeded|ENOSPC)[^\n]*?'(/tmp|/dev/shm)/", said)
    place = found.group(1) if found else WORKSPACE
    try:
        room = os.statvfs(place)
        size = f" ({room.f_blocks * room.f_frsize >> 20} MiB)"
    except OSError:
        size = ""
    return f"{place} is full{size}" if found else f"the workspace's disk is full{size}; a package needs room for its file and for what is in it"


def meaning(said):
    for pattern, text in MEANINGS:
        if found := re.search(pattern, said):
            if not text:
                return no_room(said)
            return found.expand(text) if found.groups() else text
    lines = [line for line in said.splitlines() if re.match(r"\s*(npm )?err(or)?\b", line, re.IGNORECASE)]
    return (lines or said.strip().splitlines() or ["it failed without a word"])[-1][:300]


class Pip:
    name = "pip"
    unread = False  # whether a file says more than the names that wanted() found in it

    @staticmethod
    def normalised(name):
        return re.sub(r"[-_.]+", "-", name).lower()

    @staticmethod
    def named(spec):
        return re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*", spec.strip()).group(0)

    def installed(self):
        import importlib.metadata
        found = {}
        for each in importlib.metadata.distributions(path=imports.places()):
            if name := each.metadata["Name"]:
                found.setdefault(self.normalised(name), each.version)
        return found

    def there(self, spec):
        """Whether it need not be installed. What cannot be told at once is pip's to tell."""
        import importlib.metadata
        name = self.named(spec)
        version = next((each.version for each in importlib.metadata.distributions(name=name, path=imports.places())), None)
        versions = spec.strip()[len(name):].strip()
        if version is None or not versions:
            return version is not None
        try:
            from pip._vendor.packaging.specifiers import SpecifierSet
            return SpecifierSet(versions.strip("()")).contains(version, prereleases=True)
        except (ImportError, ValueError):  # no version: extras, a marker, or nothing that pip knows
            return False

    def wanted(self, path):
        """Specs and further arguments out of a file of the workspace."""
        if path.endswith(".toml"):
            import tomllib
            with open(path, "rb") as f:
                return tomllib.load(f).get("project", {}).get("dependencies", []), []
        if path.endswith(".py"):
            return self.inline(path), []
        with open(path, encoding="utf-8") as f:
            lines = [line.split(" #")[0].strip() for line in f]
        self.unread = any(line.startswith("-") for line in lines)
        specs = [line for line in lines if line and re.match(r"[A-Za-z0-9]", line)]
        return specs, ["--requirement", path]

    @staticmethod
    def inline(path):
        """PEP 723: the block `# /// script` of a program."""
        import tomllib
        with open(path, encoding="utf-8") as f:
            found = re.search(r"(?m)^# /// script$\s(?P<content>(^#(| .*)$\s)+)^# ///$", f.read())
        if not found:
            fail(f"{path} has no block `# /// script`")
        text = "".join(line[2:] if line.startswith("# ") else line[1:] for line in found["content"].splitlines(True))
        return tomllib.loads(text).get("dependencies", [])

    def broken(self, versions):
        """Installed distributions that need another version of one of these."""
        import importlib.metadata
        try:
            from pip._vendor.packaging.requirements import InvalidRequirement, Requirement
        except ImportError:
            return set()
        seen, found = set(), set()
        for each in importlib.metadata.distributions(path=imports.places()):
            name = self.normalised(each.metadata["Name"] or "")
            if name in seen:
                continue  # an earlier place has another one, which is the one that is imported
            seen.add(name)
            for line in each.requires or []:
                try:
                    need = Requirement(line)
                except InvalidRequirement:
                    continue
                version = versions.get(self.normalised(need.name))
                if version and (not need.marker or need.marker.evaluate({"extra": ""})) and not need.specifier.contains(version, prereleases=True):
                    found.add(name)
        return found

    def install(self, specs, arguments):
        before = self.broken(self.installed())
        status, said = self.ask(specs, arguments)
        # pip looks after what it installs, not after what was there: a library that needs another version is renewed with it.
        broken = self.broken(self.installed()) - before if status == 0 else set()
        if broken:
            again, more = self.ask([*specs, *sorted(broken)], [*arguments, *sorted(broken)] if arguments else [])
            said += more
            if again != 0:
                said += f"\n{', '.join(sorted(broken))} may not work with it\n"
        return status, said

    @staticmethod
    def ask(specs, arguments):
        return run([sys.executable, "-m", "pip", "install", "--no-input", "--progress-bar", "off", "--no-warn-script-location",
                    "--disable-pip-version-check", "--no-cache-dir", *arguments, *([] if arguments else ["--", *specs])])

    @staticmethod
    def blamed(said):
        """Of whom pip says that there is nothing."""
        return {Pip.normalised(Pip.named(spec)) for spec in re.findall(r"No matching distribution found for ([A-Za-z0-9][^\s(]*)", said)}

    @staticmethod
    def unsaid(blamed):
        """What the index says of them: that a page could not be had pip keeps to itself, and says that there is no such package."""
        if index := os.environ.get("PIP_INDEX_URL"):
            for name in sorted(blamed):
                try:
                    urllib.request.urlopen(f"{index.rstrip('/')}/{name}/", timeout=60).close()
                except urllib.error.HTTPError as e:
                    if e.code >= 500:
                        return e.read(1000).decode("utf-8", "replace")
                except OSError as e:
                    return f"the index is unreachable: {e}"
        return None


class Npm:
    name = "npm"
    folder = "."  # where node_modules is
    unread = False

    @staticmethod
    def normalised(name):
        return name

    @staticmethod
    def named(spec):
        return re.match(r"(@[^/@]+/)?[^@/]+", spec.strip()).group(0)

    def installed(self):
        found = {}
        root = os.path.join(self.folder, "node_modules")
        for folder in [root] + [os.path.join(root, each) for each in os.listdir(root) if each.startswith("@")] if os.path.isdir(root) else []:
            for each in os.listdir(folder):
                try:
                    with open(os.path.join(folder, each, "package.json"), encoding="utf-8") as f:
                        manifest = json.load(f)
                    found[manifest["name"]] = manifest["version"]
                except (OSError, ValueError, KeyError, TypeError):
                    continue
        return found

    def there(self, spec):
        name = self.named(spec)
        version = self.installed().get(name)
        return version is not None and spec.strip()[len(name):] in ("", "@" + version)

    def wanted(self, path):
        with open(path, encoding="utf-8") as f:
            manifest = json.load(f)
        self.folder = os.path.dirname(path) or "."
        return [*manifest.get("dependencies", {}), *manifest.get("devDependencies", {})], ["--prefix", self.folder]

    @staticmethod
    def install(specs, arguments):
        # A cache in the folder that goes: the mirror has one, and a second copy would only fill the workspace.
        return run(["npm", "install", "--cache", os.path.join(tempfile.gettempdir(), "npm"), "--no-progress", "--no-audit", "--no-fund", "--loglevel", "error",
                    *arguments, *([] if arguments else ["--", *specs])])

    @staticmethod
    def blamed(said):
        return {Npm.named(spec) for spec in re.findall(r"'((?:@[^/'\s]+/)?[^@'\s]+)@[^']*' is not in this registry", said)}

    @staticmethod
    def unsaid(blamed):
        return None


def manager_of(task):
    wanted = task["manager"]
    path = task.get("from") or ""
    if wanted == "auto":
        wanted = "npm" if path.endswith(".json") or any(s.startswith("@") for s in task["install"] + task["check"]) else "pip"
    if wanted == "npm" and not shutil.which("npm"):
        fail("this image has no npm")
    return Npm() if wanted == "npm" else Pip()


def outcome(manager, name, installed, error=None):
    version = installed.get(manager.normalised(name))
    if error:
        return {"state": "failed", "version": version, "error": error}
    return {"state": "installed" if version else "absent", "version": version, "error": None}


def first(task, manager, code):
    """What an execution needs before it runs."""
    specs, unknown = list(task["install"]), {}
    if task.get("imports"):
        found, unknown = imports.missing(code)
        named = {manager.normalised(manager.named(spec)) for spec in specs}
        specs += [name for name in found if manager.normalised(name) not in named]
    absent = [spec for spec in specs if not manager.there(spec)]
    failed, packages, said = install(manager, specs, absent, [], task) if specs else (False, {}, "")
    told = {"manager": manager.name, "packages": packages, "unknown": unknown}
    if failed:
        reasons = {}
        for name, each in packages.items():
            if each["error"] and each["error"] != OTHERS:
                reasons.setdefault(each["error"], []).append(name)
        told["error"] = "; ".join(f"{', '.join(names)}: {why}" for why, names in reasons.items())
        told["said"] = said.strip()[-SAID:]
    print(json.dumps(told))
    return 1 if failed else 0


OTHERS = "not installed because others failed"


def install(manager, specs, absent, arguments, task):
    """Whether it failed, what there is of `specs` now, and what was said."""
    failed, error, said, blamed = False, None, "", set()
    if absent and (error := task.get("shut", {}).get(manager.name)):
        failed, blamed = True, {manager.normalised(manager.named(spec)) for spec in absent}
    elif absent:
        with room_to_unpack():
            status, said = manager.install(absent, arguments)
        failed = status != 0
        blamed = manager.blamed(said) if failed else set()
        error = meaning(manager.unsaid(blamed) or said) if failed else None
        # Blamed may be what one of them needs, by a name that nobody asked for: then it is theirs.
        blamed &= {manager.normalised(manager.named(spec)) for spec in absent}
    installed = manager.installed()
    packages = {}
    for spec in specs:
        name = manager.named(spec)
        guilty = spec in absent and (not blamed or manager.normalised(name) in blamed)
        why = (error if guilty else OTHERS) if failed and spec in absent else None
        packages[name] = outcome(manager, name, installed, why)
        if not failed and packages[name]["state"] == "absent":
            packages[name]["error"] = "not for this Python or platform"
    return failed, packages, said


def main():
    line = sys.stdin.buffer.readline()
    task = json.loads(line)
    manager = manager_of(task)
    if task.get("first"):
        sys.exit(first(task, manager, sys.stdin.buffer.read()))
    specs, arguments = list(task["install"]), []
    if path := task.get("from"):
        try:
            specs, arguments = manager.wanted(path)
        except (OSError, ValueError) as e:
            fail(f"{path} cannot be read: {e}")
    absent = specs
    if why := task.get("shut", {}).get(manager.name):
        if manager.unread:
            fail(f"{path} has options, which only {manager.name} can read, and {why}")
        absent = [spec for spec in specs if not manager.there(spec)]
    failed, packages, _ = install(manager, specs, absent, arguments, task)
    installed = manager.installed()
    for name in task["check"]:
        packages.setdefault(name, outcome(manager, name, installed))
    if task.get("list"):
        for name in sorted(installed):
            packages.setdefault(name, outcome(manager, name, installed))
    print(json.dumps({"manager": manager.name, "packages": packages}))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
