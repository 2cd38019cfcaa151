# A file with a hole: large in size, small on disk.
import os

with open("sparse", "wb") as file:
    file.seek(100 << 20)
    file.write(b"end")
state = os.stat("sparse")
print(state.st_size, state.st_blocks * 512 < 1 << 20)
with open("sparse", "rb") as file:
    print(file.read(4), os.lseek(file.fileno(), 0, os.SEEK_DATA) > 0)
os.truncate("sparse", 5)
