"""Makes what a sandbox's layer holds known to every Python in it: behind the packages of the workspace, so that what
somebody installs there counts, and before those of the image. PYTHONPATH leads here wherever there is a layer; who sets
another does without it. A virtual environment has packages of its own and gets none."""

import os
import sys

LAYER = "/.hearth/layer/site-packages"


def find_layer():
    site = sys.modules.get("site")
    if site is None or sys.prefix != sys.base_prefix or not os.path.isdir(LAYER):
        return
    before = len(sys.path)
    site.addsitedir(LAYER)
    added = sys.path[before:]
    del sys.path[before:]
    shared = [at for at, path in enumerate(sys.path) if path in site.getsitepackages()]
    first = shared[0] if shared else before
    sys.path[first:first] = added


def stand_aside():
    """The module of this name that the image may have is the one that Python was looking for."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if path != here]
    sys.path_importer_cache.pop(here, None)
    own = sys.modules.pop(__name__, None)
    try:
        import sitecustomize  # noqa: F401, PLW0406
    except ModuleNotFoundError as error:
        if error.name != __name__:
            raise
        sys.modules[__name__] = own


find_layer()
stand_aside()
