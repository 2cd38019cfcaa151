"""Kubernetes 1.20.2 from Debian's source package: built once on a machine, with Debian's Go, without a network beyond apt."""

import glob
import os
import re
import shutil
import subprocess
import time

from places import BINARIES, CACHE, REPO, Trouble, locked, run, write

PROGRAMS = ["kube-apiserver", "kubectl", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubemark"]
TREE = os.path.join(CACHE, "build")
VERSION = "v1.20.2"
COMMIT = "faecb196815e248d3ecfb03c680a4507229c2a56"  # of that version; the source package does not contain it
GO = "/usr/lib/go/bin"  # Debian's, whatever other Go is in PATH
REFLECT = "github.com/modern-go/reflect2"


def path(name):
    return os.path.join(BINARIES, name)


def ready():
    return all(os.access(path(name), os.X_OK) for name in PROGRAMS)


def missing_packages(group):
    """Returns the packages of this group of debian-packages that are not installed."""
    with open(os.path.join(REPO, "debian-packages"), encoding="utf-8") as file:
        names = re.findall(rf"^{group} +(\S+)", file.read(), re.MULTILINE)
    done = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status} ${Package}\n", *names], capture_output=True, text=True, check=False)
    return [name for name in names if f"installed {name}" not in done.stdout.splitlines()]


def require_packages(*groups):
    missing = [name for group in groups for name in missing_packages(group)]
    if missing:
        raise Trouble(f"these Debian packages are missing: {' '.join(missing)}\n"
                      f"run: apt-get install --no-install-recommends {' '.join(missing)}")


def build():
    """Builds what is missing; a second caller waits for the first. Takes 4 to 10 minutes and 5 GB, of which 0.5 GB stay."""
    if ready():
        print(f"built already: {BINARIES}")
        return
    require_packages("kubernetes")
    with locked("build", f"another build is under way; waiting for it (its log: {TREE}/log)"):
        if ready():
            return
        begin = time.monotonic()
        shutil.rmtree(TREE, ignore_errors=True)
        source = fetch()
        prepare(source)
        compile_all(source)
        keep(source)
        print(f"built in {time.monotonic() - begin:.0f} s: {BINARIES}")


def apt_options():
    """Returns options for separate lists of source packages: nothing in /etc or /var is changed."""
    lines = run("apt-get", "indextargets", "--format", "$(ORIGIN) $(REPO_URI) $(CODENAME) $(RELEASE) $(COMPONENT)", "Created-By: Packages")
    found = {(words[1], words[3], words[4]) for words in map(str.split, lines.splitlines()) if words[0] == "Debian"}
    if not found:
        raise Trouble("apt knows no archive of Debian; add one to /etc/apt/sources.list.d and run apt-get update")
    write(f"{TREE}/apt/sources.list", "".join(f"deb-src {uri} {release} {component}\n" for uri, release, component in sorted(found)))
    os.makedirs(f"{TREE}/apt/lists/partial")
    os.makedirs(f"{TREE}/apt/cache/archives/partial")
    settings = {"Dir::Etc::SourceList": f"{TREE}/apt/sources.list", "Dir::Etc::SourceParts": f"{TREE}/apt/none",
                "Dir::State::Lists": f"{TREE}/apt/lists", "Dir::Cache": f"{TREE}/apt/cache", "APT::Sandbox::User": "root"}
    return [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]


def fetch():
    """Returns the unpacked source."""
    print("fetching the source package", flush=True)
    options = apt_options()
    run("apt-get", *options, "update", "-qq")
    run("apt-get", *options, "source", "-qq", "kubernetes", cwd=TREE)
    found = glob.glob(f"{TREE}/kubernetes-*really{VERSION[1:]}*/")
    if not found:
        raise Trouble(f"Debian's source package is no longer of Kubernetes {VERSION}: {os.listdir(TREE)}; see tests/cluster/binaries.py")
    return found[0]


def prepare(source):
    """Go 1.18 and later break the reflect2 1.0.1 of the source (the API server dies when it decodes a CRD): Debian's 1.0.2 instead."""
    vendored, debians = f"{source}vendor/{REFLECT}", f"/usr/share/gocode/src/{REFLECT}"
    for old in glob.glob(f"{vendored}/*.go") + glob.glob(f"{vendored}/*.s"):
        os.unlink(old)
    for new in glob.glob(f"{debians}/*.go") + glob.glob(f"{debians}/*.s"):
        shutil.copy(new, vendored)
    os.makedirs(f"{source}.go/src/k8s.io")
    os.symlink("../../..", f"{source}.go/src/k8s.io/kubernetes")
    major, minor, _ = VERSION[1:].split(".")
    write(f"{TREE}/version", f"KUBE_GIT_COMMIT='{COMMIT}'\nKUBE_GIT_TREE_STATE='clean'\nKUBE_GIT_VERSION='{VERSION}'\n"
                             f"KUBE_GIT_MAJOR='{major}'\nKUBE_GIT_MINOR='{minor}'\n")


def compile_all(source):
    print(f"building {' '.join(PROGRAMS)} (4 to 10 minutes; log: {TREE}/log)", flush=True)
    env = {"PATH": f"{GO}:{os.environ['PATH']}", "HOME": f"{TREE}/home", "GOPATH": f"{source}.go", "GOPROXY": "off",
           "CGO_ENABLED": "0", "KUBE_GIT_VERSION_FILE": f"{TREE}/version"}
    os.makedirs(env["HOME"])
    with open(f"{TREE}/log", "w", encoding="utf-8") as log:
        done = subprocess.run(["nice", "make", "WHAT=" + " ".join(f"cmd/{name}" for name in PROGRAMS)], cwd=source, env=env,
                              stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        with open(f"{TREE}/log", encoding="utf-8") as log:
            raise Trouble(f"the build failed; its log is {TREE}/log, and ends with:\n{log.read()[-1500:]}")


def keep(source):
    """Keeps only the programs: the tree and Go's caches are ten times as large, and useless for another version."""
    [made] = glob.glob(f"{source}_output/local/bin/linux/*/")
    os.makedirs(f"{TREE}/bin")
    for name in PROGRAMS:
        os.rename(made + name, f"{TREE}/bin/{name}")
    if os.path.exists(BINARIES):  # an incomplete set, whose programs may run
        os.rename(BINARIES, f"{TREE}/old")
    os.rename(f"{TREE}/bin", BINARIES)
    shutil.rmtree(TREE)
