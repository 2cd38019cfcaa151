# exec, eval, compile and ast with namespaces of their own.
# Also as a cell of a context.
import ast

space = {"x": 2}
exec("def f(y):\n    return x * y\nresult = f(21)", space)
print(space["result"], eval("x + 1", {"x": 1}, {"x": 5}), ast.literal_eval("{'a': [1, (2,)]}"))
tree = ast.parse("a = b + 1")
tree.body[0].value.op = ast.Sub()
print(ast.unparse(tree), compile("1+1", "<s>", "eval").co_consts)
exec("import sys; print(sys._getframe().f_code.co_name, __name__)")
ast.literal_eval("__import__('os')")
