#!/bin/bash
# plotly 7.1.0: the renderer "json", which only hands out the figure's JSON, refuses to work without IPython.
# A good guess: it prints the JSON, or needs nothing beyond plotly; seen: "ValueError Mime type rendering requires ipython but it is not installed".
. "$(dirname -- "${BASH_SOURCE[0]}")/setup.sh"
install plotly==7.1.0
cat >figure.py <<'PYTHON'
import plotly.graph_objects as objects, plotly.io
plotly.io.renderers.default = "json"
try:
    objects.Figure(objects.Scatter(y=[1, 2])).show()
except Exception as e:
    print(type(e).__name__, e)
PYTHON
expect "ValueError Mime type rendering requires ipython but it is not installed" "$(python3 figure.py)"
