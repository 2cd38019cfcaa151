# Files and folders that a program makes have the modes that the umask leaves.
import os

open("plain", "w").close()
os.close(os.open("private", os.O_CREAT | os.O_WRONLY, 0o600))
os.makedirs("a/b", exist_ok=True)
old = os.umask(0o077)
open("masked", "w").close()
os.mkdir("secret")
os.chmod("plain", 0o755)
for name in sorted(os.listdir(".")):
    if not name.startswith("main."):
        print(name, oct(os.stat(name).st_mode))
print(oct(old))
