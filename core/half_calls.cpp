#include "half_calls.h"

#include <bit>
#include <cstdint>

namespace heterosis {
namespace {

// A binary format of 16 bits: a sign, `exponent` bits, then `fraction` bits.
struct Format {
  int exponent, fraction;
  int bias() const { return (1 << (exponent - 1)) - 1; }
};

constexpr Format half_format{5, 10}, bfloat_format{8, 7};

float carry(std::uint32_t bits) { return std::bit_cast<float>(bits & 0xffff); }

// `value >> shift`, to the nearest, ties to even.
std::uint64_t shift_rounded(std::uint64_t value, int shift) {
  if (shift > 63) return 0;
  const std::uint64_t kept = value >> shift;
  const std::uint64_t rest = value & ((std::uint64_t{1} << shift) - 1);
  const std::uint64_t tie = std::uint64_t{1} << (shift - 1);
  return kept + (rest > tie || (rest == tie && (kept & 1)));
}

// Every float is a double exactly, so one rounding serves both.
std::uint32_t narrow(double number, Format format) {
  const auto bits = std::bit_cast<std::uint64_t>(number);
  const auto sign = static_cast<std::uint32_t>(bits >> 63) << 15;
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
  const int exponent = static_cast<int>(bits >> 52) & 0x7ff;
  const std::uint32_t infinity = ((1u << format.exponent) - 1) << format.fraction;
  if (exponent == 0x7ff) {
    if (fraction == 0) return sign | infinity;
    const auto payload = static_cast<std::uint32_t>(fraction >> (52 - format.fraction));
    return sign | infinity | payload | (1u << (format.fraction - 1));  // a NaN stays one: quiet
  }
  if (exponent == 0) return sign;  // a denormal double is far below half the least number here
  const int target = exponent - 1023 + format.bias();
  const std::uint64_t significand = fraction | (std::uint64_t{1} << 52);
  const int drop = 52 - format.fraction + (target > 0 ? 0 : 1 - target);
  const std::uint64_t rounded = shift_rounded(significand, drop);
  // The leading one of `rounded`, where there is one, adds one to the exponent below it.
  const std::uint64_t base = target > 0 ? static_cast<std::uint64_t>(target - 1) : 0;
  const std::uint64_t result = (base << format.fraction) + rounded;
  return sign | (result < infinity ? static_cast<std::uint32_t>(result) : infinity);
}

}  // namespace

float half_to_float(float half) {
  const auto bits = std::bit_cast<std::uint32_t>(half) & 0xffff;
  const std::uint32_t sign = (bits & 0x8000) << 16;
  const std::uint32_t exponent = (bits >> 10) & 31, fraction = bits & 0x3ff;
  if (exponent == 31) {
    const std::uint32_t quiet = fraction ? 0x400000 : 0;
    return std::bit_cast<float>(sign | 0x7f800000 | quiet | (fraction << 13));
  }
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
}

float float_to_half(float number) { return carry(narrow(number, half_format)); }
float double_to_half(double number) { return carry(narrow(number, half_format)); }
float float_to_bfloat(float number) { return carry(narrow(number, bfloat_format)); }
float double_to_bfloat(double number) { return carry(narrow(number, bfloat_format)); }

}  // namespace heterosis
