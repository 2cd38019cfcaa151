#!/usr/bin/env python3
"""Contexts of bash, black box: a cell is the code of a script that goes on where the last one ended, and nothing of the driver shows."""

import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Shared, main, pool_yaml, wait_for  # noqa: E402


shared = Shared(pools=pool_yaml("python", image="python", warm=1, memory="256Mi"), args=("--default-pool", "python"))


def the_end():
    """the server that all these tests used ends and leaves nothing"""
    shared.end()


def make(s, w, **fields):
    answer = s.post(f"/v1/workspaces/{w}/contexts", {"language": "bash", **fields})
    assert answer.status == 201, answer
    return answer.json["id"]


def cell(s, w, context, text, **fields):
    answer = s.post(f"/v1/workspaces/{w}/executions", {"code": text, "context": context, **fields}, timeout=120)
    assert answer.status in (200, 202), answer
    return answer.json


def out(s, w, context, text):
    result = cell(s, w, context, text)
    assert result["contextKept"], result
    return result["stdout"] + result["stderr"]


def state_is_the_codes_own():
    """variables, functions, options, descriptors and locks last from cell to cell, whatever their names and numbers"""
    with shared as s:
        w = s.open_workspace()["id"]
        c = make(s, w)
        assert out(s, w, c, "x=5; f() { echo f $1; }; cd /tmp") == ""
        assert out(s, w, c, "f $x; pwd; (exit 3)") == "f 5\n/tmp\n"
        assert cell(s, w, c, "(exit 3)")["exitCode"] == 3
        assert out(s, w, c, "exec 10>/workspace/log; echo ten >&10; exec 200>/workspace/lock; flock -n 200 && echo locked") == "locked\n"
        assert out(s, w, c, "flock -n /workspace/lock true; echo $?; echo more >&10; cat /workspace/log") == "1\nten\nmore\n"
        assert out(s, w, c, "ls /proc/self/fd | tr '\\n' ' '") == "0 1 10 2 200 3 "
        assert out(s, w, c, "set -C; echo a > new; echo b > new; echo $?") != ""
        assert out(s, w, c, "echo $(( 6 * 7 )); echo $-") == "42\nhBC\n"
        assert out(s, w, c, "set +C; read() { echo mine; }; printf() { echo mine; }; trap() { :; }; eval() { :; }; set() { :; }; .() { :; }") == ""
        assert out(s, w, c, "read; printf; unset -f read printf trap eval set .; echo ok") == "mine\nmine\nok\n"
        refused = cell(s, w, c, "builtin() { :; }")
        assert refused["exitCode"] == 2 and "named builtin" in refused["stderr"] and refused["contextKept"], refused
        assert out(s, w, c, "echo $x $0 $#; set -- a b") == "5 bash 0\n"
        assert out(s, w, c, "echo $# $1; cat; read line; echo $?") == "2 a\n1\n"


def tracing_shows_the_code_only():
    """set -x, set -v and a trap on DEBUG show each command of the code, in every cell, and nothing else"""
    with shared as s:
        w = s.open_workspace()["id"]
        c = make(s, w)
        assert cell(s, w, c, "set -x\necho one")["stderr"] == "++ echo one\n"
        assert cell(s, w, c, "echo two\necho three")["stderr"] == "++ echo two\n++ echo three\n"
        assert cell(s, w, c, "set +x")["stderr"] == "++ set +x\n"
        assert cell(s, w, c, "set -v\necho a")["stderr"] == "echo a\n"
        assert cell(s, w, c, "set +v")["stderr"] == "set +v\n"
        assert cell(s, w, c, "trap 'echo D $BASH_COMMAND' DEBUG; echo x")["stdout"] == "D echo x\nx\n"
        assert cell(s, w, c, "echo y; trap - DEBUG")["stdout"] == "D echo y\ny\nD trap - DEBUG\n"
        assert cell(s, w, c, "echo z")["stdout"] == "z\n"
        wrong = cell(s, w, c, "true\nno_such_command\nfalse")
        assert wrong["stderr"].endswith(": line 2: no_such_command: command not found\n") and wrong["exitCode"] == 1, wrong
        stray = cell(s, w, c, "echo a; )")
        assert stray["stderr"].endswith(": line 1: `echo a; )'\n") and stray["exitCode"] == 2, stray
        unclosed = cell(s, w, c, "echo 'unclosed")
        assert unclosed["exitCode"] == 2 and unclosed["contextKept"], unclosed
        assert out(s, w, c, "echo still here") == "still here\n"


def traps_see_the_code_only():
    """traps on ERR, DEBUG, RETURN and EXIT run as in a script of all cells, and no trap is listed but the code's own"""
    with shared as s:
        w = s.open_workspace()["id"]
        for cells, outputs in (
            (("trap; trap -p", "trap -p INT", "trap 'echo a\n:' INT; trap -p; trap - INT", "trap"), ("", "", "trap -- 'echo a\n:' SIGINT\n", "")),
            (("trap 'echo ERR $LINENO' ERR", "false", "true\nfalse", "trap - ERR; false"), ("", "ERR 1\n", "ERR 2\n", "")),
            (("trap 'echo D' DEBUG; trap 'echo ERR' ERR", "false"), ("D\n", "D\nD\nERR\n")),
            (("trap 'echo RET' RETURN", "f() { :; }; f; . /dev/null", "trap -p"), ("", "RET\n", "trap -- 'echo RET' RETURN\n")),
            (("set -T; trap 'echo RET' RETURN", "f() { :; }; f", "f; echo $-"), ("", "RET\n", "RET\nhBT\n")),
            (("set -E; trap 'echo ERR' ERR", "f() { false; true; }; f; echo $-"), ("", "ERR\nhBE\n")),
            (("trap 'echo E\necho F' ERR", "false\necho $LINENO"), ("", "E\nF\n2\n")),
            (("set -e; trap 'echo ERR' ERR", "false && true", "echo $?"), ("", "", "1\n")),
            (("trap 'echo BYE' EXIT", "(exit 3)", "echo $?"), ("", "", "3\n")),
        ):
            c = make(s, w)
            assert [out(s, w, c, text) for text in cells] == list(outputs), cells
            s.call("DELETE", f"/v1/contexts/{c}")
        c = make(s, w)
        cell(s, w, c, "trap 'echo BYE' EXIT; trap 'echo ERR' ERR; set -e")
        result = cell(s, w, c, "false")
        assert (result["stdout"], result["exitCode"], result["contextKept"]) == ("ERR\nBYE\n", 1, False), result


def a_status_lasts():
    """$?, PIPESTATUS, $_ and $! are in the next cell what they were in the last, whatever is traced or trapped"""
    with shared as s:
        w = s.open_workspace()["id"]
        c = make(s, w)
        for text, output in (
            ("echo $?", "0\n"), ("(exit 5)", ""), ("echo $? ${PIPESTATUS[@]}", "5 5\n"), ("false | (exit 3) | true", ""),
            ("echo $? ${PIPESTATUS[@]}", "0 1 3 0\n"), ("set -o pipefail; IFS=; false | true", ""), ("echo $? ${PIPESTATUS[@]}", "1 1 0\n"),
            ("set +o pipefail; : 'a  b'", ""), ("echo \"$_\"", "a  b\n"), ("(exit 7) & p=$!", ""), ("wait $!; echo $? $((p == $!))", "7 1\n"),
            ("trap 'echo E' ERR; (exit 6)", "E\n"), ("echo $?; trap - ERR", "6\n"), ("trap 'echo D' DEBUG; (exit 6)", ""),
            ("echo $?; trap - DEBUG", "D\n6\nD\n"), ("set -x; { (exit 6); } 2>/dev/null", ""), ("echo $?", "6\n++ echo 6\n"), ("set +x", "++ set +x\n"),
            ("cat <<E\nopen; exit 9", "open; exit 9\n"), ("echo 'a\\' b \\", "a\\ b\n"), ("false # c", ""), ("echo $?", "1\n"), ("return 3", ""), ("echo $?", "3\n"),
        ):
            got = cell(s, w, c, text)
            stderr = "" if "here-document" in got["stderr"] else got["stderr"]
            assert got["contextKept"] and got["stdout"] + stderr == output, (text, got)


def a_syntax_error_is_the_cells():
    """a cell that bash cannot parse runs up to the command with the error, which is told as by `bash FILE`, and its context lives on"""
    with shared as s:
        w = s.open_workspace()["id"]
        c = make(s, w)
        unclosed, near = "unexpected EOF while looking for matching `)'", "syntax error near unexpected token `)'"
        for text, stdout, line, said in (
            ("x=1; echo $(", "", 2, unclosed), ("x=$(ls", "", 2, unclosed), ("cat <(", "", 2, unclosed), ('x=2\necho "$(\necho no', "", 4, unclosed),
            ("echo $(if true; then)", "", 1, near), ("x=3\nif true; then\n  echo on\nfi; echo on\necho no $(case x in y) )\necho no", "on\non\n", 5, near),
            ("echo no \\\n $(", "", 3, unclosed), ("f() {\n  echo $(;)\n}", "", 2, "syntax error near unexpected token `;'"),
        ):
            got = cell(s, w, c, text)
            assert (got["stdout"], got["exitCode"], got["contextKept"]) == (stdout, 2, True), (text, got)
            assert f": line {line}: {said}\n" in got["stderr"] and "hearth" not in got["stderr"], (text, got)
            assert out(s, w, c, "echo $?") == "2\n"
        assert out(s, w, c, "echo $x") == "3\n"
        ended = cell(s, w, c, "echo on; exit 4\necho $(")
        assert (ended["stdout"], ended["exitCode"], ended["contextKept"]) == ("on\n", 4, False), ended


def nothing_hangs():
    """a cell that would leave the shell unable to answer is refused, or ends the context with words"""
    with shared as s:
        w = s.open_workspace()["id"]
        c = make(s, w)
        for text in ("set -n", "x=1; set -e -n\necho NOT", "set -o noexec", "enable -n builtin", "enable -n echo printf; echo NOT", "function builtin { :; }"):
            result = cell(s, w, c, text, timeoutSeconds=20)
            assert result["exitCode"] == 2 and "without a context" in result["stderr"] and result["contextKept"] and not result["stdout"], (text, result)
        assert out(s, w, c, "(set -n; echo NOT); set -- -n; enable -n echo; echo 'set -n' $1 ${x-none}") == "set -n -n none\n"
        for text, said in (("declare -i x=5/0", "division by 0"), ("echo ${x[1/0]}", "division by 0"), ("exit 1 2", "too many arguments")):
            result = cell(s, w, c, f"echo on; {text}; echo NOT", timeoutSeconds=20)
            assert (result["stdout"], result["exitCode"], result["contextKept"]) == ("on\n", 1, True), (text, result)
            assert said in result["stderr"] and "hearth" not in result["stderr"], (text, result)
        assert out(s, w, c, "echo on") == "on\n"
        for text in ("eval 'set -'n", "b=builtin; enable -n $b", "echo 'builtin() { :; }' >lib; . ./lib", "set -r"):
            c = make(s, w)
            result = cell(s, w, c, text, timeoutSeconds=20)
            assert (result["status"], result["exitCode"], result["contextKept"]) == ("failed", 2, False), (text, result)
            assert "a context cannot go on after this cell" in result["stderr"], result
            s.call("DELETE", f"/v1/contexts/{c}")


def interrupted(s, context, execution):
    """Interrupts the cell and returns its end. A child that bash has just forked, and that is not its program yet, takes a
    signal along, in a terminal too: then, as there, once more."""
    for _ in range(2):
        assert s.post(f"/v1/contexts/{context}/interrupt").status == 204
        try:
            return wait_for("its end", lambda: (x := s.get(f"/v1/executions/{execution}").json)["status"] != "running" and x, 7)
        except AssertionError:
            print("      interrupted again", flush=True)
    raise AssertionError(f"two interrupts have not ended {execution}")


def interrupts_skip_the_rest():
    """an interrupt ends the cell wherever it is, in functions, loops, jobs and pipes, and keeps the state; a trap of the code's own is obeyed"""
    with shared as s:
        w = s.open_workspace()["id"]
        c = make(s, w)
        out(s, w, c, "x=7; f() { echo on; sleep 60; echo NOT; }; g() { f; echo NOT; }")
        for text in ("echo on; sleep 60; echo NOT", "g; echo NOT", "echo on; while :; do :; done; echo NOT", "echo on; (sleep 60); echo NOT",
                     "echo on; y=$(sleep 60; echo NOT); echo NOT", "echo on; sleep 60 | cat; echo NOT", "echo on; sleep 60 & wait; echo NOT"):
            begun = s.post(f"/v1/workspaces/{w}/executions", {"code": text, "context": c, "background": True}).json["id"]
            wait_for("its start", lambda: s.get(f"/v1/executions/{begun}").json["stdout"])
            ended = interrupted(s, c, begun)
            assert (ended["stdout"], ended["exitCode"], ended["contextKept"]) == ("on\n", 130, True), (text, ended)
        assert out(s, w, c, "echo $? $x; jobs; shopt -q extdebug || echo plain").startswith("130 7\n")
        text = "trap 'echo mine' INT; echo on; sleep 1; echo after; trap - INT"
        begun = s.post(f"/v1/workspaces/{w}/executions", {"code": text, "context": c, "background": True}).json["id"]
        wait_for("its start", lambda: s.get(f"/v1/executions/{begun}").json["stdout"])
        assert s.post(f"/v1/contexts/{c}/interrupt").status == 204
        ended = wait_for("its end", lambda: (x := s.get(f"/v1/executions/{begun}").json)["status"] != "running" and x)
        assert ended["stdout"] == "on\nmine\nafter\n", ended


def an_end_is_told():
    """a shell that ends, by set -e, set -u, exit, exec or a signal, ends the context and says so; `kill 0` reaches the code's processes only"""
    with shared as s:
        w = s.open_workspace()["id"]
        for text, status, told in (("set -e; echo a; false; echo NOT", 1, True), ("set -u; echo $nowhere", 1, True), ("exit 4", 4, True),
                                   ("exit 0", 0, False), ("exec true", 0, False)):
            c = make(s, w)
            result = cell(s, w, c, text)
            assert (result["exitCode"], result["contextKept"]) == (status, False) and "NOT" not in result["stdout"], (text, result)
            assert ("shell of this context ended" in result["stderr"]) == told, (text, result)
            assert s.call("DELETE", f"/v1/contexts/{c}").status in (204, 410)
        c = make(s, w)
        assert out(s, w, c, "trap 'echo term' TERM; kill 0; kill -TERM -- -$$; echo alive") == "term\nterm\nalive\n"
        result = cell(s, w, c, "kill -9 $$")
        assert result["contextKept"] is False and result["stderr"].count("\n") == 1, result


def as_its_environment_says():
    """the shell has the context's directory and variables, one level deep, as a script has"""
    with shared as s:
        w = s.open_workspace()["id"]
        c = make(s, w, cwd="/tmp", env={"A": "b c", "status": "mine", "IFS": "x"})
        assert out(s, w, c, "echo $PWD $A $status $SHLVL ${OLDPWD-none}") == "/tmp b c mine 1 none\n"
        began = time.monotonic()
        assert out(s, w, c, "# " + "x" * 200_000 + "\necho long") == "long\n"
        assert time.monotonic() - began < 20


if __name__ == "__main__":
    try:
        main("server", [state_is_the_codes_own, tracing_shows_the_code_only, traps_see_the_code_only, a_status_lasts, a_syntax_error_is_the_cells, nothing_hangs,
                        interrupts_skip_the_rest, an_end_is_told, as_its_environment_says, the_end])
    finally:
        shared.clean_up()
