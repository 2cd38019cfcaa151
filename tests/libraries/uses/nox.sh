cat >noxfile.py <<'PY'
import nox
@nox.session(venv_backend="none")
@nox.parametrize("n", [1, 2])
def tests(session, n):
    session.run("sh", "-c", f"echo session {n}", silent=False)
PY
nox --nocolor 2>/dev/null | grep '^session'
nox --list --nocolor 2>/dev/null | grep -c tests
