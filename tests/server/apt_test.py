#!/usr/bin/env python3
# suite: seconds=120
"""Debian packages through the mirror: the unchanged apt of the image, run by an unprivileged user on a read-only root."""

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402
from debian import Archive, Deb  # noqa: E402
from egress_test import pool, python, server  # noqa: E402
from harness import chosen, main, note  # noqa: E402

DEBS = [Deb("hearth-tool", says="the tool is here", depends="hearth-lib (>= 1)"), Deb("hearth-lib", "1:2.0~rc1+b2", size=50_000),
        Deb("hearth-other", size=3_000_000)]
MACHINE = platform.machine()


def archive(**fields):
    return Archive(fields.pop("debs", DEBS), MACHINE, **fields)


def mirrored(*archives, option="[trusted=yes] "):
    return [word for one in archives for word in ("--mirror-apt", f"{option}{one.url} {one.suite} main")]


def apt_pool(mode="Mirror", warm=1):
    return pool("m", mode, warm=warm).replace("workspace: 64Mi", "workspace: 256Mi").replace("tmp: 16Mi", "tmp: 64Mi")


def shell(s, workspace, command, code=0):
    done = s.run(workspace, command, timeoutSeconds=100)
    assert done["exitCode"] == code, done
    return done["stdout"]


def fetched(s, workspace, path):
    """Returns the status of a path of the mirror, and the number of bytes that came."""
    done = python(s, workspace, f"""
import http.client
c = http.client.HTTPConnection("127.0.0.1", 3128, timeout=60)
c.putrequest("GET", {path!r}, skip_host=False)
c.endheaders()
try:
    r = c.getresponse()
    print(r.status, len(r.read()))
except (OSError, http.client.HTTPException) as e:
    print("broken")
""")
    return done["stdout"].strip()


def apt_works():
    """apt-get update, policy, show, download and install --download-only work unchanged; the second sandbox downloads nothing"""
    with archive() as index, server(apt_pool(warm=2), args=mirrored(index)) as s:
        assert s.get("/v1/capabilities").json["mirrors"] == ["apt"]
        first, second = (s.open_workspace(pool="m")["id"] for _ in range(2))
        updated = shell(s, first, "apt-get update 2>&1")
        assert "Err:" not in updated and "W:" not in updated and "Packages" in updated, updated
        assert "Candidate: 1.0" in shell(s, first, "apt-cache policy hearth-tool")
        assert "a second line: with a colon" in shell(s, first, "apt-cache show hearth-tool")
        used = "apt-get -q download hearth-tool hearth-lib && for each in *.deb; do dpkg -x $each . || exit 1; done && usr/bin/hearth-tool && usr/bin/hearth-lib"
        assert shell(s, first, used).endswith("the tool is here\nhere\n")
        assert len(index.downloads()) == 2, index.asked
        urls = shell(s, first, "apt-get -qq install --print-uris hearth-tool")
        assert urls.count("'http://127.0.0.1:3128/apt/hearthy/pool/main/") == 2, urls
        shell(s, first, "apt-get -y install --download-only hearth-tool && ls .cache/apt/archives/hearth-lib_*.deb .cache/apt/archives/hearth-tool_*.deb")
        refused = s.run(first, "apt-get -y install hearth-tool", timeoutSeconds=100)
        assert refused["exitCode"] == 100 and "superuser" in refused["stdout"], refused

        asked = len(index.asked)
        shell(s, second, "apt-get update")
        assert shell(s, second, used).endswith("the tool is here\nhere\n")
        assert len(index.asked) == asked, index.asked[asked:]
        seen = s.get(f"/v1/workspaces/{second}/egress").json
        assert all(e["kind"] == "mirror" for e in seen["latest"]), seen
        told = sorted((e["destination"], e["decision"]) for e in seen["latest"])
        packages = f"apt:hearthy/main/binary-{index.architecture}/Packages.gz"
        # An archive that is not signed has neither an InRelease nor a Release.gpg.
        assert told == [("apt:hearth-lib_2.0~rc1+b2_all.deb", "hit"), ("apt:hearth-tool_1.0_all.deb", "hit"), ("apt:hearthy", "allowed"),
                        *[("apt:hearthy", "not_found")] * 2, (packages, "hit")], told

        # 127.0.0.1 is the sandbox's own.
        raw = python(s, second, f"import socket; socket.create_connection(('127.0.0.2', {index.port}), 2)")
        assert raw["status"] == "failed" and "Error" in raw["error"]["name"], raw
        # apt leaves no file that a run would collect or that is in the user's way.
        shell(s, second, "rm -rf usr *.deb && [ -z \"$(ls)\" ]")


def forms():
    """an index that is packed with xz only, or not at all, is read; so is an archive that has nothing by its hash"""
    for packing, by_hash in ((("xz",), True), (("plain",), False), (("plain", "xz"), False)):
        with archive(packing=packing, by_hash=by_hash) as index, server(apt_pool(), args=mirrored(index)) as s:
            workspace = s.open_workspace(pool="m")["id"]
            shell(s, workspace, "apt-get update && apt-get download hearth-lib && dpkg -x hearth-lib_*.deb x && x/usr/bin/hearth-lib")
            assert any("by-hash" in path for path in index.asked) == by_hash, index.asked


def no_other_bytes():
    """a package, or an index, that is not what the archive says is refused and not kept; the right one comes afterwards"""
    with archive() as index, server(apt_pool(warm=2), args=mirrored(index)) as s:
        workspace, other = (s.open_workspace(pool="m")["id"] for _ in range(2))
        shell(s, workspace, "apt-get update")
        path = f"/debian/{DEBS[0].path}"
        for lie in (Deb("hearth-tool", says="the tool is evil").content, DEBS[0].content[:-1], DEBS[0].content + b"x"):
            index.lie_about(path, lie)
            shell(s, workspace, "apt-get download hearth-tool", 100)
            assert fetched(s, workspace, "/apt/hearthy/" + DEBS[0].path) == "broken"
        left = shell(s, workspace, "ls -A").split()
        assert left and not any(name.endswith(".deb") for name in left), left  # apt itself sets wrong files aside
        seen = s.get(f"/v1/workspaces/{workspace}/egress").json
        assert {"hash_mismatch", "too_large"} <= {e["decision"] for e in seen["latest"]}, seen
        kept = os.listdir(os.path.join(s.data, "state", "mirror"))
        assert len(kept) == 1, kept  # the index
        index.lies.clear()
        shell(s, workspace, "apt-get download hearth-tool && dpkg -x hearth-tool_*.deb . && usr/bin/hearth-tool")

        # The archive has changed. The next server reads its new state.
        index.publish([*DEBS, Deb("hearth-new")])
        newest = [page for page in index.pages if "Packages" in page or "by-hash" in page]
        for page in newest:
            index.lie_about(page, b"\x1f\x8b" + bytes(100))
        s.kill9()
        s.start()
        shell(s, other, "apt-get update 2>&1 && apt-cache show hearth-new", 100)
        index.lies.clear()
        shell(s, other, "apt-get update && apt-get download hearth-new")


def one_download():
    """twenty who update and download at once cause one download of each file"""
    with archive(delay=1.0) as index, server(apt_pool(warm=4), args=mirrored(index)) as s:
        places = [s.open_workspace(pool="m")["id"] for _ in range(4)]
        five = ("for i in 1 2 3 4 5; do (mkdir $i; cd $i; o=\"-o Dir::State::lists=$i/lists/ -o Dir::Cache::pkgcache=\"; apt-get $o update && "
                "apt-get $o download hearth-other && dpkg -x hearth-other_*.deb . && usr/bin/hearth-other) >$i.log 2>&1 & done; wait; cat *.log; tail -qn1 *.log | grep -cx here")
        outcomes = []
        threads = [threading.Thread(target=lambda w=w: outcomes.append(s.run(w, five, timeoutSeconds=100))) for w in places]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [o["stdout"].splitlines()[-1] for o in outcomes] == ["5"] * 4, outcomes
        assert index.downloads() == [f"/debian/{DEBS[2].path}"], index.asked
        assert len(index.asked) == len(set(index.asked)), index.asked


def names_only():
    """what is no suite, index or package of the archive is not there, whatever is written; and nothing can be written"""
    with archive() as index, server(apt_pool(), args=mirrored(index)) as s:
        index.files["/debian/secret.deb"] = index.files["/secret.deb"] = b"secret"
        index.pages["/debian/dists/other/Release"] = "SHA256:\n"
        workspace = s.open_workspace(pool="m")["id"]
        assert fetched(s, workspace, f"/apt/hearthy/{DEBS[0].path}").startswith("200 ")
        assert fetched(s, workspace, f"/apt/hearthy/dists/hearthy/main/binary-{index.architecture}/Packages.gz").startswith("200 ")
        asked = len(index.asked)
        for path in ("/apt/other/dists/other/Release", "/apt/hearthy/dists/other/Release", "/apt/hearthy/secret.deb", "/apt/hearthy/../secret.deb",
                     "/apt/hearthy/%2e%2e/secret.deb", "/apt/hearthy//secret.deb", "/apt/hearthy/dists/hearthy/../../secret.deb", "/apt/", "/apt", "/apt/hearthy",
                     "/apt/hearthy/dists/hearthy/contrib/binary-amd64/Packages.gz", "/apt/hearthy/dists/hearthy/main/by-hash/SHA256/" + "0" * 64,
                     "/apt/hearthy/" + "x/" * 3000 + "y.deb"):
            assert fetched(s, workspace, path).startswith("404 "), path
        assert len(index.asked) == asked, index.asked[asked:]
        for method in ("POST", "PUT", "DELETE"):
            said = shell(s, workspace, f"python3 -c \"import http.client; c = http.client.HTTPConnection('127.0.0.1', 3128); "
                                       f"c.request('{method}', '/apt/hearthy/{DEBS[0].path}'); print(c.getresponse().status)\"")
            assert said == "405\n", said


def signature():
    """apt in the sandbox checks the archive's signature with the keyring that the operator names, on the bytes that the archive signed"""
    with tempfile.TemporaryDirectory(prefix="hearth-gpg-") as home:
        def gpg(*words, text=b""):
            done = subprocess.run(["gpg", "--homedir", home, "--batch", "--pinentry-mode", "loopback", "--passphrase", "", *words], input=text,
                                  capture_output=True, check=False)
            assert done.returncode == 0, done
            return done.stdout
        for who in ("archive", "stranger"):
            gpg("--quick-generate-key", f"{who}@example.invalid", "rsa2048", "sign", "never")
        keys = {who: gpg("--export", f"{who}@example.invalid") for who in ("archive", "stranger")}
        subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], check=False)

        def sign(text):
            return gpg("-u", "archive@example.invalid", "--clearsign", text=text.encode())
        keyring = "[signed-by=/workspace/key.gpg] "
        with archive(sign=sign) as index, archive(suite="bare") as bare, \
                server(apt_pool(warm=3), args=[*mirrored(index, option=keyring), *mirrored(bare, option="")]) as s:
            def update(who):
                workspace = s.open_workspace(pool="m")["id"]
                if who:
                    put = s.call("PUT", f"/v1/workspaces/{workspace}/files/key.gpg", raw=keys[who])
                    assert put.status in (200, 201, 204), put
                return s.run(workspace, "apt-get update 2>&1; apt-get download hearth-tool", timeoutSeconds=100)
            good, bad, none = update("archive"), update("stranger"), update(None)
            assert good["exitCode"] == 0 and "hearthy InRelease" in good["stdout"], good
            # The image has Debian's keyring, and no setting trusts this archive without it.
            assert "bare Release' is not signed" in good["stdout"], good
            for refused in (bad, none):
                assert refused["exitCode"] == 100 and "is not signed" in refused["stdout"], refused
            assert "NO_PUBKEY" in bad["stdout"], bad
        subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], check=False)


def not_everywhere():
    """without a network, or without a mirror of apt, nothing of it is there"""
    with archive() as index, server(apt_pool(), pool("n", "None"), args=mirrored(index)) as s:
        for place in (s.open_workspace(pool="n")["id"], s.open_workspace(pool="m", network="None")["id"]):
            assert shell(s, place, "echo \"[$APT_CONFIG]\"; ls -A /.hearth/run | grep -c apt || true") == "[]\n0\n"
        own = s.open_workspace(pool="m", env={"APT_CONFIG": "/workspace/own.conf"})["id"]
        assert shell(s, own, "echo $APT_CONFIG") == "/workspace/own.conf\n"
        place = s.open_workspace(pool="m")["id"]
        shell(s, place, "apt-get update && [ -r $APT_CONFIG ]")
        if not harness.on_docker():  # on docker, agent and tenant are one user, so the tenant owns the file
            shell(s, place, "! echo x 2>/dev/null >>$APT_CONFIG")
        assert index.asked


def archive_of_this_machine():
    """Returns the first Debian suite that this machine's apt takes packages from, as a line, and None; or None and
    the reason."""
    if not shutil.which("apt-get"):
        return None, "there is no apt-get"
    told = subprocess.run(["apt-get", "indextargets", "--format", "$(ORIGIN) $(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages"],
                          capture_output=True, text=True, check=False).stdout
    for origin, url, suite, component in (line.split() for line in told.splitlines() if len(line.split()) == 4):
        if origin != "Debian" or component != "main" or not re.match(r"https?://", url):
            continue
        try:
            with urllib.request.urlopen(f"{url.rstrip('/')}/dists/{suite}/InRelease", timeout=15) as answer:
                answer.read(1)
            return f"{url} {suite} main", None
        except OSError as e:
            return None, f"it is not reached: {type(e).__name__}"
    return None, "its apt knows no archive of Debian's"


real = None  # a line for this machine's archive


def real_archive():
    """a package of a real archive is found, verified by apt with Debian's key, and used; a second sandbox has it from the cache"""
    with server(apt_pool(warm=2), args=("--mirror-apt", real)) as s:
        first, second = (s.open_workspace(pool="m")["id"] for _ in range(2))
        update = "apt-get -o Acquire::Check-Valid-Until=false update 2>&1"
        said = shell(s, first, update)
        assert "InRelease" in said and "W:" not in said, said
        used = "apt-get -q download hello 2>&1 && dpkg -x hello_*.deb . && usr/bin/hello"
        assert shell(s, first, used).endswith("Hello, world!\n")
        assert "Candidate: " in shell(s, first, "apt-cache policy jq")
        begin = time.monotonic()
        shell(s, second, update)
        assert shell(s, second, used).endswith("Hello, world!\n")
        note(f"a second sandbox had it {time.monotonic() - begin:.1f} s later")
        seen = s.get(f"/v1/workspaces/{second}/egress").json
        assert all(e["decision"] in ("hit", "allowed") for e in seen["latest"]), seen
        shell(s, second, "apt-get install -y --download-only jq && ls .cache/apt/archives/jq_*.deb")


# These test only the server itself, so one runtime is enough.
for test in (forms, no_other_bytes, one_download, names_only, signature, real_archive):
    test.only = "oci"

if __name__ == "__main__":
    tests = [apt_works, forms, no_other_bytes, one_download, names_only, not_everywhere]
    if chosen(signature):
        if shutil.which("gpg"):
            tests.append(signature)
        else:
            note("signature is left out: gpg is not installed")
    if chosen(real_archive):
        real, why = archive_of_this_machine()
        if real:
            tests.append(real_archive)
        else:
            note(f"real_archive is left out: this machine has no archive to take packages from ({why})")
    main("server", tests)
