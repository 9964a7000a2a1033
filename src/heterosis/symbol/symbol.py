"""The class of symbols, and how one is made: a module of MXNet's."""

from heterosis.mxnet.symbols.symbol import Symbol, group, load, load_json, var

__all__ = ["Symbol", "group", "load", "load_json", "var"]
