#!/bin/bash
# altair 6.3.0: outside Jupyter a chart's mimebundle has one form, a page that loads its scripts from the network.
# A good guess: the Vega-Lite JSON form, which needs no network, is there too; seen: "default ['text/html'] True".
# A front that draws application/vnd.vegalite gets nothing to draw unless alt.renderers.enable("mimetype") ran.
. "$(dirname -- "${BASH_SOURCE[0]}")/setup.sh"
install altair==6.3.0
cat >chart.py <<'PYTHON'
import altair
chart = altair.Chart(altair.Data(values=[{"a": 1}])).mark_point().encode(x="a:Q")
bundle = chart._repr_mimebundle_()
print(altair.renderers.active, list(bundle), "https://" in bundle["text/html"])
PYTHON
expect "default ['text/html'] True" "$(python3 chart.py)"
