# sys.exit() with a text prints it to standard error and ends with 1.
import sys

print("before")
sys.exit("fatal: no such thing")
