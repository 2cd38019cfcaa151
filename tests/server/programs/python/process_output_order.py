# A child's output comes between the parent's, if that flushes.
import subprocess
import sys

print("before")
sys.stdout.flush()
subprocess.run("echo from the child; echo its error >&2", shell=True)
print("after", flush=True)
subprocess.run([sys.executable, "-c", "print('python child')"])
