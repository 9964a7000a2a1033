// What the processor under this process can do.
#pragma once

#include <string>
#include <vector>

namespace heterosis {

// Instruction set extensions that the generated code may need, under LLVM's names (`avx2`, `fma`,
// `neon`), and only those whose registers the operating system saves too.
std::vector<std::string> cpu_features();

}  // namespace heterosis
