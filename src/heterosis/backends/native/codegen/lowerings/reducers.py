"""How reductions and scans combine partial results."""

from __future__ import annotations

from heterosis.backends.native.codegen.emit import reducers
from heterosis.backends.native.codegen.tables import REDUCERS
from heterosis.ir.primitives import reductions as primitives

REDUCERS[primitives.SUM] = REDUCERS[primitives.CUMSUM] = reducers.SUM
REDUCERS[primitives.PROD] = REDUCERS[primitives.CUMPROD] = reducers.PROD
REDUCERS[primitives.MAX] = reducers.MAX
REDUCERS[primitives.MIN] = reducers.MIN
REDUCERS[primitives.ANY] = reducers.ANY
REDUCERS[primitives.ALL] = reducers.ALL
