import lib

lib.call(lambda: 1 / 0)
