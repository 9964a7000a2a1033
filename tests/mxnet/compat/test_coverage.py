"""Every public name of MXNet's modules exists here, as our own and not by falling back."""

import pytest

from heterosis.cli import main
from heterosis.mxnet.compat.coverage import PLACES, coverage


@pytest.mark.parametrize("section", PLACES)
def test_every_name_is_there(section):
    (row,) = (row for row in coverage() if row.section == section)
    assert row.missing == ()


def test_the_table_is_printed(capsys):
    assert main(["names"]) == 0
    assert "208 of 208" in capsys.readouterr().out
