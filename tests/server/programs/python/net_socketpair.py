# A socket pair carries bytes and a descriptor between two processes.
import array
import os
import socket

left, right = socket.socketpair()
if os.fork() == 0:
    message, fds, _, _ = socket.recv_fds(right, 100, 1)
    os.write(fds[0], message.upper())
    os._exit(0)
r, w = os.pipe()
socket.send_fds(left, [b"a descriptor"], [w])
os.wait()
print(os.read(r, 100))
