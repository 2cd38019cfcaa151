# A text with a byte that is no UTF-8 is written to standard output as that byte.
import os
import sys

name = os.fsdecode(b"caf\xe9")
print(ascii(name))
print(name)
print(name, file=sys.stderr)
