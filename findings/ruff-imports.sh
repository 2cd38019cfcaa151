#!/bin/bash
# ruff 0.17.6: without any configuration it also complains of the order of imports (I001), and --fix sorts them.
# A good guess, true for years: only pyflakes and a part of pycodestyle (E4, E7, E9, F) are on; seen: I001 for a file that is right otherwise.
# Whoever lets a model's code pass only if "ruff check" is silent refuses more than before.
. "$(dirname -- "${BASH_SOURCE[0]}")/setup.sh"
install ruff==0.17.6
printf 'import sys\nimport os\n\nprint(os.name, sys.path)\n' >order.py
expect "I001
import os
import sys" "$(ruff check --isolated --output-format concise --exit-zero order.py | grep -oE '\b[A-Z]+[0-9]+\b'; ruff check --isolated --fix --quiet order.py; head -n 2 order.py)"
