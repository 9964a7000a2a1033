"""`python -m heterosis` is `heterosis.cli`."""

import sys

from heterosis.cli import main

sys.exit(main())
