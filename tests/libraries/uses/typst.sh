# Typesets a page with a formula.
printf '#set page(width: 8cm, height: 4cm)\n= Title\n$ sum_(k=1)^n k = (n(n+1)) / 2 $\n' >a.typ
python3 -c '
import typst
print(typst.compile("a.typ")[:5], typst.compile("a.typ", format="svg").count(b"<path") > 9)'
