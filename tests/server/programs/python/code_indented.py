# A whole program that is indented is an error.
    print("indented")
