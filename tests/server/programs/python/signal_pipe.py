# SIGPIPE is ignored: a write to a closed pipe is an exception; children get the default back.
import os
import signal
import subprocess

r, w = os.pipe()
os.close(r)
try:
    os.write(w, b"x")
except BrokenPipeError as error:
    print(error)
print(signal.getsignal(signal.SIGPIPE) is signal.SIG_IGN)
print(subprocess.run("yes | head -1; echo ${PIPESTATUS[0]}", shell=True, executable="/bin/bash", capture_output=True, text=True).stdout, end="")
