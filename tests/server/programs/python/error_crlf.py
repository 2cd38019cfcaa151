# Lines that end with CR LF.
text = """one
two"""
print(repr(text))
raise ValueError("line 5")
