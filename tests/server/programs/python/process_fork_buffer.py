# Both processes write the text that was in the buffer at a fork.
import os

print("in the buffer of both")
if os.fork() != 0:
    os.wait()
