# select and poll see standard input as readable, its end too.
import os
import select

ready, _, _ = select.select([0], [], [], 5)
print(ready, os.read(0, 100))
poll = select.poll()
poll.register(0, select.POLLIN)
print(bool(poll.poll(5000)), os.read(0, 100))
