# Text in several encodings, a byte order mark, and what does not fit.
import pathlib

path = pathlib.Path("text")
for encoding in ("utf-8", "utf-8-sig", "utf-16-le", "utf-16", "latin-1", "cp1252", "shift_jis"):
    text = "漢字" if encoding == "shift_jis" else "café €" if encoding != "latin-1" else "café"
    path.write_text(text, encoding=encoding)
    print(encoding, path.read_bytes(), path.read_text(encoding=encoding) == text)
for errors in ("ignore", "replace", "backslashreplace", "xmlcharrefreplace", "namereplace"):
    print("naïve→".encode("ascii", errors))
path.write_text("→", encoding="ascii")
