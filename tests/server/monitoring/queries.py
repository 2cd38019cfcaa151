"""The panels of the dashboards with what a Prometheus says to each of their queries over a stretch of time."""

import glob
import json
import math
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
LOOKBACK = "20s"  # longer than the 15 s in which use is counted; Grafana takes a minute of a usual scrape
EVERY = 1.5  # seconds, of which the slowest exemplar is shown; Grafana thins them out, too


def boards():
    for path in sorted(glob.glob(os.path.join(ROOT, "helm/hearth/dashboards/*.json"))):
        with open(path, encoding="utf-8") as f:
            yield os.path.basename(path).removesuffix(".json"), json.load(f)


def substituted(expr, job="hearth", lookback=LOOKBACK):
    return expr.replace("$__rate_interval", lookback).replace("$job", job).replace("$pool", ".+")


def legend(form, labels, title):
    if form == "__auto":
        return title
    return re.sub(r"{{(\w+)}}", lambda name: labels.get(name[1], ""), form).strip() or title


def number(text):
    value = float(text)
    return value if math.isfinite(value) else None


def series_of(get, panel, start, end, **instead):
    for target in panel["targets"]:
        found = get("query_range", query=substituted(target["expr"], **instead), start=start, end=end, step=1)
        for each in found["result"]:
            yield {"name": legend(target["legendFormat"], each["metric"], panel["title"]), "points": [[at, number(value)] for at, value in each["values"]]}


def exemplars_of(get, panel, start, end):
    """The slowest of each short while. Two queries of one histogram have the same ones."""
    told = {}
    for target in panel["targets"]:
        if target.get("exemplar"):
            for series in get("query_exemplars", query=substituted(target["expr"]), start=start, end=end) or []:
                for each in series["exemplars"]:
                    then = each["timestamp"] // EVERY
                    told[then] = max(told.get(then, [0, 0]), [each["timestamp"], float(each["value"])], key=lambda point: point[1])
    return sorted(told.values())


def drawn_panel(get, panel, start, end, **instead):
    """What the page draws of one panel: its place, unit, series and exemplars; `instead` is another job or lookback."""
    one = {"title": panel["title"], "kind": panel["type"], "place": panel["gridPos"]}
    if panel["type"] != "row":
        defaults = panel["fieldConfig"]["defaults"]
        one |= {"unit": defaults["unit"], "least": defaults.get("min"), "most": defaults.get("max"), "steps": defaults["thresholds"]["steps"],
                "colours": {each["matcher"]["options"]: each["properties"][0]["value"]["fixedColor"] for each in panel["fieldConfig"]["overrides"]},
                "stacked": defaults.get("custom", {}).get("stacking", {}).get("mode") == "normal",
                "series": list(series_of(get, panel, start, end, **instead)), "exemplars": [] if instead else exemplars_of(get, panel, start, end)}
    return one


def answered(get, start, end):
    """What the page draws of all boards."""
    drawn = []
    for name, board in boards():
        panels = [drawn_panel(get, panel, start, end) for panel in board["panels"]]
        drawn.append({"name": name, "title": board["title"], "description": board["description"], "start": start, "end": end, "panels": panels})
    return drawn


def empty(drawn):
    """Panels without a number."""
    return [f"{board['name']}: {panel['title']}" for board in drawn for panel in board["panels"]
            if panel["kind"] != "row" and not any(value is not None for series in panel["series"] for _, value in series["points"])]
