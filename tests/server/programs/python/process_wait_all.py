# os.wait() sees the program's own children and no one else's.
import os

pids = {os.spawnlp(os.P_NOWAIT, "sh", "sh", "-c", f"exit {n}"): n for n in (1, 2, 3)}
print(sorted(os.waitstatus_to_exitcode(status) - pids[pid] for pid, status in (os.wait() for _ in pids)))
try:
    os.wait()
except ChildProcessError as error:
    print(error)
