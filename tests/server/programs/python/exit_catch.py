# SystemExit is no Exception: a broad except lets it through.
import sys

try:
    try:
        sys.exit(6)
    except Exception:
        print("never")
except SystemExit as end:
    print("caught", end.code)
sys.exit(None)
