# Standard input is found below /proc/self/fd, and by a child below /proc/self too.
import subprocess

with open("/proc/self/fd/0") as file:
    print(file.readline().strip())
print(subprocess.run(["cat", "/proc/self/fd/0"], input="for the child\n", capture_output=True, text=True).stdout, end="")
