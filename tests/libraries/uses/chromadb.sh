# A collection on disk with vectors of one's own, and the server with a client.
cat >base.py <<'PY'
import chromadb
from chromadb.config import Settings
client = chromadb.PersistentClient("data", settings=Settings(anonymized_telemetry=False))
notes = client.create_collection("notes")
notes.add(ids=["a", "b", "c"], embeddings=[[1, 0], [0, 1], [0.9, 0.1]], documents=["one", "two", "three"])
print(notes.query(query_embeddings=[[1, 0]], n_results=2)["ids"])
PY
python3 -W ignore base.py
ANONYMIZED_TELEMETRY=False chroma run --path served --host 127.0.0.1 --port 8001 >log 2>&1 &
for _ in $(seq 150); do (: </dev/tcp/127.0.0.1/8001) 2>/dev/null && break || sleep 0.2; done
python3 -W ignore -c '
import chromadb
from chromadb.config import Settings
client = chromadb.HttpClient("127.0.0.1", 8001, settings=Settings(anonymized_telemetry=False))
print(client.get_or_create_collection("notes").count())'
kill %1
