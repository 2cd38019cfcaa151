# Locks by flock and fcntl, seen from a child.
import fcntl
import os

file = open("lock", "w")
fcntl.flock(file, fcntl.LOCK_EX)
if os.fork() == 0:
    try:
        fcntl.flock(open("lock"), fcntl.LOCK_SH | fcntl.LOCK_NB)
        os._exit(0)
    except BlockingIOError as error:
        os._exit(error.errno)
print(os.waitstatus_to_exitcode(os.wait()[1]))
fcntl.flock(file, fcntl.LOCK_UN)
fcntl.lockf(file, fcntl.LOCK_EX, 10)
print(fcntl.fcntl(file, fcntl.F_GETFL) & os.O_ACCMODE)
