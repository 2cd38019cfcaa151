# ZIP and tar archives with links and times, made and read.
import io
import tarfile
import zipfile

with zipfile.ZipFile("a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
    archive.writestr(zipfile.ZipInfo("d/é.txt", (2020, 1, 2, 3, 4, 6)), "text" * 100)
with zipfile.ZipFile("a.zip") as archive:
    print([(each.filename, each.file_size, each.date_time) for each in archive.infolist()], archive.testzip())
with tarfile.open("a.tar.xz", "w:xz") as archive:
    entry = tarfile.TarInfo("f")
    entry.size, entry.mtime = 4, 1e9
    archive.addfile(entry, io.BytesIO(b"data"))
    entry = tarfile.TarInfo("l")
    entry.type, entry.linkname = tarfile.SYMTYPE, "f"
    archive.addfile(entry)
with tarfile.open("a.tar.xz") as archive:
    archive.extractall("out")
    print(archive.getnames(), open("out/l").read())
