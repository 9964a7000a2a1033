// The functions outside an object that loaded code may call, by name.
//
// A fixed list rather than whatever the process exports: a kernel that needs something else is
// refused when it is loaded, with the name, on every machine alike.
#pragma once

#include <string>
#include <string_view>

namespace heterosis {

// Makes `address` known as `name`, for example a routine of a library that was opened at run time.
// Objects loaded earlier keep the address they were given.
void register_symbol(std::string name, void* address);

// The address of `name`, or nullptr.
void* find_symbol(std::string_view name);

}  // namespace heterosis
