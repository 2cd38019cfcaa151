# The distributions of the image and their versions are found.
from importlib import metadata, resources

print(metadata.version("numpy") == __import__("numpy").__version__, metadata.metadata("pandas")["Name"])
print(any(each.name == "pip" for each in metadata.entry_points(group="console_scripts")))
print(resources.files("json").joinpath("decoder.py").is_file())
metadata.version("no-such-distribution")
