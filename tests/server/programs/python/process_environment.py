# A child gets the environment that it is given, and no more.
import os
import subprocess

os.environ["ADDED"] = "1"
print(subprocess.run(["sh", "-c", "echo $ADDED $HOME"], capture_output=True, text=True).stdout, end="")
print(subprocess.run(["/usr/bin/env"], env={"ONLY": "this"}, capture_output=True, text=True).stdout, end="")
del os.environ["ADDED"]
print(os.getenv("ADDED"), os.path.expandvars("$HOME/x"), os.path.expanduser("~/y"))
