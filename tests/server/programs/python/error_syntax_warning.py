# Doubtful code warns when it is compiled.
x = 5
if x is 5:
    print("\d" == "\\d")
assert (x == 6, "always true")
