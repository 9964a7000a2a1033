// What the process may use of the machine.
#pragma once

#include <cstdint>
#include <string>

namespace heterosis {

// Both are bounded by the process's control groups (versions 1 and 2, all ancestors). `root` is
// prefixed to every file looked at, for tests.

// Processors: the affinity mask, or the CPU quota rounded up where that is less. At least 1.
int usable_processors(const std::string& root = "");

// Bytes of memory that can be had without swapping.
int64_t available_memory(const std::string& root = "");

}  // namespace heterosis
