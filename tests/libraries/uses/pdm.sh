mkdir -p src/trial
printf '[project]\nname = "trial"\nversion = "1.0"\nrequires-python = ">=3.11"\n[tool.pdm.scripts]\nhello = {call = "trial:hello"}\n' >pyproject.toml
printf 'def hello():\n    print("hello")\n' >src/trial/__init__.py
pdm config check_update false
pdm use --quiet --first /usr/bin/python3 || true
PYTHONPATH=src pdm run hello
pdm info --python | grep -c python
