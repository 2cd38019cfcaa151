#!/usr/bin/env python3
# suite: seconds=180 needs=polyglot sanitizers=no
"""The polyglot image in real sandboxes: every language of its table runs, compiles, fails and speaks as programs do.
The languages are one table of data here too; a compiled one also has its compiler's complaint."""

import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import IMAGES, REPO, Server, main, on_docker, record, wait_for  # noqa: E402

POOL = os.path.join(REPO, "sandbox_images", "polyglot", "pool.yaml")
SHOW_TIMES = bool(os.environ.get("HEARTH_SHOW_TIMES"))

# Each program reads a line, prints it with a non-ASCII word and the variable WHO, writes to stderr, and exits with 3. Then
# follows code that does not compile (or is no program), and the compiler's message.
LANGUAGES = {
    "python": (
        "import os, sys\nline = input()\nprint('你好 é', line, os.environ['WHO'])\nprint('to stderr', file=sys.stderr)\nsys.exit(3)",
        "def f(:\n", "SyntaxError"),
    "javascript": (
        "const line = require('fs').readFileSync(0, 'utf8').trim();\n"
        "console.log('你好 é', line, process.env.WHO); console.error('to stderr'); process.exitCode = 3;",
        "let x = ;", "SyntaxError"),
    "typescript": (
        "import * as fs from 'fs';\nconst line: string = fs.readFileSync(0, 'utf8').trim();\n"
        "console.log('你好 é', line, process.env.WHO as string); console.error('to stderr'); process.exitCode = 3;",
        "const x: = 1;", "ERROR"),
    "bash": (
        "read -r line\necho 你好 é \"$line\" \"$WHO\"\necho to stderr >&2\nexit 3",
        "if then", "syntax error"),
    "c": (
        '#include <math.h>\n#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n'
        'static void* nothing(void* x) { return x; }\n'
        'int main(int argc, char** argv) {\n  char line[80] = "";\n  if (!fgets(line, sizeof line, stdin)) return 9;\n'
        '  line[strcspn(line, "\\n")] = 0;\n  pthread_t t;\n  pthread_create(&t, NULL, nothing, NULL);\n  pthread_join(t, NULL);\n'
        '  if (argc > 1) return puts(argv[1]), (int)cbrt(125);\n'
        '  printf("你好 é %s %s\\n", line, getenv("WHO"));\n  fputs("to stderr\\n", stderr);\n  return (int)cbrt(27 + argc - 1);\n}',
        "int main(void) { return missing; }", "main.c:1:"),
    "cpp": (
        '#include <cstdlib>\n#include <iostream>\n#include <ranges>\n#include <string>\n#include <thread>\n'
        'int main() {\n  std::string line;\n  std::getline(std::cin, line);\n  std::jthread([] {}).join();\n'
        '  std::cout << "你好 é " << line << " " << std::getenv("WHO") << std::endl;\n  std::cerr << "to stderr\\n";\n'
        '  int n = 0;\n  for (int i : std::views::iota(0, 3)) n += i;\n  return n;\n}',
        "int main() { return missing; }", "main.cpp:1:"),
    "go": (
        'package main\n\nimport (\n\t"bufio"\n\t"fmt"\n\t"os"\n)\n\nfunc main() {\n\tline := bufio.NewScanner(os.Stdin)\n\tline.Scan()\n'
        '\tfmt.Println("你好 é", line.Text(), os.Getenv("WHO"))\n\tfmt.Fprintln(os.Stderr, "to stderr")\n\tos.Exit(3)\n}\n',
        "package main\n\nfunc main() {\n\tmissing()\n}\n", "main.go:4:"),
    "rust": (
        'use std::io::BufRead;\nfn main() {\n    let line = std::io::stdin().lock().lines().next().unwrap().unwrap();\n'
        '    println!("你好 é {line} {}", std::env::var("WHO").unwrap());\n    eprintln!("to stderr");\n'
        '    std::thread::spawn(|| std::process::exit(3)).join().unwrap();\n}\n',
        "fn main() {\n    missing();\n}\n", "main.rs:2:"),
    "java": (
        'import java.util.Scanner;\nclass Helper { static int three() { return 3; } }\npublic class Grüße {\n'
        '  record Pair(String a, String b) {}\n  public static void main(String[] args) {\n'
        '    Pair pair = new Pair(new Scanner(System.in).nextLine(), System.getenv("WHO"));\n'
        '    System.out.println("你好 é " + pair.a() + " " + pair.b());\n    System.err.println("to stderr");\n'
        '    System.exit(Helper.three());\n  }\n}\n',
        "class A {\n  public static void main(String[] a) { missing(); }\n}\n", "Main.java:2:"),
    "r": (
        'line <- readLines(file("stdin"), n = 1)\ncat("你好 é", line, Sys.getenv("WHO"), "\\n", sep = " ")\n'
        'message("to stderr")\nquit(status = 3)',
        "x <- <- 1", "unexpected"),
}
COMPILED = ("typescript", "c", "cpp", "go", "rust", "java")
SAME = {"js": "javascript", "node": "javascript", "ts": "typescript", "golang": "go", "rs": "rust", "c++": "cpp"}

# Files of the workspace, with the tools of the image as a person would use them: arguments come through.
WITH_ARGUMENTS = {
    "main.c": "gcc -o prog main.c -lm -pthread && echo | ./prog 'a b'",
    "main.go": "go run main.go 'a b'",
    "main.rs": "rustc -o prog main.rs && ./prog 'a b'",
    "Main.java": "java Main.java 'a b'",
    "main.R": "Rscript main.R 'a b'",
}
ARGUMENTS = {
    "main.c": LANGUAGES["c"][0],
    "main.go": 'package main\n\nimport "os"\n\nfunc main() {\n\tprintln(len(os.Args))\n\tos.Stdout.WriteString(os.Args[1] + "\\n")\n\tos.Exit(0)\n}\n',
    "main.rs": 'fn main() {\n    println!("{}", std::env::args().nth(1).unwrap());\n}\n',
    "Main.java": 'public class Main { public static void main(String[] a) { System.out.println(a[0]); } }',
    "main.R": 'cat(commandArgs(trailingOnly = TRUE), "\\n", sep = "")',
}


def run(s, workspace, language, code, **fields):
    begin = time.monotonic()
    answer = s.post(f"/v1/workspaces/{workspace}/executions",
                    {"code": code, "language": language, "timeoutSeconds": 120, **fields}, timeout=150)
    assert answer.status == 200, (language, answer)
    if SHOW_TIMES:
        print(f"      {language:10} {(time.monotonic() - begin) * 1000:6.0f} ms  {answer.json['usage']['peakMemoryBytes'] >> 20:4} MiB", flush=True)
    return answer.json


def hello(s, w):
    """Each language runs twice: after the leftovers of a first run, and in an interpreter or a process of its own."""
    for _ in range(2):
        for language, (code, _, _) in LANGUAGES.items():
            out = run(s, w, language, code, stdin="line 1\n", env={"WHO": "wörld"})
            assert out["stdout"].rstrip() == "你好 é line 1 wörld", (language, out)
            assert out["stderr"].strip() == "to stderr", (language, out)
            assert (out["status"], out["exitCode"], out["error"]) == ("failed", 3, None), (language, out)


def other_names(s, w):
    for name, language in SAME.items():
        out = run(s, w, name, LANGUAGES[language][0], stdin="x\n", env={"WHO": "y"})
        assert out["stdout"].rstrip() == "你好 é x y" and out["exitCode"] == 3, (name, out)


def wrong_code(s, w):
    """Code that does not compile is shown on stderr, never runs, and is told apart from a program that fails."""
    for language, (_, code, said) in LANGUAGES.items():
        out = run(s, w, language, code)
        assert out["status"] == "failed" and out["exitCode"] != 0 and out["stdout"] == "", (language, out)
        assert said in out["stderr"], (language, out)
        if language in COMPILED:
            assert out["error"]["name"] == "CompileError", (language, out)


def main_class(s, w):
    """Java: any class may be the main one, in any package, wherever it stands in the file."""
    for code, expected in (
            ("class A {}\nclass B { public static void main(String... a) { System.out.println(B.class); } }", "class B\n"),
            ("package p.q;\npublic class Z { public static void main(String[] a) { System.out.println(Z.class); } }", "class p.q.Z\n"),
            ("class A { public static void main(String[] a) {} }\nclass Main extends C {}\n"
             "class C { public static void main(String[] a) { System.out.println(1); } }", "1\n"),
            ("interface I { static void main(String[] a) { System.out.println(2); } }", "2\n")):
        out = run(s, w, "java", code)
        assert (out["stdout"], out["exitCode"]) == (expected, 0), (code, out)
    out = run(s, w, "java", "class A { int x; }")
    assert "no class has a" in out["stderr"] and out["error"]["name"] == "CompileError", out
    thrown = run(s, w, "java", 'class T { public static void main(String[] a) { throw new IllegalStateException("thrown"); } }')
    assert thrown["exitCode"] == 1 and thrown["error"] is None and "at T.main(Main.java:1)" in thrown["stderr"], thrown
    # The compiler's classes come out of the archive that was made with the image.
    mapped = s.run(w, "cd /tmp; echo 'class A { public static void main(String[] a) {} }' > A.java; J=/usr/lib/hearth/java/compile; "
                      "java -XX:+UseSerialGC -XX:SharedArchiveFile=$J.jsa -Xlog:class+load -cp $J.jar CompileFile A.java | "
                      "grep -c 'source: shared objects file (top)'")
    assert int(mapped["stdout"]) > 500, mapped
    full = run(s, w, "java", "import java.util.*;\nclass M { public static void main(String[] x) {\n"
                             "  List<long[]> l = new ArrayList<>(); while (true) l.add(new long[1 << 20]);\n} }")
    assert "OutOfMemoryError" in full["stderr"] and full["status"] == "failed", full


def arguments(s, w):
    for name, code in ARGUMENTS.items():
        assert s.call("PUT", f"/v1/workspaces/{w}/files/{name}", raw=code.encode()).status in (200, 201), name
        out = s.run(w, WITH_ARGUMENTS[name], timeoutSeconds=120)
        assert out["stdout"] == "a b\n", (name, out)
    # Go's tools wrote only the requested files into the workspace.
    assert s.run(w, "ls -A | tr '\\n' ' '")["stdout"] == "Main.java main.R main.c main.go main.rs prog ", s.run(w, "ls -A")


def libraries(s, w):
    """Standard libraries work without a network, cgo and large ones too."""
    go = run(s, w, "go", 'package main\n\n// #include <stdlib.h>\nimport "C"\nimport (\n\t"encoding/json"\n\t"fmt"\n\t"net/http"\n)\n\n'
                         'func main() {\n\tb, _ := json.Marshal([]int{int(C.abs(-7))})\n\tfmt.Println(http.StatusText(200), string(b))\n}\n')
    assert go["stdout"] == "OK [7]\n", go
    rust = run(s, w, "rust", "use std::collections::HashMap;\nfn main() {\n    let v: Vec<i32> = Vec::new();\n"
                             "    let m: HashMap<i32, i32> = HashMap::new();\n    println!(\"{}\", m.len());\n    v[m.len()];\n}\n")
    assert rust["exitCode"] == 101 and rust["stdout"] == "0\n" and "out of bounds" in rust["stderr"], rust
    r = run(s, w, "r", "m <- lm(dist ~ speed, cars)\ncat(round(coef(m)[[2]], 3), '\\n')\npng('/tmp/x.png'); plot(cars); invisible(dev.off())\n"
                       "cat(file.size('/tmp/x.png') > 1000, '\\n')")
    assert r["stdout"] == "3.932 \nTRUE \n", r
    crash = run(s, w, "c", "#include <signal.h>\nint main(void) { return raise(SIGSEGV); }")
    assert (crash["status"], crash["signal"], crash["error"]) == ("killed", "SEGV", None), crash


def no_such_language(s, w):
    answer = s.post(f"/v1/workspaces/{w}/executions", {"code": "1", "language": "cobol"})
    said = str(answer.json["errors"])
    assert answer.status == 400 and all(name in said for name in LANGUAGES), answer
    answer = s.post("/v1/workspaces", {"pool": "polyglot", "language": "cobol"})
    assert answer.status == 422 and all(name in answer.json["hint"] for name in LANGUAGES), answer


def polyglot(s):
    def ready():
        status = s.get("/v1/pools/polyglot").json["status"]
        assert "sandbox.create_failed" not in s.log(), status
        return status["ready"] >= 1
    wait_for("a sandbox", ready, 500)
    return s.open_workspace(pool="polyglot", language="rust")["id"]


def every_language():
    """every language of the polyglot image runs with input, environment and exit code, and shows what does not compile"""
    with open(POOL, encoding="utf-8") as f, Server(f.read(), ready_within=500) as s:  # one for all: 1.6 GB are unpacked
        w = polyglot(s)
        hello(s, w)
        wrong_code(s, w)
        no_such_language(s, w)
        if not on_docker():
            for part in (other_names, main_class, arguments, libraries):
                part(s, w if part is not arguments else polyglot(s))


if __name__ == "__main__":
    if os.path.isdir(os.path.join(IMAGES, "polyglot")):
        main("server", [every_language])
    else:
        record("skip", "server", "the polyglot image is not built: sandbox_images/build polyglot --output build/test-data/images/polyglot")
