"""ONNX: its files, its operators in terms of ours, and networks that run them."""
