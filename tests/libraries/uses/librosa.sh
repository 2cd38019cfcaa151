# The pitch and the tempo of synthetic sound, through numba.
cat >sound.py <<'PY'
import librosa, numpy
rate = 22050
tone = librosa.tone(440, sr=rate, duration=2)
print(round(float(numpy.median(librosa.yin(tone, fmin=200, fmax=800, sr=rate))) / 10) * 10)
print(librosa.feature.mfcc(y=tone, sr=rate, n_mfcc=13).shape)
clicks = librosa.clicks(times=numpy.arange(0, 10, 0.5), sr=rate, length=10 * rate)
print(110 < float(numpy.atleast_1d(librosa.beat.beat_track(y=clicks, sr=rate)[0])[0]) < 130)
PY
python3 -W ignore sound.py
