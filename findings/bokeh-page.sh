#!/bin/bash
# bokeh 3.9.2: show() without output_file() writes its page beside the file of __main__, not into the working directory.
# A good guess: the page lands in the working directory or in a temporary folder; seen: "./sub/figure.html".
# A server that gives each run a __file__ finds the page beside that file, or has it refused where the folder is read-only.
. "$(dirname -- "${BASH_SOURCE[0]}")/setup.sh"
install bokeh==3.9.2
mkdir sub
cat >sub/figure.py <<'PYTHON'
import webbrowser
from bokeh.plotting import figure, show
webbrowser.open = lambda *arguments, **names: True
plot = figure()
plot.line([1, 2], [3, 4])
show(plot)
PYTHON
python3 -W ignore sub/figure.py >/dev/null 2>&1
expect ./sub/figure.html "$(find . -name '*.html')"
