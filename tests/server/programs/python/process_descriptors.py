# Children have the standard streams and what they are passed, nothing else.
import os
import subprocess

r, w = os.pipe()
done = subprocess.run(["sh", "-c", f"ls /proc/self/fd | wc -l; echo passed >&{w}"], pass_fds=[w], capture_output=True, text=True)
os.close(w)
print(done.stdout, os.read(r, 100), os.get_inheritable(r))
