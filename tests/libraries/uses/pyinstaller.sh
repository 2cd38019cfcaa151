# A program in one file, and one in a folder.
printf 'import json, sys\nprint(json.dumps({"frozen": getattr(sys, "frozen", False)}))\n' >a.py
pyinstaller --log-level ERROR --onefile a.py
dist/a
pyinstaller --log-level ERROR --onedir --name b a.py
dist/b/b
