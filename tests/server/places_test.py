#!/usr/bin/env python3
# suite: seconds=90
"""Programs find the same in a sandbox as outside: their standard streams by path, code that runs although /tmp and the
workspace are full, shared memory, open files, time zones and text in UTF-8."""

import json
import os
import resource
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Shared, main, on_docker, pool_yaml, wait_for  # noqa: E402

MIB = 1 << 20
PREWARM = "    prewarm: {languages: [python, sh]}\n"


def python_pool():
    text = pool_yaml("python", "python", memory="512Mi").replace("workspace: 64Mi", "workspace: 128Mi").replace("tmp: 16Mi", "tmp: 80Mi")
    head, mark, tail = text.partition("  warm:")
    return head + PREWARM + mark + tail


shared = Shared(pools=python_pool(), args=("--default-pool", "python"))


def the_end():
    """the server that all these tests used ends and leaves nothing"""
    shared.end()


def execute(s, workspace, status=200, **fields):
    answer = s.post(f"/v1/workspaces/{workspace}/executions", fields, timeout=120)
    assert answer.status == status, answer
    return answer.json


def context(s, workspace, language):
    answer = s.post(f"/v1/workspaces/{workspace}/contexts", {"language": language}, timeout=60)
    assert answer.status == 201, answer
    return answer.json["id"]


PYTHON = """
import sys
open('/dev/stdout', 'w').write('out\\n')
open('/dev/stderr', 'w').write('err\\n')
open('/proc/self/fd/1', 'w').write(repr(open('/dev/stdin').read()) + '\\n')
"""
NODE = """
const fs = require('fs');
fs.writeFileSync('/dev/stdout', 'out\\n');
fs.writeFileSync('/dev/stderr', 'err\\n');
fs.writeFileSync('/proc/self/fd/1', "'" + fs.readFileSync('/dev/stdin', 'utf8') + "'\\n");
"""
SHELL = """echo out > /dev/stdout; echo err > /dev/stderr; printf "'%s'\\n" "$(cat /dev/stdin)" > /proc/self/fd/1"""
BASH = """echo out | tee /dev/stderr /dev/null > /dev/null; echo out > /dev/fd/1; printf "'%s'\\n" "$(cat <(cat /dev/stdin))" | cat - > /dev/stdout"""


def streams():
    """/dev/stdin, /dev/stdout, /dev/stderr and /proc/self/fd/N open in every kind of run"""
    cold = {"PYTHONHASHSEED": "1"}
    with shared as s:
        w = s.open_workspace()["id"]
        runs = [("fresh", dict(language="python", code=PYTHON)), ("cold", dict(language="python", code=PYTHON, env=cold)),
                ("node", dict(language="javascript", code=NODE)), ("command", dict(command=SHELL)),
                ("argv", dict(argv=["bash", "-c", SHELL]))]
        for stdin in (None, "given"):
            for name, fields in runs:
                fields = dict(fields, **({"stdin": stdin} if stdin else {}))
                done = execute(s, w, **fields)
                assert (done["status"], done["stdout"], done["stderr"]) == ("ok", f"out\n'{stdin or ''}'\n", "err\n"), (name, stdin, done)
        for language, code, err in (("bash", BASH, "out\n"), ("python", PYTHON, "err\n"), ("javascript", NODE, "err\n")):
            done = execute(s, w, context=context(s, w, language), code=code)
            assert (done["status"], done["stdout"], done["stderr"]) == ("ok", "out\n''\n", err), (language, done)
        shot = s.post("/v1/executions", {"language": "python", "code": PYTHON}, timeout=60).json
        assert (shot["status"], shot["stdout"], shot["stderr"]) == ("ok", "out\n''\n", "err\n"), shot
        parked = wait_for("a parked shell", lambda: (e := execute(s, w, command=SHELL))["interpreter"] == "parked" and e, 30)
        assert (parked["stdout"], parked["stderr"]) == ("out\n''\n", "err\n"), parked
        child = execute(s, w, language="python", code="import subprocess\nsubprocess.run(['sh', '-c', 'echo deep > /dev/stdout'], check=True)")
        assert child["stdout"] == "deep\n", child


FILL = "for n in 1 2 3 4; do head -c 1G /dev/zero > {0}/full$n; done; i=0; while : > {0}/f$i; do i=$((i + 1)); [ $i -lt 20000 ] || break; done; echo {0}"


def full_disks():
    """with /tmp and the workspace full, code of every language runs whole, in runs and contexts"""
    long = "".join(f"# {i} line of a comment that makes the code long\n" for i in range(400))
    runs = [("python", "print(6 * 7)"), ("javascript", "console.log(6 * 7)"), ("typescript", "const n: number = 6 * 7;\nconsole.log(n)"),
            ("bash", "echo $((6 * 7))"), ("sh", "echo $((6 * 7))")]
    with shared as s:
        w = s.open_workspace()["id"]
        shell = context(s, w, "bash")
        assert execute(s, w, context=shell, code="n=6")["status"] == "ok"
        for place in ("/tmp", "/workspace"):
            full = s.run(w, "exec 2>/dev/null; " + FILL.format(place), timeoutSeconds=60)
            assert "true" in s.run(w, f"echo x > {place}/more 2>/dev/null && echo false || echo true")["stdout"], full
        for language, code in runs:
            for env in ({}, {"PYTHONHASHSEED": "1"}):
                done = execute(s, w, language=language, code=code, env=env)
                assert (done["status"], done["stdout"]) == ("ok", "42\n"), (language, done)
        cell = execute(s, w, context=shell, code=long + "echo $((n * 7))\n")
        assert (cell["status"], cell["stdout"]) == ("ok", "42\n"), cell
        fresh = execute(s, w, context=context(s, w, "bash"), code=long + "echo 42; exit 3\n")
        assert fresh["stdout"] == "42\n" and fresh["exitCode"] == 3, fresh
        # Interpreters that wait have an empty file each, in a folder with a number.
        left = s.run(w, "ls -A /.hearth/run | grep -vx '[0-9]*'; find /.hearth/run -type f -size +0")["stdout"]
        assert left == "", f"a run leaves something: {left}"


def no_room_for_code():
    """where a program has filled the place of code a run is refused as DISK_FULL with the reason; what it wrote ends with it"""
    with shared as s:
        w = s.open_workspace()["id"]
        begun = execute(s, w, 202, language="bash", background=True,
                        code='head -c 1G /dev/zero > "${0%/*}/beside" 2>/dev/null; echo full; exec sleep 60')
        wait_for("the end of its room", lambda: s.get(f"/v1/executions/{begun['id']}").json["stdout"])
        refused = execute(s, w, 507, language="javascript", code="console.log(1)")
        assert refused["errorCode"] == "DISK_FULL" and "/.hearth/run is full" in refused["detail"], refused
        assert s.post(f"/v1/executions/{begun['id']}/signal", {"signal": "KILL"}).status in (200, 202, 204)
        wait_for("the end", lambda: s.get(f"/v1/executions/{begun['id']}").json["status"] != "running")
        assert execute(s, w, language="javascript", code="console.log(1)")["stdout"] == "1\n"
        if not on_docker():  # where agent and tenant are one user, it may
            assert "denied" in s.run(w, "echo x > /.hearth/run/mine")["stderr"]


SHM = """
import mmap, os
with open("/dev/shm/big", "w+b") as f:
    f.truncate({size})
    m = mmap.mmap(f.fileno(), {size})
    for at in range(0, {size}, 4096): m[at] = 1
print("written")
"""


def shared_memory():
    """/dev/shm has 64 MiB or the pool's tmp if that is less, and a SIGBUS of a full one says so"""
    with shared as s:
        w = s.open_workspace()["id"]
        room = int(s.run(w, "df -B1 --output=size /dev/shm | tail -1")["stdout"])
        tmp = int(s.run(w, "df -B1 --output=size /tmp | tail -1")["stdout"])
        assert room == min(64 * MIB, tmp), (room, tmp)
        inside = execute(s, w, language="python", code=SHM.format(size=room // 2))
        assert inside["stdout"] == "written\n", inside
        for env in ({}, {"PYTHONHASHSEED": "1"}):
            done = execute(s, w, language="python", code=SHM.format(size=room + MIB), env=env)
            assert (done["status"], done["signal"]) == ("killed", "BUS"), done
            assert done["error"]["name"] == "SIGBUS" and f"/dev/shm ({room >> 20} MiB)" in done["error"]["message"], done
            assert "full: /dev/shm" in done["error"]["message"], done
        by_shell = s.run(w, "rm /dev/shm/big; python3 -c '" + SHM.format(size=room + MIB) + "'; exit $?")
        assert by_shell["exitCode"] == 135 and by_shell["error"]["name"] == "SIGBUS", by_shell


def open_files():
    """a process may have 1,024 files open, and raise that itself to 65,536, or what the server may have"""
    most = min(65536, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    code = (f"import resource as r\nprint(r.getrlimit(r.RLIMIT_NOFILE))\nr.setrlimit(r.RLIMIT_NOFILE, ({most}, {most}))\n"
            "files = [open('/dev/null') for _ in range(3000)]\nprint(len(files))\n")
    with shared as s:
        w = s.open_workspace()["id"]
        for env in ({}, {"PYTHONHASHSEED": "1"}):
            assert execute(s, w, language="python", code=code, env=env)["stdout"] == f"(1024, {most})\n3000\n"
        assert s.run(w, "ulimit -Sn; ulimit -Hn; ulimit -n 4096 && ulimit -n")["stdout"] == f"1024\n{most}\n4096\n"


def zones_and_text():
    """time zones are known to every language, and text is UTF-8 by the locale"""
    at = "1700000000"
    with shared as s:
        w = s.open_workspace()["id"]
        assert s.run(w, f"TZ=Asia/Tokyo date -d @{at} '+%H:%M %Z'; TZ=America/New_York date -d @{at} '+%H:%M %Z'")["stdout"] == \
            "07:13 JST\n17:13 EST\n"
        python = execute(s, w, language="python", code=f"import zoneinfo, datetime\nprint(datetime.datetime.fromtimestamp({at}, "
                         "zoneinfo.ZoneInfo('Asia/Tokyo')))\nprint(len(zoneinfo.available_timezones()) > 400)")
        assert python["stdout"] == "2023-11-15 07:13:20+09:00\nTrue\n", python
        given = execute(s, w, language="python", code=f"import time\nprint(time.strftime('%H %Z', time.localtime({at})))", env={"TZ": "Asia/Tokyo"})
        assert given["stdout"] == "07 JST\n", given
        node = execute(s, w, language="javascript", code=f"console.log(new Date({at}000).toLocaleString('en-GB', {{timeZone: 'Asia/Tokyo'}}))")
        assert node["stdout"] == "15/11/2023, 07:13:20\n", node
        text = s.run(w, "locale charmap; locale -a | grep -ci 'c.utf'; printf 'äöü' | wc -m; echo ÄÖ | grep -c '^..$'")
        assert text["stdout"] == "UTF-8\n1\n3\n1\n", text
        assert execute(s, w, language="python", code="import locale\nprint(locale.setlocale(locale.LC_ALL, ''))")["stdout"] == "C.UTF-8\n"


def no_terminal():
    """without a terminal /dev/tty says so, temporary files and the user's folders can be made, and the rest is refused by its reason"""
    code = """
import json, os, tempfile
def write(path):
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        open(path, "w").close()
        return "ok"
    except OSError as e:
        return os.strerror(e.errno)
home = os.path.expanduser("~")
print(json.dumps([write("/dev/tty"), write(home + "/.config/x/y"), write(home + "/.cache/x/y"), write(tempfile.mktemp()), write("/usr/x"),
                  os.access("/var/tmp", os.W_OK)]))
"""
    with shared as s:
        w = s.open_workspace()["id"]
        done = json.loads(execute(s, w, language="python", code=code)["stdout"])
        assert done[:5] == ["No such device or address", "ok", "ok", "ok", "Read-only file system"], done


if __name__ == "__main__":
    main("server", [streams, full_disks, no_room_for_code, shared_memory, open_files, zones_and_text, no_terminal, the_end])
