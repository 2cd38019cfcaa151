# Reads a wheel that is made here, with a program in it.
python3 - <<'PY'
import zipfile
with zipfile.ZipFile("trial-1.0-py3-none-linux_x86_64.whl", "w") as wheel:
    wheel.write("/usr/bin/env", "trial/env")
    wheel.writestr("trial-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-linux_x86_64\nRoot-Is-Purelib: false\n")
    wheel.writestr("trial-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: trial\nVersion: 1.0\n")
    wheel.writestr("trial-1.0.dist-info/RECORD", "")
PY
auditwheel show trial-1.0-py3-none-linux_x86_64.whl 2>log | tr -s '\n '
