# Lints and formats.
printf 'import os,sys\nx = { "a":1 }\nprint( x )\n' >bad.py
ruff check --output-format concise --exit-zero bad.py
ruff check --fix --quiet bad.py
ruff format --quiet bad.py
cat bad.py
