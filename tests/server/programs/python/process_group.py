# A process group ends by one signal.
import os
import signal
import subprocess

child = subprocess.Popen("sleep 30 & sleep 30 & echo started; wait", shell=True, stdout=subprocess.PIPE, start_new_session=True)
print(child.stdout.readline())
os.killpg(child.pid, signal.SIGKILL)
print(child.wait(), child.stdout.read())
