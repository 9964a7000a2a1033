"""The world of MXNet in one place: its operators, its symbols, and how its programs run here.

`operators` has a row for each operator, `symbols` the graphs made of them, `arrays` the functions
on arrays besides, and `compat` answers `import mxnet`. Users find them as `heterosis.nd`,
`heterosis.symbol` and `heterosis.install_as_mxnet()`.
"""
