# What is in the buffer at a fork is written by both processes.
import os

print("in the buffer of both")
if os.fork() != 0:
    os.wait()
