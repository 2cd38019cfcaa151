"""Images for the node, made without a registry: docker-archives of one layer. And the two that every node needs."""

import hashlib
import io
import json
import os
import tarfile

from places import HERE, IMAGES, locked, run

PAUSE = "localhost/pause:3.2"
BUSYBOX = "localhost/busybox:1"
NOBODY = "65535:65535"
APPLETS = ("sh ls cat echo sleep httpd nc ps id env date mkdir rm touch head tail grep hostname ip true false test printf stat df mount").split()


def layer(files=(), links=(), folders=()):
    """Returns the bytes of a layer: `files` (source, path inside), `links` (target, path inside), `folders` (paths; everybody may write to
    tmp)."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for path in folders:
            tar.addfile(entry(path, tarfile.DIRTYPE, 0o1777 if path == "tmp" else 0o755))
        for source, path in files:
            with open(source, "rb") as file:
                data = file.read()
            tar.addfile(entry(path, tarfile.REGTYPE, 0o755, size=len(data)), io.BytesIO(data))
        for target, path in links:
            tar.addfile(entry(path, tarfile.SYMTYPE, 0o777, linkname=target))
    return packed.getvalue()


def entry(path, kind, mode, **others):
    found = tarfile.TarInfo(path)
    found.type, found.mode = kind, mode
    for name, value in others.items():
        setattr(found, name, value)
    return found


def archive(path, reference, content, config):
    """Writes the image of one layer as a docker-archive. `config`: the image's settings for its process (Entrypoint, User, Env)."""
    digest = hashlib.sha256(content).hexdigest()
    about = json.dumps({"architecture": "amd64", "os": "linux", "config": config, "history": [{"created_by": "tests/cluster"}],
                        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]}}).encode()
    name = f"{hashlib.sha256(about).hexdigest()}.json"
    manifest = json.dumps([{"Config": name, "RepoTags": [reference], "Layers": [f"{digest}.tar"]}]).encode()
    with tarfile.open(f"{path}.part", "w") as tar:
        for member, data in ((name, about), (f"{digest}.tar", content), ("manifest.json", manifest)):
            tar.addfile(entry(member, tarfile.REGTYPE, 0o644, size=len(data)), io.BytesIO(data))
    os.rename(f"{path}.part", path)


def base_images():
    """Returns the paths of the archives of PAUSE, the sandbox of each Pod, and BUSYBOX. Makes them if they are
    missing."""
    pause, busybox = f"{IMAGES}/pause.tar", f"{IMAGES}/busybox.tar"
    with locked("images"):
        os.makedirs(IMAGES, exist_ok=True)
        if not os.path.exists(pause):
            run("gcc", "-static", "-Os", "-s", "-o", f"{IMAGES}/pause", f"{HERE}/pause.c")
            archive(pause, PAUSE, layer(files=[(f"{IMAGES}/pause", "pause")]), {"Entrypoint": ["/pause"], "User": NOBODY})
        if not os.path.exists(busybox):
            content = layer(files=[("/bin/busybox", "bin/busybox")], links=[("busybox", f"bin/{applet}") for applet in APPLETS],
                            folders=["bin", "etc", "tmp", "proc", "sys", "dev", "var", "home", "root"])
            archive(busybox, BUSYBOX, content, {"Cmd": ["/bin/sh"], "Env": ["PATH=/bin"]})
    return [pause, busybox]
