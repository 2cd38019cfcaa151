# A named pipe joins two ends of a program.
import os
import threading

os.mkfifo("pipe")
threading.Thread(target=lambda: print("through the pipe", file=open("pipe", "w"))).start()
with open("pipe") as pipe:
    print(pipe.read().strip())
os.unlink("pipe")
