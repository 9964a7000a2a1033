"""`python -m heterosis.ir` lists the primitives. `python -m heterosis ir` says of each, too, which
back ends compute it and whether it has a derivative: programs know neither."""

from heterosis.ir.listing import text

print(text({}))
