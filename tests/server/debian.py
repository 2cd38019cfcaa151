"""An archive of Debian packages on loopback, made without Debian's tools. It counts requests and lies on demand, like the
indexes of index.py. Standard library only."""

import gzip
import hashlib
import io
import lzma
import tarfile
import urllib.parse

from index import Index

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def tar(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as t:
        for path, text, mode in files:
            entry = tarfile.TarInfo("./" + path)
            entry.size, entry.mode = len(text), mode
            t.addfile(entry, io.BytesIO(text))
    return out.getvalue()


class Deb:
    """A package with a program of its name in /usr/bin, which prints `says`. `size`: more bytes, which do not compress."""

    def __init__(self, name, version="1.0", says="here", depends="", size=0, architecture="all"):
        self.name, self.version, self.architecture = name, version, architecture
        control = f"Package: {name}\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: Tests <tests@example.invalid>\n"
        control += f"Depends: {depends}\n" if depends else ""
        self.control = control + "Description: of the tests\n a second line: with a colon\n"
        program = f"#!/bin/sh\necho {says}\n".encode()
        data = [(f"usr/bin/{name}", program, 0o755), (f"usr/share/{name}/data", hashlib.shake_128(name.encode()).digest(size), 0o644)]
        self.content = b"!<arch>\n" + b"".join(
            f"{member:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(body):<10}`\n".encode() + body + b"\n" * (len(body) % 2)
            for member, body in (("debian-binary", b"2.0\n"), ("control.tar.gz", tar([("control", self.control.encode(), 0o644)])),
                                 ("data.tar.gz", tar(data))))

    @property
    def path(self):
        version = self.version.split(":")[-1]  # an epoch is no part of a file's name
        return f"pool/main/{self.name[0]}/{self.name}/{self.name}_{version}_{self.architecture}.deb"

    def stanza(self):
        return self.control + (f"Filename: {self.path}\nSize: {len(self.content)}\n"
                               f"SHA256: {hashlib.sha256(self.content).hexdigest()}\n\n")


class Archive(Index):
    """Use as a context. `packing`: the forms in which its index exists. `sign` makes an InRelease from a Release; without it there is only a
    Release."""

    def __init__(self, debs, machine, suite="hearthy", packing=("gz", "xz"), by_hash=True, sign=None, delay=0.0):
        super().__init__(delay=delay)
        self.suite, self.pages, self.sign = suite, {}, sign
        self.packing, self.by_hash, self.architecture = packing, by_hash, ARCHITECTURES[machine]
        self.publish(debs)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/debian"

    def publish(self, debs):
        """Replaces the archive's content. The old content is still there by its hash."""
        root = f"/debian/dists/{self.suite}"
        self.files = {f"/debian/{deb.path}": deb.content for deb in debs}
        plain = "".join(deb.stanza() for deb in debs).encode()
        packed = {"gz": gzip.compress(plain, mtime=0), "xz": lzma.compress(plain), "plain": plain}
        listed = ""
        for form, body in packed.items():
            if form not in (*self.packing, "plain"):
                continue
            path = f"main/binary-{self.architecture}/Packages" + ("" if form == "plain" else "." + form)
            digest = hashlib.sha256(body).hexdigest()
            listed += f" {digest} {len(body)} {path}\n"
            if form in self.packing:  # the unpacked form is listed in any case, as archives do
                self.pages[f"{root}/{path}"] = body
                self.pages[f"{root}/main/binary-{self.architecture}/by-hash/SHA256/{digest}"] = body
        release = (f"Origin: Tests\nSuite: {self.suite}\nCodename: {self.suite}\nArchitectures: {self.architecture}\nComponents: main\n"
                   f"Acquire-By-Hash: {'yes' if self.by_hash else 'no'}\nDate: Sun, 22 Nov 2026 00:00:00 UTC\nSHA256:\n{listed}")
        if self.sign:
            self.pages[f"{root}/InRelease"] = self.sign(release)
        else:
            self.pages[f"{root}/Release"] = release

    def downloads(self):
        return [path for path in map(urllib.parse.unquote, self.asked) if path in self.files]

    def answer(self, path, accept):
        path = urllib.parse.unquote(path)
        if path in self.pages:
            return "application/octet-stream", self.lies.get(path, self.pages[path])
        return super().answer(path, accept)
