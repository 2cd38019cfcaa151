# A daemon's double fork: the grandchild has another parent and a session of its own.
import os

r, w = os.pipe()
parent = os.getpid()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.close(r)
        while os.getppid() != 1 and os.getppid() == parent:
            pass
        os.write(w, b"session %d" % (os.getsid(0) != os.getpid()))
        os._exit(0)
    os._exit(0)
os.wait()
os.close(w)
with open(r) as pipe:
    print(pipe.read())
