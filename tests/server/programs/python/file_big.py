# Ten megabytes are written and read in pieces, with a checksum.
import hashlib
import os

block = bytes(range(256)) * 4096
with open("big", "wb") as file:
    for n in range(10):
        file.write(block[n:] + block[:n])
digest = hashlib.sha256()
with open("big", "rb") as file:
    while piece := file.read(65536):
        digest.update(piece)
print(os.path.getsize("big"), digest.hexdigest()[:16], hashlib.file_digest(open("big", "rb"), "md5").hexdigest())
