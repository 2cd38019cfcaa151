# Reads a wheel that is made here, with an extension module of the image in it.
python3 - <<'PY'
import _json, zipfile
name = "trial/" + _json.__file__.rpartition("/")[2]
with zipfile.ZipFile("trial-1.0-py3-none-linux_x86_64.whl", "w") as wheel:
    wheel.write(_json.__file__, name)
    wheel.writestr("trial-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-linux_x86_64\nRoot-Is-Purelib: false\n")
    wheel.writestr("trial-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: trial\nVersion: 1.0\n")
    wheel.writestr("trial-1.0.dist-info/RECORD", f"{name},,\n")
PY
auditwheel show trial-1.0-py3-none-linux_x86_64.whl 2>log | tr -s '\n '
