# A child reads what its parent has left of standard input.
import os
import subprocess
import sys

first = b""
while not first.endswith(b"\n"):
    first += os.read(0, 1)
print("parent:", first.decode().strip(), flush=True)
subprocess.run(["tr", "a-z", "A-Z"])
print("parent sees the end:", sys.stdin.read() == "")
