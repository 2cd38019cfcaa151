# The order of what a failing program prints to each stream is kept.
import sys

print("out 1")
print("err 1", file=sys.stderr)
print("out 2")
raise NotImplementedError
