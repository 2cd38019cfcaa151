#!/usr/bin/env python3
"""`hearth top` in a pseudo-terminal of 80 by 24, against a server over imitated sandboxes. Standard library only."""
# suite: seconds=40 needs=hearth-fake

import os
import re
import select
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cli_test import HEARTH, Terminal, hearth, plain_env  # noqa: E402
from harness import SLOWER, Server, main, pool_yaml  # noqa: E402

POOLS = "---\n".join([pool_yaml("plain", image="any", warm=3), pool_yaml("other", image="any", warm=1)])
ESCAPE = re.compile(rb"\x1b(?:\[([?\d;]*)([A-Za-z])|[()][A-Z0-9]|[=>78DM])|\x1b")


class Vt100:
    """The screen of a VT100 after the bytes that it gets, with as much of a VT100 as ncurses needs."""

    def __init__(self, cols, rows):
        self.cols, self.rows = cols, rows
        self.lines = [[" "] * cols for _ in range(rows)]
        self.x = self.y = self.top = 0
        self.bottom = rows - 1  # the last line that scrolls
        self.rest = b""

    def feed(self, data):
        data, self.rest = self.rest + data, b""
        while data:
            if data[:1] == b"\x1b":
                found = ESCAPE.match(data)
                if len(data) < 12 and not (found and found.end() > 1):
                    self.rest = data  # the end of the sequence is still to come
                    return
                self.escape(found[0], found[1] or b"", found[2] or b"")
                data = data[found.end():]
                continue
            size = 1 if data[0] < 0x80 else 2 if data[0] < 0xe0 else 3 if data[0] < 0xf0 else 4
            if len(data) < size:
                self.rest = data
                return
            self.put(data[:size].decode(errors="replace"))
            data = data[size:]

    def put(self, character):
        if character == "\r":
            self.x = 0
        elif character == "\n":
            self.down()
        elif character == "\b":
            self.x = max(self.x - 1, 0)
        elif character == "\t":
            self.x = min((self.x // 8 + 1) * 8, self.cols - 1)
        elif character >= " ":
            if self.x == self.cols:  # the last column is full: only the next character wraps
                self.x = 0
                self.down()
            self.lines[self.y][self.x] = character
            self.x += 1

    def down(self):
        if self.y == self.bottom:
            del self.lines[self.top]
            self.lines.insert(self.bottom, [" "] * self.cols)
        else:
            self.y = min(self.y + 1, self.rows - 1)

    def up(self):
        if self.y == self.top:
            del self.lines[self.bottom]
            self.lines.insert(self.top, [" "] * self.cols)
        else:
            self.y = max(self.y - 1, 0)

    def escape(self, whole, digits, letter):
        numbers = [int(n) if n else 0 for n in digits.split(b";")] if not digits.startswith(b"?") else [0]
        count = max(numbers[0], 1)
        if letter == b"H":
            self.y = min(count, self.rows) - 1
            self.x = min(max(numbers[1] if len(numbers) > 1 else 1, 1), self.cols) - 1
        elif letter == b"A":
            self.y = max(self.y - count, 0)
        elif letter == b"B":
            self.y = min(self.y + count, self.rows - 1)
        elif letter == b"C":
            self.x = min(self.x + count, self.cols - 1)
        elif letter == b"D":
            self.x = max(self.x - count, 0)
        elif letter == b"K":
            begin, end = {0: (self.x, self.cols), 1: (0, self.x + 1), 2: (0, self.cols)}[numbers[0]]
            self.lines[self.y][begin:end] = [" "] * (min(end, self.cols) - begin)
        elif letter == b"J":
            if numbers[0] == 0:
                self.lines[self.y][self.x:] = [" "] * (self.cols - self.x)
            for y in range(self.y + 1 if numbers[0] == 0 else 0, self.rows):
                self.lines[y] = [" "] * self.cols
        elif letter == b"r":
            self.top, self.bottom = count - 1, min(numbers[1] if len(numbers) > 1 else self.rows, self.rows) - 1
            self.x = self.y = 0
        elif whole == b"\x1bD":
            self.down()
        elif whole == b"\x1bM":
            self.up()
        elif letter not in (b"", b"m", b"h", b"l"):
            raise AssertionError(f"a sequence that this terminal does not know: {whole!r}")

    def text(self):
        return "\n".join("".join(line).rstrip() for line in self.lines)


class Top(Terminal):
    """`hearth top` and the screen that it draws."""

    def __init__(self, s, *words, cols=80, rows=24, env=None):
        self.screen = Vt100(cols, rows)
        super().__init__(s, "top", "--interval", "0.5", *words, cols=cols, rows=rows, env=env)

    def shows(self, pattern, seconds=15):
        """Waits until the screen matches. Returns the match."""
        end = time.monotonic() + seconds * SLOWER
        while time.monotonic() < end:
            if found := re.search(pattern, self.screen.text(), re.MULTILINE):
                return found
            if select.select([self.master], [], [], 0.1)[0]:
                self.screen.feed(os.read(self.master, 65536))
        raise AssertionError(f"never shown: {pattern!r} in\n{self.screen.text()}")


def overview():
    """top shows pools and workspaces as they change, filters, sorts, opens and ends one, and gives the terminal back"""
    with Server(pools=POOLS, runtime="fake") as s:
        with Top(s) as t:
            t.shows(r"^hearth top  http://127\.0\.0\.1:\d+  hearth [\d.]+, .*every 500ms$")
            t.shows(r"^  other +1 +0 +0 +1 ")
            t.shows(r"^  plain +3 +0 +0 +3 ")
            t.shows(r"^\[\*\] workspaces 0 of 0")
            first = s.open_workspace(pool="plain", name="first")["id"]
            t.shows(rf"^> {first[:11]}  first +default +plain +Active +\ds +\S+ +0$")
            t.shows(r"^claims seen in the last minute: 0\.02/s")
            t.shows(r"median [\d.]+ ms, worst [\d.]+ ms \(1\)$")
            second = s.open_workspace(pool="other", name="zweite-größe")["id"]
            t.shows(r"^\[\*\] workspaces 2 of 2, by AGE$")
            t.type(b"sss")  # RUNS comes after AGE and IDLE, then ID
            t.shows(r"^\[\*\] workspaces 2 of 2, by ID$")
            t.type(b"sr")
            t.shows(r"workspaces 2 of 2, by NAME reversed$")
            t.shows(rf"^> {second[:11]}[^\n]*\n  {first[:11]}")
            t.type(b"/FIRS\r")
            t.shows(r'^\[\*\] workspaces 1 of 2, by NAME reversed, with "FIRS"$')
            t.shows(rf"^> {first[:11]}")
            s.run(first, "true")
            t.type(b"\r")
            t.shows(rf"^workspace +{first}$")
            t.shows(r"^memory ")
            t.shows(r"^  ex_[0-9a-f]+ +ok +0 +command ")
            t.type(b"\x1b")
            t.shows(r"^\[ \] pools ")
            t.type(b"d")
            t.shows(rf"^end workspace {first[:11]} \(first\) and all that runs in it\? y/N$")
            t.type(b"n")
            t.shows(r"^not ended$")
            assert s.get(f"/v1/workspaces/{first}").status == 200
            t.type(b"dy")
            t.shows(rf"^ended {first[:11]}$")
            t.shows(r'workspaces 0 of 1, by NAME reversed, with "FIRS"$')
            assert s.get(f"/v1/workspaces/{first}").status in (404, 410)
            t.type(b"\x1b")
            t.shows(rf"^> {second[:11]}")
            t.type(b"\t")
            t.shows(r"^\[\*\] pools 2 of 2, by NAME$")
            t.type(b"\x1bOB")
            t.shows(r"^> plain ")
            t.type(b"?")
            t.shows(r"^any key goes back$")
            t.type(b"?q")
            assert t.end() == 0


def hostile_names():
    """names with control characters and wide ones stay in their column"""
    with Server(pools=POOLS, runtime="fake") as s:
        for name in ("a\u202eb\u009b2Jc", "日本語の長い名前日本語の長い名前"):
            answer = s.post("/v1/workspaces", {"pool": "plain", "name": name})
            assert answer.status == 201, answer
        with Top(s, env={"LC_ALL": "C.UTF-8"}) as t:
            t.shows(r"^[> ] ws_[0-9a-f]+  a\?b\?2Jc +default ")
            t.shows(r"^[> ] ws_[0-9a-f]+  日本語の長い名前日本語… +default ")
            t.type(b"q")
            assert t.end() == 0
            assert "\u202e".encode() not in t.rest() and "\u009b".encode() not in t.rest()


def server_comes_back():
    """a server that dies is told at the top with the last numbers, and is found again"""
    with Server(pools=POOLS, runtime="fake") as s:
        with Top(s) as t:
            t.shows(r"^  plain +3 ")
            s.kill9()
            t.shows(r"\ALOST THE SERVER, asks again in \d+ s: ")
            t.shows(r"^  plain +3 ")
            t.type(b"?")  # keys still work
            t.shows(r"^any key goes back$", seconds=2)
            t.type(b"?")
            s.start()
            t.shows(r"\Ahearth top  ", seconds=30)
            t.type(b"q")
            assert t.end() == 0


def pauses():
    """a paused top asks nothing, and goes on when told"""
    with Server(pools=POOLS, runtime="fake") as s:
        with Top(s) as t:
            t.shows(r"^\[\*\] workspaces 0 of 0")
            t.type(b"p")
            t.shows(r"PAUSED$")
            time.sleep(0.7)  # data on its way has arrived
            s.open_workspace(pool="plain", name="unseen")
            time.sleep(1.5)
            t.shows(r"^\[\*\] workspaces 0 of 0")
            t.type(b"p")
            t.shows(r"^> ws_[0-9a-f]+  unseen")
            t.type(b"q")
            assert t.end() == 0


def signals_and_sizes():
    """the window may change its size, and signals end top with their status and a restored terminal"""
    with Server(pools=POOLS, runtime="fake") as s:
        for number, status in ((None, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
            with Top(s) as t:
                t.shows(r"^\[\*\] workspaces 0 of 0")
                t.screen = Vt100(60, 12)
                t.size(60, 12)
                t.process.send_signal(signal.SIGWINCH)
                t.shows(r"(?s)\A(?!.*pools).*\[\*\] workspaces 0 of 0")  # only one list, as both have no room
                if number is None:
                    t.type(b"\x03")
                else:
                    t.process.send_signal(number)
                assert t.end() == status, number


def silent_server():
    """keys answer at once while a request hangs, and top ends without waiting for it"""
    with Server(pools=POOLS, runtime="fake") as s:
        with Top(s) as t:
            t.shows(r"^\[\*\] workspaces 0 of 0")
            s.process.send_signal(signal.SIGSTOP)
            try:
                time.sleep(1)
                for keys, pattern in ((b"?", r"^any key goes back$"), (b"?\t", r"^\[\*\] pools ")):
                    began = time.monotonic()
                    t.type(keys)
                    t.shows(pattern)
                    assert time.monotonic() - began < 0.5 * SLOWER
                began = time.monotonic()
                t.type(b"q")
                assert t.end() == 0 and time.monotonic() - began < 3 * SLOWER
            finally:
                s.process.send_signal(signal.SIGCONT)


def once():
    """without a terminal, or with --once, top prints text once; what cannot work is an error with a way out"""
    with Server(pools=POOLS, runtime="fake") as s:
        w = s.open_workspace(pool="plain", name="mine")["id"]
        text = hearth(s, "top").decode()
        assert re.search(r"^NAME +READY +CLAIMED .*\nother +1 .*\nplain +\d ", text, re.MULTILINE), text
        assert re.search(rf"^{w[:11]}  mine +default +plain +Active ", text, re.MULTILINE), text
        assert "\x1b" not in text
        assert "\nplain" not in hearth(s, "top", "--once", "--filter", "other").decode()
        with Terminal(s, "top", "--once") as t:
            t.see(b"workspaces 1 of 1, by AGE")
            assert t.end() == 0
        with Terminal(s, "top", env={"TERM": "dumb"}) as t:
            t.see(b"TERM is \"dumb\".*hearth top --once")
            assert t.end() == 2
        for words, status, said in (
                (["--sort", "colour"], 2, b"no column"), (["--interval", "0.1"], 2, b"0.5 to 60"), (["--sort", "raedy"], 2, b"READY")):
            ran = hearth(s, "top", *words, ok=False)
            assert ran.returncode == status and said in ran.stderr, ran
        gone = subprocess.run([HEARTH, "top"], capture_output=True, check=False, timeout=30 * SLOWER,
                              env=dict(plain_env(s), HEARTH_URL="http://127.0.0.1:1"))
        assert gone.returncode == 4, gone


def refused():
    """a caller without a right token gets an error that says so, at a terminal too"""
    with Server(pools=POOLS, runtime="fake") as s:
        made = s.post("/v1/tokens", {"name": "admin", "role": "admin"})
        assert made.status == 201, made
        s.token = made.json["token"]
        ran = hearth(s, "top", ok=False)
        assert ran.returncode == 1 and b"HEARTH_TOKEN" in ran.stderr, ran
        with Terminal(s, "top") as t:
            t.see(b"error:.*HEARTH_TOKEN")
            assert t.end() == 1
        with Top(s, "--token", s.token) as t:
            t.shows(r"^  plain +3 ")
            t.type(b"q")
            assert t.end() == 0


if __name__ == "__main__":
    main("server", [overview, hostile_names, server_comes_back, pauses, signals_and_sizes, silent_server, once, refused])
