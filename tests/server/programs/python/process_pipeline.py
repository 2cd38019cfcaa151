# A pipeline of three commands without a shell.
import subprocess
from subprocess import PIPE, Popen

first = Popen(["printf", "%s\\n", "pear", "apple", "fig", "apple"], stdout=PIPE)
second = Popen(["sort"], stdin=first.stdout, stdout=PIPE)
first.stdout.close()
third = Popen(["uniq", "-c"], stdin=second.stdout, stdout=PIPE, text=True)
second.stdout.close()
print([line.split() for line in third.communicate()[0].splitlines()])
print(first.wait(), second.wait(), third.returncode)
