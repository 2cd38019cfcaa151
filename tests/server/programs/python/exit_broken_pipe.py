# Output that nobody reads: BrokenPipeError, and the interpreter's message and status 120 at its end.
import os
import sys

r, w = os.pipe()
os.dup2(w, 1)
os.close(r)
os.close(w)
sys.stdout.write("nobody reads this")
