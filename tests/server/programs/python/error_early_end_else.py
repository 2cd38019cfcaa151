if True:
    x = 1
else:
