"""What PyTorch makes of fixed inputs and weights, for what MXNet does not have.

`PYTHON tests/gluon/pytorch.py` writes pytorch_values.json, with a Python that has PyTorch; nothing
of ours is imported.
"""

import json
from pathlib import Path

import numpy

FILE = Path(__file__).with_name("pytorch_values.json")
LENGTHS = (3, 2)  # of the sequences in a batch of two

# (what it is, shape of queries, shape of keys and values or None, settings)
ATTENTION = {
    "plain": ((2, 3, 8), None, {}),
    "causal": ((2, 3, 8), None, {"is_causal": True}),
    "padded": ((2, 3, 8), None, {"padded": True}),
    "crossed": ((2, 3, 8), (2, 3, 5), {"padded": True}),
    "without bias": ((2, 3, 8), None, {"use_bias": False}),
}
ENCODERS = {
    "after": {"activation": "relu", "pre_norm": False},
    "before": {"activation": "gelu", "pre_norm": True},
    "causal": {"activation": "relu", "pre_norm": True, "is_causal": True},
}
LOSSES = ("smoothed", "smoothed probabilities", "focal", "focal unweighted")
OPTIMIZERS = {
    "adamw": {"learning_rate": 0.1, "wd": 0.2, "beta1": 0.8, "beta2": 0.95, "epsilon": 1e-3},
    "lion": {"learning_rate": 0.1, "wd": 0.2, "beta1": 0.8, "beta2": 0.95},
    "clipped": {"learning_rate": 0.5},
}
STEPS = 4


def numbers(shape, start=0.0):
    """Fixed numbers between -1 and 1."""
    return numpy.sin(1.7 * numpy.arange(numpy.prod(shape)) + start).reshape(shape)


def weight(shape, position):
    """What the parameter at `position` of a layer is set to."""
    return 0.7 * numbers(shape, 0.3 * position + 0.1)


def padding():
    """True where a key counts: (batch, keys)."""
    return numpy.arange(3) < numpy.array(LENGTHS)[:, None]


def classes():
    return numpy.array([1, 4, 0])


def probabilities():
    found = 1 + numbers((3, 5), 0.4)
    return found / found.sum(-1, keepdims=True)


# -- PyTorch --------------------------------------------------------------------------------------


def tensor(x, leaf=False):
    import torch

    return torch.tensor(x, requires_grad=leaf)


def listed(*tensors):
    return [[float(f"{n:.8g}") for n in t.detach().double().ravel().tolist()] for t in tensors]


def gradients(result, leaves):
    (result * tensor(numbers(tuple(result.shape), 0.7))).sum().backward()
    return listed(result, *(leaf.grad for leaf in leaves))


def attention(queries, others, how):
    """The result and the gradients: of queries, keys, then weights and biases one by one."""
    import torch

    width = (others or queries)[-1]
    weights, biases = [], []
    for i, columns in enumerate((queries[-1], width, width, 8)):
        weights.append(tensor(weight((8, columns), 2 * i), True))
        biases.append(tensor(weight((8,), 2 * i + 1), True))
    x = tensor(numbers(queries), True)
    y = x if others is None else tensor(numbers(others, 0.2), True)
    bias = how.get("use_bias", True)
    found, _ = torch.nn.functional.multi_head_attention_forward(
        *(t.transpose(0, 1) for t in (x, y, y)), 8, 2, None,
        torch.cat(biases[:3]) if bias else None, None, None, False, 0.0, weights[3],
        biases[3] if bias else None, use_separate_proj_weight=True,
        q_proj_weight=weights[0], k_proj_weight=weights[1], v_proj_weight=weights[2],
        key_padding_mask=~torch.tensor(padding()) if how.get("padded") else None,
        attn_mask=torch.nn.Transformer.generate_square_subsequent_mask(3, dtype=torch.float64)
        if how.get("is_causal") else None,
        need_weights=False,
    )  # fmt: skip
    inputs = [x] if others is None else [x, y]
    pairs = zip(weights, biases, strict=True)
    learnt = [t for w, b in pairs for t in ([w, b] if bias else [w])]
    return gradients(found.transpose(0, 1), [*inputs, *learnt])


def encoder(how):
    """The result and the gradient of the input."""
    import torch

    layer = torch.nn.TransformerEncoderLayer(
        8, 2, 12, 0.0, how["activation"], batch_first=True, norm_first=how["pre_norm"]
    )
    layer = layer.double()
    with torch.no_grad():
        own = layer.self_attn
        own.in_proj_weight.copy_(torch.cat([tensor(weight((8, 8), i)) for i in (0, 2, 4)]))
        own.in_proj_bias.copy_(torch.cat([tensor(weight((8,), i)) for i in (1, 3, 5)]))
        rest = [own.out_proj, layer.linear1, layer.linear2, layer.norm1, layer.norm2]
        for i, part in enumerate(rest, 3):
            part.weight.copy_(tensor(weight(tuple(part.weight.shape), 2 * i)))
            part.bias.copy_(tensor(weight(tuple(part.bias.shape), 2 * i + 1)))
    x = tensor(numbers((2, 3, 8)), True)
    mask = None
    if how.get("is_causal"):
        mask = torch.nn.Transformer.generate_square_subsequent_mask(3, dtype=torch.float64)
    return gradients(layer(x, mask), [x])


def normalized():
    import torch

    x, gamma = tensor(numbers((3, 5)), True), tensor(weight((5,), 0), True)
    return gradients(torch.nn.functional.rms_norm(x, (5,), gamma, 1e-6), [x, gamma])


def loss(name):
    import torch

    pred = tensor(3 * numbers((3, 5)), True)
    if name.startswith("smoothed"):
        label = tensor(probabilities() if "prob" in name else classes())
        found = torch.nn.functional.cross_entropy(
            pred, label, reduction="none", label_smoothing=0.2
        )
    else:  # as torchvision.ops.sigmoid_focal_loss has it
        label = tensor((numbers((3, 5), 0.9) > 0) * 1.0)
        p = torch.sigmoid(pred)
        surprise = torch.nn.functional.binary_cross_entropy_with_logits(
            pred, label, reduction="none"
        )
        found = surprise * (1 - p * label - (1 - p) * (1 - label)) ** 1.5
        if name == "focal":
            found = found * (0.3 * label + 0.7 * (1 - label))
        found = found.mean(1)
    return gradients(found, [pred])


def stepped(name):
    """Weights after each of a few steps."""
    import torch

    w = tensor(weight((2, 3), 0), True)
    how, found, mean = OPTIMIZERS[name], [], torch.zeros(2, 3, dtype=torch.float64)
    if name == "adamw":
        betas = how["beta1"], how["beta2"]
        rule = torch.optim.AdamW(
            [w], how["learning_rate"], betas, how["epsilon"], weight_decay=how["wd"]
        )
    else:
        rule = torch.optim.SGD([w], how["learning_rate"])
    for i in range(STEPS):
        g = tensor(numbers((2, 3), i))
        w.grad = g.clone()
        if name == "clipped":
            torch.nn.utils.clip_grad_norm_([w], 0.5)
        if name == "lion":  # which PyTorch has not: as the paper writes it
            ahead = torch.sign(how["beta1"] * mean + (1 - how["beta1"]) * g)
            with torch.no_grad():
                w -= how["learning_rate"] * (ahead + how["wd"] * w)
            mean = how["beta2"] * mean + (1 - how["beta2"]) * g
        else:
            rule.step()
        found.append(w.detach().clone())
    return listed(*found)


def averaged():
    """The moving average of a weight that takes steps, with a decay of 0.8."""
    import torch

    layer = torch.nn.Linear(3, 2, bias=False).double()
    with torch.no_grad():
        layer.weight.copy_(tensor(weight((2, 3), 0)))
    model = torch.optim.swa_utils.AveragedModel(
        layer, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.8)
    )
    model.update_parameters(layer)  # the first one copies
    for i in range(STEPS):
        with torch.no_grad():
            layer.weight += tensor(numbers((2, 3), i))
        model.update_parameters(layer)
    return listed(model.module.weight)


def answers():
    return {
        "attention": {name: attention(*case) for name, case in ATTENTION.items()},
        "encoders": {name: encoder(how) for name, how in ENCODERS.items()},
        "rms_norm": normalized(),
        "losses": {name: loss(name) for name in LOSSES},
        "optimizers": {name: stepped(name) for name in OPTIMIZERS},
        "average": averaged(),
    }


if __name__ == "__main__":
    FILE.write_text(json.dumps(answers(), indent=0) + "\n")
