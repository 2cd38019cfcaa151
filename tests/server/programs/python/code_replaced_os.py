import os

os.getpid = os._exit = os.read = os.close = None
raise SystemExit(4)
