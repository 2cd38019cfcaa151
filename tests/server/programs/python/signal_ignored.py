# An ignored signal does nothing; children inherit that.
import os
import signal
import subprocess

signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.kill(os.getpid(), signal.SIGTERM)
print(subprocess.run(["sh", "-c", "kill -TERM $$; echo survived"], capture_output=True, text=True).stdout, end="")
