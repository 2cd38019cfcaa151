# No standard stream is a terminal, and asking for its size says so.
import os
import sys

print(sys.stdin.isatty(), sys.stdout.isatty(), sys.stderr.isatty())
try:
    os.get_terminal_size()
except OSError as error:
    print(type(error).__name__, error.errno)
