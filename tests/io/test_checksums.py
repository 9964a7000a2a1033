"""A flipped bit anywhere in a file written here is an error; older files have no checksum."""

import struct

import pytest
from safetensors.numpy import load as load_safetensors
from safetensors.numpy import save as save_safetensors

import heterosis
from heterosis import gluon, np, npx
from heterosis.gluon import nn
from heterosis.io.packing import pack, unpack
from heterosis.runtime.errors import FormatError


def network():
    net = nn.Dense(2, in_units=2)
    net.initialize()
    return net


def parameters(path):
    network().save_parameters(path)
    return network().load_parameters


def arrays(path):
    npx.save(path, {"x": np.ones((2, 3)), "empty": np.ones((0, 2))})
    return npx.load


def program(path):
    scaled = heterosis.hybridize(lambda x: x * np.array([1.5, 2.5]))
    heterosis.save(scaled, path, np.ones(2))
    return heterosis.load


def states(path):
    trainer = gluon.Trainer(network().collect_params(), "adam")
    trainer.save_states(path)
    return trainer.load_states


@pytest.mark.parametrize("write", [parameters, arrays, program, states])
def test_every_flipped_bit_is_found(write, tmp_path):
    path = str(tmp_path / "x")
    load = write(path)
    load(path)
    with open(path, "rb") as file:
        whole = file.read()
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << at % 8
        with open(path, "wb") as file:
            file.write(damaged)
        with pytest.raises(FormatError, match=r"Nothing has been loaded|no packed arrays"):
            load(path)


def test_params_without_a_checksum_are_read(tmp_path):
    npx.save(tmp_path / "x", [np.array([1.0, 2.0])])
    whole = (tmp_path / "x").read_bytes()
    assert whole[-12:-4] == b"HXSEALED"
    (tmp_path / "x").write_bytes(whole[:-12])
    assert npx.load(tmp_path / "x")[0].tolist() == [1.0, 2.0]
    (tmp_path / "x").write_bytes(whole[:-4] + struct.pack("<I", 0))
    with pytest.raises(FormatError, match="its checksum is wrong: a part"):
        npx.load(tmp_path / "x")


def test_packed_arrays_without_a_checksum_are_read():
    packed = pack({"checksum": np.array([1, 2])}, {"fact": {"checksum": "00000000"}})
    found, facts = unpack(packed)
    assert (found["checksum"].tolist(), facts) == ([1, 2], {"fact": {"checksum": "00000000"}})
    old = save_safetensors(load_safetensors(packed), {"fact": "7"})
    assert unpack(old)[1] == {"fact": 7}
