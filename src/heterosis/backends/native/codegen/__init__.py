"""From the description of kernels to LLVM IR."""
