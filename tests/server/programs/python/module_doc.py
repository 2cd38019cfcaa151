# The docstring and the annotations of the program are there.
"""Not the docstring, as a comment may come before it but no more."""
import typing

x: int = 5
y: "list[str]"
print(__doc__)
print(__annotations__, typing.get_type_hints(__import__("__main__")))
