"""Rows of the table take the inputs and attributes that ONNX's own descriptions name."""

import pytest
from onnx.defs import get_all_schemas_with_history, onnx_opset_version

from heterosis.models.onnx.operators import table

# Attributes that are not done: a model that has them is refused when it is read.
NOT_DONE = {"Constant": {"sparse_value"}}
PASSED_OVER = {"consumed_inputs"}


def schemas():
    """The operators that are done, with every version in which they changed."""
    known = set(table.names())
    for schema in get_all_schemas_with_history():
        domain = "" if schema.domain == "ai.onnx" else schema.domain
        if (domain, schema.name) in known and not schema.deprecated:
            yield pytest.param(domain, schema, id=f"{schema.name}-{schema.since_version}")


@pytest.mark.parametrize("domain, schema", schemas())
def test_inputs_and_attributes(domain, schema):
    row = table.found(domain, schema.name, schema.since_version)
    if row is None:  # the version is older than what is done
        return
    most = None if row.rest or row.keeps else len(row.inputs)
    variadic = any(i.option.name == "Variadic" for i in schema.inputs)
    assert (most is None) == variadic or row.keeps, row
    if most is not None:  # some versions want an input that others do without
        assert row.required <= schema.min_input and schema.max_input <= most, row.inputs
    known = row.attributes | NOT_DONE.get(schema.name, set()) | PASSED_OVER
    assert set(schema.attributes) <= known
    assert row.wanted <= set(schema.attributes)


def test_the_latest_version_is_the_one_whose_cases_are_run():
    assert onnx_opset_version() == table.LATEST
