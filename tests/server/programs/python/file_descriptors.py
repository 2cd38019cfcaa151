# dup2 sends standard output to a file and back, for children too.
import os
import sys

print("before")
sys.stdout.flush()
kept = os.dup(1)
file = os.open("captured", os.O_CREAT | os.O_WRONLY, 0o644)
os.dup2(file, 1)
print("into the file", flush=True)
os.system("echo a child into the file")
os.dup2(kept, 1)
print("after", kept, file)
print(open("captured").read())
