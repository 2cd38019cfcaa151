cat >conanfile.py <<'PY'
from conan import ConanFile
class Trial(ConanFile):
    name, version = "trial", "1.0"
    def package_info(self):
        self.output.info("seen")
PY
conan profile detect 2>/dev/null || true
conan create . 2>/dev/null
conan list 'trial/*' 2>/dev/null | sed '/^$/d'
