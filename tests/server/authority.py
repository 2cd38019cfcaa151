"""A certificate authority of the tests, made with openssl."""

import os
import shutil
import subprocess
import tempfile


class Authority:
    """Certificates in a temporary folder."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="hearth-tls-")
        os.chmod(self.folder, 0o755)  # servers run as another user
        self.file = f"{self.folder}/ca.pem"
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                     "-subj", "/CN=test authority", "-keyout", "ca.key", "-out", "ca.pem")

    def openssl(self, *words):
        subprocess.run(["openssl", *words], cwd=self.folder, check=True, capture_output=True)

    def certificate(self, name, subject, days="2"):
        """Returns the files of a certificate for `subject`, an entry of subjectAltName."""
        with open(f"{self.folder}/{name}.ext", "w", encoding="ascii") as f:
            f.write(f"subjectAltName={subject}\n")
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                     "-keyout", f"{name}.key", "-out", f"{name}.csr")
        self.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", days,
                     "-extfile", f"{name}.ext", "-out", f"{name}.pem")
        return f"{self.folder}/{name}.pem", f"{self.folder}/{name}.key"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)
