# SIGCHLD tells of a child's end; its status waits to be asked for.
import os
import signal
import time

ended = []
signal.signal(signal.SIGCHLD, lambda *_: ended.append(os.waitstatus_to_exitcode(os.waitpid(-1, os.WNOHANG)[1])))
if os.fork() == 0:
    os._exit(7)
while not ended:
    time.sleep(0.01)
print(ended)
