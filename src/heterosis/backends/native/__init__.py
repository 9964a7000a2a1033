"""The native back end: machine code for this processor, through LLVM."""
