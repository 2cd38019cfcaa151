# A mapped file is changed in memory, shared with a child, and searched.
import mmap
import os

with open("map", "wb+") as file:
    file.truncate(8192)
    with mmap.mmap(file.fileno(), 0) as memory:
        memory[4096:4101] = b"hello"
        if os.fork() == 0:
            memory[0:5] = b"child"
            os._exit(0)
        os.wait()
        print(memory[:5], memory.find(b"hello"))
        memory.flush()
