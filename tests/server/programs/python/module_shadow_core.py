# Files named as modules that the interpreter itself has imported already, or not.
import functools

print(functools.__file__ is not None, hasattr(functools, 'partial'))
import enum
import types

print(hasattr(enum, 'Enum'), hasattr(types, 'FunctionType'))
