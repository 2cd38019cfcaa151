print(open(__file__).read(), __doc__, __import__("sys")._getframe().f_lineno, *__import__("inspect").stack()[0][3:5])
