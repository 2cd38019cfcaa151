# The server answers, and the app itself computes in its test harness.
printf 'import streamlit as st\nn = st.number_input("n", value=2)\nst.write(f"double: {n * 2}")\n' >app.py
streamlit run app.py --server.headless true --server.address 127.0.0.1 --server.port 8501 --browser.gatherUsageStats false >log 2>&1 &
cat >ask.py <<'PY'
import time, urllib.request
for _ in range(900):
    try:
        print(urllib.request.urlopen("http://127.0.0.1:8501/_stcore/health", timeout=60).read())
        break
    except OSError:
        time.sleep(0.2)
print(b"<title>Streamlit</title>" in urllib.request.urlopen("http://127.0.0.1:8501/").read())
PY
python3 ask.py
kill %1
python3 -W ignore -c '
from streamlit.testing.v1 import AppTest
app = AppTest.from_file("app.py").run(timeout=60)
app.number_input[0].set_value(21).run()
print(app.markdown[0].value)' 2>err
