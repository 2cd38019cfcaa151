# A background process of a shell is not waited for by the parent, and its output still comes.
import subprocess

subprocess.Popen(["sh", "-c", "sleep 1.5; echo from the background"])
print("parent has ended", flush=True)
