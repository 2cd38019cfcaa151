# pty.fork() gives a child a terminal; its output comes back with \r\n.
import os
import pty

pid, fd = pty.fork()
if pid == 0:
    print("a terminal:", os.isatty(0), os.isatty(1), flush=True)
    os._exit(6)
text = b""
try:
    while chunk := os.read(fd, 100):
        text += chunk
except OSError:
    pass
print(text, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
