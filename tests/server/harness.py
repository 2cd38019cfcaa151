"""The base of the black-box tests: a real server for each test, a small HTTP client, a check of what is left on the
machine, and the result lines that ./test counts. Standard library only."""

import atexit
import contextlib
import filecmp
import glob
import http.client
import json
import math
import os
import re
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.parse

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(REPO, "tests"))
import reasons  # noqa: E402
import second_try  # noqa: E402

BUILD = os.environ.get("HEARTH_BUILD", os.path.join(REPO, "build", "dev"))
IMAGES = os.environ.get("HEARTH_TEST_IMAGES", os.path.join(REPO, "build", "test-data", "images"))
RESULTS = os.environ.get("HEARTH_TEST_RESULTS")
# The runtimes on which main() runs each test. docker-remote: a daemon reached by TCP with certificates, as if on
# another machine (the agent is copied). It runs only tests with an attribute `remote`; the others would repeat
# docker's results.
RUNTIMES = os.environ.get("HEARTH_TEST_RUNTIME", "oci,docker,docker-remote").split(",")

# HEARTH_BUILD may be a sanitizer preset. Then every wait of these tests is longer by this factor, the results are
# counted under a stage of their own, and a report of the sanitizer fails the test.
PRESET = os.path.basename(os.path.normpath(BUILD))
SANITIZER = PRESET if PRESET in ("asan", "tsan") else None
SLOWER = {"asan": 3, "tsan": 6}.get(SANITIZER, 1)
SANITIZER_STATUS = 86  # no program of Hearth's exits with this status
SHOWN_REPORT = 8000
SANITIZER_REPORT = re.compile(r"^.*(?:(?:ERROR|WARNING|FATAL): \w*Sanitizer|\w+Sanitizer has encountered"
                              r"|\w+Sanitizer: CHECK failed|:\d+:\d+: runtime error: ).*$", re.MULTILINE)


def sanitizer_options(log_path="stderr"):
    """Returns the environment of a program whose reports are read. Reports go to the file `log_path`.PID;
    a server writes to its log instead, because it has given up the right to make files.

    Leaks are searched for where a process ends by exit(): in the server, which libasan makes dumpable
    again for the search, and in the commands. The launcher and its children end by _exit() and are
    never searched: each is a copy of a process made by fork(), and memory that it still holds is no leak."""
    options = f"exitcode={SANITIZER_STATUS}:log_path={log_path}"
    return {"ASAN_OPTIONS": f"detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1:{options}",
            "LSAN_OPTIONS": options,
            "TSAN_OPTIONS": f"second_deadlock_stack=1:history_size=4:{options}",
            "UBSAN_OPTIONS": f"print_stacktrace=1:{options}"}

POOL = """apiVersion: hearth.dev/v1alpha1
kind: SandboxPool
metadata: {{name: {name}}}
spec:
  template:
    image: {image}
    allowTags: {tags}
    resources: {{cpu: "1", memory: {memory}, pids: 128, workspace: 64Mi, tmp: 16Mi}}
  warm: {{min: {warm}, max: 20, parallelCreates: 2}}
  onEmpty: {{action: {on_empty}, maxWait: {max_wait}, maxQueue: 64}}
  lifecycle: {{idleTimeout: {idle}, maxLifetime: 1h}}
  limits: {{members: {members}, perTenant: {per_tenant}}}
"""


def pool_yaml(name="shell", image="shell", warm=2, on_empty="Queue", max_wait="20s", idle="10m",
              per_tenant=50, memory="128Mi", members=60):
    return POOL.format(name=name, image=image, tags=str(":" in image).lower(), warm=warm, on_empty=on_empty, max_wait=max_wait,
                       idle=idle, per_tenant=per_tenant, memory=memory, members=members)


given_ports = set()


def free_port():
    """Returns a port that nobody has and that was not returned before: the kernel may name the same one twice in a
    row."""
    while True:
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        if port not in given_ports:
            given_ports.add(port)
            return port


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {self.body[:400]!r}"


class Dockerd:
    """A Docker daemon of the tests: its own data, socket and pid file, no bridge, no firewall rules. Its end leaves
    nothing. With `env` a server finds it: by its socket, or by TCP with certificates. `wrapper` may give it a world
    of its own."""

    def __init__(self, args=(), tls=False, wrapper=()):
        self.root = tempfile.mkdtemp(prefix="hearth-dockerd-")
        os.chmod(self.root, 0o711)  # the server is not root and must reach the socket
        self.exec_root = tempfile.mkdtemp(prefix="hearth-dockerd-", dir="/run")
        self.path = os.path.join(self.root, "socket")
        self.socket = "unix://" + self.path
        self.env = {"DOCKER_HOST": self.socket}
        if tls:
            args = [*args, *self.listen_with_tls()]
        self.args = [*wrapper, "dockerd", "--data-root", os.path.join(self.root, "data"), "--exec-root", self.exec_root,
                     "-H", self.socket, "--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false",
                     "--ip-masq=false", "--pidfile", os.path.join(self.root, "pid"), *args]
        self.process = None

    def listen_with_tls(self):
        """Makes an authority, its certificates for both sides, and the arguments to serve them on a port."""
        folder = os.path.join(self.root, "certificates")
        os.mkdir(folder)

        def openssl(*words):
            subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)
        new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        openssl("req", "-x509", *new_key, "-keyout", "ca-key.pem", "-out", "ca.pem", "-days", "2", "-subj", "/CN=tests")
        for name, use in (("server", "serverAuth"), ("", "clientAuth")):
            key, certificate = (f"{name}-key.pem", f"{name}-cert.pem") if name else ("key.pem", "cert.pem")
            with open(os.path.join(folder, "extensions"), "w", encoding="ascii") as f:
                f.write(f"extendedKeyUsage={use}\nsubjectAltName=IP:127.0.0.1\n")
            openssl("req", *new_key, "-keyout", key, "-out", "request", "-subj", f"/CN={use}")
            openssl("x509", "-req", "-in", "request", "-CA", "ca.pem", "-CAkey", "ca-key.pem", "-CAcreateserial",
                    "-out", certificate, "-days", "2", "-extfile", "extensions")
        address = f"tcp://127.0.0.1:{free_port()}"
        self.env = {"DOCKER_HOST": address, "DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": folder}
        return ["-H", address, "--tlsverify", "--tlscacert", os.path.join(folder, "ca.pem"), "--tlscert",
                os.path.join(folder, "server-cert.pem"), "--tlskey", os.path.join(folder, "server-key.pem")]

    def start(self, seconds=60):
        log = open(os.path.join(self.root, "log"), "ab")
        self.process = subprocess.Popen(self.args, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()
        wait_for("dockerd", lambda: self.process.poll() is not None or self.answers(), seconds)
        assert self.process.poll() is None, self.log()[-3000:]
        return self

    def log(self):
        with open(os.path.join(self.root, "log"), encoding="utf-8", errors="replace") as f:
            return f.read()

    def answers(self):
        try:
            return self.get("/_ping")[0] == 200
        except OSError:
            return False

    def get(self, target):
        """Returns status and body of a GET."""
        connection = http.client.HTTPConnection("docker", timeout=10)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(10)
        try:
            connection.sock.connect(self.path)
            connection.request("GET", target)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def items(self, target):
        status, body = self.get(target)
        assert status == 200, (status, body)
        return json.loads(body)

    def stop(self, sign=signal.SIGTERM):
        """SIGKILL leaves containers and their shims; containerd dies with its daemon."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(sign)
            try:
                self.process.wait(40)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if sign == signal.SIGKILL:
            # If nobody reaps orphans, the dead containerd keeps its pid, and the next daemon would wait for it.
            for name in ("containerd.pid", "containerd.sock"):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(self.exec_root, "containerd", name))

    def close(self):
        self.stop()
        for pid in self.processes():  # containerd and shims of a daemon that was killed
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        for _ in range(50):
            with open("/proc/self/mounts", encoding="utf-8") as f:
                mounts = [line.split()[1] for line in f if self.root in line or self.exec_root in line]
            if not mounts:
                break
            for path in reversed(mounts):
                subprocess.run(["umount", "-l", path], stderr=subprocess.DEVNULL, check=False)
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.rmtree(self.exec_root, ignore_errors=True)

    def processes(self):
        found = []
        for pid in pids():
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    if self.exec_root.encode() in f.read():
                        found.append(pid)
            except OSError:
                pass
        return found


dockerd = None  # the one that all tests on docker share
default_runtime = "oci"  # the runtime of servers that are given none


def on_docker():
    return default_runtime.startswith("docker")


def on_remote_docker():
    return default_runtime == "docker-remote"


class Unpacked:
    """Unpacked image trees of earlier servers. The next server gets them as hard links, because unpacking the python image takes
    longer than most tests. They are kept for a run of tests/server/run (HEARTH_TEST_TREES), otherwise for this process, and no
    longer: another build may unpack differently."""

    def __init__(self):
        self.folder, self.wanted = os.environ.get("HEARTH_TEST_TREES"), set()

    def digests(self):
        """Returns the digests of the tests' images by name."""
        return {os.path.basename(os.path.dirname(index)): json.load(open(index, encoding="utf-8"))["manifests"][0]["digest"].split(":")[1]
                for index in glob.glob(os.path.join(IMAGES, "*", "index.json"))}

    def give(self, data, pools):
        """Gives the server the kept trees of the images that these or earlier pools of this process name."""
        known = self.digests()
        self.wanted |= {known[name] for name in re.findall(r"image: *([a-z]+)", pools) if name in known}
        there = [digest for digest in self.wanted if self.folder and os.path.exists(self.facts(digest))]
        if there:
            os.makedirs(os.path.join(data, "rootfs"), exist_ok=True)
            subprocess.run(["cp", "-al", *(os.path.join(self.folder, digest) for digest in there), *map(self.facts, there), os.path.join(data, "rootfs")],
                           check=True)

    def take(self, data):
        trees = os.path.join(data, "rootfs")
        found = {name.split(".")[0] for name in os.listdir(trees) if not name.startswith(".")} if os.path.isdir(trees) else set()
        if not found <= set(self.digests().values()):
            return  # from a test about images, in an unknown state
        for digest in found:
            if not self.folder:
                self.folder = tempfile.mkdtemp(prefix="hearth-unpacked-")
                atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
            # The facts come last, so they prove that the tree is whole. Another process may be faster.
            if os.path.exists(os.path.join(trees, digest + ".json")) and not os.path.exists(self.facts(digest)):
                with contextlib.suppress(OSError):
                    os.rename(os.path.join(trees, digest), os.path.join(self.folder, digest))
                    os.rename(os.path.join(trees, digest + ".json"), self.facts(digest))

    def facts(self, digest):
        return os.path.join(self.folder, digest + ".json")


unpacked = Unpacked()


class Server:
    """One `hearth serve` with its own data directory. Use as a context; its end drains it and looks for leaks. It is
    ready when its pools' images are unpacked; a large image needs a larger `ready_within` (seconds)."""

    def __init__(self, pools=None, data_dir=None, runtime=None, config=None, env=None, args=(), ready_within=60, tls=None,
                 ops_port=None, program=("hearth", "serve")):
        self.ready_within, self.program = ready_within, program
        self.tls = tls  # an Authority, which gives the server a certificate for 127.0.0.1
        self.own_data = data_dir is None
        self.data = data_dir or tempfile.mkdtemp(prefix="hearth-server-")
        os.makedirs(self.data, exist_ok=True)
        os.chmod(self.data, 0o711)  # the sandboxes' root is a stranger on the host and must pass
        self.runtime, self.config, self.extra = runtime or default_runtime, config, list(args)
        self.env = dict(os.environ, **sanitizer_options(), **(env or {}))
        if self.runtime == "docker-remote":
            self.runtime = "docker"
            self.env.setdefault("HEARTH_DOCKER_AGENT", "copy")
        if self.runtime == "docker" and "DOCKER_HOST" not in (env or {}):
            self.env.update(dockerd.env)
        self.port, self.ops_port = free_port(), ops_port or free_port()
        self.pools_file = os.path.join(self.data, "pools.yaml")
        self.write_pools(pools if pools is not None else pool_yaml())
        self.log_path = os.path.join(self.data, "server.log")
        if tls:
            self.extra += ["--tls-cert", f"{tls.folder}/server.pem", "--tls-key", f"{tls.folder}/server.key"]
            self.trusting = ssl.create_default_context(cafile=tls.file)
            self.renew_certificate()
        self.process = None
        self.token = None  # for calls without one, also those of this harness
        self.serves_from = self.data  # its --data-dir; tests may replace it
        self.wrapper = []  # the words before the program's own, of a command that executes it
        if self.own_data:
            unpacked.give(self.data, pools if pools is not None else pool_yaml())
        images = os.path.join(self.data, "images")
        os.makedirs(images, exist_ok=True)
        for layout in glob.glob(os.path.join(IMAGES, "*")):
            target = os.path.join(images, os.path.basename(layout))
            if not os.path.exists(target):
                os.symlink(layout, target)

    def write_pools(self, text):
        with open(self.pools_file, "w", encoding="utf-8") as f:
            f.write(text)

    def renew_certificate(self):
        """Replaces the certificate by a new one."""
        certificate, key = self.tls.certificate("next", "IP:127.0.0.1,DNS:localhost")
        os.chmod(key, 0o644)  # the server has a user of its own
        os.replace(key, f"{self.tls.folder}/server.key")
        os.replace(certificate, f"{self.tls.folder}/server.pem")

    @property
    def url(self):
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    @property
    def instance(self):
        import hashlib
        return hashlib.sha256(os.path.realpath(self.data).encode()).hexdigest()[:12]

    def start(self, wait=None, env=None):
        wait = self.ready_within if wait is None else wait
        program = ["hearth-fake"] if self.runtime == "fake" else [*self.program, "--runtime", self.runtime]
        args = [*self.wrapper, os.path.join(BUILD, program[0]), *program[1:], "--listen", f"127.0.0.1:{self.port}",
                "--ops-listen", f"127.0.0.1:{self.ops_port}", "--data-dir", self.serves_from] + self.extra
        if self.pools_file:
            args += ["--pools", self.pools_file]
        if self.config:
            path = os.path.join(self.data, "config.yaml")
            with open(path, "w", encoding="utf-8") as f:
                f.write(self.config)
            args += ["--config", path]
        log = open(self.log_path, "ab")
        self.process = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                        env=dict(self.env, **(env or {})))
        log.close()
        if wait:
            self.wait_ready(wait)
        return self

    def wait_ready(self, seconds=60, path="/readyz"):
        seconds *= SLOWER
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise AssertionError(f"the server ended with {self.process.returncode}:\n{self.log()[-3000:]}")
            try:
                if self.ops(path).status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.02)
        raise AssertionError(f"the server is not ready after {seconds} s:\n{self.log()[-3000:]}")

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def call(self, method, path, body=None, headers=None, port=None, timeout=60, raw=None):
        if self.tls and port is None:
            connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout * SLOWER, context=self.trusting)
        else:
            connection = http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=timeout * SLOWER)
        try:
            headers = dict(headers or {})
            if self.token:
                headers.setdefault("Authorization", f"Bearer {self.token}")
            data = raw
            if body is not None:
                data = json.dumps(body).encode()
                headers.setdefault("Content-Type", "application/json")
            try:
                connection.request(method, path, body=data, headers=headers)
            except BrokenPipeError:
                pass  # refused before the body was read: the answer is there anyway
            response = connection.getresponse()
            return Answer(response.status, dict((k.lower(), v) for k, v in response.getheaders()),
                          response.read())
        finally:
            connection.close()

    def get(self, path, **kw):
        return self.call("GET", path, **kw)

    def post(self, path, body=None, **kw):
        return self.call("POST", path, {} if body is None and "raw" not in kw else body, **kw)

    def ops(self, path, headers=None):
        return self.call("GET", path, headers=headers, port=self.ops_port, timeout=5)

    def open_workspace(self, **fields):
        answer = self.post("/v1/workspaces", fields)
        assert answer.status == 201, answer
        return answer.json

    def run(self, workspace, command, **fields):
        answer = self.post(f"/v1/workspaces/{workspace}/executions", dict(fields, command=command))
        assert answer.status == 200, answer
        return answer.json

    def kill9(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self, timeout=40):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout * SLOWER)
            except subprocess.TimeoutExpired:
                self.kill9()
                raise AssertionError("the server did not stop:\n" + self.log()[-3000:])
        return self.process.returncode if self.process else None

    def drain(self):
        answer = self.post("/v1/drain")
        assert answer.status in (200, 202, 204), answer

    def launcher_pids(self):
        """Returns the server's child processes without the helper that looks at GPUs."""
        return [pid for pid in pids() if parent(pid) == self.process.pid and command_of(pid) != "hearth-gpu"]

    def leftovers(self):
        return leftovers(self.instance, self.data) + self.docker_leftovers()

    def docker_leftovers(self):
        """Returns containers, volumes and networks. The daemon is shared, but the tests run one after another."""
        if self.runtime != "docker":
            return []
        filters = json.dumps({"label": ["dev.hearth.instance=" + self.instance]})
        left = [c["Names"] for c in dockerd.items("/containers/json?all=1&filters=" + urllib.parse.quote(filters))]
        left += [v["Name"] for v in dockerd.items("/volumes")["Volumes"] or []]
        left += [tag for i in dockerd.items("/images/json") for tag in i["RepoTags"] or []
                 if tag.startswith(("hearth/agent:", "hearth/probe:"))]
        return left + [n["Name"] for n in dockerd.items("/networks") if n["Name"] not in ("none", "host", "bridge")]

    def sanitizer_reports(self):
        """Returns the sanitizer's reports from the log of the server and its launcher, or from a file report.PID of
        the data directory; empty if there are none."""
        texts = []
        for path in [self.log_path] + glob.glob(os.path.join(glob.escape(self.data), "report.*")):
            if os.path.exists(path):
                with open(path, encoding="utf-8", errors="replace") as f:
                    text = f.read()
                if found := SANITIZER_REPORT.search(text):
                    count = len(SANITIZER_REPORT.findall(text))
                    texts.append(f"{count} in {os.path.basename(path)}, the first:\n"
                                 + text[found.start():][:SHOWN_REPORT])
        if not texts and self.process and self.process.returncode == SANITIZER_STATUS:
            texts.append(f"the server ended with {SANITIZER_STATUS}, without a report:\n{self.log()[-3000:]}")
        return "\n".join(texts)

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise

    def __exit__(self, kind, *_):
        try:
            if self.process and self.process.poll() is None:
                try:
                    self.drain()
                finally:
                    self.stop()
            if kind is None:
                left = self.wait_clean()
                assert not left, f"left on the machine: {left}\n{self.log()[-2000:]}"
        finally:
            clean_up(self)

    def wait_clean(self, seconds=15):
        end = time.monotonic() + seconds * SLOWER
        while (left := self.leftovers()) and time.monotonic() < end:
            time.sleep(0.1)
        return left


def npm_ci(folder):
    """Installs the packages of a folder as its lock file has them, once."""
    lock, mark = (os.path.join(folder, name) for name in ("package-lock.json", "node_modules/.hearth-lock"))
    if not os.path.exists(mark) or not filecmp.cmp(lock, mark, shallow=False):
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"], cwd=folder, check=True)
        shutil.copy(lock, mark)


class Shared:
    """One server for all tests of a file, since its image takes longer to unpack than they run. As a context it is
    handed to a test, and everything that the test opened is closed after it. `end` must be the last test; `clean_up`
    follows."""

    def __init__(self, wait=300, **fields):
        self.wait, self.fields, self.server = wait, fields, None

    def __enter__(self):
        if self.server is None:
            self.server = Server(**self.fields)
            self.server.start(wait=self.wait)
        return self.server

    def __exit__(self, *_):
        for workspace in self.server.get("/v1/workspaces").json["items"]:
            self.server.call("DELETE", f"/v1/workspaces/{workspace['id']}")

    def end(self):
        if self.server is not None:
            server, self.server = self.server, None
            server.__exit__(None, None, None)

    def clean_up(self):
        if self.server is not None:
            clean_up(self.server)


def clean_up(server):
    """Removes everything of this test, whatever happened. Then a sanitizer's report fails the test."""
    if server.process and server.process.poll() is None:
        server.kill9()
    reports = server.sanitizer_reports()
    for path in glob.glob(f"/sys/fs/cgroup/*/hearth-{server.instance}/*/cgroup.procs") + \
            glob.glob(f"/sys/fs/cgroup/hearth-{server.instance}/*/cgroup.procs"):
        try:
            with open(path, encoding="ascii") as f:
                for pid in f.read().split():
                    os.kill(int(pid), signal.SIGKILL)
        except OSError:
            pass
    if server.own_data:
        unpacked.take(server.data)
        shutil.rmtree(server.data, ignore_errors=True)
    for _ in range(50):
        for kind in ("/sys/fs/cgroup/*/", "/sys/fs/cgroup/"):
            for path in glob.glob(f"{kind}hearth-{server.instance}/*") + glob.glob(f"{kind}hearth-{server.instance}*"):
                try:
                    os.rmdir(path)
                except OSError:
                    pass
        if not glob.glob(f"/sys/fs/cgroup/*/hearth-{server.instance}*"):
            break
        time.sleep(0.1)
    shutil.rmtree(f"/run/hearth/{server.instance}", ignore_errors=True)
    assert not reports, f"sanitizer reports: {reports}"


def pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def parent(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            return int(f.read().rsplit(")", 1)[1].split()[1])
    except OSError:
        return -1


def command_of(pid):
    """Returns the name of the program, as the kernel has it; empty if the process has gone."""
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8") as f:
            return f.read().strip()
    except OSError:
        return ""


def leftovers(instance, data):
    """Returns everything of this instance that still exists: what `kill -9` and a stop must not leave."""
    left = []
    for kind in ("/sys/fs/cgroup/*/", "/sys/fs/cgroup/"):
        left += glob.glob(f"{kind}hearth-{instance}/hearth-*")
    with open("/proc/self/mounts", encoding="utf-8") as f:
        left += [line.split()[1] for line in f if instance in line]
    for path in glob.glob("/sys/block/loop*/loop/backing_file"):
        try:
            with open(path, encoding="utf-8") as f:
                backing = f.read()
            if os.path.realpath(data) in backing:
                left.append(path + " " + backing.strip())
        except OSError:
            pass
    run = f"/run/hearth/{instance}"
    for pattern in ("sockets/*", "start/*", "sandboxes/*", "runc/*"):
        left += glob.glob(os.path.join(run, pattern))
    try:
        with open(os.path.join(run, "marks", "claimed"), "rb") as f:
            left += [f"claim mark {mark.decode()}" for mark in f.read().split(b"\0") if mark]
    except FileNotFoundError:
        pass
    for path in glob.glob("/run/hearth/uids/*"):
        if os.path.islink(path) and instance in os.readlink(path):
            left.append(path)
    left += glob.glob(os.path.join(data, "storage", "*"))
    return left


def resident(pid, what="VmRSS"):
    """Returns the resident memory of a process in bytes: the present one, or with VmHWM its peak."""
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
        return next(int(line.split()[1]) << 10 for line in f if line.startswith(what + ":"))


def growth_allowed(amount):
    """Returns the bytes by which a server may grow. A sanitizer keeps freed memory and shadows all memory, so with one
    there is no bound."""
    return math.inf if SANITIZER else amount


class Growth:
    """The bytes by which the peak of each process exceeds its memory at the beginning; the kernel keeps the peak."""

    def __init__(self, processes):
        self.before = {}
        for pid in processes:
            with open(f"/proc/{pid}/clear_refs", "w", encoding="ascii") as f:
                f.write("5")
            self.before[pid] = resident(pid)

    def most(self):
        return max(resident(pid, "VmHWM") - before for pid, before in self.before.items())


def commands_with(word):
    """Returns the processes of this machine, also inside sandboxes, whose command line has the word."""
    found = []
    for pid in pids():
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if word.encode() in f.read():
                    found.append(pid)
        except OSError:
            pass
    return found


def sse_events(lines):
    """Yields the events of a stream's lines, each as a dict of its fields. Skips comments."""
    event = {}
    for line in lines:
        name, mark, value = line.rstrip("\r\n").partition(": ")
        if not mark and not name and event:
            yield event
            event = {}
        elif mark and name:
            event[name] = value


class Reader:
    """A GET whose answer is read only when the test does; `buffer`: the bytes that its kernel takes ahead."""

    def __init__(self, server, path, headers=None, buffer=None, timeout=60):
        self.socket = socket.socket()
        if buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.socket.settimeout(timeout * SLOWER)
        self.socket.connect(("127.0.0.1", server.port))
        lines = [f"GET {path} HTTP/1.1", "Host: localhost"] + [f"{k}: {v}" for k, v in (headers or {}).items()]
        self.socket.sendall("\r\n".join(lines + ["", ""]).encode())
        self.answer = None

    def begin(self):
        """Reads the head. Returns the status."""
        if self.answer is None:
            self.answer = http.client.HTTPResponse(self.socket)
            self.answer.begin()
        return self.answer.status

    def body(self):
        assert self.begin() == 200, self.answer.read()
        return self.answer.read()

    def events(self):
        """Yields the events as they come."""
        assert self.begin() == 200, self.answer.read()
        return sse_events(line.decode() for line in iter(self.answer.readline, b""))

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def wait_for(what, check, seconds=15, seen=None):
    """Returns the first true value of `check`. After the time it fails with what `seen` returns, if it is given."""
    seconds *= SLOWER
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = check()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"not within {seconds} s: {what}" + (f"; there is {seen()}" if seen else ""))


def new_key():
    return secrets.token_hex(12)


def missing():
    """Returns the reason why black-box tests cannot run here, or None."""
    if os.geteuid() != 0:
        return "not root"
    if not os.path.exists(os.path.join(BUILD, "hearth")):
        return f"{BUILD}/hearth is not built"
    if shutil.which("runc") is None:
        return "runc is not installed"
    if on_docker() and shutil.which("dockerd") is None:
        return "dockerd is not installed"
    if on_remote_docker() and shutil.which("openssl") is None:
        return "openssl is not installed"
    if not os.path.isdir(os.path.join(IMAGES, "shell")):
        return "the test images are not built"
    return None


def asked_for(test):
    """Returns whether the test's name contains an argument of this program; without arguments all tests are asked
    for."""
    return len(sys.argv) == 1 or any(part in test.__name__ for part in sys.argv[1:])


def chosen(test):
    """Returns whether main() would run the test, for tests whose needs take time to find."""
    return asked_for(test) and getattr(test, "only", RUNTIMES[0]) in RUNTIMES


def note(text):
    """Reports what a machine lacks and no test can be blamed for. It is no result, so HEARTH_REQUIRE does not make it a
    failure."""
    print(f"NOTE  {text}", flush=True)


def stage_name(stage):
    return f"{stage}-{PRESET}" if PRESET in ("release", "asan", "tsan") else stage


def record(outcome, stage, name):
    print(f"{outcome.upper():5} {name}", flush=True)
    if RESULTS:
        with open(RESULTS, "a", encoding="utf-8") as f:
            f.write(f"{outcome} {stage_name(stage)} {name}\n")


def end_in_order():
    """Makes a program that is asked to end run the ends of its contexts, so that it leaves no server behind."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def main(stage, tests):
    """Runs the functions whose names contain an argument (without arguments: all) on each runtime; on docker with a
    daemon of their own. A function with an attribute `only` runs on that runtime only; docker-remote runs those with
    `remote`."""
    global dockerd, default_runtime
    end_in_order()
    failed = False
    for default_runtime in RUNTIMES:
        here = [test for test in tests if runs_here(test) and asked_for(test)]
        if on_docker() and here and not missing():
            dockerd = Dockerd(tls=on_remote_docker())
            try:
                dockerd.start()
                failed |= run_all(stage, here)
            finally:
                dockerd.close()
        else:
            failed |= run_all(stage, here)
    sys.exit(1 if failed else 0)


def runs_here(test):
    if on_remote_docker():
        return getattr(test, "remote", False)
    return getattr(test, "only", default_runtime) == default_runtime


def run_all(stage, tests):
    why = missing()
    failed = False
    for test in tests:
        name = test.__doc__.strip().splitlines()[0] if test.__doc__ else test.__name__
        name += f" ({default_runtime})" if on_docker() else ""
        if why:
            record("skip", stage, f"{name} ({why})")
            continue
        begin = time.monotonic()
        if passes(test, stage, name) or passes_again(test, stage, name):
            record("pass", stage, name)
        else:
            record("fail", stage, name)
            failed = True
        print(f"      {time.monotonic() - begin:.1f} s", flush=True)
    return failed


def passes(test, stage, name):
    try:
        test()
        return True
    except Exception as error:
        traceback.print_exc()
        reasons.tell(stage_name(stage), name, reasons.of_exception(error))
        return False


def passes_again(test, stage, name):
    if not second_try.allowed(stage_name(stage)) or not passes(test, stage, name):
        return False
    print(f"      failed, then passed: {name}", flush=True)
    second_try.report(stage_name(stage), name)
    return True
