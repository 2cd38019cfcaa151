# os.read() takes what the buffer of sys.stdin has not taken.
import os

parts = []
while chunk := os.read(0, 4):
    parts.append(chunk)
print(b"".join(parts))
