import builtins
import json
import logging
import signal
import sys
import types
import warnings


class Handler(logging.Handler):
    def emit(self, record):
        print(self.format(record), file=kept)


def note(*arguments):
    kept.write("noted\n")


kept = open("kept.txt", "w")
kept.write("first\n")
logging.getLogger("l").addHandler(Handler())
logging.getLogger("l").warning("second")
signal.signal(signal.SIGINT, note)
signal.signal(signal.SIGTERM, note)
warnings.showwarning = note
sys.excepthook = note
builtins.note = note
json.note = lambda: kept
sys.modules["made"] = types.ModuleType("made")
sys.modules["made"].note = note
