import os
import resource
import subprocess

print(resource.prlimit(os.getpid(), resource.RLIMIT_NOFILE) == resource.getrlimit(resource.RLIMIT_NOFILE))
print(subprocess.run(["bash", "-c", "ulimit -a | wc -l"], capture_output=True, text=True))
print(subprocess.run(["prlimit", "--output", "RESOURCE"], capture_output=True, text=True))
