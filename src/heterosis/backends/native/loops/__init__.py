"""Loop nests as data: what they read, compute, reduce and write, and which work shares one."""
