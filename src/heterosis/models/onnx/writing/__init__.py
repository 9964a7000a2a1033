"""Programs as ONNX graphs: operations that ONNX has as its nodes, all others by their primitives.

`files` writes them; `programs` goes through a program, by the tables that `tables` describes.
"""
