"""From LLVM IR to machine code and plans for the core, kept in memory and on disk."""
