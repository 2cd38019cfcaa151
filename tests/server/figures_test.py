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
    """a picture over the driver's limit is shown smaller and saved; where it cannot be saved it counts as dropped"""
    with python as s:
        content = call(s, "run", {"code": NOISE.format(count=1, side=1400), "timeout_s": 150})
        assert len(images(content)) == 1 and len(linked(s, content, "hearth-figure-1.png (")) > 5_000_000, text(content)
        run = s.post("/v1/executions", {"code": "import os; os.chdir('/')\n" + NOISE.format(count=1, side=1400), "language": "python"}, timeout=180).json
        assert run["status"] == "ok" and run["droppedResults"] == 1, (run["status"], run["droppedResults"], run["stderr"])
        assert any("not saved" in r["mime"].get("text/plain", "") for r in run["results"]), [list(r["mime"]) for r in run["results"]]
        class_of_its_own = "class A:\n    def _repr_html_(self): return 'x' * 300_000\nA()"
        run = s.post("/v1/executions", {"code": class_of_its_own, "language": "python"}, timeout=180).json
        assert run["droppedResults"] == 1 and "left out" in json.dumps(run["results"]), run["results"]


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


# The parts of plotly, altair and IPython that the driver uses; the real ones are tens of megabytes. With plotly 7.1,
# altair 6.3 and bokeh 3.9 the same was tried by hand.
STANDINS = {
    "plotly/__init__.py": "",
    "plotly/io/__init__.py": "from plotly.io._renderers import renderers, show\ndef to_html(figure, **kw): return '<div>' + kw['include_plotlyjs'] + '</div>'\n",
    "plotly/io/_renderers.py": "class ExternalRenderer:\n    pass\nclass Mime:\n    def to_mimebundle(self, fig): return {'application/vnd.plotly.v1+json': fig}\n"
                               "class All(dict):\n    default = None\nrenderers = All(plotly_mimetype=Mime())\n"
                               "def show(fig):\n    if renderers.default: renderers[renderers.default].render(fig.to_dict())\n",
    "plotly/basedatatypes.py": "import plotly.io\nclass BaseFigure:\n    data = ()\n    def to_plotly_json(self): pass\n    def to_dict(self): return {'data': [{'type': 'bar'}], 'layout': {}}\n"
                               "    def show(self): plotly.io.show(self)\n    def _repr_mimebundle_(self, *a, **k): return {}\n",
    "altair/__init__.py": "class Top:\n    def show(self): raise ImportError('IPython')\nclass Chart(Top):\n"
                          "    def _repr_mimebundle_(self, *a, **k): return {'application/vnd.vegalite.v5+json': {'mark': 'bar'}, 'text/plain': 'chart'}\n",
    "IPython/__init__.py": "", "IPython/core/__init__.py": "", "IPython/display.py": "from IPython.core.display_functions import display\n",
    "IPython/core/display_functions.py": "def display(*values, **kw): print(*values)\n",
}


def other_libraries():
    """figures of plotly and altair, pages given to a browser, and IPython's display are results; an address says what to do instead"""
    with python as s:
        w = s.open_workspace(pool="python")["id"]
        for path, content in STANDINS.items():
            assert s.call("PUT", f"/v1/workspaces/{w}/files/{path}", raw=content.encode()).status < 300

        def mimes(code):
            result = s.post(f"/v1/workspaces/{w}/executions", {"code": code, "language": "python"}).json
            assert result["status"] == "ok", result
            return [each["mime"] for each in result["results"]], result["stdout"]

        for show in ("fig.show()", "fig", "display(fig)", "import plotly.io as pio; pio.show(fig)"):
            [shown], _ = mimes(f"from plotly.basedatatypes import BaseFigure\nfig = BaseFigure()\n{show}")
            assert shown["application/vnd.plotly.v1+json"]["data"] == [{"type": "bar"}] and "cdn" in shown["text/html"] and "write_html" in shown["text/plain"], shown
        for show in ("c.show()", "c"):
            [shown], _ = mimes(f"import altair as alt\nc = alt.Chart()\n{show}")
            assert shown == {"application/vnd.vegalite.v5+json": {"mark": "bar"}, "text/plain": "chart"}, shown
        [first, second], out = mimes("from IPython.display import display\ndisplay(1, [2])")
        assert (first["text/plain"], second["application/json"], out) == ("1", [2], "")
        page = "import os, webbrowser\nopen('page.html', 'w').write('<b>é</b>')\nprint(webbrowser.open('file://' + os.getcwd() + '/page.html'), webbrowser.open_new_tab('https://example.com/a'))"
        [shown, told], out = mimes(page)
        assert shown["text/html"] == "<b>é</b>" and "no browser" in told["text/plain"] and out == "True False\n", (shown, told, out)


def ends():
    """the server of these tests leaves nothing behind"""
    python.end()


TESTS = [seen, many, too_large, saved_and_shown, other_libraries, long_output, ends]
for each in TESTS:
    each.only = "oci"  # what is shown does not depend on the runtime

if __name__ == "__main__":
    try:
        main("server", TESTS)
    finally:
        python.clean_up()
