# Markdown to HTML, to a Word document and back.
cat >text.md <<'MD'
# Title

Some *text*, and a table.

| a | b |
|---|---|
| 1 | $x^2$ |
MD
pandoc=$(python3 -c 'import pypandoc; print(pypandoc.get_pandoc_path())')
"$pandoc" text.md -t html
"$pandoc" text.md -o text.docx
"$pandoc" text.docx -t gfm
