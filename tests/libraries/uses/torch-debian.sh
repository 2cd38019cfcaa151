# A network learns a line, in two threads, with Debian's PyTorch, which is for the processor only.
cat >learn.py <<'PY'
import torch
torch.manual_seed(1)
torch.set_num_threads(2)
x = torch.linspace(-1, 1, 100).unsqueeze(1)
model, loss = torch.nn.Linear(1, 1), torch.nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for _ in range(100):
    optimizer.zero_grad()
    loss(model(x), 3 * x + 2).backward()
    optimizer.step()
print([round(p.item(), 2) for p in model.parameters()], torch.cuda.is_available())
PY
python3 -W ignore learn.py
