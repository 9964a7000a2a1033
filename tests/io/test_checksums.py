"""A flipped bit anywhere in a file written here is an error; older files have no checksum."""

import json
import struct
from pathlib import Path

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


def symbols(path):
    net = network()
    net.hybridize()
    net(np.ones((0, 2)))
    net.export(path[:-1] + "net")
    Path(path[:-1] + "net-symbol.json").rename(path)
    return lambda path: gluon.SymbolBlock.imports(path, ["data"], path[:-1] + "net-0000.params")


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


def test_a_flipped_bit_of_a_symbol_file_is_found_or_changes_nothing(tmp_path):
    path = str(tmp_path / "x")
    load = symbols(path)
    expected, whole = load(path)._symbol.tojson(), (tmp_path / "x").read_bytes()
    found = 0
    for at in range(len(whole)):
        for bit in range(8):
            damaged = bytearray(whole)
            damaged[at] ^= 1 << bit
            (tmp_path / "x").write_bytes(damaged)
            try:
                block = load(path)
            except FormatError as error:
                assert "Nothing has been loaded" in str(error)
                found += 1
            else:
                assert block._symbol.tojson() == expected, (at, bit)
    assert found > 5 * len(whole)  # the others are spaces, or in the name of the checksum


def test_a_symbol_file_that_was_edited_says_how_to_read_it(tmp_path):
    path = str(tmp_path / "x")
    load = symbols(path)
    found = json.loads((tmp_path / "x").read_text())
    (tmp_path / "x").write_text(json.dumps(found))  # laid out in another way
    load(path)
    dense = next(node for node in found["nodes"] if node["op"] == "FullyConnected")
    dense["name"] = "dense"
    (tmp_path / "x").write_text(json.dumps(found))
    with pytest.raises(
        FormatError, match='edited it, leave "heterosis_checksum" out of its "attrs"'
    ):
        load(path)
    del found["attrs"]["heterosis_checksum"]
    (tmp_path / "x").write_text(json.dumps(found))
    assert load(path)._symbol.list_outputs() == ["dense_output"]


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
