printf -- '---\ntitle: A\n---\n\nText *here*.\n' >a.qmd
quarto render a.qmd --to html --quiet
grep -c '<em>here</em>' a.html
