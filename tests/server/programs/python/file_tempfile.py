# Temporary files: named, unnamed, spooled, and their folder.
import os
import tempfile

with tempfile.NamedTemporaryFile("w+", suffix=".txt", delete=True) as file:
    file.write("kept until the end of the block")
    file.seek(0)
    print(os.path.exists(file.name), file.read(4), os.path.dirname(file.name) == tempfile.gettempdir())
print(os.path.exists(file.name))
with tempfile.TemporaryFile() as file, tempfile.SpooledTemporaryFile(10) as spooled:
    spooled.write(b"more than ten bytes")
    print(os.fstat(file.fileno()).st_nlink, spooled._rolled)
fd, name = tempfile.mkstemp(prefix="x", dir=".")
print(oct(os.fstat(fd).st_mode), os.stat(name).st_size)
os.unlink(name)
