# A project's version and a script in an environment that hatch makes.
cat >pyproject.toml <<'TOML'
[project]
name = "trial"
version = "1.0"
[tool.hatch.envs.default]
skip-install = true
[tool.hatch.envs.default.scripts]
hello = "python -c 'import sys; print(sys.prefix != sys.base_prefix)'"
TOML
hatch version 2>log
hatch run hello 2>log
