# Reads letters from a picture that matplotlib draws.
python3 - <<'PY'
import matplotlib
matplotlib.use("agg")
import matplotlib.pyplot as plt
figure = plt.figure(figsize=(4, 1), dpi=150)
figure.text(0.1, 0.4, "Hello sandbox", fontsize=24)
figure.savefig("a.png")
PY
tesseract a.png - 2>/dev/null | sed '/^[[:space:]]*$/d'
