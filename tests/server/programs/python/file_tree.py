# pathlib and shutil: make, copy, move, glob and walk a tree.
import pathlib
import shutil

root = pathlib.Path("src")
for name in ("a.txt", "b/c.txt", "b/d/e.py"):
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(name)
shutil.copytree(root, "copy", ignore=shutil.ignore_patterns("*.py"))
shutil.move("copy/b", "moved")
print(sorted(map(str, root.rglob("*.*"))), sorted(map(str, pathlib.Path("copy").rglob("*"))), sorted(map(str, pathlib.Path("moved").rglob("*"))))
shutil.rmtree(root)
path = pathlib.PurePath("/x/y.tar.gz")
print(path.stem, path.suffixes, path.with_suffix(".zip"), path.relative_to("/x"), root.exists())
