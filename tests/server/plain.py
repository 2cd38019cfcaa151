"""The same programs without Hearth: processes in a tree of an image, by chroot, with an empty workspace each time.
`Plain` is the test's side; the file itself is the first process of new namespaces, which `unshare` starts."""

import base64
import ctypes
import fcntl
import io
import json
import os
import resource
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tarfile
import tempfile

USER = 1000
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
NO_NEW_PRIVILEGES = 38
KINDS = {tarfile.REGTYPE: stat.S_IFREG, tarfile.LNKTYPE: stat.S_IFREG, tarfile.DIRTYPE: stat.S_IFDIR, tarfile.SYMTYPE: stat.S_IFLNK, tarfile.FIFOTYPE: stat.S_IFIFO}
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
LIMITS = "import json, resource as r; print(json.dumps({name: r.getrlimit(getattr(r, name)) for name in dir(r) if name.startswith('RLIMIT_')}))"
NAMESPACES = ["unshare", "--mount", "--pid", "--ipc", "--uts", "--net", "--fork", "--kill-child", "--propagation", "private"]


class Plain:
    """One world at a time: its processes end with each program, its workspace is emptied, unless it is a folder of the caller's."""

    def __init__(self, tree, environment, limits, workspace=""):
        self.root = tempfile.mkdtemp(prefix="hearth-plain-")
        settings = json.dumps({"environment": environment, "limits": limits, "workspace": workspace})
        self.process = subprocess.Popen([*NAMESPACES, sys.executable, os.path.abspath(__file__), tree, self.root, settings],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, argv, files=None, stdin="", seconds=60):
        """Returns stdout, stderr, exitCode, signal and the files that are left. `files` is a tar of those that are there before; without it the
        workspace stays as it is, and the files that are left are not told."""
        request = {"argv": argv, "stdin": stdin, "files": None if files is None else base64.b64encode(files).decode(), "seconds": seconds}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        result = json.loads(self.process.stdout.readline())
        return result if files is None else {**result, "files": unpacked(base64.b64decode(result["files"]))}

    def close(self):
        self.process.stdin.close()
        self.process.wait(20)
        self.process.stdout.close()
        os.rmdir(self.root)


def like(server, workspace, image="python", folder=""):
    """Returns a world with the image, the environment and the limits of a workspace. A folder stands for /workspace."""
    def told(*argv):
        return server.post(f"/v1/workspaces/{workspace}/executions", {"argv": argv}).json["stdout"]
    environment = dict(each.split("=", 1) for each in told("env", "-0").split("\0") if each)
    with open(os.path.join(server.data, "images", image, "index.json"), encoding="utf-8") as file:
        digest = json.load(file)["manifests"][0]["digest"].split(":")[1]
    return Plain(os.path.join(server.data, "rootfs", digest), environment, json.loads(told("python3", "-c", LIMITS)), folder)


def packed(files):
    """Returns a tar of these files, by their names."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data in files.items():
            each = tarfile.TarInfo(name)
            each.size = len(data)
            tar.addfile(each, io.BytesIO(data))
    return out.getvalue()


def unpacked(data):
    """Returns what a tar has, by its names: kind and permissions, and a file's bytes or a link's target."""
    found = {}
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for each in tar:
            content = each.linkname if each.issym() else tar.extractfile(each).read() if each.isreg() or each.islnk() else None
            found[os.path.normpath(each.name)] = (stat.filemode(KINDS[each.type] | each.mode), content)
    found.pop(".", None)
    return found


def mount(*words):
    subprocess.run(["mount", *words], check=True)


def make_root(tree, root, workspace):
    """Mounts what a sandbox has: the image read-only, its own /proc, /dev, /tmp and /workspace."""
    mount("--bind", tree, root)
    mount("-o", "remount,bind,ro", root)
    mount("-t", "proc", "proc", f"{root}/proc")
    mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", f"{root}/dev")
    for name in DEVICES:
        open(f"{root}/dev/{name}", "w").close()
        mount("--bind", f"/dev/{name}", f"{root}/dev/{name}")
    for name in ("pts", "shm"):
        os.mkdir(f"{root}/dev/{name}")
    mount("-t", "devpts", "-o", "newinstance,ptmxmode=0666,mode=620", "devpts", f"{root}/dev/pts")
    mount("-t", "tmpfs", "-o", "mode=1777,size=64m", "tmpfs", f"{root}/dev/shm")
    for name, target in (("ptmx", "pts/ptmx"), ("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        os.symlink(target, f"{root}/dev/{name}")
    mount("-t", "tmpfs", "-o", "mode=1777", "tmpfs", f"{root}/tmp")
    if workspace:
        mount("--bind", workspace, f"{root}/workspace")
    else:
        mount("-t", "tmpfs", "-o", f"mode=755,uid={USER},gid={USER}", "tmpfs", f"{root}/workspace")


def raise_loopback():
    with socket.socket() as any_socket:
        asked = fcntl.ioctl(any_socket, SIOCGIFFLAGS, struct.pack("16sh14x", b"lo", 0))
        flags = struct.unpack("16sh14x", asked)[1] | IFF_UP
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags))


def become_tenant(root, limits):
    """Nothing of whoever started the tests is left: neither signals that are ignored or blocked, nor limits."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for name, limit in limits.items():
        resource.setrlimit(getattr(resource, name), limit)
    os.setsid()
    for stream in (0, 1, 2):
        os.fchown(stream, USER, USER)  # as if the tenant's shell had made the pipes
    os.chroot(root)
    os.setgroups([])
    os.setgid(USER)
    os.setuid(USER)
    os.chdir("/workspace")
    os.umask(0o022)
    ctypes.CDLL(None).prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)


def end_all():
    """This is process 1 of its namespace: the signal reaches all others."""
    try:
        os.kill(-1, signal.SIGKILL)
    except ProcessLookupError:
        pass
    try:
        while True:
            os.wait()
    except ChildProcessError:
        pass


def empty(folder):
    for each in os.scandir(folder):
        if each.is_dir(follow_symlinks=False):
            shutil.rmtree(each.path)
        else:
            os.unlink(each.path)


def owned(each):
    each.uid = each.gid = USER
    return each


def place(workspace, files):
    with tarfile.open(fileobj=io.BytesIO(files)) as tar:
        tar.extractall(workspace, [owned(each) for each in tar], numeric_owner=True)


def taken(workspace):
    left = io.BytesIO()
    with tarfile.open(fileobj=left, mode="w") as tar:
        tar.add(workspace, ".")
    empty(workspace)
    return base64.b64encode(left.getvalue()).decode()


def run(root, settings, request):
    workspace = f"{root}/workspace"
    if request["files"] is not None:
        place(workspace, base64.b64decode(request["files"]))
    child = subprocess.Popen(request["argv"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env=settings["environment"], preexec_fn=lambda: become_tenant(root, settings["limits"]))
    try:
        out, errors = child.communicate(request["stdin"].encode(), timeout=request["seconds"])
    finally:
        end_all()
    status = child.returncode
    result = {"stdout": out.decode("utf-8", "replace"), "stderr": errors.decode("utf-8", "replace"), "exitCode": status if status >= 0 else None,
              "signal": signal.Signals(-status).name[3:] if status < 0 else None, "files": None if request["files"] is None else taken(workspace)}
    for name in ("tmp", "dev/shm"):
        empty(f"{root}/{name}")
    return result


def main():
    tree, root, settings = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    workspace = settings["workspace"]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    make_root(tree, root, workspace)
    socket.sethostname("localhost")  # a name that the image knows, as a sandbox's is; this machine's it does not
    raise_loopback()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for line in sys.stdin:
        print(json.dumps(run(root, settings, json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
