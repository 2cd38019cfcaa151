# Carets point at the part of a long line, with wide characters before it.
# Also as a cell of a context.
data = {"漢字": {"rows": [{"value": None}]}}
print("é", data["漢字"]["rows"][0]["value"]["deep"] + 1)
