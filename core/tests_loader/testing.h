// The few words that these tests need of a test framework.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#define CHECK(condition)                                                            \
  do {                                                                              \
    if (!(condition)) {                                                             \
      std::fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);  \
      std::exit(1);                                                                 \
    }                                                                               \
  } while (false)

using Bytes = std::vector<std::byte>;

extern "C" std::int64_t host_add(std::int64_t a, std::int64_t b);
extern std::int64_t host_value;

// Finds what the snippets call.
void* resolve(std::string_view name);

void test_relocations();
void test_half();
void fuzz(const Bytes& object);
