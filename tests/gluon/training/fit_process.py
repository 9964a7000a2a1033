"""A training run as a process of its own: `fit_process FOLDER EPOCHS [more | die N]`.

With `die N` the process ends, without any clean-up, while it writes `last.checkpoint` for the Nth
time; `more` starts from other random numbers, as a new process would.
"""

import hashlib
import os
import sys

from heterosis import gluon, np
from tests.gluon.training import fit_cases


def die_at(writing):
    """Let the process end when a checkpoint is written, but has not its name yet."""
    left = [writing]

    def replace(source, target):
        left[0] -= str(target).endswith(".checkpoint")
        if not left[0]:
            os._exit(9)
        rename(source, target)

    rename, os.replace = os.replace, replace


def main():
    folder, epochs, *rest = sys.argv[1:]
    np.random.seed(1 if "more" in rest else 3)
    if "die" in rest:
        die_at(int(rest[1]))
    net, trainer = fit_cases.made()
    gluon.fit(
        net, fit_cases.loader(), loss=fit_cases.LOSS, trainer=trainer, epochs=int(epochs),
        checkpoint=folder,
    )  # fmt: skip
    arrays, *numbers = fit_cases.everything(net, trainer)
    digest = hashlib.sha256(b"".join(a.tobytes() for a in arrays)).hexdigest()
    print(digest, numbers)


if __name__ == "__main__":
    main()
