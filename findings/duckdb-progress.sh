#!/bin/bash
# duckdb 2.0.1: it takes a process whose __main__ has no __file__ for somebody at a terminal, and turns its progress bar on, even in a pipe.
# A good guess: isatty() of stdout decides; seen: "False" from a file, "True" from python3 -c, both into a pipe.
# A program that computes for more than two seconds then has the bar's bytes in its output.
. "$(dirname -- "${BASH_SOURCE[0]}")/setup.sh"
install duckdb==2.0.1
code='import duckdb; print(duckdb.sql("select current_setting($$enable_progress_bar$$)").fetchall()[0][0])'
printf '%s\n' "$code" >bar.py
expect "False
True" "$(python3 bar.py; python3 -c "$code")"
