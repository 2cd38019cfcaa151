"""The places of the test cluster's files, and the errors of its parts."""

import contextlib
import fcntl
import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
REPO = os.path.dirname(os.path.dirname(HERE))
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "hearth", "kubernetes")
BINARIES = os.path.join(CACHE, "bin")
IMAGES = os.path.join(CACHE, "images")
INSTANCES = os.path.join(CACHE, "instances")


class Trouble(Exception):
    """An error for the person who runs this: what failed, and what to do about it."""


def run(*command, **options):
    """Returns the command's output. Its failure is a Trouble with its last output."""
    try:
        done = subprocess.run(command, check=False, **{"capture_output": True, "text": True, **options})
    except FileNotFoundError as error:
        raise Trouble(f"there is no {command[0]} here; install the packages of the groups cluster and kubernetes in debian-packages") from error
    if done.returncode:
        raise Trouble(f"{' '.join(command)[:200]}: status {done.returncode}\n{(done.stderr or done.stdout or '').strip()[-1500:]}")
    return done.stdout


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w", encoding="utf-8") as file:
        file.write(text)


@contextlib.contextmanager
def locked(name, waiting=None):
    """Holds CACHE/NAME.lock against other processes. Prints `waiting` if another one has it. The file exists only as long."""
    path = os.path.join(CACHE, f"{name}.lock")
    os.makedirs(CACHE, exist_ok=True)
    while True:
        with open(path, "w", encoding="ascii") as file:
            hold(file, waiting)
            if not same_file(file, path):  # its last holder has removed it meanwhile
                continue
            try:
                yield
            finally:
                os.unlink(path)
            return


def hold(file, waiting):
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        if waiting:
            print(waiting, flush=True)
        fcntl.flock(file, fcntl.LOCK_EX)


def same_file(file, path):
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False
