# Universal new lines: \r\n and \r end lines too; the buffer has the bytes as they are.
import io
import os
import sys

raw = os.read(0, 100)
print(raw)
print(io.TextIOWrapper(io.BytesIO(raw)).readlines())
print(sys.stdin.newlines, sys.stdin.encoding)
