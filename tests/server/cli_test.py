#!/usr/bin/env python3
"""Work at a terminal, with the real program against a real server: a shell in a pseudo-terminal, copies in both
directions, completion. Standard library only."""

import fcntl
import hashlib
import io
import os
import pty
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tarfile
import tempfile
import termios
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import BUILD, SLOWER, Shared, main, pool_yaml, wait_for  # noqa: E402

HEARTH = os.path.join(BUILD, "hearth")


def hearth(s, *words, stdin=b"", ok=True, cwd=None):
    """Runs a command to its end. Returns its output as bytes, or the whole result if it may fail."""
    ran = subprocess.run([HEARTH, *words], input=stdin, capture_output=True, cwd=cwd, timeout=60 * SLOWER,
                         env=dict(os.environ, HEARTH_URL=s.url, NO_COLOR="1"), check=False)
    if not ok:
        return ran
    assert ran.returncode == 0, ran
    return ran.stdout


def plain_env(s):
    """Returns the environment of a program, without this machine's wish for no colours."""
    return {**{name: value for name, value in os.environ.items() if name != "NO_COLOR"}, "HEARTH_URL": s.url}


class Terminal:
    """A program in a pseudo-terminal. `env` is added to the environment of all programs."""

    def __init__(self, s, *words, cols=100, rows=30, env=None, program=HEARTH, cwd=None):
        self.master, self.slave = pty.openpty()
        self.size(cols, rows)
        self.before = termios.tcgetattr(self.slave)
        self.seen = b""
        every = {**plain_env(s), "TERM": "vt100", "PATH": BUILD + ":" + os.environ["PATH"], **(env or {})}
        self.process = subprocess.Popen([program, *words], stdin=self.slave, stdout=self.slave, stderr=self.slave,
                                        preexec_fn=self.control, env=every, cwd=cwd)

    def control(self):
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def size(self, cols, rows):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def type(self, keys):
        os.write(self.master, keys)

    def see(self, pattern, seconds=20):
        """Reads until the output matches. Returns the match, and forgets the output up to its end."""
        end = time.monotonic() + seconds * SLOWER
        while time.monotonic() < end:
            if found := re.search(pattern, self.seen, re.DOTALL):
                self.seen = self.seen[found.end():]
                return found
            if select.select([self.master], [], [], 0.1)[0]:
                self.seen += os.read(self.master, 65536)
        raise AssertionError(f"never seen: {pattern!r} in {self.seen[-2000:]!r}")

    def is_raw(self):
        return not termios.tcgetattr(self.slave)[3] & termios.ECHO

    def end(self, seconds=20):
        """Returns the program's exit status. Checks that the terminal is as it was before."""
        end = time.monotonic() + seconds * SLOWER
        while self.process.poll() is None and time.monotonic() < end:
            if select.select([self.master], [], [], 0.05)[0]:
                self.seen += os.read(self.master, 65536)
        assert self.process.poll() is not None, f"it goes on: {self.seen[-2000:]!r}"
        assert termios.tcgetattr(self.slave) == self.before, "the terminal was not given back"
        return self.process.returncode

    def rest(self):
        """Returns the output that was not seen yet. To be called after the program's end."""
        while select.select([self.master], [], [], 0)[0]:
            self.seen += os.read(self.master, 65536)
        return self.seen

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
        os.close(self.slave)


shared = Shared(pools=pool_yaml(warm=3))


def shells():
    """hearth shell is a terminal: its size, keys and signals go in, and it comes back as it was"""
    with shared as s:
        w = s.open_workspace()["id"]
        with Terminal(s, "shell", w, "-e", "PS1=ready:") as t:
            t.see(b"ready:")
            assert t.is_raw()
            t.type(b"stty size; tty; echo $TERM-$((6*7))\r")
            t.see(b"30 100.*/dev/pts/.*vt100-42\r\n")
            t.size(71, 17)
            t.process.send_signal(signal.SIGWINCH)
            wait_for("the new size", lambda: (t.type(b"stty size\r"), t.see(b"\n\\d+ \\d+\r").group())[1] == b"\n17 71\r")
            t.type(b"sh -c 'echo as''leep; sleep 61'; echo woken\r")
            t.see(b"asleep\r\n")
            t.type(b"\x03")  # for the program in the shell, not for `hearth shell`
            t.see(b"ready:")
            t.type(b"echo kept > note; exit 7\r")
            assert t.end() == 7
        assert hearth(s, "cp", f"{w}:note", "-") == b"kept\n"
        with Terminal(s, "shell", w, "--", "cat") as t:
            wait_for("raw", t.is_raw)
            t.type("grüße\r\x04".encode())
            t.see("grüße\r\n".encode())
            assert t.end() == 0
        for words in (("exec", "-it", w), ("run", "-it", "-w", w, "--")):
            with Terminal(s, *words, "sh", "-c", "test -t 0 && stty size; read answer; exit $answer") as t:
                t.see(b"30 100\r\n")
                t.type(b"5\r")
                assert t.end() == 5, words
        with Terminal(s, "shell", w, "--", "sh", "-c", "kill -TERM $$") as t:
            status = t.end()
            assert status == 143, (status, t.seen)


def shells_end():
    """a shell that is ended from outside gives the terminal back and leaves nothing running; without a workspace it has one of its own"""
    with shared as s:
        w = s.open_workspace()["id"]
        for end in (lambda t: t.process.send_signal(signal.SIGTERM), lambda t: t.process.send_signal(signal.SIGHUP),
                    lambda t: t.type(b"\r~.")):
            with Terminal(s, "shell", w, "--", "sh", "-c", "trap '' INT HUP TERM; echo on; while :; do sleep 1; done") as t:
                t.see(b"on\r\n")
                end(t)
                assert t.end() in (143, 129)
            assert all(x["status"] != "running" for x in s.get(f"/v1/workspaces/{w}/executions").json["items"])
        with Terminal(s, "shell", w, "-e", "PS1=ready:") as t:  # stopped and continued, as a job control does
            t.see(b"ready:")
            t.process.send_signal(signal.SIGTSTP)
            wait_for("the stop", lambda: not t.is_raw())
            assert termios.tcgetattr(t.slave) == t.before
            t.process.send_signal(signal.SIGCONT)
            wait_for("raw again", t.is_raw)
            t.type(b"exit\r")
            assert t.end() == 0
        opened = len(s.get("/v1/workspaces").json["items"])
        with Terminal(s, "shell", "-e", "PS1=ready:") as t:
            t.see(b"ready:")
            assert len(s.get("/v1/workspaces").json["items"]) == opened + 1
            t.type(b"exit 3\r")
            assert t.end() == 3
        wait_for("its end", lambda: len(s.get("/v1/workspaces").json["items"]) == opened)
        assert hearth(s, "shell", ok=False).returncode == 2, "a shell without a terminal"
        with Terminal(s, "shell", "ws_" + "0" * 32) as t:
            assert t.end() == 3


def copies():
    """hearth cp copies files and directories both ways, and by standard input and output"""
    here = tempfile.mkdtemp(prefix="hearth-cp-")
    try:
        with shared as s:
            w = s.open_workspace()["id"]
            big = os.urandom(3_000_001)
            os.makedirs(f"{here}/tree/deep/er")
            for name, content in (("big", big), ("tree/deep/er/x ü.txt", b"x"), ("tree/run", b"#!/bin/sh\necho ran\n")):
                with open(f"{here}/{name}", "wb") as f:
                    f.write(content)
            os.chmod(f"{here}/tree/run", 0o755)
            os.symlink("deep/er", f"{here}/tree/link")
            os.mkfifo(f"{here}/tree/pipe")

            hearth(s, "cp", "big", f"{w}:in/", cwd=here)
            assert s.run(w, "sha256sum in/big")["stdout"].split()[0] == hashlib.sha256(big).hexdigest()
            hearth(s, "cp", f"{w}:in/big", "copy", cwd=here)
            hearth(s, "cp", f"{w}:/workspace/in/big", "tree", cwd=here)
            assert open(f"{here}/copy", "rb").read() == open(f"{here}/tree/big", "rb").read() == big
            hearth(s, "cp", "-", f"{w}:from stdin", stdin=b"piped")
            assert hearth(s, "cp", f"{w}:from stdin", "-") == b"piped"

            told = hearth(s, "cp", "tree", f"{w}:", cwd=here, ok=False)
            assert told.returncode == 1 and b"left out: pipe" in told.stderr, told
            assert s.run(w, "tree/run; cat 'tree/link/x ü.txt'; readlink tree/link")["stdout"] == "ran\nxdeep/er\n"
            os.unlink(f"{here}/tree/pipe")
            hearth(s, "cp", "tree/.", f"{w}:src", cwd=here)
            assert s.run(w, "ls src")["stdout"].split() == ["big", "deep", "link", "run"]
            hearth(s, "cp", f"{w}:src", "back", cwd=here)
            hearth(s, "cp", f"{w}:src", "back", cwd=here)  # now into the existing folder
            for folder in ("back", "back/src"):
                assert open(f"{here}/{folder}/deep/er/x ü.txt", "rb").read() == b"x"
                assert os.access(f"{here}/{folder}/run", os.X_OK) and os.readlink(f"{here}/{folder}/link") == "deep/er"

            archive = hearth(s, "cp", "--tar", f"{w}:src", "-")
            with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
                assert "deep/er/x ü.txt" in tar.getnames()
            hearth(s, "cp", "--tar", "-", f"{w}:again", stdin=archive)
            assert s.run(w, "again/run")["stdout"] == "ran\n"

            for words, status, word in ((("cp", "absent", f"{w}:"), 2, b"absent"), (("cp", f"{w}:absent", "."), 3, b"absent"),
                                        (("cp", "a", "b"), 2, b"workspace"), (("cp", f"{w}:src", "-"), 2, b"--tar"),
                                        (("cp", "big", "ws_" + "0" * 32 + ":x"), 3, b"workspace")):
                ran = hearth(s, *words, ok=False, cwd=here)
                assert ran.returncode == status and word in ran.stderr, (words, ran)
            with open(f"{here}/full", "wb") as f:
                f.truncate(80_000_000)
            full = hearth(s, "cp", "full", f"{w}:full", ok=False, cwd=here)
            assert full.returncode == 1 and b"lost" not in full.stderr, full
    finally:
        shutil.rmtree(here)


def trees():
    """hearth cp takes a tree with a .venv along as it is, says what it leaves out and why, and brings it back"""
    here = tempfile.mkdtemp(prefix="hearth-cp-")
    os.chmod(here, 0o755)
    try:
        with shared as s, socket.socket(socket.AF_UNIX) as listener:
            w = s.open_workspace()["id"]
            os.makedirs(f"{here}/tree/.venv/bin")
            os.makedirs(f"{here}/tree/.venv/lib/python3.11/site-packages")
            for name, content in (("pyvenv.cfg", "home = /usr/bin\n"), ("lib/python3.11/site-packages/mod.py", "x = 1\n")):
                with open(f"{here}/tree/.venv/{name}", "w", encoding="ascii") as f:
                    f.write(content)
            links = {".venv/bin/sh": "/bin/sh", ".venv/bin/python": "/usr/bin/python3", ".venv/bin/python3": "python", ".venv/lib64": "lib",
                     ".venv/up": "../../beside", "broken": "nowhere"}
            for name, target in links.items():
                os.symlink(target, f"{here}/tree/{name}")
            os.link(f"{here}/tree/.venv/pyvenv.cfg", f"{here}/tree/hard")
            os.mkfifo(f"{here}/tree/pipe")
            listener.bind(f"{here}/tree/socket")
            with open(f"{here}/tree/secret", "w", encoding="ascii") as f:
                f.write("mine")
            os.chmod(f"{here}/tree/secret", 0)
            os.makedirs(f"{here}/tree/closed/in")
            os.chmod(f"{here}/tree/closed", 0o700)

            told = subprocess.run([HEARTH, "cp", "tree", f"{w}:"], cwd=here, capture_output=True, text=True, timeout=60 * SLOWER, check=False,
                                  user=65534, group=65534, extra_groups=[], env={"HEARTH_URL": s.url, "NO_COLOR": "1", "HOME": "/nonexistent"})
            left = dict(line.removeprefix("left out: ").split(" ", 1) for line in told.stderr.splitlines())
            assert told.returncode == 1 and left == {
                "pipe": "is neither a file nor a directory", "socket": "is neither a file nor a directory",
                "secret": "cannot be read: Permission denied", "closed": "cannot be read: Permission denied"}, told
            read = s.run(w, f"cd tree; for l in {' '.join(links)}; do readlink $l; done; cat hard .venv/lib64/python3.11/site-packages/mod.py; .venv/bin/sh -c 'echo ran'; ls closed")
            assert read["stdout"] == "\n".join(links.values()) + "\nhome = /usr/bin\nx = 1\nran\n", read

            told = hearth(s, "cp", f"{w}:tree", "back", cwd=here, ok=False)
            assert told.returncode == 1 and sorted(line.split(b" ")[2] for line in told.stderr.splitlines()) == [b".venv/bin/python", b".venv/bin/sh", b".venv/up"], told
            assert b"is a link that may lead out: \"/usr/bin/python3\"" in told.stderr, told
            assert os.readlink(f"{here}/back/.venv/bin/python3") == "python" and open(f"{here}/back/hard", encoding="ascii").read() == "home = /usr/bin\n"
    finally:
        shutil.rmtree(here)


def hostile_copies():
    """hearth cp writes nothing outside its destination, whatever a sandbox put there"""
    here = tempfile.mkdtemp(prefix="hearth-cp-")
    try:
        with shared as s:
            w = s.open_workspace()["id"]
            with open(f"{here}/mine", "w", encoding="ascii") as f:
                f.write("untouched")
            s.run(w, "mkdir -p d/sub; ln -s /etc d/etc; ln -s ../../mine d/up; ln -s sub/../../mine d/sly; ln -s ../sub d/sub/ok; echo 1 > d/sub/f;"
                     " printf x > \"$(printf 'd/\\033[31mred')\"")
            told = hearth(s, "cp", f"{w}:d", "d", cwd=here, ok=False)
            assert told.returncode == 1 and told.stderr.count(b"left out") == 3 and b"\033" not in told.stderr, told
            assert sorted(os.listdir(f"{here}/d")) == ["\033[31mred", "sub"]
            assert os.readlink(f"{here}/d/sub/ok") == "../sub" and open(f"{here}/d/sub/f").read() == "1\n"
            # Links at the destination are not followed, either.
            os.mkdir(f"{here}/e")
            os.symlink("..", f"{here}/e/sub")
            s.run(w, "mkdir -p e/sub; echo theirs > e/sub/mine")
            refused = hearth(s, "cp", f"{w}:e/.", "e", cwd=here, ok=False)
            assert refused.returncode == 1 and b"sub" in refused.stderr, refused
            assert open(f"{here}/mine", encoding="ascii").read() == "untouched"
            # The server refuses a file whose link leads outside.
            s.run(w, "ln -s /proc/self/environ env")
            assert hearth(s, "cp", f"{w}:env", "env", ok=False, cwd=here).returncode != 0 and not os.path.exists(f"{here}/env")
    finally:
        shutil.rmtree(here)


def completion():
    """completion knows commands, workspaces and their files, and bash gets them in pieces that it can use"""
    with shared as s:
        w = s.open_workspace(name="mine")["id"]
        s.run(w, "mkdir dir; touch dir/one dir/two")
        script = hearth(s, "completion", "bash").decode()

        def complete(line):
            ask = script + f'COMP_LINE=$1 COMP_POINT=${{#1}}; _hearth; printf "%s\\n" "${{COMPREPLY[@]}}"'
            ran = subprocess.run(["bash", "-c", ask, "bash", line.replace("hearth ", HEARTH + " ", 1)], capture_output=True, text=True,
                                 env=dict(os.environ, HEARTH_URL=s.url), check=True)
            return ran.stdout.split("\n")[:-1]

        assert complete("hearth she") == ["shell"]
        assert complete("hearth get pools --output=") == ["table", "wide", "json", "yaml", "name"]
        assert complete("hearth shell ws_") == [w]
        assert complete(f"hearth cp {w}:d") == ["dir/"]
        assert complete(f"hearth cp {w}:dir/o") == ["dir/one"]
        assert complete("hearth get pool ") == ["shell"], complete("hearth get pool ")
        assert "completion" in hearth(s, "help").decode()


def completion_elsewhere():
    """zsh and fish complete by the scripts made for them, workspaces and their files too"""
    here = tempfile.mkdtemp(prefix="hearth-complete-")
    try:
        with shared as s:
            w = s.open_workspace(name="mine")["id"]
            s.run(w, "mkdir dir; touch dir/one dir/two")

            def fish(line):
                ask = f"{HEARTH} completion fish | source; complete -C {line!r}"
                ran = subprocess.run(["fish", "--no-config", "-c", ask], capture_output=True, text=True, check=True,
                                     env=dict(os.environ, HEARTH_URL=s.url, HOME=here, PATH=BUILD + ":" + os.environ["PATH"]))
                return [candidate.split("\t")[0] for candidate in ran.stdout.splitlines()]

            assert fish("hearth she") == ["shell"]
            assert {"--output=json", "--output=table"} < set(fish("hearth get pools --output="))
            assert fish("hearth shell ws_") == [w]
            assert fish(f"hearth cp {w}:dir/o") == [f"{w}:dir/one"]
            with Terminal(s, "-f", program="zsh", cwd=here, cols=200, env={"HOME": here, "ZDOTDIR": here}) as t:
                t.type(b"autoload -U compinit; compinit -u -D; source <(hearth completion zsh); echo loa''ded\n")
                t.see(rb"loaded\r")
                t.type(b"hearth completion fi\t | head -n1; echo do''ne\n")
                t.see(rb"# hearth completion fish")
                t.see(rb"done\r")
                t.type(f"hearth cp {w}:dir/o\t copy; echo co''pied\n".encode())
                t.see(rb"copied\r")
                t.type(b"exit\n")
                assert t.end() == 0
            assert "copy" in os.listdir(here), os.listdir(here)
    finally:
        shutil.rmtree(here)


def completion_is_text():
    """what a sandbox's files are called is text to the user's shell, never a command"""
    here = tempfile.mkdtemp(prefix="hearth-complete-")
    try:
        with shared as s:
            w = s.open_workspace()["id"]
            s.run(w, "printf theirs > '$(touch${IFS}pwned)'; touch \"$(printf '\\033[31mred')\"")
            with Terminal(s, "--norc", "--noprofile", "-i", program="bash", cwd=here, cols=200) as t:
                t.type(b"source <(hearth completion bash); echo loa''ded\n")
                t.see(rb"loaded")
                # Only one name is offered: the name with an escape in it cannot be chosen.
                t.type(f"hearth cp {w}:\t".encode())
                t.see(rb"pwned")
                t.type(b" copy; echo do''ne\n")
                t.see(rb"done")
                t.type(b"exit\n")
                assert t.end() == 0
            assert os.listdir(here) == ["copy"] and open(f"{here}/copy", encoding="ascii").read() == "theirs", os.listdir(here)
    finally:
        shutil.rmtree(here)


def deletes():
    """what can be deleted is, whatever stands before it, and the status says that something could not"""
    with shared as s:
        w = s.open_workspace()["id"]
        ran = hearth(s, "delete", "workspace", "ws_none", w, ok=False)
        assert ran.returncode == 3 and b"ws_none" in ran.stderr and f"workspace {w} deleted" in ran.stdout.decode(), ran
        assert s.get(f"/v1/workspaces/{w}").status == 410
        wrong = subprocess.run([HEARTH, "get", "pools", "--url", "localhost:1"], capture_output=True, text=True, check=False)
        assert wrong.returncode == 2 and "http://HOST:PORT" in wrong.stderr, wrong


def output_formats():
    """--output json is one document, and there is no output of a kind that is not known"""
    import json
    with shared as s:
        w = s.open_workspace()["id"]
        assert json.loads(hearth(s, "get", "workspaces", "-o", "json"))["items"][0]["id"] == w
        assert json.loads(hearth(s, "run", "-w", w, "--command", "echo 1", "-o", "json"))["stdout"] == "1\n"
        assert hearth(s, "get", "workspaces", "-o", "yaml").decode().startswith("items:\n  - ")
        assert hearth(s, "get", "workspaces", "-q").decode() == w + "\n"
        assert b"LABELS" in hearth(s, "get", "workspaces", "-o", "wide")
        assert hearth(s, "get", "workspaces", "-o", "xml", ok=False).returncode == 2


def colours():
    """colours are for a terminal whose user wants them: neither a program that reads nor NO_COLOR gets any"""
    escape = b"\033["
    with shared as s:
        words = ("doctor", "--data-dir", s.data)
        read = subprocess.run([HEARTH, *words], capture_output=True, timeout=60 * SLOWER, env=plain_env(s), check=False)
        assert b"[ok]" in read.stdout and escape not in read.stdout + read.stderr, read
        failed = subprocess.run([HEARTH, "get", "workspace", "none"], capture_output=True, timeout=60 * SLOWER, env=plain_env(s), check=False)
        assert b"error:" in failed.stderr and escape not in failed.stderr, failed
        for env, coloured in (({}, True), ({"NO_COLOR": "1"}, False)):
            with Terminal(s, *words, env=env) as t:
                t.end()
                seen = t.rest()
                assert b"ok" in seen and (escape in seen) == coloured, (env, seen)
            with Terminal(s, "get", "workspace", "none", env=env) as t:
                t.end()
                seen = t.rest()
                assert b"error:" in seen and (escape in seen) == coloured, (env, seen)


def streams():
    """hearth run gives a line when it was written, not when the program ends"""
    with shared as s:
        w = s.open_workspace()["id"]
        run = subprocess.Popen([HEARTH, "run", "-w", w, "--command", "echo first; echo aside >&2; until [ -e go ]; do sleep 0.05; done; echo last"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=plain_env(s))
        try:
            for pipe, line in ((run.stdout, b"first\n"), (run.stderr, b"aside\n")):
                assert select.select([pipe], [], [], 60 * SLOWER)[0], "nothing came while it ran"
                assert pipe.readline() == line
            assert run.poll() is None, "it had ended before"
            hearth(s, "cp", "-", f"{w}:go")  # only now can it end
            out, err = run.communicate(timeout=60 * SLOWER)
            assert out == b"last\n" and run.returncode == 0, (out, err, run.returncode)
        finally:
            run.kill()
            run.communicate()


def output_is_whole():
    """all of a program's output arrives, however much it is and however slowly it is read"""
    with shared as s:
        ran = hearth(s, "run", "-l", "sh", "-c", "head -c 50000000 /dev/zero | tr '\\0' x; echo")
        assert len(ran) == 50_000_001 and ran.endswith(b"x\n"), len(ran)
        slow = subprocess.Popen([HEARTH, "run", "-l", "sh", "-c", "head -c 6000000 /dev/zero | tr '\\0' y; echo end"],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=plain_env(s))
        try:
            size, begun = 0, time.monotonic()
            while piece := slow.stdout.read(400_000):
                size += len(piece)
                time.sleep(0.1)
            assert size == 6_000_004 and slow.wait(60 * SLOWER) == 0, (size, slow.returncode, slow.stderr.read())
        finally:
            slow.kill()
            slow.communicate()


def readers_may_leave():
    """a program whose reader hangs up ends all the same"""
    with shared as s:
        w = s.open_workspace()["id"]
        run = subprocess.Popen([HEARTH, "run", "-w", w, "-c", "head -c 8000000 /dev/zero | tr '\\0' y; touch done", "-l", "sh"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=plain_env(s))
        assert run.stdout.read(1) == b"y"
        os.kill(run.pid, signal.SIGKILL)
        run.communicate()
        wait_for("its end", lambda: b"done" in hearth(s, "ls", w))


def lost_output_is_told():
    """what a program prints is received, and where some of it was lost, the number of bytes is exact and the status not 0"""
    with shared as s:
        whole = hearth(s, "run", "-l", "sh", "-c", "head -c 300000 /dev/zero | tr '\\0' x")
        assert whole == b"x" * 300_000, len(whole)
        size = 20_000_000
        ran = hearth(s, "run", "--output-limit", "512Ki", "-l", "sh", "-c", f"head -c {size} /dev/zero | tr '\\0' x; echo", ok=False)
        lost = re.search(rb"hearth: (\d+) bytes of output were lost", ran.stderr)
        output = re.sub("\n\\[… \\d+ bytes were not kept …\\]\n".encode(), b"", ran.stdout)
        assert len(output) + int(lost.group(1) if lost else 0) == size + 1, (len(output), ran.stderr)
        assert ran.stdout.endswith(b"x\n") and ran.returncode == (5 if lost else 0), (ran.returncode, ran.stderr)


def ends():
    """the server of these tests leaves nothing"""
    shared.end()


TESTS = [shells, shells_end, copies, trees, hostile_copies, completion, completion_elsewhere, completion_is_text, deletes, output_formats, colours, streams, output_is_whole, readers_may_leave, lost_output_is_told, ends]
for test in TESTS:
    test.only = "oci"  # they test parts in front of any runtime

if __name__ == "__main__":
    try:
        main("server", TESTS)
    finally:
        shared.clean_up()
