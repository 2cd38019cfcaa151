#!/usr/bin/env python3
"""JavaScript and TypeScript, black box: code is a file of the workspace, a script or a module, and cells of a context go on where
the last one ended."""

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Shared, main, pool_yaml, wait_for  # noqa: E402

shared = Shared(pools=pool_yaml("python", image="python", warm=1, memory="512Mi"), args=("--default-pool", "python"))
FILES = {"util.js": "module.exports = {u: 5}", "esm.mjs": "export const v = 6; export default 7;",
         "lib.ts": "import { twice } from './inner';\nexport enum Color { Red = 1 }\nexport const f = (x: number): number => twice(x) + Color.Red;",
         "inner.ts": "export const twice = (x: number) => x * 2;", "deep/index.ts": "export default 'deep' as string;",
         "broken.ts": "export const x: = 1;", "thrown.ts": "interface A { x: number }\nthrow new Error('of this file');",
         "node_modules/pkg/index.js": "module.exports = 'pkg'", "node_modules/pkg/package.json": '{"name": "pkg", "main": "index.js"}'}


def the_end():
    """the server that all these tests used ends and leaves nothing"""
    shared.end()


def workspace(s):
    w = s.open_workspace()["id"]
    for name, text in FILES.items():
        assert s.call("PUT", f"/v1/workspaces/{w}/files/{name}", raw=text.encode()).status in (200, 201)
    return w


def run(s, w, code, language="javascript", **fields):
    answer = s.post(f"/v1/workspaces/{w}/executions", {"code": code, "language": language, **fields}, timeout=120)
    assert answer.status == 200, answer
    return answer.json


def out(s, w, code, language="javascript", **fields):
    result = run(s, w, code, language, **fields)
    assert result["status"] == "ok", result
    return result["stdout"]


def code_is_a_file_of_the_workspace():
    """require, import and import() find the workspace's files and packages, from scripts and modules; no frame of Hearth's shows"""
    with shared as s:
        w = workspace(s)
        assert out(s, w, "console.log(require('./util').u, require('pkg'), require.main === module, process.execArgv)") == "5 pkg true []\n"
        assert out(s, w, "import('./esm.mjs').then(m => console.log(m.default))") == "7\n"
        assert out(s, w, "import p from 'pkg'; import {v} from './esm.mjs'; import u from './util.js'; console.log(p, v, u.u)") == "pkg 6 5\n"
        missing = run(s, w, "require('./nowhere')")
        assert missing["error"]["name"] == "Error" and "./nowhere" in missing["stderr"] and "run.js" not in missing["stderr"], missing
        wrong = run(s, w, "null.x")
        assert wrong["exitCode"] == 1 and "run.js" not in wrong["stderr"] and "run_main_module" in wrong["stderr"], wrong
        child = "const {fork} = require('child_process'); process.argv[2] ? console.log('child') : fork(__filename, ['a'])"
        assert out(s, w, child) == "child\n"


def code_that_is_a_module_runs_as_one():
    """declarations of import and export, import.meta and await at the top make code a module; mjs always is one"""
    with shared as s:
        w = workspace(s)
        assert out(s, w, "export const x = 1; console.log(typeof require, this)") == "undefined undefined\n"
        assert out(s, w, "const {v} = await import('./esm.mjs'); console.log(v)") == "6\n"
        assert out(s, w, "console.log(import.meta.url.startsWith('file:///'))") == "true\n"
        assert out(s, w, "console.log(typeof require, 'import x from y; await')") == "function import x from y; await\n"
        for language in ("javascript", "typescript"):
            for text, said in (("console.log(await Promise.all([1, 2]))", "[ 1, 2 ]\n"), ("console.log(`${await 5}`)", "5\n"),
                               ("const n = (await import('node:os')).EOL.length; console.log(n)", "1\n"),
                               ("console.log(await f()); async function f() { return 3 }", "3\n"),
                               ("const o = {a: await 1, b: [await 2]}; if (await 1) console.log(o)", "{ a: 1, b: [ 2 ] }\n"),
                               ("#!/usr/bin/env node\nimport u from './util.js'; console.log(u.u, await 6)", "5 6\n")):
                assert out(s, w, text, language) == said, text
        assert out(s, w, "var await = 6; console.log(await, 010, typeof require)") == "6 8 function\n", "a script stays one"
        neither = run(s, w, "console.log(await 1); let z = ;")
        assert neither["exitCode"] == 1 and neither["error"]["message"] == "missing ) after argument list", neither
        assert out(s, w, "console.log(this)", "mjs") == "undefined\n"
        assert out(s, w, "import u from './util.js'; console.log(u.u)", "mjs") == "5\n"
        unsettled = run(s, w, "await new Promise(() => {})", "mjs")
        assert unsettled["exitCode"] == 13, unsettled
        assert "SyntaxError" in run(s, w, "let z = ;")["stderr"]
        assert out(s, w, "const x: number = await Promise.resolve(3); console.log(x)", "typescript") == "3\n"
        assert out(s, w, "import u from './util'; const n: number = u.u; console.log(n)", "typescript") == "5\n"
        bad = run(s, w, "let x: = 3", "typescript")
        assert bad["error"]["name"] == "CompileError" and "main.ts:1" in bad["stderr"], bad


def typescript_finds_typescript():
    """code in TypeScript imports files of the workspace in TypeScript by each of their names, and their errors are the file's own"""
    with shared as s:
        w = workspace(s)
        for name in ("./lib.ts", "./lib", "./lib.js"):
            assert out(s, w, f"import {{ f }} from '{name}'; const n: number = 2; console.log(f(n))", "typescript") == "5\n", name
            assert out(s, w, f"import {{ f }} from '{name}'; console.log(await f(2))", "typescript") == "5\n", name
            assert out(s, w, f"const {{ f }}: any = require('{name}'); console.log(f(2))", "typescript") == "5\n", name
            assert out(s, w, f"import('{name}').then((m: any) => console.log(m.f(2)))", "typescript") == "5\n", name
        assert out(s, w, "import d from './deep'; import u from './util.js'; console.log(d, u.u)", "typescript") == "deep 5\n"
        assert out(s, w, "import u from './util.js'; import v from './util'; console.log(await u.u, u === v)", "typescript") == "5 true\n"
        for first in ("", "await 1;\n"):
            broken = run(s, w, f"{first}import {{ x }} from './broken.ts'; console.log(x)", "typescript")
            assert broken["error"]["name"] == "SyntaxError" and "broken.ts:1" in broken["stderr"], broken
            thrown = run(s, w, f"{first}import './thrown'", "typescript")
            assert thrown["error"]["message"] == "of this file" and "thrown.ts" in thrown["error"]["traceback"], thrown
            assert "/workspace/thrown.ts:" in thrown["stderr"] and "/.hearth/node/" not in thrown["stderr"], thrown
            missing = run(s, w, f"{first}import './nowhere'", "typescript")
            assert "nowhere" in missing["error"]["message"] and "/.hearth/node/" not in missing["stderr"], missing
        assert "SyntaxError" in run(s, w, "require('./lib.ts')")["stderr"], "JavaScript takes no types, as in Node"


def make(s, w):
    answer = s.post(f"/v1/workspaces/{w}/contexts", {"language": "javascript"})
    assert answer.status == 201, answer
    return answer.json["id"]


def value(result):
    found = [r["mime"]["text/plain"] for r in result["results"] if r["main"]]
    assert result["status"] == "ok" and len(found) == 1, result
    return found[0]


def cells_share_their_names():
    """names of a cell last, also of one that awaits or imports, and may be declared again"""
    with shared as s:
        w = workspace(s)
        c = make(s, w)

        def cell(text):
            return value(run(s, w, text, context=c))

        assert cell("let a = 1; const b = 2; function f() { return a + b; } class K {}; f()") == "3"
        assert cell("const b = 5; let a = 7; class K {}; f()") == "12"
        assert cell("const d = await Promise.resolve(9); d + 1") == "10"
        assert cell("d") == "9"
        assert cell("const fs = await import('node:fs'); typeof fs.readFileSync") == "'function'"
        assert cell("import p from 'pkg'\nimport dd, { v as vv } from './esm.mjs'\nimport * as all from './esm.mjs';\n"
                    "[p, vv, dd, Object.keys(all).join()].join()") == "'pkg,6,7,default,v'"
        assert cell("vv + dd") == "13"
        text = "const s = \"import('x')\"; // import('y')\nconst t = `import('z') ${(await import('node:os')).EOL.length}`; [s, t, /import\\('w'\\)/.source].length"
        assert cell(text) == "3"
        assert cell("s + t") == "\"import('x')import('z') 1\""
        assert cell("for (const x of [1, 2]) { await x; } 'done'") == "'done'"
        assert cell("({x: 1}).x + require('./util').u") == "6"
        assert cell("import('./esm.mjs').then(m => m.default)") == "7"
        assert cell("this === globalThis && !Object.keys(globalThis).some(k => k.includes('hearth'))") == "true"
        assert cell("{a: 1, b: await 2}") == "{ a: 1, b: 2 }" and cell("{a: 1} // alone") == "{ a: 1 }"
        assert cell("{ let inner = 4; inner }") == "4" and cell("{a: 1};") == "1", "blocks stay blocks"
        assert cell("10n ** 20n") == "100000000000000000000n"
        large = run(s, w, "({s: 'é'.repeat(3_000_000)})", context=c)
        assert large["status"] == "ok" and large["results"][0]["leftOut"][0]["type"] == "application/json", large["status"]
        assert cell("d") == "9", "a value that is too large is no end of a context"


def cells_import_only_where_they_say_so():
    """import declarations of a cell stand anywhere at its top; text, comments and methods that look like one stay as they are"""
    with shared as s:
        w = workspace(s)
        c = make(s, w)

        def cell(text):
            return value(run(s, w, text, context=c))

        assert cell("import u from './util.js'\nconst t = `\nimport v from './esm.mjs'\n`\n/*\nimport none from 'none'\n*/\n;[t, u.u]") == (
            "[ \"\\nimport v from './esm.mjs'\\n\", 5 ]")
        assert cell("const é = 'é'; import seven from './esm.mjs'; import { v as six } from './esm.mjs'; [é, six, seven]") == "[ 'é', 6, 7 ]"
        assert cell("import nine, { // it's\n  v as eight, /* (' */\n} from './esm.mjs'\n(nine + eight)") == "13"
        assert cell("const o = { import(x) { return x } }; class I { static import(x) { return o.import(x) } }; I.import(8)") == "8"
        assert cell("const m = await import /* 'none' */ ('./esm.mjs'); [m.v, `${(await import('pkg')).default} import('none')`]") == "[ 6, \"pkg import('none')\" ]"
        assert run(s, w, "import './util.js'", context=c)["results"] == [], "a declaration has no value"
        wrong = run(s, w, "import p from 'pkg'; import {\n} from 'pkg'; let z = [1;", context=c)
        assert wrong["error"]["traceback"].startswith("cell-7:2\n"), wrong


def cells_end_with_their_errors():
    """an error shows the cell's own lines and keeps the context; an interrupt ends what loops or waits for ever"""
    with shared as s:
        w = workspace(s)
        c = make(s, w)
        wrong = run(s, w, "function g() {\n  null.x;\n}\ng()", context=c)
        assert wrong["error"]["traceback"].split("\n")[1:] == ["    at g (cell-1:2:8)", "    at cell-1:4:1"], wrong
        wrong = run(s, w, "let y = 3;\nlet z = [1,\n2;\n", context=c)
        assert wrong["error"]["traceback"] == "cell-2:3\n2;\n ^\n\nSyntaxError: Unexpected token ';'", wrong
        wrong = run(s, w, "import p from 'pkg'\nlet z = [1;\n", context=c)
        assert wrong["error"]["traceback"].startswith("cell-3:2\nlet z = [1;\n          ^\n"), wrong
        wrong = run(s, w, "import p from 'pkg'; JSON.parse('{')", context=c)
        assert "    at JSON.parse" in wrong["error"]["traceback"], wrong
        assert run(s, w, "await 1; throw 5", context=c)["error"]["message"] == "5"
        assert run(s, w, "JSON.parse('{')", context=c)["error"]["name"] == "SyntaxError"
        why = run(s, w, "throw Object.assign(new RangeError('far', {cause: new TypeError('why')}), {code: 7})", context=c)
        assert re.fullmatch(r"RangeError: far\n    at cell-\d+:1:\d+ \{\n  code: 7,\n  \[cause\]: TypeError: why\n      at cell-\d+:1:\d+\n\}", why["error"]["traceback"]), why
        assert run(s, w, "await new Promise((_, no) => setTimeout(no, 10, new Error('late')))", context=c)["error"]["message"] == "late"
        # Node may lose the first signal, as this cell does.
        loses = ("await new Promise(go => setTimeout(go, 1)); const ours = process.rawListeners('SIGINT'); process.removeAllListeners('SIGINT'); "
                 "process.once('SIGINT', () => ours.forEach(each => process.on('SIGINT', each))); console.log('on'); await new Promise(() => {})")
        for text in ("console.log('on'); while (true) {}", "console.log('on'); await new Promise(() => {})", loses):
            begun = s.post(f"/v1/workspaces/{w}/executions", {"code": text, "context": c, "background": True}).json["id"]
            wait_for("its start", lambda: s.get(f"/v1/executions/{begun}").json["stdout"])
            assert s.post(f"/v1/contexts/{c}/interrupt").status == 204
            ended = wait_for("its end", lambda: (x := s.get(f"/v1/executions/{begun}").json)["status"] != "running" and x)
            assert ended["status"] == "failed" and ended["contextKept"], ended
        assert value(run(s, w, "var y = 4; y", context=c)) == "4"


def names_keep_their_keyword():
    """a name declared again with another keyword is an error that says what to do; nothing of the cell has run"""
    with shared as s:
        w = workspace(s)
        c = make(s, w)
        assert value(run(s, w, "let a = 1; const b = 2; var d = 3; a", context=c)) == "1"
        for text, name in (("console.log(1); const a = 4", "a"), ("var b = 4", "b"), ("function a() {}", "a"), ("class d {}", "d"), ("import a from 'pkg'", "a")):
            wrong = run(s, w, text, context=c)
            told = f"Identifier '{name}' has already been declared by an earlier cell, with another keyword: assign to it, or use the same keyword"
            assert wrong["error"]["message"].startswith(told) and told in wrong["stderr"] and wrong["stdout"] == "", (text, wrong)
        for text in ("let q; let q", "eval('let q; let q')", "throw new SyntaxError(\"Identifier 'q' has already been declared\")"):
            assert run(s, w, text, context=c)["error"]["message"] == "Identifier 'q' has already been declared", text
        assert value(run(s, w, "import b from 'pkg'\nclass a {}; function d() {}; b", context=c)) == "'pkg'"


def a_cell_that_exits_says_so():
    """process.exit ends the context with its status; one other than 0 is told"""
    with shared as s:
        w = workspace(s)
        for text, status in (("process.exit(3); console.log('never')", 3), ("setTimeout(() => process.exit(4), 5); await new Promise(() => {})", 4),
                             ("try { process.exit() } catch { console.log('never') }", 0)):
            ended = run(s, w, text, context=make(s, w))
            told = f"hearth: the process of this context ended with status {status}, and the context with it\n" if status else ""
            assert (ended["exitCode"], ended["stdout"], ended["stderr"], ended["contextKept"]) == (status, "", told, False), ended


if __name__ == "__main__":
    try:
        main("server", [code_is_a_file_of_the_workspace, code_that_is_a_module_runs_as_one, typescript_finds_typescript, cells_share_their_names,
                        cells_import_only_where_they_say_so, cells_end_with_their_errors, names_keep_their_keyword, a_cell_that_exits_says_so, the_end])
    finally:
        shared.clean_up()
