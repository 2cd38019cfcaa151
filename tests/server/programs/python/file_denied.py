# Operations that a user may not do: read without permission, write to the system, remove a folder that is not empty.
import os
import stat

os.mkdir("d")
open("d/f", "w").close()
os.chmod("d/f", 0)
for act in (lambda: open("d/f"), lambda: open("/usr/x", "w"), lambda: os.rmdir("d"), lambda: os.open("d", os.O_WRONLY),
            lambda: open("d/f/g"), lambda: os.mkdir("d"), lambda: open("none"), lambda: os.chown("d", 0, 0), lambda: os.listdir("/root")):
    try:
        act()
    except OSError as error:
        print(type(error).__name__, error.strerror) if error.strerror != "Read-only file system" else print("PermissionError Permission denied")
os.chmod("d/f", stat.S_IRUSR)
print(open("d/f").read() == "", os.access("d/f", os.W_OK))
