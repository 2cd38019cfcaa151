#!/usr/bin/env python3
# suite: seconds=50 sanitizers=no
"""Figures of plotly, altair and bokeh, the versions of docs/libraries.md: each way to show one, of scripts and of notebooks, makes one result."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = HERE, os.path.join(os.path.dirname(HERE), "libraries")
from harness import Shared, main  # noqa: E402
from libraries_test import roomy_pool, with_real_mirror  # noqa: E402
from questions import load  # noqa: E402

PINS = ", ".join(f'"{load()[name]["pin"]}"' for name in ("plotly", "altair", "bokeh"))
POOL = roomy_pool().replace("languages: [python], ", f"languages: [python], packages: [{PINS}], ")
PLOTLY = "import plotly.io as pio, plotly.express as px\nfig = px.line(y=[1, 2])\n"
ALTAIR = "import altair as alt\nchart = alt.Chart(alt.Data(values=[{'a': 1}])).mark_bar().encode(x='a:Q')\n"
BOKEH = "from bokeh.io import output_notebook\nfrom bokeh.plotting import figure, show\np = figure()\np.line([1, 2], [3, 4])\n"


def runner(s):
    """Returns a function that runs code in one workspace: a figure that waits for a browser would end it."""
    workspace = s.open_workspace(pool="python")["id"]

    def run(code, status="ok"):
        ran = s.post(f"/v1/workspaces/{workspace}/executions", {"code": code, "language": "python", "timeoutSeconds": 30}, timeout=60)
        assert ran.status == 200 and ran.json["status"] == status and ran.json["droppedResults"] == 0, (code, ran)
        return ran.json
    return run


def shown(ran, count):
    """Returns the forms of each result."""
    assert len(ran["results"]) == count, [list(each["mime"]) for each in ran["results"]]
    return [each["mime"] for each in ran["results"]]


def plotly():
    """a figure of plotly is a result whichever renderer of browsers or notebooks shows it; a picture needs kaleido, as plotly says"""
    notebooks = ("browser", "notebook", "colab", "iframe", "vscode", "plotly_mimetype+notebook")
    ways = ("fig.show()", "display(fig)", "pio.show(fig)", "fig.show(renderer='browser')", "fig.show('firefox')",
            "from plotly.offline import init_notebook_mode, iplot\ninit_notebook_mode(connected=True)\niplot(fig)",
            *(f"pio.renderers.default = {each!r}; fig.show()" for each in notebooks), "fig")
    with shared as s:
        run = runner(s)
        for way, forms in zip(ways, shown(run(PLOTLY + "\n".join(ways)), len(ways))):
            assert forms["application/vnd.plotly.v1+json"]["data"][0]["type"] == "scatter" and "cdn.plot.ly" in forms["text/html"], (way, forms)
            assert "plotly figure of scatter" in forms["text/plain"], (way, forms)
        bar, json = shown(run(PLOTLY + "fig.show(config={'displayModeBar': False}); fig.show('json')"), 2)
        assert "displayModeBar" in bar["text/html"] and "data" in json["application/json"], (bar, json)
        picture = run(PLOTLY + "fig.show('png')", "failed")["error"]["message"]
        assert "ipython" not in picture.lower() and "aleido" in picture, picture


def pages():
    """the page of a large figure is whole up to the limit of a result; one with plotly.js in it is left out, with the reason"""
    with shared as s:
        run = runner(s)
        [forms] = shown(run("import plotly.graph_objects as go\ngo.Figure(go.Scatter(y=[str(n) * 3 for n in range(40_000)])).show()"), 1)
        assert len(forms["text/html"]) > 500_000, len(forms["text/html"])
        [page] = run(PLOTLY + "import plotly.offline\nplotly.offline.plot(fig);")["results"]
        assert "temp-plot.html" in page["mime"]["text/plain"] and [each["type"] for each in page["leftOut"]] == ["text/html"], page


def altair():
    """a chart of altair is a result by show(), by display() and with the renderer of browsers"""
    ways = ("chart.show()", "chart.display()", "(chart | chart).display()", "chart.display(renderer='svg')",
            "alt.renderers.enable('browser'); chart.show()", "alt.renderers.enable('browser', offline=True); chart")
    with shared as s:
        forms = shown(runner(s)(ALTAIR + "\n".join(ways)), len(ways))
        assert all("vega-embed" in each["text/html"] for each in forms), forms
        assert ['"renderer": "svg"' in each["text/html"] for each in forms].index(True) == ways.index("chart.display(renderer='svg')"), forms


def bokeh():
    """a figure of bokeh is a result by show(), also after output_notebook()"""
    with shared as s:
        for forms in shown(runner(s)(BOKEH + "show(p)\noutput_notebook()\nshow(p)"), 2):
            assert "cdn.bokeh.org" in forms["text/html"], forms


def ends():
    """the server of these tests leaves nothing behind"""
    shared.end()


if __name__ == "__main__":
    tests = [plotly, pages, altair, bokeh, ends]
    mirror, tests = with_real_mirror(tests, tests)
    shared = Shared(pools=POOL, args=mirror)
    try:
        main("server", tests)
    finally:
        shared.clean_up()
