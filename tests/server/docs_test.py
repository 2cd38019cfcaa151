#!/usr/bin/env python3
"""The README and the pages of docs/ against the real program: every command of theirs runs, against one server, in a home
of its own. A block that cannot run here has a line `<!-- not run: REASON -->` above it; these are counted and shown.

The blocks of a page run in one shell, from top to bottom, as a reader types them. Two things differ from a reader's
terminal: the addresses of the server, and that curl fails for an HTTP error or an execution that is not ok.
In a ```console block the output must be as printed; … stands for any text. Standard library only."""

# suite: seconds=120

import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from typing import NamedTuple

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gpu_machine import Machine, gpu_pool  # noqa: E402
from harness import BUILD, IMAGES, REPO, SLOWER, Shared, main, note, sanitizer_options, wait_for  # noqa: E402

HEARTH = os.path.join(BUILD, "hearth")
PAGES = ["README.md"] + sorted("docs/" + name for name in os.listdir(os.path.join(REPO, "docs"))
                               if name.endswith(".md") and name not in ("README.md", "rest.md"))
NOT_RUN = re.compile(r"<!-- not run: (.+) -->$")
RUN = ("sh", "bash", "console", "python")
PAGE_SECONDS = 300

CURL = """#!/bin/bash
# Fails where a reader would see an error: the HTTP status, or the status of an execution.
answer=$(mktemp)
{curl} --fail-with-body "$@" | tee "$answer"
status=${{PIPESTATUS[0]}}
if grep -aqE '"status": ?"(failed|timeout|oom|killed|lost)"' "$answer"; then
    echo "curl: an execution is not ok: $(grep -aoE '"stderr": ?"[^"]*"' "$answer")" >&2
    status=1
fi
rm -f "$answer"
exit "$status"
"""


class Block(NamedTuple):
    page: str
    line: int  # the number of its first line
    kind: str
    text: str
    reason: str  # why it is not run; else empty

    @property
    def place(self):
        return f"{self.page}:{self.line}"


def blocks(page):
    """Returns the fenced blocks of a page that a reader runs."""
    with open(os.path.join(REPO, page), encoding="utf-8") as file:
        lines = file.read().split("\n")
    found, above, number = [], "", 0
    while number < len(lines):
        fence = re.match(r"( *)```(\w*)", lines[number])
        if fence:
            end = next(i for i in range(number + 1, len(lines)) if lines[i].strip() == "```")
            if fence.group(2) in RUN:
                indent = len(fence.group(1))
                text = "\n".join(line[indent:] for line in lines[number + 1:end]) + "\n"
                marked = NOT_RUN.match(above)
                found.append(Block(page, number + 2, fence.group(2), text, marked.group(1) if marked else ""))
            number = end
        above = lines[number].strip() or above
        number += 1
    return found


class Home:
    """An empty home with the program, a curl that fails for errors, and the files that the pages mention."""

    def __init__(self, server):
        self.server = server
        self.folder = tempfile.mkdtemp(prefix="hearth-docs-")
        os.chmod(self.folder, 0o755)
        programs = os.path.join(self.folder, ".programs")
        os.mkdir(programs)
        with open(os.path.join(programs, "curl"), "w", encoding="utf-8") as file:
            file.write(CURL.format(curl=shutil.which("curl")))
        os.chmod(file.name, 0o755)
        for name in ("sandbox_images", "tests", "docs"):
            os.symlink(os.path.join(REPO, name), os.path.join(self.folder, name))
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("HEARTH_")}
        self.env.update(sanitizer_options(), HOME=self.folder, PATH=f"{programs}:{BUILD}:{os.environ['PATH']}", NO_COLOR="1",
                        HEARTH_URL=server.url, HEARTH_DATA_DIR=server.data, HEARTH_LISTEN=f"127.0.0.1:{server.port}",
                        HEARTH_OPS_LISTEN=f"127.0.0.1:{server.ops_port}", LC_ALL="C.UTF-8")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)

    def here(self, text):
        """Returns the text with the addresses of this server."""
        text = re.sub(r"\b(localhost|127\.0\.0\.1):8080\b", f"127.0.0.1:{self.server.port}", text)
        return re.sub(r"\b(localhost|127\.0\.0\.1):9464\b", f"127.0.0.1:{self.server.ops_port}", text)

    def run(self, todo):
        """Runs the blocks in one shell. Fails with the block that failed."""
        script = ["set -euo pipefail", f"cd {self.folder}"]
        for number, block in enumerate(todo):
            script.append(f"echo {number} >.block")
            script.append(self.script(number, block))
        script.append('[ -z "${HEARTH_TOKEN:-}" ] || printf %s "$HEARTH_TOKEN" >.token')
        with open(os.path.join(self.folder, ".page"), "w", encoding="utf-8") as file:
            file.write("\n".join(script) + "\n")
        try:
            ran = subprocess.run(["bash", file.name], env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False,
                                 stderr=subprocess.STDOUT, timeout=PAGE_SECONDS * SLOWER)
            status, output = ran.returncode, ran.stdout
        except subprocess.TimeoutExpired as late:
            status, output = "no end", late.stdout or b""
        if b'"jsonrpc":' in output and b'"error":{"code":' in output:
            status = "an error in"
        if status != 0:
            failed = todo[int(self.read(".block"))] if todo else None
            raise AssertionError(f"{failed.place}: status {status} of\n{failed.text}\nand this was said:\n"
                                 f"{output.decode(errors='replace')[-3000:]}")

    def script(self, number, block):
        if block.kind == "python":
            path = os.path.join(self.folder, f".block{number}.py")
            with open(path, "w", encoding="utf-8") as file:
                file.write(self.here(block.text))
            return f"python3 {path}"
        if block.kind != "console":
            return self.here(block.text)
        lines = []
        for command, expected in session(block.text):
            path = os.path.join(self.folder, f".expected{number}-{len(lines)}")
            with open(path, "w", encoding="utf-8") as file:
                file.write(self.here(expected))
            lines.append(f"{self.here(command)} >.output 2>&1 || {{ cat .output; false; }}\n"
                         f"python3 {os.path.abspath(__file__)} --compare .output {path}")
        return "\n".join(lines)

    def read(self, name):
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            return file.read().strip()


def session(text):
    """Returns the commands of a terminal session, each with the output below it."""
    found = []
    for line in text.rstrip("\n").split("\n"):
        if line.startswith("$ "):
            found.append([line[2:], ""])
        elif found:
            found[-1][1] += line + "\n"
    return [tuple(one) for one in found]


def compare(output, expected):
    """Checks that the output is as printed, except for ids, times, decimal numbers and the width of columns; … is any
    text."""
    def plain(path):
        with open(path, encoding="utf-8") as file:
            text = re.sub(r"\b(\d+(\.\d+)?(ms|s|m|h))+\b|\b\d+\.\d+\b", "0", re.sub(r" +", " ", file.read()))
        text = re.sub(r"\b([a-z]{2})_[0-9a-f]{8,}…?", r"\1_ID", text)
        return text.rstrip("\n").split("\n")

    lines, wanted = plain(output), plain(expected)
    same = len(lines) == len(wanted) and all(re.fullmatch(".*".join(re.escape(part) for part in pattern.split("…")), line)
                                             for line, pattern in zip(lines, wanted))
    if not same:
        print("the page prints\n" + "\n".join(wanted) + "\nand it is\n" + "\n".join(lines))
    return 0 if same else 1


def pools():
    """Returns the pools that ./run serves, with a short start: the pool of sandbox_images/python."""
    with open(os.path.join(REPO, "sandbox_images", "python", "pool.yaml"), encoding="utf-8") as file:
        return file.read()


shared = Shared(pools=pools(), ready_within=300)
covered = set()  # pages whose commands ran


def saved_image(server):
    """Saves a small image like `docker save`, which the pages import. Returns its path."""
    archive = os.path.join(server.data, "x.tar")
    if not os.path.exists(archive):
        subprocess.run(["skopeo", "copy", "--quiet", f"oci:{IMAGES}/shell", f"docker-archive:{archive}:x:latest"], check=True)
    return archive


def run_page(page):
    covered.add(page)
    with shared as server, Home(server) as home:
        shutil.copy(saved_image(server), home.folder)
        home.run([block for block in blocks(page) if not block.reason])
        if os.path.exists(os.path.join(home.folder, ".token")):
            authorize(server, home.read(".token"))


def front_page():
    """the commands of the README do what it says, and it has at most 900 words"""
    with open(os.path.join(REPO, "README.md"), encoding="utf-8") as file:
        words = len(file.read().split())
    assert words <= 900, words
    run_page("README.md")


def from_code():
    """the commands of docs/using-from-code.md do what it says"""
    run_page("docs/using-from-code.md")


def command_line():
    """the commands of docs/command-line.md do what it says"""
    run_page("docs/command-line.md")


def mcp_clients():
    """the commands of docs/mcp-clients.md do what it says"""
    run_page("docs/mcp-clients.md")


def operating():
    """the commands of docs/operating.md do what it says"""
    run_page("docs/operating.md")


def observing():
    """the commands of docs/observing.md and docs/runbooks.md do what they say"""
    run_page("docs/observing.md")
    run_page("docs/runbooks.md")


def images_and_packages():
    """the commands of docs/images-and-packages.md do what it says"""
    run_page("docs/images-and-packages.md")


def security():
    """the commands of docs/security.md do what it says; its tokens close the server, so it is the last page"""
    run_page("docs/security.md")


def authorize(server, token):
    """Adds the token to each later call of this test."""
    call = server.call

    def with_token(method, path, body=None, headers=None, **fields):
        return call(method, path, body, {"Authorization": f"Bearer {token}", **(headers or {})}, **fields)
    server.call = with_token


def flags():
    """every flag that the documents name in a command is one of that command, also where the command is not run"""
    text = ""
    for page in PAGES:
        with open(os.path.join(REPO, page), encoding="utf-8") as file:
            text += re.sub(r"'[^'\n]*'", "", file.read())  # words of other programs
    known, wrong = {}, []
    commands = re.findall(r"(?:^|[`(|&;]) *(hearth-bench|hearth(?: [a-z][a-z-]+)?|\./run|\./test|sandbox_images/build)\b([^`|&;#\n]*)", text, re.MULTILINE)
    for command, rest in commands:
        if not re.search(r" --[a-z]", rest):
            continue
        if command not in known:
            words = command.replace("./", REPO + "/").replace("sandbox_images/", REPO + "/sandbox_images/").split()
            helped = subprocess.run([os.path.join(BUILD, words[0]) if words[0].startswith("hearth") else words[0], *words[1:], "--help"],
                                    capture_output=True, text=True, timeout=60 * SLOWER, check=True).stdout
            known[command] = set(re.findall(r"--[a-z][a-z-]*", helped))
        wrong += [f"{command} {flag}" for flag in re.findall(r" (--[a-z][a-z-]*)", rest.split(" -- ")[0]) if flag not in known[command]]
    assert len(known) >= 8 and not wrong, (sorted(known), wrong)


def picture():
    """the commands of the picture in the README give the output that it shows"""
    with open(os.path.join(REPO, "docs", "terminal.svg"), encoding="utf-8") as file:
        lines = re.findall(r'<text[^>]*class="line"[^>]*>(.*?)</text>', file.read())
    text = "\n".join(html.unescape(re.sub(r"<[^>]+>", "", line)) for line in lines)
    assert text.count("$ ") >= 3, text
    with shared as server, Home(server) as home:
        home.run([Block("docs/terminal.svg", 1, "console", text, "")])


def reference():
    """docs/rest.md says what this server accepts; docs/generate makes it"""
    with shared as server:
        made = subprocess.run([sys.executable, os.path.join(REPO, "docs", "generate"), "--check", server.url],
                              capture_output=True, text=True, timeout=60 * SLOWER, check=False)
        assert made.returncode == 0, made.stderr


def tools():
    """docs/mcp-clients.md lists the tools that a model gets, and no other"""
    says = [{"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {},
                                                         "clientInfo": {"name": "docs", "version": "1"}}},
            {"method": "notifications/initialized"}, {"id": 2, "method": "tools/list"}]
    with shared as server:
        heard = subprocess.run([HEARTH, "mcp", "--url", server.url], capture_output=True, text=True, timeout=60 * SLOWER, check=True,
                               input="".join(json.dumps({"jsonrpc": "2.0", **one}) + "\n" for one in says)).stdout
    real = {tool["name"] for line in heard.splitlines() for tool in json.loads(line).get("result", {}).get("tools", [])}
    with open(os.path.join(REPO, "docs", "mcp-clients.md"), encoding="utf-8") as file:
        table = file.read().split("| Tool |")[1].split("\n\n")[0]
    page = {name for row in table.split("\n") for name in re.findall(r"`(\w+)`", row.partition(" | ")[0])}
    assert page == real, page ^ real


def metrics():
    """every metric that the documents name is one of the server"""
    named = set()
    for page in PAGES:
        with open(os.path.join(REPO, page), encoding="utf-8") as file:
            named |= set(re.findall(r"`(hearth_\w+)`", file.read()))
    assert named

    def has(server):
        return set(re.findall(r"^# HELP (\w+)", server.ops("/metrics").body.decode(), re.MULTILINE))

    # Some have no series without a quota, or before a warm GPU was idle for a while.
    with Machine() as machine, machine.server(gpu_pool()) as server:
        assert server.call("PUT", "/v1/quotas/shop", {"workspaces": 1}).status == 201
        wait_for("an idle GPU", lambda: "hearth_gpu_idle_seconds_total" in has(server), 60)
        assert not named - has(server), named - has(server)


def settings():
    """docs/configuration.md has every flag of hearth serve with its environment variable, and no other"""
    helped = subprocess.run([HEARTH, "serve", "--help"], capture_output=True, text=True, check=True, timeout=60 * SLOWER).stdout
    with open(os.path.join(REPO, "docs", "configuration.md"), encoding="utf-8") as file:
        rows = [line for line in file if line.startswith("| ")]
    for pattern in (r"--[a-z][a-z-]+", r"HEARTH_\w+"):
        real = set(re.findall(rf"^ *(?:-\w, )?({pattern})" if pattern[0] == "-" else rf"\[({pattern})\]", helped, re.MULTILINE))
        page = {name for row in rows for name in re.findall(rf"`({pattern})", row)}
        assert page == real - {"--help"}, page ^ (real - {"--help"})


def definitions():
    """the chart has the definitions that hearth crds prints"""
    said = subprocess.run([HEARTH, "crds"], capture_output=True, text=True, check=True, timeout=60 * SLOWER).stdout
    with open(os.path.join(REPO, "helm/hearth/definitions.yaml"), encoding="utf-8") as file:
        assert file.read() == said, "run: hearth crds > helm/hearth/definitions.yaml"


def service():
    """the example of hearth.yaml is valid, and the unit of systemd says what it forbids"""
    folder = os.path.join(REPO, "docs", "systemd")
    shown = subprocess.run([HEARTH, "config", "--config", os.path.join(folder, "hearth.yaml")], capture_output=True, text=True, timeout=60,
                           check=False)
    assert shown.returncode == 0 and "/etc/hearth/pools.yaml" in shown.stdout, shown
    unit = os.path.join(folder, "hearth.service")
    with open(unit, encoding="utf-8") as file:
        words = file.read()
    for line in ("Type=notify", "KillMode=process", "NoNewPrivileges=yes", "ProtectSystem=strict"):
        assert f"\n{line}\n" in words, line
    if shutil.which("systemd-analyze"):
        told = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=58", unit], capture_output=True, text=True,
                              timeout=60, check=False)
        assert told.returncode == 0, told.stdout[-400:] + told.stderr


def links():
    """every link in the documents leads to a file and a heading that exist"""
    pages = PAGES + ["docs/README.md", "docs/rest.md", "ARCHITECTURE.md", "DECISIONS.md", "CONTRIBUTING.md", "sandbox_images/README.md",
                     "tests/bench/README.md", "tests/cluster/README.md", "tests/server/README.md", "pool/runtime/CONTRACT.md"]
    with open(os.path.join(REPO, "DECISIONS.md"), encoding="utf-8") as file:
        pages += re.findall(r"\]\((\S+/DECISIONS\.md)\)", file.read())  # lint sees that it links to each
    broken = []
    for page in pages:
        with open(os.path.join(REPO, page), encoding="utf-8") as file:
            text = re.sub(r"^ *```.*?^ *```", "", file.read(), flags=re.DOTALL | re.MULTILINE)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            path, _, heading = target.partition("#")
            if "://" in path:
                continue
            whole = os.path.normpath(os.path.join(REPO, os.path.dirname(page), path)) if path else os.path.join(REPO, page)
            if not os.path.exists(whole) or heading and heading not in headings(whole):
                broken.append(f"{page}: {target}")
    assert not broken, broken


def headings(path):
    """Returns the anchors of a page's headings, as they are made from their words."""
    with open(path, encoding="utf-8") as file:
        return {re.sub(r"[^\w\- ]", "", line.strip("# \n").lower()).replace(" ", "-") for line in file if line.startswith("#")}


def ends():
    """the server of these tests leaves nothing, and every page with commands has a test"""
    shared.end()
    if len(sys.argv) == 1:
        left = {page for page in PAGES if any(not block.reason for block in blocks(page))} - covered
        assert not left, f"no test runs the commands of {left}"


TESTS = [links, service, settings, definitions, flags, reference, tools, metrics, picture, front_page, from_code, command_line, mcp_clients, operating, observing, images_and_packages, security, ends]
for test in TESTS:
    test.only = "oci"  # they test parts in front of any runtime

if __name__ == "__main__":
    if sys.argv[1:2] == ["--compare"]:
        sys.exit(compare(*sys.argv[2:4]))
    left_out = [block for page in PAGES for block in blocks(page) if block.reason]
    note(f"{len(left_out)} blocks of the documents are not run:")
    for block in left_out:
        note(f"    {block.place}: {block.reason}")
    try:
        main("server", TESTS)
    finally:
        shared.clean_up()
