#!/usr/bin/env python3
# suite: seconds=50
"""Large figures and long output reach every client: a tool result has at most 900 kB as JSON, whatever a run shows."""

import base64
import json
import os
import re
import sys
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Shared, main, pool_yaml  # noqa: E402

MODERN = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
          "io.modelcontextprotocol/clientInfo": {"name": "figures", "version": "1"}}
MOST = 910_000  # including the JSON-RPC around it
MARGIN = "import numpy as np, matplotlib.pyplot as plt\nnp.random.seed(1)\n"
IMSHOW = MARGIN + "plt.figure(figsize=(9, 9)); plt.imshow(np.random.rand(900, 900)); plt.show()"
SCATTER = MARGIN + ("plt.rcParams['savefig.dpi'] = 300\nr = np.random.rand(20000, 2)\n"
                    "plt.figure(figsize=(10, 8)); plt.scatter(r[:, 0], r[:, 1], c=r[:, 0], s=3); plt.show()")
NOISE = ("import numpy as np\nfrom PIL import Image\nfor i in range({count}):\n"
         "    Image.fromarray((np.random.rand({side}, {side}, 3) * 255).astype('uint8')).show()")


python = Shared(pools=pool_yaml("python", image="python", memory="512Mi"))


def call(s, tool, arguments):
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments, "_meta": MODERN}}
    answer = s.post("/mcp", body, headers={"Mcp-Method": "tools/call", "Mcp-Name": tool, "MCP-Protocol-Version": "2026-07-28"}, timeout=180)
    assert len(answer.body) <= MOST, len(answer.body)
    return answer.json["result"]["content"]


def text(content):
    return "\n".join(c["text"] for c in content if c["type"] == "text")


def images(content):
    return [(c["mimeType"], base64.b64decode(c["data"])) for c in content if c["type"] == "image"]


def linked(s, content, name):
    """Returns the whole file behind the link that a result names."""
    [url] = [word for line in text(content).splitlines() if name in line for word in line.split() if word.startswith("http")]
    return s.get(urllib.parse.urlsplit(url).path).body


def seen():
    """a scatter at 300 dpi and a picture of 900 x 900 are seen by a model, and the full ones have a link"""
    with python as s:
        for code in (IMSHOW, SCATTER):
            content = call(s, "run", {"code": code, "timeout_s": 150})
            assert len(images(content)) == 1, text(content)
            [(_, shown)] = images(content)
            whole = linked(s, content, "hearth-figure-1.png (")
            assert whole.startswith(b"\x89PNG") and len(whole) > len(shown), (len(whole), len(shown), text(content))
            assert "pixels" in text(content) and "saved as hearth-figure-1.png" in text(content), text(content)
        [(kind, _)] = images(call(s, "run", {"code": MARGIN + "plt.plot([1, 2]); plt.show()"}))
        assert kind == "image/png"  # small pictures stay as they are


def many():
    """two, and five, pictures of 700 kB fit one result; REST has them whole"""
    with python as s:
        for count in (2, 5):
            code = NOISE.format(count=count, side=480)
            content = call(s, "run", {"code": code, "timeout_s": 150})
            assert len(images(content)) == min(count, 4), text(content)
            assert (count == 5) == ("are not shown here" in text(content)), text(content)
        run = s.post("/v1/executions", {"code": code, "language": "python", "timeoutSeconds": 150}, timeout=180).json
        whole = [r["mime"]["image/png"] for r in run["results"] if "image/png" in r["mime"]]
        assert len(whole) == 5 and min(map(len, whole)) > 700_000 and run["droppedResults"] == 0, run["droppedResults"]


def too_large():
    """a picture over the limit of a result is shown smaller and saved; what does not fit is in `leftOut`, and all else follows that one limit"""
    with python as s:
        content = call(s, "run", {"code": NOISE.format(count=1, side=1400), "timeout_s": 150})
        assert len(images(content)) == 1 and len(linked(s, content, "hearth-figure-1.png (")) > 5_000_000, text(content)

        def results(code):
            run = s.post("/v1/executions", {"code": code, "language": "python"}, timeout=180).json
            assert run["status"] == "ok" and run["droppedResults"] == 0, (run["status"], run["droppedResults"], run["stderr"])
            return run["results"]
        picture, note = results("import os; os.chdir('/')\n" + NOISE.format(count=1, side=1400))
        assert [each["type"] for each in picture["leftOut"]] == ["image/png"] and "image/jpeg" in picture["mime"], list(picture["mime"])
        assert "not saved" in note["mime"]["text/plain"], note
        [table] = results("import pandas as pd\npd.set_option('display.max_rows', None)\npd.DataFrame({'a': range(9000), 'b': range(9000)})")
        assert len(table["mime"]["text/html"]) > 600_000 and "leftOut" not in table, list(table["mime"])
        [own] = results("class A:\n    def _repr_html_(self): return 'x' * 4_000_000\n    def _repr_markdown_(self): return 'y' * 300_000\nA()")
        assert set(own["mime"]) == {"text/plain", "text/markdown"}, list(own["mime"])
        assert [each["type"] for each in own["leftOut"]] == ["text/html"] and "more than" in own["leftOut"][0]["reason"], own["leftOut"]


OWN_WAYS = {
    "def _repr_pretty_(s, p, cycle): p.text('pretty')": {"text/plain": "pretty"},
    "def _repr_pretty_(s, p, cycle): 1 / 0\n    def __repr__(s): return 'A'": {"text/plain": "A"},
    "def _ipython_display_(s): display('shown')\n    def _repr_html_(s): return 'no'": {"text/plain": "'shown'"},
    "def _ipython_display_(s): 1 / 0\n    def __repr__(s): return 'A'": {"text/plain": "A"},
    "def _repr_mimebundle_(s, **k): return {'text/html': 'b', 'text/plain': 't'}, {'meta': 1}\n    def _repr_html_(s): return 'no'\n"
    "    def _repr_markdown_(s): return 'm', {}\n    def _repr_pretty_(s, p, cycle): p.text('no')":
        {"text/html": "b", "text/plain": "t", "text/markdown": "m"},
    "def __getattr__(s, name): return lambda **k: 'any'\n    def __repr__(s): return 'A'": {"text/plain": "A"},
}
PRETTY = """
class L(list):
    def _repr_pretty_(self, p, cycle):
        if cycle:
            return p.text("L(...)")
        with p.group(3, "L([", "])"):
            for number, each in enumerate(self):
                if number:
                    p.text(",")
                    p.breakable()
                p.pretty(each)
value = L([1, L("ab"), "x" * 60])
value.append(value)
value
"""


def own_ways():
    """a value shows itself by the methods that IPython asks for, in its order, and a pretty printer breaks lines as its does"""
    with python as s:
        w = s.open_workspace(pool="python")["id"]

        def mimes(code):
            result = s.post(f"/v1/workspaces/{w}/executions", {"code": code, "language": "python"}).json
            assert result["status"] == "ok", result
            return [each["mime"] for each in result["results"]]
        for methods, forms in OWN_WAYS.items():
            assert mimes(f"class A:\n    {methods}\nA()") == [forms], methods
        [lines] = mimes(PRETTY)
        assert lines["text/plain"] == "L([1,\n   L(['a', 'b']),\n   '" + "x" * 60 + "',\n   L(...)])", lines["text/plain"]
        for show in ("im.show()", "ImageShow.show(im); None", "im"):
            for mode in ("RGB", "F"):  # PNG has no F
                [image] = mimes(f"from PIL import Image, ImageShow\nim = Image.new('{mode}', (9, 9))\n{show}")
                assert "image/png" in image, (show, mode, image)


def long_output():
    """a million lines fit a result of the new tools and of the earlier systems' tools"""
    with python as s:
        content = call(s, "run", {"code": "for i in range(1_000_000): print(i)", "timeout_s": 150})
        assert "999999" in text(content), text(content)[:500]

        def compat(seed, number, method, params, session=None):
            headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
            if session:
                headers["Mcp-Session-Id"] = session
            return s.post(f"/compat/{seed}/mcp", {"jsonrpc": "2.0", "id": number, "method": method, "params": params}, headers=headers, timeout=180)
        first = compat("s3", 1, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}})
        session = first.headers.get("mcp-session-id")
        made = compat("s3", 2, "tools/call", {"name": "create_python_env", "arguments": {}}, session).json["result"]["content"][0]["text"]
        answer = compat("s3", 3, "tools/call", {"name": "execute_python_code", "arguments": {
            "container_id": re.search("ws_[0-9a-f]+", made).group(), "code": "for i in range(1_000_000): print(i)"}}, session)
        assert answer.status == 200 and len(answer.body) <= MOST and b"999999" in answer.body, (answer.status, len(answer.body), answer.body[:300])


def saved_and_shown():
    """a figure that is saved and shown comes once, as the file that was saved; what changes in between comes as both"""
    with python as s:
        plot = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\n"
        for code in (plot + "plt.savefig('a.png', dpi=70); plt.show()", plot + "plt.savefig('a.png')", plot + "plt.savefig('a')\nplt.show(block=False)",
                     plot + "plt.savefig('a.jpg'); plt.show()", "from PIL import Image\ni = Image.new('RGB', (9, 9)); i.save('a.png'); i.show()",
                     "from PIL import Image\ni = Image.new('RGB', (9, 9)); i.save('a.png'); i"):
            content = call(s, "run", {"code": code, "timeout_s": 150})
            assert len(images(content)) == 1 and "; shown)" in text(content), (code, text(content))
        changed = call(s, "run", {"code": plot + "plt.savefig('a.png'); plt.title('new'); plt.show()", "timeout_s": 150})
        assert len(images(changed)) == 2, text(changed)
        closed = call(s, "run", {"code": plot + "plt.savefig('a.png'); plt.close()", "timeout_s": 150})
        assert len(images(closed)) == 1, text(closed)
        large = call(s, "run", {"code": IMSHOW.replace("plt.show()", "plt.savefig('large.png'); plt.show()"), "timeout_s": 150})
        assert "saved as large.png" in text(large) and "hearth-figure" not in text(large), text(large)
        both = s.post("/v1/executions", {"code": plot + "plt.savefig('a.png')\nfrom PIL import Image\nImage.open('a.png').show()", "language": "python"}, timeout=180).json
        assert sum("image/png" in each["mime"] for each in both["results"]) <= 2, both["results"]


# The part of IPython that the driver uses; the real one brings twenty packages. plots_test.py has the real plotly, altair and bokeh.
STANDINS = {
    "IPython/__init__.py": "", "IPython/core/__init__.py": "", "IPython/display.py": "from IPython.core.display_functions import display\n",
    "IPython/core/display_functions.py": "def display(*values, **kw): print(*values)\n",
}
PAGE = """
import os, webbrowser
open('page.html', 'w').write('<b>é</b>')
print(webbrowser.open('file://' + os.getcwd() + '/page.html'), webbrowser.open_new_tab('https://example.com/a'))
try:
    webbrowser.get().open('http://127.0.0.1:9/')
except webbrowser.Error as error:
    print(error)
"""


def other_libraries():
    """IPython's display and pages given to a browser are results; an address says what to do instead, and who would wait for a browser gets an error"""
    with python as s:
        w = s.open_workspace(pool="python")["id"]
        for path, content in STANDINS.items():
            assert s.call("PUT", f"/v1/workspaces/{w}/files/{path}", raw=content.encode()).status < 300

        def mimes(code):
            result = s.post(f"/v1/workspaces/{w}/executions", {"code": code, "language": "python"}).json
            assert result["status"] == "ok", result
            return [each["mime"] for each in result["results"]], result["stdout"]
        [first, second], out = mimes("from IPython.display import display\ndisplay(1, [2])")
        assert (first["text/plain"], second["application/json"], out) == ("1", [2], "")
        [shown, told, local], out = mimes(PAGE)
        assert shown["text/html"] == "<b>é</b>" and all("no browser" in each["text/plain"] for each in (told, local)), (shown, told, local)
        assert out == "True False\ncould not locate runnable browser\n", out


def ends():
    """the server of these tests leaves nothing behind"""
    python.end()


TESTS = [seen, many, too_large, own_ways, saved_and_shown, other_libraries, long_output, ends]
for each in TESTS:
    each.only = "oci"  # what is shown does not depend on the runtime

if __name__ == "__main__":
    try:
        main("server", TESTS)
    finally:
        python.clean_up()
