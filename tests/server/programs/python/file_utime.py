# Times and sizes of files as stat tells them.
import datetime
import os

open("f", "w").write("12345")
os.utime("f", (1_000_000_000, 1_500_000_000.25))
state = os.stat("f")
print(state.st_size, state.st_mtime, state.st_mtime_ns, datetime.datetime.fromtimestamp(state.st_atime, datetime.UTC))
with os.scandir(".") as entries:
    print(sorted((e.name, e.is_file(), e.stat().st_size) for e in entries if e.name == "f"))
