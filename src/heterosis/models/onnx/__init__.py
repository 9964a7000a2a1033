"""ONNX: its files, its operators in terms of ours, networks that run them; programs as files."""
