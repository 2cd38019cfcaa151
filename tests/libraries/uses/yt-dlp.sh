# Downloads from a server on the loopback.
python3 -c '
import math, struct, wave
with wave.open("tone.wav", "wb") as out:
    out.setparams((1, 2, 8000, 0, "NONE", ""))
    out.writeframes(b"".join(struct.pack("<h", int(9000 * math.sin(i / 3))) for i in range(8000)))'
python3 -m http.server 8123 --bind 127.0.0.1 >log 2>&1 &
sleep 1
yt-dlp --quiet --no-warnings --no-progress --output 'got.%(ext)s' --print after_move:filename http://127.0.0.1:8123/tone.wav
kill %1
cmp tone.wav got.wav && echo same
