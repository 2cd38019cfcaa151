# A frame of exec() has no line, as its text has no file.
# Also as a cell of a context.
exec("x = 1\ny = x / 0\n")
