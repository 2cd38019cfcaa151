"""Virtual environments with exact packages of PyPI, for the clients that tests drive. Each is made once for its list of
versions and kept in the build."""

import filecmp
import os
import shutil
import subprocess
import sys

from harness import BUILD


def environment(name, pins):
    """Returns the Python of the environment `name`, which has the packages of the file `pins`. Raises OSError if they are
    unavailable."""
    folder = os.path.join(BUILD, name)
    python, mark = os.path.join(folder, "bin", "python"), os.path.join(folder, os.path.basename(pins))
    if os.path.exists(mark) and filecmp.cmp(pins, mark, shallow=False):
        return python
    shutil.rmtree(folder, ignore_errors=True)
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1", "-r", pins]
    for command in ([sys.executable, "-m", "venv", folder], pip):
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
        except subprocess.TimeoutExpired as e:
            raise OSError(f"{' '.join(command[:4])} took too long") from e
        if done.returncode != 0:
            said = (done.stdout + done.stderr).strip().splitlines() or [""]
            raise OSError(f"{' '.join(command[:4])} failed: {said[-1]}")
    shutil.copy(pins, mark)
    return python
