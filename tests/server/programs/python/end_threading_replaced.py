import sys
import types

sys.modules["threading"] = types.ModuleType("threading")
print("body")
sys.exit(3)
