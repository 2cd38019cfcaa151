# A page with a script, in Debian's chromium.
cat >page.py <<'PY'
import shutil
from playwright.sync_api import sync_playwright
with sync_playwright() as p:
    browser = p.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
    page = browser.new_page(viewport={"width": 200, "height": 100})
    page.set_content("<h1 id=a>one</h1><script>document.getElementById('a').textContent = [6 * 7, window.innerWidth].join()</script>")
    print(page.inner_text("#a"))
    print(page.screenshot()[:4], page.pdf()[:5])
    browser.close()
PY
python3 page.py
