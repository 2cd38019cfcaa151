# A wheel of a package of its own. The build needs poetry-core only, which is installed with it.
mkdir trial
printf '[project]\nname = "trial"\nversion = "1.0"\n[build-system]\nrequires = ["poetry-core"]\nbuild-backend = "poetry.core.masonry.api"\n' >pyproject.toml
echo 'x = 1' >trial/__init__.py
poetry check
poetry version --short
python3 -c 'import poetry.core.masonry.api as api; print(api.build_wheel("."))'
