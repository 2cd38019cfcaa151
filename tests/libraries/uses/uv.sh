# A project without an index: a virtual environment, a lock, and a script in it.
uv init --quiet --bare --name trial --python 3.11
uv lock --quiet --offline
grep -c '^name = "trial"' uv.lock
uv venv --quiet --offline
uv run --quiet --offline python -c 'import sys; print(sys.prefix.endswith(".venv"), sys.version_info[:2])'
uv pip list --quiet --offline
