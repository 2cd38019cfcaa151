# pty.spawn() copies the terminal of a command to our output.
import os
import pty
import sys

sys.stdout.flush()
status = pty.spawn(["sh", "-c", "tty >/dev/null && echo on a terminal; exit 3"])
print(os.waitstatus_to_exitcode(status))
