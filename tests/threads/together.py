"""Threads that begin at one moment."""

import sys
import threading

THREADS = 8


def together(body, count=THREADS):
    """What `body(0)` to `body(count - 1)` give, each called by a thread of its own."""
    results, errors = [None] * count, []
    start = threading.Barrier(count)

    def run(number):
        try:
            start.wait()
            results[number] = body(number)
        except BaseException as error:  # noqa: BLE001 - raised below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    for error in errors:
        raise error
    return results
