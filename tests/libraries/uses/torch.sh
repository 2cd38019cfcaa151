# A network learns a line, in two threads.
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
print([round(p.item(), 2) for p in model.parameters()])
loader = torch.utils.data.DataLoader(torch.arange(8), batch_size=4, num_workers=1)
print([batch.sum().item() for batch in loader])
PY
python3 -W ignore learn.py
