# A program in one file, and one in a folder. It asks for objdump and objcopy, which the image lacks: LLVM's do, from a wheel.
mkdir tools
for each in objdump objcopy; do
    ln -s "$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib", "posix_user"))')/llvm/bin/llvm-$each" "tools/$each"
done
export PATH=$PWD/tools:$PATH
printf 'import json, sys\nprint(json.dumps({"frozen": getattr(sys, "frozen", False)}))\n' >a.py
pyinstaller --log-level ERROR --onefile a.py
dist/a
pyinstaller --log-level ERROR --onedir --name b a.py
dist/b/b
