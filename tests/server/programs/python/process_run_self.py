# A program runs itself as a child, as launchers of workers do.
import subprocess
import sys

if sys.argv[1:] == ["worker"]:
    print("worker reads", sys.stdin.read())
    sys.exit(2)
done = subprocess.run([sys.executable, __file__, "worker"], input="the task", capture_output=True, text=True)
print(done.returncode, done.stdout, done.stderr, sep="|")
