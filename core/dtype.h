// Element types. The order is that of DTYPES in src/heterosis/ir/types.py; change both.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace heterosis {

enum class DType : uint8_t {
  boolean,
  int8,
  uint8,
  int32,
  int64,
  float16,
  bfloat16,
  float32,
  float64,
  int16,
  uint16,
  uint32,
  uint64,
};

inline constexpr int kDTypes = 13;

struct DTypeFacts {
  std::string_view name;
  int8_t itemsize;
  char format;           // of the buffer protocol; 0 where it has none
  uint8_t dlpack_code;   // DLDataTypeCode
};

inline constexpr std::array<DTypeFacts, kDTypes> kDTypeFacts{{
    {"bool", 1, '?', 6},
    {"int8", 1, 'b', 0},
    {"uint8", 1, 'B', 1},
    {"int32", 4, 'i', 0},
    {"int64", 8, 'q', 0},
    {"float16", 2, 'e', 2},
    {"bfloat16", 2, 0, 4},
    {"float32", 4, 'f', 2},
    {"float64", 8, 'd', 2},
    {"int16", 2, 'h', 0},
    {"uint16", 2, 'H', 1},
    {"uint32", 4, 'I', 1},
    {"uint64", 8, 'Q', 1},
}};

inline const DTypeFacts& facts(DType dtype) { return kDTypeFacts[static_cast<size_t>(dtype)]; }

inline bool is_integer(DType dtype) {
  return dtype != DType::boolean && facts(dtype).dlpack_code <= 1;  // signed, unsigned
}

// Whether elements of an integer type hold the number.
inline bool holds(DType dtype, int64_t number) {
  const bool is_signed = facts(dtype).dlpack_code == 0;
  const int bits = 8 * facts(dtype).itemsize - is_signed;  // of what is not negative
  if (number < 0) return is_signed && -(number + 1) >> (bits - 1) >> 1 == 0;
  return bits >= 63 || number >> bits == 0;
}

inline int64_t itemsize(DType dtype) { return facts(dtype).itemsize; }

}  // namespace heterosis
