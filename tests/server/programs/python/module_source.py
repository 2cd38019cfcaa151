# A program reads its own text: by __file__, inspect, linecache and ast.
# Also as a cell of a context.
import ast
import inspect
import linecache


def triple(x):
    # a comment inside
    return 3 * x


print(inspect.getsource(triple), inspect.getsourcelines(triple)[1], inspect.getcomments(triple))
print(repr(linecache.getline(triple.__code__.co_filename, 1)), triple.__code__.co_firstlineno)
print(ast.unparse(ast.parse(inspect.getsource(triple))))
