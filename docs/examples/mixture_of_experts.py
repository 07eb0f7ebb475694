"""Train a mixture of experts over two islands, and print its losses: python docs/examples/mixture_of_experts.py.

Tokens are embedded and routed on one island, by a gate that learns. Data say how many go to which expert. The experts
are on another island, each on a device of its own. Only the rows of routed tokens cross, there and back. The result is
compared with the same model trained in one piece.
"""

import torch
import torch.nn.functional as nn
from pipelined_gpt import VOCABULARY, batches

import runtime as rt

EXPERTS, SHARDS, WIDTH, LEARNING_RATE = 2, 2, 16, 0.3
DENSE = 3  # embedding, gate and head; each expert has a matrix up and a matrix down


def rows_like(_embedding, _gate, tokens, places):
    """For each expert, at most all tokens of a shard, and their places."""
    rows = rt.ArraySpec((*tokens.shape, WIDTH), "float32", is_ragged=True)
    return [*[rows] * EXPERTS, *[rt.ArraySpec(places.shape, "int64", is_ragged=True)] * EXPERTS]


@rt.function(outputs=rows_like)
def route(embedding, gate, tokens, places):
    """Return for each expert the rows of its tokens, then for each the places of these tokens in the batch."""
    rows = embedding[tokens]
    chosen = (rows @ gate).argmax(-1)
    mine = [chosen == expert for expert in range(EXPERTS)]
    return *[rows[each] for each in mine], *[places[each] for each in mine]


def computed(up, down, rows):
    """What an expert computes."""
    return nn.gelu(rows @ up) @ down


@rt.function(outputs=rt.ArraySpec((1,), "int64"))
def count(rows):
    """Return how many rows there are."""
    return torch.tensor([len(rows)])


@rt.function(outputs=lambda _up, _down, rows: rows)
def forward(up, down, rows):
    """Run an expert."""
    return computed(up, down, rows)


def scored(dense, tokens, places, made, made_places):
    """Return rows and mean loss of a shard's tokens, given what the experts made of all tokens."""
    embedding, gate, head = dense
    rows = embedding[tokens]
    weights = torch.softmax(rows @ gate, -1)
    mixed = rows
    for expert, (each, where) in enumerate(zip(made, made_places, strict=True)):
        mine = (where >= places[0]) & (where <= places[-1])
        at = where[mine] - places[0]
        mixed = mixed.index_add(0, at, each[mine] * weights[at, expert, None])
    return rows, mixed @ head


def gradients_like(*specs):
    """The loss, and for each expert the gradients of at most all rows of a shard."""
    tokens = specs[DENSE]
    rows = rt.ArraySpec((*tokens.shape, WIDTH), "float32", is_ragged=True)
    return [rt.ArraySpec((1,), "float32"), *[rows] * EXPERTS]


@rt.function(outputs=gradients_like)
def finish(*arrays):
    """Return the loss of a shard, and the gradients of what experts made of its tokens."""
    dense, (tokens, targets, places), rest = arrays[:DENSE], arrays[DENSE : DENSE + 3], arrays[DENSE + 3 :]
    made, made_places = [each.detach().requires_grad_() for each in rest[:EXPERTS]], rest[EXPERTS:]
    _, scores = scored(dense, tokens, places, made, made_places)
    loss = nn.cross_entropy(scores, targets)
    found = torch.autograd.grad(loss, made)
    mine = [(each >= places[0]) & (each <= places[-1]) for each in made_places]
    return loss.detach().view(1), *[each[own] for each, own in zip(found, mine, strict=True)]


@rt.function(outputs=lambda *specs: specs[:3])
def backward(up, down, rows, gradients):
    """Update an expert, and return the gradients of its rows."""
    leaves = [each.detach().requires_grad_() for each in (up, down, rows)]
    of_up, of_down, of_rows = torch.autograd.grad(computed(*leaves), leaves, gradients)
    return up - LEARNING_RATE / SHARDS * of_up, down - LEARNING_RATE / SHARDS * of_down, of_rows


@rt.function(collective=True, outputs=lambda *specs: specs[:DENSE])
def update(*arrays):
    """Update embedding, gate and head by the gradients of all shards."""
    dense = [each.detach().requires_grad_() for each in arrays[:DENSE]]
    tokens, targets, places, *rest = arrays[DENSE:]
    made, made_places, gradients = rest[:EXPERTS], rest[EXPERTS : 2 * EXPERTS], rest[2 * EXPERTS :]
    rows, scores = scored(dense, tokens, places, made, made_places)
    of_rows = torch.zeros_like(rows)
    for each, where in zip(gradients, made_places, strict=True):
        mine = (where >= places[0]) & (where <= places[-1])
        of_rows = of_rows.index_add(0, where[mine] - places[0], each[mine])
    loss = nn.cross_entropy(scores, targets)
    found = torch.autograd.grad([loss, rows], dense, [torch.ones(()), of_rows])
    return tuple(
        each.detach() - LEARNING_RATE * rt.all_reduce(gradient) / rt.num_shards()
        for each, gradient in zip(dense, found, strict=True)
    )


def initial_parameters():
    """Return embedding, gate and head, and the matrices of each expert."""
    torch.manual_seed(0)
    dense = [torch.randn(VOCABULARY, WIDTH), torch.randn(WIDTH, EXPERTS), torch.randn(WIDTH, VOCABULARY) / WIDTH]
    experts = [[torch.randn(WIDTH, 32) / 4, torch.randn(32, WIDTH) / 6] for _ in range(EXPERTS)]
    return [each.numpy() for each in dense], [[each.numpy() for each in expert] for expert in experts]


def data():
    """Yield tokens and targets of each step, in a row, and the place of each token."""
    for inputs, targets in batches():
        tokens = torch.from_numpy(inputs[0]).reshape(-1)
        yield tokens.numpy(), targets[0].reshape(-1).copy(), torch.arange(len(tokens)).numpy()


def in_one_piece(dense, experts):
    """Return the losses of the same model without a runtime."""
    leaves = [torch.from_numpy(each.copy()).requires_grad_() for each in (*dense, *experts[0], *experts[1])]
    losses = []
    for given in data():
        tokens, targets, places = map(torch.from_numpy, given)
        rows = leaves[0][tokens]
        chosen = (rows @ leaves[1]).argmax(-1)
        made = [computed(*leaves[DENSE + 2 * each :][:2], rows[chosen == each]) for each in range(EXPERTS)]
        _, scores = scored(leaves[:DENSE], tokens, places, made, [places[chosen == each] for each in range(EXPERTS)])
        loss = nn.cross_entropy(scores, targets)
        found = torch.autograd.grad(loss, leaves)
        with torch.no_grad():
            for each, gradient in zip(leaves, found, strict=True):
                each -= LEARNING_RATE * gradient
        losses.append(loss.item())
    return losses


def on_islands(dense, experts):
    """Yield the loss of each step on the runtime, and how many tokens went to each expert."""
    devices = rt.make_virtual_device_set()
    tokens_on = devices.add_slice(SHARDS, island="island-0")
    experts_on = [devices.add_slice(1, island="island-1") for _ in range(EXPERTS)]
    copies, cut, gathered = [None] * DENSE, [0] * 3, [None] * EXPERTS
    routed = rt.pmap(route, devices=tokens_on, in_axes=[None, None, 0, 0])
    finished = rt.pmap(finish, devices=tokens_on, in_axes=[*copies, *cut, *gathered, *gathered])
    updated = rt.pmap(
        update, devices=tokens_on, in_axes=[*copies, *cut, *gathered, *gathered, *gathered], out_axes=None
    )
    counted = rt.pmap(count, devices=tokens_on)
    whole = {"in_axes": None, "out_axes": 0}
    run = [rt.pmap(forward, devices=each, **whole) for each in experts_on]
    learn = [rt.pmap(backward, devices=each, in_axes=None, out_axes=[None, None, 0]) for each in experts_on]

    @rt.program
    def step(dense, experts, tokens, targets, places):
        rows = routed(dense[0], dense[1], tokens, places)
        rows, where = rows[:EXPERTS], rows[EXPERTS:]
        made = [call(*own, each) for call, own, each in zip(run, experts, rows, strict=True)]
        losses, *gradients = finished(*dense, tokens, targets, places, *made, *where)
        learnt = [call(*own, *each) for call, own, *each in zip(learn, experts, rows, gradients, strict=True)]
        after = updated(*dense, tokens, targets, places, *made, *where, *[each[2] for each in learnt])
        return losses, [counted(each) for each in rows], list(after), [each[:2] for each in learnt]

    for tokens, targets, places in data():
        losses, counts, dense, experts = step(dense, experts, tokens, targets, places)
        yield losses.numpy().mean(), [int(each.numpy().sum()) for each in counts]


def main():
    """Train the model on the runtime."""
    torch.set_num_threads(1)
    dense, experts = initial_parameters()
    expected = in_one_piece(dense, experts)
    with rt.local(islands=2, hosts=1, devices=2):
        for number, (loss, counts) in enumerate(on_islands(dense, experts)):
            shares = " and ".join(map(str, counts))
            print(f"step {number}: {shares} tokens, loss {loss:.6f}, in one piece {expected[number]:.6f}")


if __name__ == "__main__":
    main()
