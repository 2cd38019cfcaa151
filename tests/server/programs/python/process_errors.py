# The errors of subprocess: status, signal, no program, no directory, a timeout.
import signal
import subprocess

for argv, options in ((["false"], {}), (["sh", "-c", "kill -9 $$"], {}), (["no-such-program"], {}), (["true"], {"cwd": "/none"}),
                      (["sleep", "20"], {"timeout": 0.1})):
    try:
        subprocess.run(argv, check=True, **options)
    except (subprocess.SubprocessError, OSError) as error:
        print(type(error).__name__, str(error).split(" after ")[0])
