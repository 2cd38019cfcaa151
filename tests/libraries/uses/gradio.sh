# The server and its own client, on the loopback.
cat >app.py <<'PY'
import gradio, gradio_client
app = gradio.Interface(fn=lambda s: s.upper(), inputs="text", outputs="text", api_name="upper")
_, url, _ = app.launch(server_name="127.0.0.1", server_port=7860, prevent_thread_lock=True, quiet=True, share=False)
print(url)
print(gradio_client.Client(url, verbose=False).predict("hello", api_name="/upper"))
app.close()
PY
GRADIO_ANALYTICS_ENABLED=False python3 -W ignore app.py
