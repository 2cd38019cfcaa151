# -*- coding: latin-1 -*- Names and texts of another encoding come out right.
text = "é"
print(text.encode("unicode_escape"), len(text))
raise ValueError(text)
