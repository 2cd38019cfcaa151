# posix_spawn with file actions.
import os

pid = os.posix_spawn("/bin/sh", ["sh", "-c", "cat; exit 4"], os.environ,
                     file_actions=[(os.POSIX_SPAWN_OPEN, 1, "out.txt", os.O_WRONLY | os.O_CREAT, 0o640), (os.POSIX_SPAWN_DUP2, 1, 2)])
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
print(open("out.txt").read())
